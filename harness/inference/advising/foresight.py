"""Whether an exact answer fits, before any work for it begins."""

from __future__ import annotations

from spinbench.errors import IntractableError
from spinbench.inference.answers import ALL_SOLVERS
from spinbench.models import FactorGraph, Model, parts
from spinbench.reference import cache as answers
from spinbench.reference.choice import Limits, candidates, first
from spinbench.reference.memory import default_max_bytes
from spinbench.reference.orders.order import SEARCH_SECONDS, SEARCH_SHARE
from spinbench.reference.problem import Problem


def check(model: Model, seconds: float) -> None:
    """Whether the exact answer is known, or takes no longer than this by its planner's reckoning.

    Raises:
        IntractableError: it is too wide, or takes too long.
    """
    limits = Limits(default_max_bytes(), seconds)
    if answers.load(model, "auto", limits.max_bytes, marginals=True) is not None:
        return
    core = parts.core_of(model) if isinstance(model, FactorGraph) else None
    given = model if core is None or core.step is None else core.model
    problem = Problem(given, search_seconds=min(SEARCH_SECONDS, SEARCH_SHARE * seconds))
    solvers = candidates(problem, "auto", ALL_SOLVERS, sampling=False)
    try:
        first(problem, solvers, limits, lambda _: None, marginals=True)
    except IntractableError as refusal:  # its callers say that there is no exact answer
        raise IntractableError(str(refusal).replace("no exact answer: ", "", 1)) from None
