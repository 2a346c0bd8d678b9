"""The exact answer, where it fits; whether it does is known before any work for it begins."""

from __future__ import annotations

from functools import partial

from spinbench.errors import IntractableError
from spinbench.foundation.child import DiedError, OverdueError, run_in_child
from spinbench.inference.advising.entrant import answer_requests
from spinbench.inference.answers import ALL_SOLVERS
from spinbench.inference.result import Result
from spinbench.inference.runner import exact
from spinbench.models import FactorGraph, Model, parts
from spinbench.reference import cache
from spinbench.reference.choice import Limits, candidates, first
from spinbench.reference.memory import default_max_bytes
from spinbench.reference.orders.order import SEARCH_SECONDS, SEARCH_SHARE
from spinbench.reference.problem import Problem


def answer_exactly(model: Model, seconds: float) -> tuple[Result | None, str]:
    """The exact answer, or why there is none within so many seconds."""
    try:
        outcomes = run_in_child(answer_requests, (partial(_solve, model), [seconds]), seconds)
        outcome = next(outcome for outcome in outcomes if outcome is not None)
    except OverdueError:
        return None, f"it had not answered after {seconds:.2g} s"
    except DiedError as error:
        return None, str(error)
    return outcome.result, outcome.why


def _solve(model: Model, seconds: float) -> Result:
    check_cost(model, seconds)
    return exact(model)


def check_cost(model: Model, seconds: float) -> None:
    """Whether the exact answer is known, or takes no longer than this by its planner's reckoning.

    Raises:
        IntractableError: it is too wide, or takes too long.
    """
    limits = Limits(default_max_bytes(), seconds)
    if cache.load(model, "auto", limits.max_bytes, marginals=True) is not None:
        return
    core = parts.core_of(model) if isinstance(model, FactorGraph) else None
    given = model if core is None or core.step is None else core.model
    problem = Problem(given, search_seconds=min(SEARCH_SECONDS, SEARCH_SHARE * seconds))
    solvers = candidates(problem, "auto", ALL_SOLVERS, sampling=False)
    try:
        first(problem, solvers, limits, lambda _: None, marginals=True)
    except IntractableError as refusal:  # its callers say that there is no exact answer
        raise IntractableError(str(refusal).replace("no exact answer: ", "", 1)) from None
