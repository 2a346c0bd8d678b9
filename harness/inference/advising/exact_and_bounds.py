"""What is known before methods race: the exact answer where it fits, else what heavy states weigh."""

from __future__ import annotations

from contextlib import suppress
from functools import partial

import numpy as np

from spinbench.api.bounds import Bound
from spinbench.errors import IntractableError, UnsupportedError
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.inference.advising.entrant import answer_requests
from spinbench.inference.advising.ranking import Target, flat
from spinbench.inference.answers import ALL_SOLVERS
from spinbench.inference.checks import best_states
from spinbench.inference.result import Result
from spinbench.inference.runner import exact
from spinbench.models import FactorGraph, Model, wide_models
from spinbench.reference import cache
from spinbench.reference.choice import Limits, candidates, first
from spinbench.reference.memory import default_max_bytes
from spinbench.reference.orders.order import SEARCH_SECONDS, SEARCH_SHARE
from spinbench.reference.problem import Problem

# Of the budget: what an exact answer may take by its planner's reckoning, and what it gets.
EXACT = 0.35
# Of the budget, for states that bound log Z from below.
STATES = 0.03


def answer_exactly(model: Model, seconds: float, target: Target) -> tuple[Result | None, str]:
    """The exact answer, or why there is none within its share of so many seconds."""
    limit = EXACT * seconds
    try:
        outcomes = run_in_child(answer_requests, (partial(_solve, model), [limit]), limit)
        outcome = next(outcome for outcome in outcomes if outcome is not None)
    except OverdueError:
        return None, f"it had not answered after {limit:.2g} s"
    except DiedError as error:
        return None, str(error)
    if outcome.result is None or target == "log_z":
        return outcome.result, outcome.why
    marginals = flat(outcome.result.marginals)
    if marginals is None or not np.isfinite(marginals).all():
        return None, "exact marginals are out of reach of some variables"
    return outcome.result, ""


def bounds_of_states(model: Model, seed: int, seconds: float) -> tuple[Bound, ...]:
    """What no states can weigh more than, and what heavy ones weigh together, as far as they are
    found in their share of so many seconds.

    Raises:
        ModelError: no state has positive weight, so Z = 0.
    """
    certified = [best_states.bound_above(model)]
    with suppress(OverdueError, DiedError, UnsupportedError, MemoryError):
        bounds = run_in_child(partial(best_states.bounds_below, model), seed, STATES * seconds)
        certified.extend(bound for bound in bounds if bound is not None)
    return tuple(certified)


def _solve(model: Model, seconds: float) -> Result:
    check_cost(model, seconds)
    return exact(model)


def check_cost(model: Model, seconds: float) -> None:
    """Whether the exact answer is known, or takes no longer than this by its planner's reckoning.

    Raises:
        IntractableError: it is too wide, or takes too long.
    """
    limits = Limits(default_max_bytes(), seconds)
    if cache.load(model, "auto", limits, marginals=True) is not None:
        return
    core = wide_models.extract_core(model) if isinstance(model, FactorGraph) else None
    reduced = model if core is None or core.step is None else core.model
    problem = Problem(reduced, search_seconds=min(SEARCH_SECONDS, SEARCH_SHARE * seconds))
    solvers = candidates(problem, "auto", ALL_SOLVERS, sampling=False)
    try:
        first(problem, solvers, limits, lambda _: None, marginals=True)
    except IntractableError as refusal:  # its callers say that there is no exact answer
        raise IntractableError(str(refusal).replace("no exact answer: ", "", 1)) from None
