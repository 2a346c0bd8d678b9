"""Weighted mini-buckets as a kernel: burn-in counts the time that passes may take, and its end spends it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Kernel
from spinbench.errors import ModelError, UnsupportedError
from spinbench.mathematics.rounding import work_of
from spinbench.methods.buckets.draws import Drawn, Kept, draw, keep
from spinbench.methods.buckets.layout import Array, Buckets, Fill, lay_out
from spinbench.methods.buckets.partition import partition
from spinbench.methods.buckets.passes import ON_ARRAYS, FloatArray, backward, beliefs, forward, work_space
from spinbench.methods.buckets.size import BYTES, Costs, choose, logs_of
from spinbench.methods.buckets.tighten import Passes, Point, tighten
from spinbench.methods.buckets.wmb import Tables, WeightedMiniBuckets
from spinbench.models import Model

FIRST_SECONDS = 0.02
"""For one pass before any burn-in: what costs less is eliminated exactly."""


@dataclass(frozen=True)
class Tuned:
    """Mini-buckets and where their bound stands; read only.

    Attributes:
        at: the mini-buckets.
        limit: log2 of the entries of one.
        point: shifts, weights and bound.
        logs, probabilities: (E,) of the conditionals, the latter in the run's precision.
        beliefs: (Σ (K_v - 1),) of states 1, 2, …
        slack: what rounding may take from the bound.
    """

    at: Buckets
    limit: int
    point: Point
    logs: Array
    probabilities: Array
    beliefs: FloatArray
    slack: float


@dataclass
class BucketState:
    """One run: seed, chains, the next step's index, seconds that burn-in has given, and what is drawn from."""

    seed: int
    chains: int
    index: int
    seconds: float
    tuned: Tuned


class OnArrays:
    """Both passes in NumPy."""

    def __init__(self, at: Buckets) -> None:
        self.at, self.work = at, work_space(at)

    def forward(self, theta: FloatArray, weights: FloatArray) -> float:
        return forward(self.at, theta, weights, self.work)

    def backward(self) -> tuple[FloatArray, FloatArray]:
        backward(self.at, self.work)
        return self.work.shifts, self.work.entropies


class BucketKernel(Kernel):
    """In NumPy. Passes and bounds are float64 whatever precision is asked for; what is drawn from has it."""

    costs: ClassVar[Costs] = Costs(entry=1.2e-7, clique=1e-4, step=1.5e-6)
    fill: ClassVar[Fill] = ON_ARRAYS
    passes: ClassVar[type[Passes]] = OnArrays
    block: ClassVar[int] = 4096
    """Draws that are made in one call, at least one of each chain."""

    def __init__(self, method: WeightedMiniBuckets, backend: Backend, model: Model, tables: Tables) -> None:
        self._method, self._order = method, tables.order
        self._factors = tables.factors
        self._real = np.dtype(backend.precision)
        self._at_stake = work_of(model)
        self._logs, self._scopes = logs_of(self._factors.cards.tolist()), self._factors.scopes()
        self._name = model.name
        self._first = self._tuned(FIRST_SECONDS, most=0)

    def init(self, seed: int, start: np.ndarray) -> BucketState:
        return BucketState(seed, start.shape[1], 1, 0.0, self._first)

    def warm(self, state: BucketState, steps: int) -> BucketState:
        """No draws: what they would have taken is left for passes."""
        cost = self.costs.of_draws(len(self._first.at.variable), state.chains)
        return replace(state, index=state.index + steps, seconds=state.seconds + steps * cost)

    def adapt(self, state: BucketState, last: bool) -> BucketState:
        if not last or not state.seconds or not self._first.at.split:
            return state
        return replace(state, tuned=self._tuned(state.seconds))

    def advance(self, state: BucketState, steps: int) -> tuple[BucketState, dict[str, np.ndarray]]:
        kept, block = [], max(1, self.block // state.chains)
        for done in range(0, steps, block):
            kept.append(self._kept(state, state.index + done, min(block, steps - done)))
        tuned, point = state.tuned, state.tuned.point
        told = np.array([point.value, tuned.slack, tuned.limit, point.passes, tuned.at.split], dtype=np.float64)
        found = {
            "log_weight": np.logaddexp.reduce([k.log_weight for k in kept]),
            "log_square": np.logaddexp.reduce([k.log_square for k in kept]),
            "rows": np.logaddexp.reduce([k.rows for k in kept]),
            "counts": np.sum([k.counts for k in kept], axis=0),
            "sums": np.sum([k.sums for k in kept], axis=0),
            "bound": np.repeat(told[:, None], state.chains, axis=1),
            "states": kept[-1].states,
            "drawn": kept[-1].last,
            "beliefs": np.repeat(tuned.beliefs[:, None], state.chains, axis=1),
        }
        return replace(state, index=state.index + steps), found

    def _kept(self, state: BucketState, index: int, steps: int) -> Kept:
        """Of so many draws of each chain."""
        tuned = state.tuned
        shape = len(tuned.at.cards), state.chains
        streams = (np.random.default_rng((state.seed, index + k)) for k in range(steps))
        uniform = np.stack([stream.random(shape) for stream in streams], axis=1)
        drawn = draw(tuned.at, tuned.point.weights, tuned.probabilities, tuned.logs, uniform)
        if not tuned.at.split:  # all weights are Z
            drawn = Drawn(drawn.states, np.zeros_like(drawn.logs))
        return keep(tuned.at, drawn)

    def _tuned(self, seconds: float, most: int | None = None) -> Tuned:
        """What so many seconds are worth; with at most so many passes, or as many as end in time."""
        method = self._method
        limit, found = method.ibound, None
        if limit:
            found = partition(self._logs, self._scopes, limit)
        else:
            limit, found = choose(self._logs, self._scopes, self.costs, seconds, method.max_gib * 2**30)
        needed = found.entries * BYTES / 2**30
        if needed > method.max_gib or (max(map(len, found.scopes), default=0) and found.entries >= 2.0**31):
            raise UnsupportedError(
                f"wmb: mini-buckets of 2^{limit} entries would take {needed:.3g} GiB, and {method.max_gib:g} are "
                "allowed (max_gib); a smaller ibound is needed"
            )
        at = lay_out(self._factors, found, self.fill)
        passes = self.passes(at)
        count = int(seconds / self.costs.of_pass(found.entries, len(found.scopes))) if most is None else most
        point = tighten(at, passes, count)
        if not point.value > -np.inf:
            raise ModelError(f"{self._name}: no state has positive weight, so Z = 0; check its zeros and its evidence")
        probabilities = passes.work.probabilities.astype(self._real)
        passes.backward()
        return Tuned(
            at,
            limit,
            point,
            passes.work.logs,
            probabilities,
            beliefs(at, passes.work.probabilities),
            self._slack(at, point) if at.split else 0.0,
        )

    def _slack(self, at: Buckets, point: Point) -> float:
        """Each message is a step, and so is each table that goes into one."""
        steps = self._at_stake.steps + 4 * len(at.variable) + len(at.children)
        full = at.shifts[:-1][np.diff(at.shifts) > 0]
        shifted = np.maximum.reduceat(np.abs(point.theta), full) if len(full) else np.zeros(0)
        return self._at_stake._replace(steps=steps).allowance(float(shifted.sum()))
