"""From orders and seconds to mini-buckets whose bound is tight."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics import rounding
from spinbench.methods.buckets.layout import Array, Buckets, Factors, Fill, lay_out, starts_of
from spinbench.methods.buckets.partition import Partition, partition
from spinbench.methods.buckets.passes import FloatArray, beliefs
from spinbench.methods.buckets.size import BYTES, Costs, choose, logs_of
from spinbench.methods.buckets.tighten import Passes, Point, tighten
from spinbench.methods.buckets.wmb import Tables

_TRIAL = 10
"""Passes along each order, of which the best is kept."""
_PARTITION, _LOOKED_AT = 2e-5, 8
"""Seconds of a mini-bucket, however often mini-buckets are looked at before any pass."""
_TRIALS = 0.4
"""Share of the seconds that trials may take."""


class Code(NamedTuple):
    """What runs: its costs, how it makes maps, and its passes."""

    costs: Costs
    fill: Fill
    passes: type[Passes]


class Limits(NamedTuple):
    """Settings: log2 of the entries of a mini-bucket, 0 where it is chosen, and GiB of all tables."""

    ibound: int
    max_gib: float


@dataclass(frozen=True)
class Tuned:
    """Mini-buckets and where their bound stands; read only.

    Attributes:
        at: the mini-buckets.
        limit: log2 of the entries of one.
        point: shifts, weights and bound.
        logs, probabilities: (E,) of the conditionals, the latter in the run's precision.
        beliefs: (Σ (K_v - 1),) of states 1, 2, … along the order.
        slack: what rounding may take from the bound.
        place: (n,) of each variable in the order; rows: (Σ (K_v - 1),) where its states are along it.
    """

    at: Buckets
    limit: int
    point: Point
    logs: Array
    probabilities: Array
    beliefs: FloatArray
    slack: float
    place: Array
    rows: Array


class Tuner:
    """Of one model, on one backend."""

    def __init__(self, tables: Tables, limits: Limits, code: Code, at_stake: rounding.Work, name: str) -> None:
        self._tables, self._limits, self._code = tables, limits, code
        self._at_stake, self._name = at_stake, name

    def first(self, seconds: float, real: np.dtype[Any]) -> Tuned:
        """Along the first order if that is exact in so many seconds, else along the last; not tightened."""
        limit, found = self._cut(0, seconds)
        order = 0 if not found.split else len(self._tables.orders) - 1
        limit, found = (limit, found) if not order else self._cut(order, seconds)
        return self._at(order, limit, found, 0, real)

    def best(self, seconds: float, real: np.dtype[Any], end: float = math.inf) -> Tuned:
        """As tight as it gets in so many seconds, and before the clock `perf_counter` stands at `end`."""
        last = len(self._tables.orders) - 1
        limit, found = self._cut(0, seconds)
        if not (found.split and last):
            return self._at(0, limit, found, self._affordable(found, seconds), real, end)
        limit, found = self._cut(last, seconds)
        cut = {last: found}
        room = seconds - _PARTITION * len(found.scopes) * (_LOOKED_AT + last)
        trials = int(_TRIALS * room / (_TRIAL * self._code.costs.of_pass(found.entries, len(found.scopes))))
        if trials > 1:
            cut |= {order: self._cut(order, seconds, limit)[1] for order in range(max(1, last + 1 - trials), last)}
        values = self._tried(cut, end) if len(cut) > 1 else {}
        order = min(values, key=values.__getitem__, default=last)
        most = self._affordable(cut[order], room) - _TRIAL * len(values)
        return self._at(order, limit, cut[order], max(most, 1), real, end)

    def _tried(self, cut: dict[int, Partition], end: float) -> dict[int, float]:
        """The bounds along these orders, as far as the clock allows."""
        values: dict[int, float] = {}
        until = end - (1 - _TRIALS) * (end - time.perf_counter()) if end < math.inf else end
        for order, part in cut.items():
            if not values or time.perf_counter() < until:
                values[order] = self._passes(order, part, _TRIAL, until)[2].value
        return values

    def _cut(self, order: int, seconds: float, limit: int = 0) -> tuple[int, Partition]:
        """Mini-buckets of at most 2^limit entries, as the setting says, or as many as seconds allow."""
        factors, limits = self._tables.factors[order], self._limits
        logs, limit = logs_of(factors.cards.tolist()), limits.ibound or limit
        if limit:
            found = partition(logs, factors.scopes(), limit)
        else:
            limit, found = choose(logs, factors.scopes(), self._code.costs, seconds, limits.max_gib * 2**30)
        needed = found.entries * BYTES / 2**30
        if needed > limits.max_gib or found.entries >= 2.0**31:
            raise UnsupportedError(
                f"wmb: mini-buckets of 2^{limit} entries would take {needed:.3g} GiB, and {limits.max_gib:g} are "
                "allowed (max_gib); a smaller ibound is needed"
            )
        return limit, found

    def _affordable(self, found: Partition, seconds: float) -> int:
        return int(seconds / self._code.costs.of_pass(found.entries, len(found.scopes)))

    def _passes(self, order: int, found: Partition, most: int, end: float) -> tuple[Buckets, Passes, Point]:
        at = lay_out(self._tables.factors[order], found, self._code.fill)
        passes = self._code.passes(at)
        point = tighten(at, passes, most, end)
        if not point.value > -np.inf:
            raise ModelError(f"{self._name}: no state has positive weight, so Z = 0; check its zeros and its evidence")
        return at, passes, point

    def _at(
        self, order: int, limit: int, found: Partition, most: int, real: np.dtype[Any], end: float = math.inf
    ) -> Tuned:
        at, passes, point = self._passes(order, found, most, end)
        probabilities = passes.work.probabilities.astype(real)
        passes.backward()
        place, rows = _along(self._tables.orders[order], self._tables.factors[order])
        return Tuned(
            at,
            limit,
            point,
            passes.work.logs,
            probabilities,
            beliefs(at, passes.work.probabilities.astype(real)),
            self._slack(at, point) if at.split else 0.0,
            place,
            rows,
        )

    def _slack(self, at: Buckets, point: Point) -> float:
        """Each message is a step, and so is each table that goes into one."""
        steps = self._at_stake.steps + 4 * len(at.variable) + len(at.children)
        full = at.shifts[:-1][np.diff(at.shifts) > 0]
        shifted = np.maximum.reduceat(np.abs(point.theta), full) if len(full) else np.zeros(0)
        return self._at_stake._replace(steps=steps).allowance(float(shifted.sum()))


def _along(order: Array, factors: Factors) -> tuple[Array, Array]:
    """Where each variable, and each of its states 1, 2, …, stands along the order."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    ends = starts_of(factors.cards - 1)
    return place, np.concatenate([np.zeros(0, np.int64), *(np.arange(ends[p], ends[p + 1]) for p in place)])
