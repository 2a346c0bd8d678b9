"""From orders and seconds to mini-buckets whose bound is tight."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from spinbench.errors import ModelError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.mathematics import rounding
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.methods.buckets import orders, size
from spinbench.methods.buckets.layout import Array, Buckets, FloatArray, factors_of, lay_out
from spinbench.methods.buckets.partition import Partition, Scope, partition
from spinbench.methods.buckets.passes import Passes, beliefs
from spinbench.methods.buckets.tighten import Point, UpperBound
from spinbench.methods.buckets.whole import Whole, hopeful, whole
from spinbench.reference.problem import Problem
from spinbench.reference.solver import ZeroWeightError
from spinbench.reference.sparse import tree

if TYPE_CHECKING:
    from spinbench.reference.network import FlatFactors
    from spinbench.reference.orders.order import Order

# Passes along each candidate order, of which the best is continued: enough to rank orders, few enough to leave time for
# the best.
_TRIAL = 10
# Predicted seconds per variable of one partition into mini-buckets, and number of partitions that the choice of their
# size computes before the first pass.
_PARTITION, _LOOKED_AT = 1.2e-5, 8
# Smallest share of the time that passes get, however long the choice of mini-buckets takes: without passes the bound is
# loose whatever the tables.
_PASSED = 0.25
# Largest share of the passes' time that the trials of orders take.
_TRIALS = 0.55
# Seconds of the first search for orders; share of the time of a later search.
_FIRST_SEARCH, _SEARCH = 0.03, 0.15
# Largest share of the remaining time that exact elimination over the possible states may take.
_WHOLE = 0.75
# Share of the time of a failed exact elimination that is taken from the draws; the passes lose the rest.
_FORGIVEN = 0.5


class Code(NamedTuple):
    """What runs: its costs and its passes."""

    costs: size.Costs
    passes: type[Passes]


class Limits(NamedTuple):
    """Settings: log2 of the entries of a mini-bucket, 0 where it is chosen, and GiB of all tables."""

    ibound: int
    max_gib: float


class Cut(NamedTuple):
    """An order, the factors along it, and mini-buckets of at most 2^limit entries."""

    order: Order
    factors: FlatFactors
    limit: int
    parts: Partition


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

    @property
    def split(self) -> bool:
        """Whether the bound may be above log Z."""
        return self.at.split


class Tuner:
    """Of one model, on one backend."""

    def __init__(self, problem: Problem, limits: Limits, code: Code, at_stake: rounding.Work, name: str) -> None:
        self._problem, self._limits, self._code = problem, limits, code
        self._at_stake, self._name = at_stake, name
        self._orders = orders.search_orders(problem, _FIRST_SEARCH, 0)
        self._smallest: dict[bytes, Partition] = {}
        self._zeros = not limits.ibound and tree.has_zeros(problem)

    def first(self, seconds: float, real: np.dtype[np.floating]) -> Tuned | Whole:
        """Exact if that is so in so many seconds, else not tightened."""
        cut = self._cut(self._orders[0], seconds)
        if cut.parts.split and (whole := self._whole(cut.order, seconds)) is not None:
            return whole
        # Split buckets use greedy orders: the order along the rows of a lattice is only good for whole tables.
        if cut.parts.split and cut.order.lattice:
            cut = self._cut(_greedy(self._orders)[0], seconds)
        return self._at(cut, 0, real)

    def best(self, seconds: float, real: np.dtype[np.floating], end: float = math.inf) -> Tuned | Whole:
        """As tight as it gets in so many seconds, and before the clock `deadline.now` stands at `end`."""
        cut = self._cut(self._orders[0], seconds)
        if not cut.parts.split:
            return self._at(cut, 1, real, end)
        best_orders = orders.best_orders([*self._orders, *orders.search_orders(self._problem, _SEARCH * seconds, 1)])
        seconds *= 1 - _SEARCH
        since = deadline.now()
        if self._zeros and hopeful(best_orders[0], self._rows(_WHOLE * seconds)):
            if (whole := self._whole(best_orders[0], _WHOLE * seconds, since + _WHOLE * (end - since))) is not None:
                return whole
            lost = _FORGIVEN * (deadline.now() - since)
            seconds, end = seconds * (1 - _WHOLE + _FORGIVEN * _WHOLE), end + lost
        return self._tighten(_greedy(best_orders), seconds, real, end)

    def _whole(self, order: Order, seconds: float, end: float = math.inf) -> Whole | None:
        """Over what zeros leave possible, if there are any, and mini-buckets are not asked for."""
        if not self._zeros:
            return None
        try:
            return whole(self._problem, order, tree.Limits(self._rows(seconds), end))
        except ZeroWeightError:
            raise self._nothing() from None

    def _rows(self, seconds: float) -> float:
        """As many as time and memory allow."""
        return min(seconds / self._code.costs.row, self._limits.max_gib * 2**30 / tree.BYTES)

    def _tighten(self, candidates: list[Order], seconds: float, real: np.dtype[np.floating], end: float) -> Tuned:
        """Along the order whose bound is the best after a few passes."""
        looks = _PARTITION * len(candidates[0].order) * (_LOOKED_AT + len(candidates))
        room = max(seconds - looks, _PASSED * seconds)
        cuts, costs = [self._cut(candidates[0], room)], self._code.costs
        trials = int(_TRIALS * room / costs.passes_seconds(cuts[0].parts, _TRIAL))
        for order in candidates[1:trials]:
            # Along another order the same size of mini-buckets may exceed the memory limit.
            with suppress(UnsupportedError):
                cuts.append(self._cut(order, room, cuts[0].limit))
        values: list[float] = []
        # Limited by the clock as well: if predicted costs are too low by half, the best order must still get its
        # passes.
        until = end
        if end < math.inf:
            until = end - (1 - _TRIALS) * (end - deadline.now())
        for cut in cuts if len(cuts) > 1 else []:
            if not values or deadline.now() < until:
                values.append(self._bound(cut, _TRIAL, until).best.value)
        best = cuts[values.index(min(values)) if values else 0]
        affordable = int((room - costs.table_seconds(best.parts)) / costs.pass_seconds(best.parts))
        return self._at(best, max(affordable - _TRIAL * len(values), 1), real, end)

    def _cut(self, order: Order, seconds: float, limit: int = 0) -> Cut:
        """Mini-buckets of at most 2^limit entries, as the setting says, or as many as seconds allow."""
        factors, limits = factors_of(self._problem, order.order), self._limits
        logs, scopes, limit = size.logs_of(factors.states.tolist()), factors.scopes(), limits.ibound or limit
        if limit:
            minibuckets = partition(logs, scopes, limit)
        else:
            max_bytes = limits.max_gib * 2**30
            limit, minibuckets = size.choose(
                logs,
                scopes,
                order.log2_total,
                self._code.costs,
                seconds,
                max_bytes,
                lambda: self._smallest_parts(order, logs, scopes),
            )
        needed = size.bytes_of(minibuckets) / 2**30
        if needed > limits.max_gib or minibuckets.entries >= 2.0**31:
            raise UnsupportedError(
                f"wmb: mini-buckets of 2^{limit} entries would take {needed:.3g} GiB, and {limits.max_gib:g} are "
                "allowed (max_gib); a smaller ibound is needed"
            )
        return Cut(order, factors, limit, minibuckets)

    def _smallest_parts(self, order: Order, logs: list[float], scopes: list[Scope]) -> Partition:
        """Of the least limit. Short runs ask for it several times along the same order, in a fifth of their time."""
        key = order.order.tobytes()
        if key not in self._smallest:
            self._smallest[key] = partition(logs, scopes, size.SMALLEST)
        return self._smallest[key]

    def _bound(self, cut: Cut, max_passes: int, end: float) -> UpperBound:
        """After at most so many passes."""
        at = lay_out(cut.factors, cut.parts)
        bound = UpperBound(at, self._code.passes(at))
        if not bound.tighten(max_passes, end).value > -np.inf:
            raise self._nothing()
        return bound

    def _nothing(self) -> ModelError:
        return ModelError(f"{self._name}: no state has positive weight, so Z = 0; check its zeros and its evidence")

    def _at(self, cut: Cut, max_passes: int, real: np.dtype[np.floating], end: float = math.inf) -> Tuned:
        bound = self._bound(cut, max_passes, end)
        work, at = bound.passes.work, bound.at
        # Copied before the backward pass, which overwrites the conditionals with g_c.
        probabilities = work.probabilities.astype(real)
        bound.passes.backward()
        place, ends = np.argsort(cut.order.order), starts_of(at.cards - 1)
        return Tuned(
            at=at,
            limit=cut.limit,
            point=bound.best,
            logs=work.logs,
            probabilities=probabilities,
            beliefs=beliefs(at, work.probabilities.astype(real)),
            slack=bound.slack(self._at_stake) if at.split else 0.0,
            place=place,
            rows=np.concatenate([np.zeros(0, np.int64), *(np.arange(ends[p], ends[p + 1]) for p in place)]),
        )


def looking(at: Buckets) -> float:
    """Seconds that it takes about to look at other mini-buckets in place of these."""
    return _PARTITION * len(at.variable) * _LOOKED_AT / 2


def _greedy(orders: list[Order]) -> list[Order]:
    return [order for order in orders if not order.lattice]
