"""Mini-buckets with negative weights: a certified lower bound on log Z of any factor graph without hard zeros."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spinbench.api import Estimate, Model, Reduction, Trace
from spinbench.errors import UnsupportedError
from spinbench.methods.buckets.layout import problem_of
from spinbench.methods.buckets.wmb import MiniBuckets, Tables
from spinbench.reference.sparse.tree import has_zeros


@dataclass(frozen=True)
class LowerMiniBuckets(MiniBuckets):
    """Mini-buckets with negative weights: a certified lower bound on log Z.

    A step is a pass over all mini-buckets; they grow as the bound settles, and the best bound is reported.

    It begins with mini-buckets of 2^6 entries along each of several orders of elimination, and goes on with the best
    two, each time with four times as many entries. The bound says nothing of marginals.

    Attributes:
        ibound: log2 of the entries that a mini-bucket may have; 0: they grow.
        max_gib: memory of all tables, in GiB, beyond which they do not grow.
    """

    name: ClassVar[str] = "wmb_lower"
    summary: ClassVar[str] = "mini-buckets with negative weights, a lower bound on log Z"
    kind = "iteration"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """(C,) each: bound, the best; ibound, its mini-buckets'; iterations, passes; ended, 1 where none is left."""
        return dict.fromkeys(("bound", "ibound", "iterations", "ended"), "last")

    def plan(self, model: Model) -> Tables:
        """What is left of the variables.

        Raises:
            UnsupportedError: hard zeros.
        """
        problem = problem_of(model)
        if has_zeros(problem):
            raise UnsupportedError(
                f"wmb_lower: {model.name} has hard zeros, which take a negative power's sum to infinity; mf takes them"
            )
        return Tables(np.array(problem.cardinalities, dtype=np.int64))

    def finished(self, trace: Trace) -> bool:
        """Whether larger mini-buckets are not allowed, or nothing is split."""
        return bool(trace.total("ended").min() > 0)

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """The bound."""
        totals = {name: float(trace.total(name)[0]) for name in ("bound", "ibound", "iterations")}
        return Estimate(log_z=totals.pop("bound"), log_z_kind="lower", diagnostics=totals)
