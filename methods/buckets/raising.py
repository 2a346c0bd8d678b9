"""A lower bound from mini-buckets: all weights but one of each bucket are negative.

With Σ_c w_c = 1, one w_c > 1 and the others below 0, Hölder's inequality is reversed,

    Σ_x Π_c exp ψ_c >= Π_c (Σ_x exp(ψ_c / w_c))^{w_c}                                             (all ψ_c finite),

so that the passes of `passes` give a lower bound with the same gradient (Liu and Ihler, ICML 2011, section 3). Shifts
of weight go to where the marginals of a bucket's mini-buckets agree, as for the upper bound; weights go up their
gradient. Neither is concave, and where it ends depends on the order and on who is positive, so that several are tried.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from spinbench.mathematics.rounding import Work
from spinbench.methods.buckets.layout import Array, Buckets, FloatArray, factors_of, lay_out
from spinbench.methods.buckets.partition import Partition, partition
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.size import bytes_of, logs_of
from spinbench.methods.buckets.tighten import Point, UpperBound
from spinbench.methods.buckets.tuning import Code
from spinbench.reference.network import IntArray
from spinbench.reference.problem import Problem

# Initial sum of a bucket's negative weights; smallest and largest absolute weight. At weight 0 a mini-bucket would
# contribute its maximum, whose gradient jumps.
_NEGATIVE, _LEAST, _MOST = 3.0, 1e-4, 1e3
# Largest change of the log of a weight in one pass: the objective is not concave, and its gradient is valid only
# locally.
_FASTEST = 0.5
# Passes of each trial, and passes in all for the best trial of a limit. The value an ascent reaches depends on the
# elimination order and on which mini-bucket has the positive weight; twenty passes show the ranking.
_TRIAL, _PASSES = 20, 40
# Number of candidates that are tried at each later limit: the best ones of the limit before.
_BEST = 2
# log2 of the entries of a mini-bucket: first limit, and increase from one limit to the next.
FIRST, RISE = 6, 2


class Progress(NamedTuple):
    """After a pass.

    Attributes:
        bound: its rounding taken off.
        limit: log2 of the entries of a mini-bucket.
        split: whether any bucket is.
    """

    bound: float
    limit: int
    split: bool


class LowerBound(UpperBound):
    """Mini-buckets whose lower bound is raised.

    Args:
        at: the mini-buckets.
        passes: over them.
        last: whether each bucket's last mini-bucket is the positive one, rather than its first, the largest.
    """

    sign = -1.0
    log_weights = -50.0, 50.0

    def __init__(self, at: Buckets, passes: Passes, last: bool) -> None:
        self._positive = at.buckets[1:] - 1 if last else at.buckets[:-1]
        super().__init__(at, passes)

    def spread(self, point: Point) -> float:
        """As of the upper bound, and Σ |w| log K, of which sums are made here."""
        return super().spread(point) + float(np.abs(point.weights) @ (1 + np.log(self.at.cards[self.at.variable])))

    def first_weights(self, counts: Array) -> FloatArray:
        weights = -_NEGATIVE / np.maximum(np.repeat(counts, counts) - 1, 1)
        weights[self._positive] = np.where(counts > 1, 1 + _NEGATIVE, 1.0)
        return np.asarray(weights)

    def lawful(self, sizes: FloatArray) -> FloatArray:
        """Weights whose negative ones have these sizes, or the nearest allowed, and whose sum in a bucket is 1."""
        fresh = -np.clip(sizes, _LEAST, _MOST)
        fresh[self._positive] = 0.0
        fresh[self._positive] = 1 - self.sums(fresh)
        return np.asarray(fresh)

    def reweighted(self, weights: FloatArray, entropies: FloatArray, rate: float) -> FloatArray:
        """Negative weights up their gradient, by the exponential of H_c - H of the positive one, which is the rest."""
        exponent = rate * np.abs(weights) * (entropies[self._positive][self.bucket] - entropies)
        return self.lawful(np.abs(weights) * np.exp(np.clip(exponent, -_FASTEST, _FASTEST)))


# (index of the elimination order, whether the last mini-buckets have the positive weights).
Candidate = tuple[int, bool]


class Raising:
    """Lower bounds of one problem, of ever larger mini-buckets; a pass at a time.

    Args:
        problem: without hard zeros.
        orders: of elimination.
        code: what runs.
        at_stake: for rounding.
        ibound: log2 of the entries of mini-buckets; 0: they grow until they take `max_bytes`.
        max_bytes: of all tables.
    """

    def __init__(
        self, problem: Problem, orders: list[IntArray], code: Code, at_stake: Work, ibound: int, max_bytes: float
    ) -> None:
        self._factors = [factors_of(problem, order) for order in orders]
        self._code, self._at_stake, self._ibound = code, at_stake, ibound
        # Half, since the tables of two candidates exist at the same time.
        self._max_bytes = max_bytes / 2

    def iterate(self) -> Iterator[Progress]:
        """After each pass."""
        candidates = [*itertools.product(range(len(self._factors)), (False, True))]
        limit, best = self._ibound or FIRST, Progress(-math.inf, 0, True)
        while self._fits(self._cut(candidates[0][0], limit)):
            values: dict[Candidate, float] = {}
            for progress in self._iterate_at_limit(candidates, limit, values):
                if progress.bound > best.bound:
                    best = progress
                yield best
            if self._ibound or not progress.split:
                return
            candidates = sorted(values, key=values.__getitem__, reverse=True)[:_BEST]
            limit += RISE

    def _iterate_at_limit(
        self, candidates: list[Candidate], limit: int, values: dict[Candidate, float]
    ) -> Iterator[Progress]:
        """Trials, whose `values` are written, and further passes of the best; where nothing is split there is one."""
        bounds: list[LowerBound] = []
        for order, some in itertools.groupby(candidates, key=itemgetter(0)):
            at = lay_out(self._factors[order], self._cut(order, limit))
            for candidate in some:
                bounds.append(LowerBound(at, self._code.passes(at), candidate[1]))
                yield from self._passes(bounds[-1], _TRIAL, limit)
                if not at.split:
                    return
                values[candidate] = bounds[-1].best.value
                bounds = [max(bounds, key=lambda bound: bound.best.value)]
        yield from self._passes(bounds[0], _PASSES - _TRIAL, limit)

    def _passes(self, bound: LowerBound, max_passes: int, limit: int) -> Iterator[Progress]:
        """What each tells; one where nothing is split."""
        for _ in range(max_passes):
            if not bound.is_ended:
                bound.go_on()
            yield Progress(bound.best.value - bound.slack(self._at_stake), limit, bound.at.split)
            if bound.is_ended:
                return

    def _cut(self, order: int, limit: int) -> Partition:
        factors = self._factors[order]
        return partition(logs_of(factors.states.tolist()), factors.scopes(), limit)

    def _fits(self, partition: Partition) -> bool:
        return bytes_of(partition) <= self._max_bytes and partition.entries < 2.0**31
