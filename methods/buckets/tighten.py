"""The least upper bound that shifts of weight and the exponents of mini-buckets give, by damped fixed points."""

from __future__ import annotations

import math
import time
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from spinbench.methods.buckets.layout import Array, Buckets
from spinbench.methods.buckets.passes import Work

FloatArray = npt.NDArray[np.float64]

_STEP, _MOST_STEP, _LEAST_STEP = 0.5, 1.5, 1e-3
_RATE, _MOST_RATE = 0.1, 3.0
_GROWTH, _RATE_GROWTH = 1.1, 1.2
_LEAST_WEIGHT = 1e-4
_TINY = 1e-30
"""A marginal below it counts as it: what a hard zero of one mini-bucket forbids costs the others so much at most."""
_GAIN = 1e-7
"""Nats; a pass that gains less is the last."""


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
    best = Point(theta, weights, passes.forward(theta, weights))
    if not (at.split and np.isfinite(best.value)):
        return best
    groups, step, rate = groups_of(at), _STEP, _RATE
    done, latest = 0, best.value
    while done < most and step >= _LEAST_STEP and time.perf_counter() < end:
        marginals, entropies = passes.backward()
        theta = shifted(groups, best.theta, best.weights, marginals, step)
        weights = _reweighted(groups, best.weights, entropies, rate)
        latest, done = passes.forward(theta, weights), done + 1
        if latest < best.value:
            gain = best.value - latest
            best = Point(theta, weights, latest)
            step, rate = min(step * _GROWTH, _MOST_STEP), min(rate * _RATE_GROWTH, _MOST_RATE)
            if gain < _GAIN:
                break
            continue
        step, rate = step / 2, rate / 2
        passes.forward(best.theta, best.weights)
    return best._replace(passes=done)


def groups_of(at: Buckets) -> Groups:
    counts = np.diff(at.buckets)
    bucket = np.repeat(np.arange(len(counts)), counts)
    widths = np.diff(at.shifts)
    owner = np.repeat(np.arange(len(widths)), widths)
    own = widths[at.buckets[:-1]]
    first = np.concatenate([[0], np.cumsum(own)])
    entry = first[bucket[owner]] + np.arange(len(owner)) - at.shifts[owner]
    return Groups(bucket, owner, entry, len(counts), int(first[-1]))


def shifted(groups: Groups, theta: FloatArray, weights: FloatArray, marginals: FloatArray, step: float) -> FloatArray:
    """θ_c + step w_c (Σ_k w_k log b_k - log b_c): what rounding leaves of their sums is taken off."""
    logs, own = np.log(np.maximum(marginals, _TINY)), weights[groups.owner]
    mean = np.bincount(groups.entry, own * logs, minlength=groups.entries)
    moved = theta + step * own * (mean[groups.entry] - logs)
    return np.asarray(moved - own * np.bincount(groups.entry, moved, minlength=groups.entries)[groups.entry])


def _reweighted(groups: Groups, weights: FloatArray, entropies: FloatArray, rate: float) -> FloatArray:
    """Exponentiated gradient."""
    mean = np.bincount(groups.bucket, weights * entropies, minlength=groups.buckets)
    exponent = np.clip(rate * weights * (entropies - mean[groups.bucket]), -50.0, 50.0)
    fresh = np.maximum(weights * np.exp(-exponent), _LEAST_WEIGHT)
    fresh /= np.bincount(groups.bucket, fresh, minlength=groups.buckets)[groups.bucket]
    return np.asarray(fresh)
