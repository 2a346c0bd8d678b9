"""Whether an exact answer fits, before any work for it begins."""

from __future__ import annotations

import math

from spinbench.errors import IntractableError
from spinbench.inference.answers import ALL_SOLVERS
from spinbench.models import FactorGraph, Model, parts
from spinbench.reference import DEFAULT_MAX_BYTES
from spinbench.reference import cache as answers
from spinbench.reference.choice import candidates
from spinbench.reference.problem import HOPELESS, Problem

SLACK = 6
"""Doublings of the memory that a better order has not saved: with more, no better one is looked for."""


def check(model: Model, seconds: float) -> None:
    """Whether the exact answer is known, or takes no longer than this by its planner's reckoning.

    Raises:
        IntractableError: it is too wide, or takes too long.
    """
    if answers.load(model, "auto", DEFAULT_MAX_BYTES, marginals=True) is not None:
        return
    needed = _seconds(model)
    if needed is None and isinstance(model, FactorGraph):
        core = parts.core_of(model)
        needed = _seconds(core.model) if core.step is not None else None
    if needed is None:
        raise IntractableError(f"{model.name}: an exact answer takes more than {DEFAULT_MAX_BYTES / 2**30:g} GiB")
    if needed > seconds:
        raise IntractableError(f"{model.name}: an exact answer takes about {needed:.2g} s")


def _seconds(model: Model) -> float | None:
    """Of the first solver that fits into memory; None: none does."""
    zeros = isinstance(model, FactorGraph) and model.has_zeros  # which may leave little of large tables
    hopeless = HOPELESS if zeros else math.log2(DEFAULT_MAX_BYTES / 8) + SLACK
    for solver in candidates(Problem(model, hopeless=hopeless), "auto", ALL_SOLVERS, sampling=False):
        if solver.memory(marginals=True) <= DEFAULT_MAX_BYTES:
            return solver.seconds
    return None
