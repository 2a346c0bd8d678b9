"""What is known before methods race: the exact answer where it fits, else bounds on log Z that need no compiler."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np

from spinbench.api.bounds import Bound
from spinbench.errors import UnsupportedError
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.advising.entrant import answer_requests
from spinbench.inference.advising.ranking import Target, flat
from spinbench.inference.bracketing.sources import find_quick_bounds
from spinbench.inference.checks import best_states
from spinbench.inference.result import Result
from spinbench.inference.runner import exact
from spinbench.models import Model

# Share of the budget that an exact answer may take by its planner's prediction.
PREDICTED = 0.3
# Share of the budget after which the exact answer is stopped: on a slow machine predictions are up to 2.3 times too
# low.
EXACT = 0.7
# Share of the budget for bounds that need no compiler, and seconds beside it for what a child process loads.
QUICK, LOADING = 0.03, 0.3


def answer_exactly(model: Model, seconds: float, target: Target) -> tuple[Result | None, str, tuple[Bound, ...]]:
    """The exact answer, or why there is none within its share of so many seconds; and log Z as bounds where it is known
    though marginals are not."""
    budgets = [f"{PREDICTED * seconds} s"]
    try:
        outcomes = run_in_child(answer_requests, (lambda budget: exact(model, budget=budget), budgets), EXACT * seconds)
        outcome = next(outcome for outcome in outcomes if outcome is not None)
    except OverdueError:
        return None, f"it had not answered after {format_seconds(EXACT * seconds)}", ()
    except DiedError as error:
        return None, str(error), ()
    result = outcome.result
    if result is None or target == "log_z":
        return result, outcome.why.replace("no exact answer: ", "", 1), ()
    marginals = flat(result.marginals)
    if marginals is None or not np.isfinite(marginals).all():
        return None, "exact marginals are out of reach of some variables", result.bounds
    return result, "", ()


def quick_bounds(model: Model, seed: int, seconds: float) -> tuple[Bound, ...]:
    """What no states can weigh more than, and the bounds from below that are found in a share of so many seconds.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
    """
    certified = [best_states.bound_above(model)]
    with suppress(OverdueError, DiedError, UnsupportedError, MemoryError):
        bounds = run_in_child(partial(find_quick_bounds, model), seed, QUICK * seconds + LOADING)
        certified.extend(bound for bound in bounds if bound is not None)
    return tuple(certified)
