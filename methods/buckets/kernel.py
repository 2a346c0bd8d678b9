"""Weighted mini-buckets as a kernel: burn-in counts the time that passes may take, and its end spends it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Kernel, Model, States
from spinbench.foundation import deadline
from spinbench.mathematics.rounding import work_of
from spinbench.methods.buckets.draws import DrawSums, draw, keep
from spinbench.methods.buckets.layout import problem_of
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.size import Costs
from spinbench.methods.buckets.tuning import Code, Limits, Tuned, Tuner, looking
from spinbench.methods.buckets.whole import Whole
from spinbench.methods.buckets.wmb import Tables, WeightedMiniBuckets

# Seconds of one pass before burn-in: a cheaper model is eliminated exactly.
FIRST_SECONDS = 0.02


@dataclass
class BucketState:
    """One run: seed, chains, the next step's index, seconds that burn-in has given, what is drawn from, and when passes
    have to end, on the clock `deadline.now`."""

    seed: int
    chains: int
    index: int
    seconds: float
    tuned: Tuned | Whole
    end: float = math.inf


class BucketKernel(Kernel[Tables, BucketState]):
    """In NumPy. Passes and bounds are float64 whatever precision is asked for; what is drawn from has it."""

    # Measured seconds per operation on one core, from which `size.choose` sets the size of mini-buckets.
    code: ClassVar[Code] = Code(
        Costs(entry=8e-8, look=2e-8, clique=1e-4, made=1e-8, step=1.5e-6, row=1e-7),
        Passes,
    )
    compiles: ClassVar[bool] = False
    block: ClassVar[int] = 4096
    """Draws that are made in one call, at least one of each chain."""

    def __init__(self, method: WeightedMiniBuckets, backend: Backend, model: Model, tables: Tables) -> None:
        self._real = np.dtype(backend.precision)
        self._tuner = Tuner(
            problem_of(model), Limits(method.ibound, method.max_gib), self.code, work_of(model), model.name
        )
        self._first = self._tuner.first(FIRST_SECONDS, self._real)

    def init(self, seed: int, start: States) -> BucketState:
        return BucketState(seed, start.shape[1], 1, 0.0, self._first)

    def warm(self, state: BucketState, steps: int) -> BucketState:
        """No draws: what they would have taken is left for passes."""
        if not self._first.split:
            return replace(state, index=state.index + steps)
        cost = self.code.costs.draw_seconds(len(self._first.at.variable), state.chains)
        return replace(state, index=state.index + steps, seconds=state.seconds + steps * cost)

    def within(self, state: BucketState, seconds: float) -> BucketState:
        """Draws that die at once take less than they were thought to: then their number tells too long a time."""
        return replace(state, seconds=min(state.seconds, seconds), end=deadline.now() + seconds)

    def adapt(self, state: BucketState, last: bool) -> BucketState:
        if not last or not state.seconds or not self._first.split:
            return state
        # The rest of the budget is too short for a pass.
        if deadline.now() + looking(self._first.at) > state.end:
            return state
        return replace(state, tuned=self._tuner.best(state.seconds, self._real, state.end))

    def advance(self, state: BucketState, steps: int) -> tuple[BucketState, dict[str, np.ndarray]]:
        tuned = state.tuned
        if isinstance(tuned, Whole):
            statistics = tuned.advance(state.seed, state.index, steps, state.chains)
            return replace(state, index=state.index + steps), statistics
        batches, block = [], max(1, self.block // state.chains)
        for done in range(0, steps, block):
            batches.append(self._draw(tuned, state, state.index + done, min(block, steps - done)))
        point = tuned.point
        bound_row = np.array([point.value, tuned.slack, tuned.limit, point.passes, tuned.at.split], dtype=np.float64)
        statistics = {
            "log_weight": np.logaddexp.reduce([k.log_weight for k in batches]),
            "log_square": np.logaddexp.reduce([k.log_square for k in batches]),
            "rows": np.logaddexp.reduce([k.rows for k in batches])[tuned.rows],
            "counts": np.sum([k.counts for k in batches], axis=0),
            "sums": np.sum([k.sums for k in batches], axis=0),
            "bound": np.repeat(bound_row[:, None], state.chains, axis=1),
            "states": batches[-1].states[tuned.place],
            "drawn": batches[-1].last,
            "beliefs": np.repeat(tuned.beliefs[tuned.rows, None], state.chains, axis=1),
        }
        return replace(state, index=state.index + steps), statistics

    def _draw(self, tuned: Tuned, state: BucketState, index: int, steps: int) -> DrawSums:
        """Of so many draws of each chain."""
        shape = len(tuned.at.cards), state.chains
        # One generator per step index: draws do not depend on how steps are grouped into blocks.
        streams = (np.random.default_rng((state.seed, index + k)) for k in range(steps))
        uniform = np.stack([stream.random(shape) for stream in streams], axis=1)
        draws = draw(tuned.at, tuned.point.weights, tuned.probabilities, tuned.logs, uniform)
        return keep(tuned.at, draws)
