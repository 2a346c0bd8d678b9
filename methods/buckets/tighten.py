"""The best bound that shifts of weight and the exponents of mini-buckets give, by accelerated fixed points."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.foundation import deadline
from spinbench.mathematics import rounding
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.methods.buckets.anderson import Descent
from spinbench.methods.buckets.layout import Array, Buckets, FloatArray, lay_out
from spinbench.methods.buckets.partition import partition
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.size import logs_of
from spinbench.reference.network import FlatFactors, IntArray
from spinbench.reference.orders.order import candidate_orders, pairs_of

# Learning rate of the exponentiated gradient of the weights, relative to a step of 1 of the weight shifts.
_RATE = 1.0
# Smallest weight of a mini-bucket: with weight 0 it would contribute its maximum, and multiplicative steps could never
# raise the weight again.
_LEAST_WEIGHT = 1e-4
# Floor of marginals before their logarithm: it limits how much a hard zero of one mini-bucket costs the others.
_TINY = 1e-30
# Average number of mini-buckets of a variable above which their bound tells too little for its cost.
MAX_SPLIT = 2
# Memory for past points of the Anderson acceleration: float64 numbers per table entry (the tables themselves take
# four).
ROOM = 1.0


class Point(NamedTuple):
    """Where the bound stands.

    Attributes:
        theta: (T,) shifts of weight, which add up to 0 in each bucket.
        weights: (C,) of the mini-buckets, which add up to 1 in each bucket.
        value: the bound.
        passes: how many it took.
    """

    theta: FloatArray
    weights: FloatArray
    value: float
    passes: int = 0


class UpperBound:
    """Mini-buckets whose bound is lowered: shifts of weight, and exponents by their exponentiated gradient.

    Args:
        at: the mini-buckets.
        passes: over them.
    """

    sign: ClassVar[float] = 1.0
    """Of the bound in the objective, which falls."""
    log_weights: ClassVar[tuple[float, float]] = -50.0, 0.0
    """Between which logs of weights are looked for."""

    def __init__(self, at: Buckets, passes: Passes) -> None:
        counts, widths = np.diff(at.buckets), np.diff(at.shifts)
        self.at, self.passes = at, passes
        self.bucket = np.repeat(np.arange(len(counts)), counts)
        self.shifts = int(at.shifts[-1])
        # The mini-bucket of each shift.
        self._owner = np.repeat(np.arange(len(widths)), widths)
        entries = starts_of(widths[at.buckets[:-1]])
        self._entry = entries[self.bucket[self._owner]] + np.arange(self.shifts) - at.shifts[self._owner]
        weights = self.first_weights(counts)
        self._signs = np.sign(weights)
        first = self._join(np.zeros(self.shifts), weights)
        self._descent = Descent(first, self._project_and_evaluate, self._move, ROOM * float(at.entries[-1]))

    @property
    def best(self) -> Point:
        """The best bound so far."""
        return Point(*self._split(self._descent.best), self.sign * self._descent.value, self._descent.valued - 1)

    @property
    def is_ended(self) -> bool:
        """Whether passes gain no more."""
        return not (self.at.split and np.isfinite(self._descent.value)) or self._descent.is_ended

    def go_on(self) -> None:
        """One more pass, or two where the first one makes the bound worse."""
        self._descent.go_on()

    def tighten(self, max_passes: int, end: float = math.inf) -> Point:
        """At most so many passes, begun before the clock `deadline.now` stands at `end`; the last forward pass is at
        the point that is returned."""
        while self._descent.valued <= max_passes and not self.is_ended and deadline.now() < end:
            self.go_on()
        point = self.best
        self._descent.finish()
        return point

    def slack(self, at_stake: rounding.Work) -> float:
        """What rounding may do to the bound: each message is a step, and so is each table that goes into one."""
        steps = at_stake.steps + 4 * len(self.at.variable) + len(self.at.children)
        return at_stake._replace(steps=steps).allowance(self.spread(self.best))

    def spread(self, point: Point) -> float:
        """Sum of the sizes of what is added beside the model's own tables."""
        full = self.at.shifts[:-1][np.diff(self.at.shifts) > 0]
        if len(full):
            return float(np.maximum.reduceat(np.abs(point.theta), full).sum())
        return 0.0

    def first_weights(self, counts: Array) -> FloatArray:
        """All mini-buckets of a bucket alike."""
        return np.asarray(1.0 / np.repeat(counts, counts))

    def lawful(self, sizes: FloatArray) -> FloatArray:
        """Weights of about these sizes: none below the least, and the sum of a bucket 1."""
        fresh = np.maximum(sizes, _LEAST_WEIGHT)
        return np.asarray(fresh / self.sums(fresh)[self.bucket])

    def reweighted(self, weights: FloatArray, entropies: FloatArray, rate: float) -> FloatArray:
        """Exponentiated gradient."""
        mean = self.sums(weights * entropies)
        exponent = np.clip(rate * weights * (entropies - mean[self.bucket]), -50.0, 50.0)
        return self.lawful(weights * np.exp(-exponent))

    def sums(self, values: FloatArray) -> FloatArray:
        """Over the mini-buckets of each bucket."""
        return np.asarray(np.bincount(self.bucket, values, minlength=len(self.at.cards)))

    def _project_and_evaluate(self, point: FloatArray) -> tuple[FloatArray, float]:
        weights = self.lawful(np.exp(np.clip(point[self.shifts :], *self.log_weights)))
        theta = self._project_to_zero_sum(point[: self.shifts], weights)
        return self._join(theta, weights), self.sign * self.passes.forward(theta, weights)

    def _move(self, point: FloatArray, step: float) -> FloatArray:
        """θ_c + step w_c (Σ_k w_k log b_k - log b_c), and weights along their gradient."""
        theta, weights = self._split(point)
        marginals, entropies = self.passes.backward()
        # At the optimum the marginals of a bucket's mini-buckets agree (Liu and Ihler 2011): each is moved to their
        # weighted geometric mean.
        logs, row_weights = np.log(np.maximum(marginals, _TINY)), weights[self._owner]
        mean = np.bincount(self._entry, row_weights * logs)[self._entry]
        theta = self._project_to_zero_sum(theta + step * row_weights * (mean - logs), weights)
        return self._join(theta, self.reweighted(weights, entropies, step * _RATE))

    def _project_to_zero_sum(self, theta: FloatArray, weights: FloatArray) -> FloatArray:
        """Shifts that add up to 0 in each bucket: what their sum is beside it is taken off, by the weights."""
        # Shifts have to add up to 0 in each bucket, or the product of the tables would differ from the model's.
        # Dividing the excess by weights keeps fixed points of `_move` fixed.
        return np.asarray(theta - weights[self._owner] * np.bincount(self._entry, theta)[self._entry])

    @staticmethod
    def _join(theta: FloatArray, weights: FloatArray) -> FloatArray:
        """(T + C,) shifts, and the logs of the weights without signs."""
        return np.concatenate([theta, np.log(np.abs(weights))])

    def _split(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        return point[: self.shifts], self._signs * np.exp(point[self.shifts :])


class Split(NamedTuple):
    """Of factors. Attributes: order: their variables as they are eliminated; bound: on the log of their sum."""

    order: IntArray
    bound: UpperBound


def split_into_mini_buckets(factors: FlatFactors, limit: float) -> Split | None:
    """Along an order that is found fast; None where more than `MAX_SPLIT` mini-buckets a variable would tell little.

    Args:
        factors: of any order.
        limit: log2 of the entries of a mini-bucket.
    """
    order = candidate_orders(factors.states.tolist(), pairs_of(factors.scopes()), tries=1, seed=0, keep=1)[0].order
    along = replace(factors, states=factors.states[order], scope=np.argsort(order)[factors.scope])
    minibuckets = partition(logs_of(along.states.tolist()), along.scopes(), limit)
    if len(minibuckets.scopes) > MAX_SPLIT * len(order):
        return None
    at = lay_out(along, minibuckets)
    return Split(order, UpperBound(at, Passes(at)))
