"""The state of greatest weight (MAP, MPE) by bucket elimination with maxima in place of sums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from spinbench.models import Model
from spinbench.models.convert import original_log_weights
from spinbench.reference.choice import Limits, first_answer
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.memory import allowed_bytes
from spinbench.reference.network import FloatArray, IntArray, Scope
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver


class MaxTree(BucketTree):
    """Max-product in log space: of each bucket the best state is kept for every state of its separator."""

    def fallbacks(self) -> Iterator[Solver]:
        """None: sparse tables are for sums."""
        return iter(())

    def _eliminate(self, v: int, pieces: list[tuple[Scope, FloatArray]]) -> tuple[FloatArray, np.ndarray]:
        """The log message of a bucket, and the state that each entry of it is of."""
        table = self._combine(self.clique[v], pieces)
        # Kept for the way back for every bucket, hence of the narrowest type.
        best = table.argmax(axis=0).astype(np.min_scalar_type(len(table) - 1))
        return np.asarray(table.max(axis=0)), best

    def heaviest(self) -> IntArray:
        """(n,) states of the problem's variables; of states that weigh the same, one."""
        _, best = self._forward(keep=True)
        states = np.zeros(len(self.clique), dtype=np.int64)
        for v in reversed(self.listed):
            states[v] = best[v][tuple(states[u] for u in self.clique[v][1:])]
        return states


def heaviest(model: Model, *, max_bytes: int | None = None) -> tuple[IntArray, float]:
    """The state that weighs most, and its log weight.

    Args:
        model: any model; 1-of-K groups, hard zeros and variables of one state are fine.
        max_bytes: memory that elimination may take, checked before it takes any; None: `default_max_bytes`.

    Returns:
        (N,) int64, and log p* of it in nats. Where several weigh the same, it is one of them.

    Raises:
        ModelError: no state has positive weight.
        IntractableError: too wide for the memory; the message names the width and the memory it would take.
    """
    problem = Problem(model)
    tree = MaxTree(problem, problem.order)
    limits = Limits(allowed_bytes(max_bytes))
    _, states = first_answer(problem, iter([tree]), limits, lambda solver: tree.heaviest(), marginals=True)
    state = problem.origin.lift(states)
    return state, float(original_log_weights(model, state))
