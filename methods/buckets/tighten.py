"""The least upper bound that shifts of weight and the exponents of mini-buckets give, by accelerated fixed points."""

from __future__ import annotations

import math
import time
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinbench.methods.buckets.anderson import Descent
from spinbench.methods.buckets.layout import Array, Buckets
from spinbench.methods.buckets.passes import Work

FloatArray = npt.NDArray[np.float64]

_RATE = 1.0
"""Of the weights' exponentiated gradient, where weight is shifted with a step of 1."""
_LEAST_WEIGHT = 1e-4
_TINY = 1e-30
"""A marginal below it counts as it: what a hard zero of one mini-bucket forbids costs the others so much at most."""
ROOM = 1.0
"""Numbers that points of the past may take, for each entry of the tables."""


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


class Passes(Protocol):
    """Both passes over mini-buckets, on some backend.

    Attributes:
        work: what they write.
    """

    work: Work

    def __init__(self, at: Buckets) -> None: ...

    def forward(self, theta: FloatArray, weights: FloatArray) -> float:
        """The bound."""
        ...

    def backward(self) -> tuple[FloatArray, FloatArray]:
        """Of the last forward pass: marginals on the shared variables (T,), and H (C,)."""
        ...


class Groups(NamedTuple):
    """Of each mini-bucket its bucket; of each shift its mini-bucket, and the shared entry that it is one of."""

    bucket: Array
    owner: Array
    entry: Array
    buckets: int
    entries: int


def first_point(at: Buckets) -> tuple[FloatArray, FloatArray]:
    """No shifts, and all mini-buckets of a bucket alike."""
    return np.zeros(int(at.shifts[-1])), 1.0 / np.repeat(np.diff(at.buckets), np.diff(at.buckets))


def tighten(at: Buckets, passes: Passes, most: int, end: float = math.inf) -> Point:
    """At most so many passes, begun before the clock `perf_counter` stands at `end`; the last forward pass is at the
    point that is returned."""
    theta, weights = first_point(at)
    value = passes.forward(theta, weights)
    if not (at.split and np.isfinite(value)):
        return Point(theta, weights, value)
    groups = groups_of(at)

    def valued(point: FloatArray) -> tuple[FloatArray, float]:
        theta, weights = _lawful(groups, point)
        return joined(theta, weights), passes.forward(theta, weights)

    def moved(point: FloatArray, step: float) -> FloatArray:
        theta, weights = parted(groups, point)
        marginals, entropies = passes.backward()
        theta = shifted(groups, theta, weights, marginals, step)
        return joined(theta, _reweighted(groups, weights, entropies, step * _RATE))

    descent = Descent(joined(theta, weights), valued, moved, ROOM * float(at.entries[-1]))
    while descent.valued <= most and not descent.ended and time.perf_counter() < end:
        descent.go_on()
    return Point(*parted(groups, descent.finish()), descent.value, descent.valued - 1)


def groups_of(at: Buckets) -> Groups:
    counts = np.diff(at.buckets)
    bucket = np.repeat(np.arange(len(counts)), counts)
    widths = np.diff(at.shifts)
    owner = np.repeat(np.arange(len(widths)), widths)
    own = widths[at.buckets[:-1]]
    first = np.concatenate([[0], np.cumsum(own)])
    entry = first[bucket[owner]] + np.arange(len(owner)) - at.shifts[owner]
    return Groups(bucket, owner, entry, len(counts), int(first[-1]))


def joined(theta: FloatArray, weights: FloatArray) -> FloatArray:
    """(T + C,) shifts, and the logs of the weights without signs."""
    return np.concatenate([theta, np.log(np.abs(weights))])


def parted(groups: Groups, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shifts and positive weights of what was joined."""
    shifts = len(groups.owner)
    return point[:shifts], np.exp(point[shifts:])


def balanced(groups: Groups, theta: FloatArray, weights: FloatArray) -> FloatArray:
    """Shifts that add up to 0 in each bucket: what their sum is beside it is taken off, by the weights."""
    own = weights[groups.owner]
    return np.asarray(theta - own * np.bincount(groups.entry, theta, minlength=groups.entries)[groups.entry])


def shifted(groups: Groups, theta: FloatArray, weights: FloatArray, marginals: FloatArray, step: float) -> FloatArray:
    """θ_c + step w_c (Σ_k w_k log b_k - log b_c): what rounding leaves of their sums is taken off."""
    logs, own = np.log(np.maximum(marginals, _TINY)), weights[groups.owner]
    mean = np.bincount(groups.entry, own * logs, minlength=groups.entries)
    return balanced(groups, theta + step * own * (mean[groups.entry] - logs), weights)


def _reweighted(groups: Groups, weights: FloatArray, entropies: FloatArray, rate: float) -> FloatArray:
    """Exponentiated gradient."""
    mean = np.bincount(groups.bucket, weights * entropies, minlength=groups.buckets)
    exponent = np.clip(rate * weights * (entropies - mean[groups.bucket]), -50.0, 50.0)
    return _normalised(groups, weights * np.exp(-exponent))


def _normalised(groups: Groups, weights: FloatArray) -> FloatArray:
    """None below the least, and the sum of a bucket 1."""
    fresh = np.maximum(weights, _LEAST_WEIGHT)
    return np.asarray(fresh / np.bincount(groups.bucket, fresh, minlength=groups.buckets)[groups.bucket])


def _lawful(groups: Groups, point: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Shifts and weights near a point."""
    shifts = len(groups.owner)
    weights = _normalised(groups, np.exp(np.minimum(point[shifts:], 0.0)))
    return balanced(groups, point[:shifts], weights), weights
