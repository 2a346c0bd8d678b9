"""A lower bound from mini-buckets: all weights but one of each bucket are negative.

With Σ_c w_c = 1, one w_c > 1 and the others below 0, Hölder's inequality is reversed,

    Σ_x Π_c exp ψ_c >= Π_c (Σ_x exp(ψ_c / w_c))^{w_c}                                             (all ψ_c finite),

so that the passes of `passes` give a lower bound with the same gradient (Liu and Ihler, ICML 2011, section 3). Shifts
of weight go to where the marginals of a bucket's mini-buckets agree, as for the upper bound; weights go up their
gradient. Neither is concave, and where it ends depends on the order and on who is positive, so that several are tried.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.rounding import Work
from spinbench.methods.buckets.anderson import Descent
from spinbench.methods.buckets.layout import Buckets, lay_out
from spinbench.methods.buckets.partition import Partition, partition
from spinbench.methods.buckets.problem import factors_of
from spinbench.methods.buckets.size import bytes_of, logs_of
from spinbench.methods.buckets.tighten import ROOM, Passes, Point, balanced, groups_of, joined, shifted
from spinbench.methods.buckets.tuning import Code
from spinbench.reference.network import IntArray
from spinbench.reference.problem import Problem

FloatArray = npt.NDArray[np.float64]

_RATE = 1.0
"""Of the weights, where weight is shifted with a step of 1."""
_NEGATIVE, _LEAST, _MOST = 3.0, 1e-4, 1e3
"""Sum of a bucket's negative weights at first; the least and the largest of one, without signs."""
_FASTEST, _FARTHEST = 0.5, 50.0
"""Change of the log of a weight in one pass, at most; and the size of that log, which is cut to the largest weight."""
_TRIAL, _PASSES = 20, 40
"""Passes of each trial, and of the best one of a limit in all."""
_BEST = 2
"""Trials of later limits: the best of the limit before."""
FIRST, RISE = 6, 2
"""log2 of the entries of a mini-bucket: at first, and how much more each time."""


class Told(NamedTuple):
    """After a pass.

    Attributes:
        bound: its rounding taken off.
        limit: log2 of the entries of a mini-bucket.
        split: whether any bucket is.
    """

    bound: float
    limit: int
    split: bool


class Ascent:
    """Mini-buckets and the best point so far, with the next steps.

    Args:
        at: the mini-buckets.
        passes: over them.
        last: whether each bucket's last mini-bucket is the positive one, rather than its first, the largest.
    """

    def __init__(self, at: Buckets, passes: Passes, last: bool) -> None:
        self._at, self._passes, self._groups = at, passes, groups_of(at)
        counts = np.diff(at.buckets)
        self._positive = at.buckets[1:] - 1 if last else at.buckets[:-1]
        weights = -_NEGATIVE / np.maximum(np.repeat(counts, counts) - 1, 1)
        weights[self._positive] = np.where(counts > 1, 1 + _NEGATIVE, 1.0)
        self._signs = np.sign(weights)
        self.split = at.split
        first = joined(np.zeros(int(at.shifts[-1])), weights)
        self._descent = Descent(first, self._valued, self._moved, ROOM * float(at.entries[-1]))

    @property
    def best(self) -> Point:
        """The highest bound so far."""
        return Point(*self._parted(self._descent.best), -self._descent.value)

    @property
    def ended(self) -> bool:
        """Whether passes gain no more."""
        return not self.split or self._descent.ended

    def go_on(self) -> None:
        """One more pass, or two where the first one lowers the bound."""
        self._descent.go_on()

    def _valued(self, point: FloatArray) -> tuple[FloatArray, float]:
        shifts = len(self._groups.owner)
        weights = self._lawful(np.exp(np.clip(point[shifts:], -_FARTHEST, _FARTHEST)))
        theta = balanced(self._groups, point[:shifts], weights)
        return joined(theta, weights), -self._passes.forward(theta, weights)

    def _moved(self, point: FloatArray, step: float) -> FloatArray:
        theta, weights = self._parted(point)
        marginals, entropies = self._passes.backward()
        theta = shifted(self._groups, theta, weights, marginals, step)
        return joined(theta, self._reweighted(weights, entropies, step * _RATE))

    def _parted(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Shifts, and weights with their signs."""
        shifts = len(self._groups.owner)
        return point[:shifts], self._signs * np.exp(point[shifts:])

    def slack(self, at_stake: Work) -> float:
        """What rounding may have added: as of the upper bound, and Σ |w| log K, of which sums are made here."""
        at, point = self._at, self.best
        steps = at_stake.steps + 4 * len(at.variable) + len(at.children)
        full = at.shifts[:-1][np.diff(at.shifts) > 0]
        moved = np.maximum.reduceat(np.abs(point.theta), full).sum() if len(full) else 0.0
        spread = np.abs(point.weights) @ (1 + np.log(at.cards[at.variable]))
        return at_stake._replace(steps=steps).allowance(float(moved + spread))

    def _reweighted(self, weights: FloatArray, entropies: FloatArray, rate: float) -> FloatArray:
        """Negative weights up their gradient, by the exponential of H_c - H of the positive one, which is the rest."""
        exponent = rate * np.abs(weights) * (entropies[self._positive][self._groups.bucket] - entropies)
        return self._lawful(np.abs(weights) * np.exp(np.clip(exponent, -_FASTEST, _FASTEST)))

    def _lawful(self, sizes: FloatArray) -> FloatArray:
        """Weights whose negative ones have these sizes, or the nearest allowed, and whose sum in a bucket is 1."""
        fresh = -np.clip(sizes, _LEAST, _MOST)
        fresh[self._positive] = 0.0
        fresh[self._positive] = 1 - np.bincount(self._groups.bucket, fresh, minlength=self._groups.buckets)
        return np.asarray(fresh)


class _Candidate(NamedTuple):
    """An order, by its number, and whether the last mini-buckets are positive."""

    order: int
    last: bool


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
        self._max_bytes = max_bytes / 2  # two are there at once
        self._last: tuple[tuple[int, int], Partition] | None = None

    def told(self) -> Iterator[Told]:
        """After each pass."""
        orders: dict[int, tuple[bool, ...]] = dict.fromkeys(range(len(self._factors)), (False, True))
        limit, best = self._ibound or FIRST, Told(-math.inf, 0, True)
        while self._fits(self._cut(next(iter(orders)), limit)):
            values: dict[_Candidate, float] = {}
            for told in self._of_limit(orders, limit, values):
                best = told if told.bound > best.bound else best
                yield best
            if self._ibound or not told.split:
                return
            chosen = sorted(values, key=values.__getitem__, reverse=True)[:_BEST]
            orders = {each.order: tuple(c.last for c in chosen if c.order == each.order) for each in chosen}
            limit += RISE

    def _of_limit(
        self, orders: dict[int, tuple[bool, ...]], limit: int, values: dict[_Candidate, float]
    ) -> Iterator[Told]:
        """Trials, whose `values` are written, and further passes of the best; where nothing is split there is one."""
        best: Ascent | None = None
        for order, lasts in orders.items():
            at = lay_out(self._factors[order], self._cut(order, limit), self._code.fill)
            for last in lasts:
                ascent = Ascent(at, self._code.passes(at), last)
                yield from self._passes(ascent, _TRIAL, limit)
                if not ascent.split:
                    return
                values[_Candidate(order, last)] = ascent.best.value
                best = ascent if best is None or ascent.best.value > best.best.value else best
        if best is not None:
            yield from self._passes(best, _PASSES - _TRIAL, limit)

    def _passes(self, ascent: Ascent, most: int, limit: int) -> Iterator[Told]:
        """What each tells; one where nothing is split."""
        for _ in range(most):
            if not ascent.ended:
                ascent.go_on()
            yield Told(ascent.best.value - ascent.slack(self._at_stake), limit, ascent.split)
            if ascent.ended:
                return

    def _cut(self, order: int, limit: int) -> Partition:
        """The last one is kept: it is asked for again."""
        if self._last is None or self._last[0] != (order, limit):
            factors = self._factors[order]
            self._last = (order, limit), partition(logs_of(factors.cards.tolist()), factors.scopes(), limit)
        return self._last[1]

    def _fits(self, found: Partition) -> bool:
        return bytes_of(found) <= self._max_bytes and found.entries < 2.0**31
