"""Sums over states one by one: over all, through the model's own `log_weight`, slow, obviously right, the yardstick of
the tests; and of two-layer models (restricted Boltzmann machines) over the smaller layer, given which the other
factorises."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Self

import numpy as np

from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.orders.plan import neighbours
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import Solver, ZeroWeightError, binary_marginals, draw

MAX_BITS = 24
_BLOCK_ENTRIES = 2**20
MAX_SMALLER = 24
_CHUNK = 2**13


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
        """Without the model's constant, beside which a large one would lose their digits."""
        origin, total = self.problem.origin, self.problem.num_states
        model, weights = replace(self.problem.model, log_constant=0.0), np.empty(total)
        for start in range(0, total, self.block):
            index = np.arange(start, min(start + self.block, total))
            weights[index] = model.log_weight(origin.lift(self._unravel(index)))
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
        log_z = self.problem.model.log_constant + peak + float(np.log(total))
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


class Bipartite(Solver):
    """Binary pairwise models whose graph is bipartite, with at most 24 variables in the smaller layer.

    log Z = log Σ_h exp(a·h + Σ_v log(1 + exp(b_v + (W h)_v))). A disconnected graph has its smaller side of every
    part summed.
    """

    name = "rbm"
    width: int

    def __init__(self, pairwise: Pairwise, summed: IntArray) -> None:
        self.summed = summed
        self.others = np.setdiff1d(np.arange(pairwise.size), summed)
        self.constant = pairwise.constant
        self.width = len(summed)
        self.small, self.large = pairwise.biases[summed], pairwise.biases[self.others]
        place = np.empty(pairwise.size, dtype=np.int64)
        place[summed], place[self.others] = np.arange(len(summed)), np.arange(len(self.others))
        ends = pairwise.edges.copy()
        swap = np.isin(ends[:, 1], summed)
        ends[swap] = ends[swap][:, ::-1]
        self.weights = np.zeros((len(summed), len(self.others)))
        self.weights[place[ends[:, 0]], place[ends[:, 1]]] = pairwise.couplings
        self.seconds = 1e-4 + 2.0**self.width * (len(self.others) * 1.5e-8 + self.width * 3e-9)

    @classmethod
    def build(cls, problem: Problem) -> Self:
        """Applies to bipartite graphs with a small enough side."""
        pairwise = problem.pairwise
        # every edge ends in the smaller layer
        if np.sort(pairwise.degrees)[-MAX_SMALLER:].sum() < len(pairwise.edges):
            raise NotApplicableError(
                f"a smaller layer of at most {MAX_SMALLER} variables, and this model has more or is not bipartite"
            )
        summed = _smaller_sides(pairwise)
        if len(summed) > MAX_SMALLER:
            raise NotApplicableError(
                f"a smaller layer of at most {MAX_SMALLER} variables, and this model has {len(summed)}"
            )
        return cls(pairwise, summed)

    def memory(self, *, marginals: bool) -> int:
        """Blocks of states of the smaller layer, and in `sample` the weight of each."""
        block = min(_CHUNK, (1 << self.width))
        return 8 * (4 * block * (len(self.others) + self.width + 2) + (2 * (1 << self.width) if marginals else 0))

    def _blocks(self) -> Iterator[tuple[IntArray, FloatArray, FloatArray, FloatArray]]:
        """Of each block of smaller-layer states h: h, log weight, exp(-|field|) and field of the other layer."""
        shifts = np.arange(self.width)
        for start in range(0, (1 << self.width), _CHUNK):
            h = np.arange(start, min(start + _CHUNK, (1 << self.width)))[:, None] >> shifts & 1
            field = h @ self.weights + self.large
            decay = np.exp(-np.abs(field))
            weight = h @ self.small + np.maximum(field, 0).sum(axis=1)
            for first in range(0, decay.shape[1], 512):  # a product of 512 factors up to 2 stays finite
                weight += np.log(np.prod(1.0 + decay[:, first : first + 512], axis=1))
            yield h, weight, decay, field

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """One pass over the states of the smaller layer, with running rescaling."""
        peak, total = -np.inf, 0.0
        ones = np.zeros(self.width + len(self.others))
        for h, weight, decay, field in self._blocks():
            top = max(peak, float(weight.max()))
            shrink = np.exp(peak - top)
            p = np.exp(weight - top)
            total = total * shrink + float(p.sum())
            if marginals:
                ones *= shrink
                ones[: self.width] += p @ h
                ones[self.width :] += p @ (np.where(field >= 0, 1.0, decay) / (1.0 + decay))
            peak = top
        log_z = self.constant + peak + float(np.log(total))
        if not marginals:
            return log_z, None
        ordered = np.empty_like(ones)
        ordered[self.summed], ordered[self.others] = ones[: self.width] / total, ones[self.width :] / total
        return log_z, binary_marginals(ordered)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the smaller layer from its distribution, then the other layer given it."""
        index = draw(np.concatenate([weight for _, weight, _, _ in self._blocks()]), count, rng)
        states = np.empty((count, self.width + len(self.others)), dtype=np.int64)
        h = index[:, None] >> np.arange(self.width) & 1
        logistic = rng.logistic(size=(count, len(self.others)))
        states[:, self.summed] = h
        states[:, self.others] = logistic < h @ self.weights + self.large
        return states


def _smaller_sides(pairwise: Pairwise) -> IntArray:
    adjacency = neighbours(pairwise.size, pairwise.edges)
    side = np.full(pairwise.size, -1, dtype=np.int64)
    chosen: list[int] = []
    for root in range(pairwise.size):
        if side[root] >= 0:
            continue
        side[root], stack = 0, [root]
        sides: tuple[list[int], list[int]] = ([root], [])
        while stack:
            v = stack.pop()
            for u in adjacency[v]:
                if side[u] < 0:
                    side[u] = 1 - side[v]
                    sides[side[u]].append(u)
                    stack.append(u)
                elif side[u] == side[v]:
                    raise NotApplicableError("a graph without odd loops, and this model has one")
        chosen += sides[0] if len(sides[0]) < len(sides[1]) else sides[1]
    return np.array(sorted(chosen), dtype=np.int64)
