"""`spinbench.bracket`: one source after another, until the budget is spent or the bracket is closed."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from spinbench.api.bounds import BoundSource, Finding
from spinbench.errors import ModelError, SpinbenchError, UnsupportedError
from spinbench.foundation import child, deadline
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.bracketing.interval import Interval, summarise
from spinbench.inference.bracketing.sources import Request, find_bounds, load, load_sources
from spinbench.inference.budget import Budget, check_probability, check_whole, parse_seconds
from spinbench.inference.checks.best_states import bound_above
from spinbench.inference.notebook.progress import whole
from spinbench.inference.request import check_model
from spinbench.models import Model

Progress = Callable[[Interval, str], None]

# The source that is active at the end of the budget may overrun it by this share and these seconds.
GRACE, LATE = 0.1, 0.15
# A source's process is ended after this many times its share of the budget.
OVERRUN = 1.5
# No source is started with less than this share of the budget.
MIN_SHARE = 0.01


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
        budget: wall-clock ("10 s") or the CPU's ("10 s cpu"); loading and compiling code is not counted.
        gap: nats; it ends once log Z is known to lie between so close numbers, with probability 1 - delta.
        seed: of all random numbers.
        delta: with which probability any of the probable bounds may be wrong.
        max_gib: memory of a source's tables, in GiB.
        assumed: whether tempering is asked for an upper bound, too, which holds if its last states are draws of the
            model.
        progress: called with what is known and who is at work, several times a second.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
        SpinbenchError: an argument is no budget in seconds, or out of range.
    """
    _check_arguments(model, gap, seed, delta, max_gib)
    seconds, cpu = parse_seconds(budget, "a bracket")
    with whole(f"bracket of {model.name}") as say, deadline.budgets_on(cpu=cpu):
        say("loading")
        since = deadline.now()
        plan, refused = load_sources(assumed=assumed)
        load(model, plan)
        begun = deadline.now()
        # The product of the largest entries is a bound that is always available.
        findings = [Finding((bound_above(model),))]
        looks = sum(source.looks for source in plan)

        def interval() -> Interval:
            return summarise(findings, gap, deadline.now() - begun, begun - since, refused, model.name)

        def listen(source: BoundSource, share: float, limit: float) -> None:
            request = Request(model, share, seed, delta / looks if source.looks else delta, max_gib)
            for finding in child.run_in_child(partial(find_bounds, source), request, limit):
                if finding is not None:
                    findings.append(finding)
                current = interval()
                say(f"{current.seconds:.1f} s of {seconds:g} s, {current.sentences()[0]}; {source.name} at work")
                if progress is not None:
                    progress(current, source.name)

        for number, source in enumerate(plan, start=1):
            reserved = sum(later.kept_share for later in plan[number:]) * seconds
            room = max(seconds - (deadline.now() - begun), 0.0) - reserved
            if room < MIN_SHARE * seconds:
                refused[source.name] = "the budget was over before its turn"
                continue
            share, limit = room, room + GRACE * seconds + LATE
            if source.share:
                share = min(source.share * seconds, room)
                limit = min(OVERRUN * share, room)
            before = len(findings)
            reason = _refusal(partial(listen, source, share, limit), limit)
            if reason and len(findings) == before:
                refused[source.name] = reason
            verdict = interval().verdict
            if verdict == "exact" or (gap is not None and verdict == "resolved"):
                break
        return interval()


def _refusal(listen: Callable[[], None], limit: float) -> str:
    """What kept a source from its answer within so many seconds; empty for nothing."""
    try:
        listen()
    except SpinbenchError as error:
        if isinstance(error, ModelError) and not isinstance(error, UnsupportedError):
            raise
        return str(error)
    except (ArithmeticError, MemoryError, np.linalg.LinAlgError) as error:
        return f"{type(error).__name__}: {error}"
    except child.OverdueError:
        return f"it was not ready after {format_seconds(limit)}"
    except child.DiedError:
        return "its process died, as it does where memory runs out"
    return ""


def _check_arguments(model: object, gap: object, seed: object, *positive: float) -> None:
    check_model(model)
    check_whole("seed", seed, 0)
    delta, max_gib = positive
    check_probability("delta", delta)
    for name, value in (("gap", gap), ("max_gib", max_gib)):
        if value is None:
            continue
        if isinstance(value, bool) or not (isinstance(value, int | float) and 0 < value < math.inf):
            raise SpinbenchError(f"{name}={value!r} was given; a positive number is needed")
