"""`spinbench.bracket`: one contributor after another, until the budget is spent or the bracket is closed."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import numpy as np

from spinbench.errors import BudgetError, ModelError, SpinbenchError, UnsupportedError
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.inference.bracketing.contributors import ASSUMING, PLAN, Contributor, Task, contribute, load
from spinbench.inference.bracketing.interval import Interval, Known, News
from spinbench.inference.bracketing.states import above
from spinbench.inference.budget import Budget, is_whole
from spinbench.inference.request import check_model
from spinbench.inference.showing.progress import whole
from spinbench.models import Model

Progress = Callable[[Interval, str], None]

GRACE, LATE = 0.1, 0.15
"""Share of the budget, and seconds, by which who is at work at its end may overrun it."""
OVERRUN = 1.5
"""Of its share, what others may take."""
LEAST = 0.01
"""Share of the budget below which nobody is asked any more."""


def bracket(
    model: Model,
    budget: Budget | int | str = "10 s",
    *,
    gap: float | None = None,
    seed: int = 0,
    delta: float = 1e-3,
    max_gib: float = 1.0,
    assumed: bool = False,
    progress: Progress | None = None,
) -> Interval:
    """Between which numbers log Z lies: certainly, and with a probability of 1 - delta.

    Exact where that fits. Else bounds by the heaviest states, mean field, gauges, trees, and mini-buckets that grow
    with the time they get, whose draws give the probable bracket. Each works in a process of its own, which is ended
    with its time.

    Args:
        model: any model.
        budget: wall-clock ("10 s"); loading and compiling code is not counted.
        gap: nats; it ends once log Z is known to lie between so close numbers, with probability 1 - delta.
        seed: of all random numbers.
        delta: with which probability any of the probable bounds may be wrong.
        max_gib: memory of a contributor's tables, in GiB.
        assumed: whether tempering is asked for an upper bound, too, which holds if its last states are draws of the
            model.
        progress: called with what is known and who is at work, several times a second.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
        SpinbenchError: an argument is no budget in seconds, or out of range.
    """
    seconds = _checked(model, budget, gap, seed, delta, max_gib)
    with whole(f"bracket of {model.name}") as say:
        say("loading")
        since = time.perf_counter()
        load(model)
        loading = time.perf_counter() - since

        def told(known: Interval, who: str) -> None:
            say(f"{known.seconds:.1f} s of {seconds:g} s, {known.sentences()[0]}; {who} at work")
            if progress is not None:
                progress(known, who)

        known = Known(gap)
        asking = _Asking(model, seconds, known, loading, told)
        known.add(News((above(model),)))  # of largest entries: known however short the budget
        plan = (*PLAN[:-1], ASSUMING, PLAN[-1]) if assumed else PLAN
        for number, each in enumerate(plan, start=1):
            kept = sum(later.kept for later in plan[number:])
            asking.ask(each, Task(model, each.name, 0.0, seed, delta, max_gib), kept)
            if asking.closed:
                break
    return asking.interval()


def _checked(model: object, budget: Budget | int | str, gap: object, seed: object, *positive: float) -> float:
    """The budget in seconds."""
    check_model(model)
    parsed = Budget.parse(budget)
    if parsed.seconds is None:
        raise BudgetError(f"a bracket takes a budget in seconds, and {parsed} was given; examples: '10 s', '500 ms'")
    if not is_whole(seed, 0):
        raise SpinbenchError(f"seed={seed!r} was given; a whole number, 0 or more, is needed")
    delta, max_gib = positive
    if not (isinstance(delta, int | float) and 0 < delta < 1):
        raise SpinbenchError(f"delta={delta!r} was given; a number between 0 and 1 is needed")
    for name, value in (("gap", gap), ("max_gib", max_gib)):
        if value is None:
            continue
        if isinstance(value, bool) or not (isinstance(value, int | float) and 0 < value < math.inf):
            raise SpinbenchError(f"{name}={value!r} was given; a positive number is needed")
    return parsed.seconds


class _Asking:
    """Asks contributors, within a budget.

    Args:
        model: whose log Z.
        seconds: of the budget.
        known: that what they find is added to.
        loading: seconds that loading has taken.
        progress: as of `bracket`.
    """

    def __init__(self, model: Model, seconds: float, known: Known, loading: float, progress: Progress) -> None:
        self._model, self._budget, self._known, self._loading = model, seconds, known, loading
        self._progress = progress
        self._refused: dict[str, str] = {}
        self._told = False
        self._since = time.perf_counter()

    def interval(self) -> Interval:
        """What is known now."""
        return self._known.interval(self._spent(), self._loading, self._refused, self._model.name)

    @property
    def closed(self) -> bool:
        """Whether nobody needs to be asked any more."""
        return self._known.closed()

    def ask(self, each: Contributor, task: Task, kept: float) -> None:
        """One contributor; what keeps it from telling anything becomes its refusal.

        Args:
            each: who, with its share.
            task: without its seconds.
            kept: share of the budget that is left to later ones.
        """
        last = not each.share
        room = self._left() - kept * self._budget
        if room < LEAST * self._budget:
            self._refused[each.name] = "the budget was over before its turn"
            return
        seconds = room if last else min(each.share * self._budget, room)
        limit = seconds + GRACE * self._budget + LATE if last else min(OVERRUN * seconds, room)
        self._told = False
        reason = self._reason(task._replace(seconds=seconds), limit)
        if reason and not self._told:
            self._refused[each.name] = reason

    def _reason(self, task: Task, limit: float) -> str:
        """What kept a contributor from its answer; empty for nothing."""
        try:
            self._listen(task, limit)
        except SpinbenchError as error:
            if isinstance(error, ModelError) and not isinstance(error, UnsupportedError):
                raise
            return str(error)
        except (ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
            return f"{type(error).__name__}: {error}"
        except OverdueError:
            return f"it was not ready after {limit:.2g} s"
        except DiedError:
            return "its process died, as it does where memory runs out"
        return ""

    def _listen(self, task: Task, limit: float) -> None:
        for news in run_in_child(contribute, task, limit):
            if news is not None:
                self._known.add(news)
                self._told = True
            self._progress(self.interval(), task.name)

    def _spent(self) -> float:
        return time.perf_counter() - self._since

    def _left(self) -> float:
        return max(self._budget - self._spent(), 0.0)
