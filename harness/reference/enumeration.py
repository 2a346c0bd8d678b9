"""All states, one by one, through the model's own `log_weight`: slow, obviously right, the yardstick of the tests."""

from __future__ import annotations

import math

import numpy as np

from spinbench.reference.network import FloatArray, IntArray
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import Solver, ZeroWeightError, draw

MAX_BITS = 24
_BLOCK_ENTRIES = 2**20


class Enumeration(Solver):
    """Up to 2^24 states (24 binary variables); a 1-of-K group counts K states."""

    name = "enumeration"
    width: int

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.width = len(problem.cardinalities)
        model = problem.model
        terms = len(model.factors) if hasattr(model, "factors") else model.num_edges
        self.block = min(2**14, max(64, _BLOCK_ENTRIES // (4 * (terms + self.width + 1))))
        self.per_state = 4 * terms + 6 * problem.model.num_variables + 8
        self.seconds = 5e-5 + problem.num_states * (terms + 2 * self.width + 2) * 8e-9

    @classmethod
    def build(cls, problem: Problem) -> Enumeration:
        """Applies to problems of few states."""
        least = len(problem.cardinalities)
        if least > MAX_BITS:
            raise NotApplicableError(f"at most 2^{MAX_BITS} states, and this model has 2^{least} or more")
        if problem.num_states > 2**MAX_BITS:
            has = f"2^{math.log2(problem.num_states):.1f}"
            raise NotApplicableError(f"at most 2^{MAX_BITS} states, and this model has {has}")
        return cls(problem)

    def memory(self, *, marginals: bool) -> int:
        """Two numbers a state, and a block of states with the gathered values of their terms."""
        return 16 * self.problem.num_states + 8 * min(self.block, self.problem.num_states) * self.per_state

    def _log_weights(self) -> FloatArray:
        origin, total = self.problem.origin, self.problem.num_states
        weights = np.empty(total)
        for start in range(0, total, self.block):
            index = np.arange(start, min(start + self.block, total))
            weights[index] = self.problem.model.log_weight(origin.lift(self._unravel(index)))
        return weights

    def _unravel(self, index: IntArray) -> IntArray:
        cards = self.problem.cardinalities
        states = np.empty((len(index), len(cards)), dtype=np.int64)
        for v in range(len(cards) - 1, -1, -1):
            index, states[:, v] = np.divmod(index, cards[v])
        return states

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """Sums over all states."""
        weights = self._log_weights()
        peak = float(weights.max())
        if peak == -np.inf:
            raise ZeroWeightError
        np.exp(weights - peak, out=weights)
        total = float(weights.sum())
        log_z = peak + float(np.log(total))
        if not marginals:
            return log_z, None
        weights /= total
        vectors, before = [], 1
        for k in self.problem.cardinalities:
            vectors.append(weights.reshape(before, k, -1).sum(axis=2).sum(axis=0))
            before *= k
        return log_z, np.concatenate(vectors) if vectors else np.empty(0)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws from the table of all states."""
        return self._unravel(draw(self._log_weights(), count, rng))
