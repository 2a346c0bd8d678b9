"""Sums over states one by one: over all, through the model's own `log_weight`, slow, obviously right, the yardstick of
the tests; and of two-layer models (restricted Boltzmann machines) over the smaller layer, given which the other
factorises."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple, Self

import numpy as np

from spinbench.foundation.platforms import one_blas_thread
from spinbench.reference.network import FloatArray, IntArray, Pairwise
from spinbench.reference.orders.plan import breadth_first, neighbours
from spinbench.reference.problem import NotApplicableError, Problem
from spinbench.reference.solver import Solver, ZeroWeightError, binary_marginals, draw

# log2 of the largest number of states: two numbers per state take 256 MiB.
MAX_BITS = 24
# Approximate numbers of a block: its states and the gathered terms.
_BLOCK_ENTRIES = 2**20
# Largest number of variables of the smaller layer: with a hundred variables in the other, 2^24 states take three
# seconds, as predicted.
MAX_SMALLER = 24
# Low bits of a state, whose fields and tables are computed once for all blocks.
_LOW_BITS = 8
# States of the smaller layer in a block.
_BLOCK = 2**16
# Variables of a group: with more, the two products of a table take longer, with fewer, everything else.
_GROUP = 3
# Largest range of a field in a table: its exponential stays within float64, also for all variables of a group.
_SPREAD = 200.0


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
        # an extra axis of one state, since there may be no variable
        return np.stack(np.unravel_index(index, (1, *self.problem.cardinalities)), axis=1)[:, 1:]

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
        return log_z, np.concatenate([np.empty(0), *vectors])

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws from the table of all states."""
        return self._unravel(draw(self._log_weights(), count, rng))


class Block(NamedTuple):
    """States h of the smaller layer: some of its high bits with all of the low ones.

    Attributes:
        high: (H, bits) int64 states of the high bits.
        logs: (H, L) log weights of the states.
        factors: of each group of variables of the other layer ((H, 2^g), (L, 2^g)), a term for each of its states:
            Π_v (1 + exp(field_v)), scaled to at most 1, is the product of one and the other transposed.
    """

    high: IntArray
    logs: FloatArray
    factors: list[tuple[FloatArray, FloatArray]]


class Bipartite(Solver):
    """Binary pairwise models whose graph is bipartite, with at most 24 variables in the smaller layer.

    log Z = log Σ_h exp(a·h + Σ_v log(1 + exp(b_v + (W h)_v))). A disconnected graph has its smaller side of every
    part summed. With h = (high bits, low bits), the exponential of a field is a number for the high bits times one for
    the low bits, so that of few variables v the product Π_v (1 + exp(field_v)) at all h is a product of two matrices.
    """

    name = "rbm"
    width: int

    def __init__(self, pairwise: Pairwise, summed: IntArray) -> None:
        self.summed = summed
        self.others = np.setdiff1d(np.arange(pairwise.size), summed)
        self.constant = pairwise.constant
        self.width = len(summed)
        self.small, self.large = pairwise.biases[summed], pairwise.biases[self.others]
        inner = np.isin(pairwise.edges, summed)  # edges with one end among the summed variables
        ends = np.searchsorted(summed, pairwise.edges[inner]), np.searchsorted(self.others, pairwise.edges[~inner])
        self.weights = np.zeros((len(summed), len(self.others)))
        self.weights[ends] = pairwise.couplings
        # Largest range of the fields over so many low bits.
        spread = np.abs(self.weights).cumsum(axis=0).max(axis=1, initial=0.0)
        self.low_bits = int((spread[:_LOW_BITS] <= _SPREAD).sum())
        self.seconds = 1e-4 + 2.0**self.width * (len(self.others) * 1.5e-9 + 3e-8)

    @classmethod
    def build(cls, problem: Problem) -> Self:
        """Applies to bipartite graphs with a small enough side."""
        pairwise = problem.pairwise
        # every edge has an end in the smaller layer
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
        """A block of states, tables of the groups, and in `sample` the weight of each state."""
        low, high = 1 << self.low_bits, min(_BLOCK >> self.low_bits, 1 << self.width - self.low_bits)
        block = 4 * high * low + (high + low) * (6 * len(self.others) + 2 * self.width)
        return 8 * (block + (2 * (1 << self.width) if marginals else 0))

    def _blocks(self) -> Iterator[Block]:
        bits = self.low_bits
        low = _states(bits)
        low_field = low @ self.weights[:bits]
        # The maximum is moved to the field of the high bits, so that no exponential overflows.
        top = low_field.max(axis=0)
        tables = _terms(np.exp(low_field - top), np.ones_like(low_field))
        spread = float((top - low_field.min(axis=0)).max(initial=0.0))
        # Number of groups whose product cannot underflow.
        together = max(1, int(_GROUP * _SPREAD / (_GROUP * spread + 1)))
        states = _states(self.width - bits)
        for high in np.split(states, range(_BLOCK >> bits, len(states), _BLOCK >> bits)):
            field = high @ self.weights[bits:] + self.large + top
            # The largest log(1 + exp(field)) over all low bits: divided by it, products are at most 1.
            size = np.logaddexp(0.0, field)
            factors = list(zip(_terms(np.exp(field - size), np.exp(-size)), tables, strict=True))
            logs = (high @ self.small[bits:] + size.sum(axis=1))[:, None] + low @ self.small[:bits]
            for begin in range(0, len(tables), together):
                product = np.ones_like(logs)
                for terms, table in factors[begin : begin + together]:
                    product *= terms @ table.T
                logs += np.log(product)
            yield Block(high, logs, factors)

    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """One pass over the states of the smaller layer, with running rescaling."""
        # limiting BLAS takes milliseconds, as long as a few states; without the limit, busy cores make it up to forty
        # times slower
        with one_blas_thread() if self.width > _LOW_BITS else contextlib.nullcontext():
            return self._sum(marginals=marginals)

    def _sum(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        peak, total, low = -np.inf, 0.0, _states(self.low_bits)
        ones = np.zeros(self.width + len(self.others))
        for high, logs, factors in self._blocks():
            top = max(peak, float(logs.max()))
            shrink = np.exp(peak - top)
            p = np.exp(logs - top)
            total = total * shrink + float(p.sum())
            if marginals:
                joint = [((p / (terms @ table.T) @ table) * terms).sum(axis=0) for terms, table in factors]
                large = [sums @ _states(len(sums).bit_length() - 1) for sums in joint]
                ones = ones * shrink + np.concatenate([p.sum(axis=0) @ low, p.sum(axis=1) @ high, *large])
            peak = top
        log_z = self.constant + peak + float(np.log(total))
        if not marginals:
            return log_z, None
        ordered = np.empty_like(ones)
        ordered[np.concatenate([self.summed, self.others])] = ones / total
        return log_z, binary_marginals(ordered)

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Draws the smaller layer from its distribution, then the other layer given it."""
        index = draw(np.concatenate([block.logs.ravel() for block in self._blocks()]), count, rng)
        states = np.empty((count, self.width + len(self.others)), dtype=np.int64)
        h = index[:, None] >> np.arange(self.width) & 1
        # Logistic noise is below x with probability σ(x).
        logistic = rng.logistic(size=(count, len(self.others)))
        states[:, self.summed] = h
        states[:, self.others] = logistic < h @ self.weights + self.large
        return states


def _states(bits: int) -> IntArray:
    """(2^bits, bits) all states, the first bit fastest."""
    return np.asarray(np.arange(1 << bits)[:, None] >> np.arange(bits) & 1)


def _terms(on: FloatArray, off: FloatArray) -> list[FloatArray]:
    """(n, 2^g) of each group of columns of `on` and `off` (n, V): products of one of both each, as in `_states`."""
    blocks = []
    for begin in range(0, on.shape[1], _GROUP):
        terms = np.ones((len(on), 1))
        for v in range(begin, min(begin + _GROUP, on.shape[1])):
            terms = np.concatenate([terms * off[:, v : v + 1], terms * on[:, v : v + 1]], axis=1)
        blocks.append(terms)
    return blocks


def _smaller_sides(pairwise: Pairwise) -> IntArray:
    adjacency = neighbours(pairwise.size, pairwise.edges)
    steps: dict[int, int] = {}
    chosen: list[int] = []
    for root in range(pairwise.size):
        if root not in steps:
            part = breadth_first(adjacency, root)
            sides = ([v for v in part if part[v] % 2 == parity] for parity in (1, 0))
            smaller = min(sides, key=len)
            chosen += smaller
            steps |= part
    if any((steps[u] - steps[v]) % 2 == 0 for u, v in pairwise.edges.tolist()):
        raise NotApplicableError("a graph without odd loops, and this model has one")
    return np.array(sorted(chosen), dtype=np.int64)
