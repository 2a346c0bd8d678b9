"""Points in the sets of states above a level of D = log p*, which nested sampling draws, sweeps and copies; its generic
program: populations that climb through levels given once for all runs.

A chain is a population of P points; its columns in arrays (…, P C) are those of the other chains beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Backend, Index, Key, Namespace
from spinbench.mathematics.graphs.table_layouts import TableSweep
from spinbench.mathematics.heat_bath.table_updates import LevelWeights
from spinbench.methods.chain_program import IndependentSteps, TableProgram
from spinbench.methods.population.program import PopulationProgram, State, resample_systematically

# Each state's D gets a uniform label of this width in nats: the many states of one D, common in discrete models, then
# do not fall below a level all at once (Murray et al. 2005).
LABEL_NATS = 1.0
# Below all levels; finite, since differences from -∞ would be NaN.
LOWEST_LEVEL = -1e30
# Factor by which chains in the second half make more sweeps; their results have to agree with those of the first half.
SWEEP_FACTOR = 3


class Tables(NamedTuple):
    """What `NestedSampling.plan` prepares.

    Attributes:
        levels: (T,) ascending, the first `LOWEST_LEVEL`.
        points: (P,) 0, for its length.
        sizes: (N,) states of the variables; sweep: with single variables.
        variables, states: (R,) int32, what is reported.
        base: () log Z at β = 0, and what is added to every log weight; information: () H, as the pilot saw it.
    """

    levels: Array
    points: Array
    sizes: Array
    sweep: TableSweep
    variables: Array
    states: Array
    base: Array
    information: Array


class Points(NamedTuple):
    """On their way. Attributes: x (N, P C) int32; d (P C,) D; log_x (C,) log of the share of states that is left."""

    x: Array
    d: Array
    log_x: Array


class Shells(TableProgram):
    """What climbs are made of."""

    def draw_points(self, key: Key, t: Tables, shape: tuple[int, int]) -> Points:
        """Independent draws at β = 0."""
        x = self.uniform_states(key, t.sizes, shape[0] * shape[1])
        d = self.log_weights(t.sweep.entries, x)
        return Points(x, d, 0 * d[: shape[1]])

    def sweep(self, key: Key, t: Tables, points: Points, level: Array) -> Points:
        """Each variable once, given the rest, by the room that its states leave labels above the level."""
        ends = self._xp.asarray([0.0, 1.0], dtype=points.d.dtype)
        weights = LevelWeights(level - LABEL_NATS, LABEL_NATS + 0.0 * level, ends, 0.0, logs=False)
        d = self.log_weights(t.sweep.entries, points.x)
        x, d = self._bath.sweep_by_level(key, t.sweep, points.x, d, weights)
        return points._replace(x=x, d=d)

    def surviving_share(self, d: Array, previous_level: Array, level: Array) -> Array:
        """(P C,) of points above `previous_level`: the share of their labels above it that is above `level`, too."""
        share_before = label_share_above(self._xp, d, previous_level)
        # The share can only be 0 by rounding: every point lies above the previous level.
        has_room = share_before > 0
        share = label_share_above(self._xp, d, level)
        return self._xp.where(has_room, share / self._xp.where(has_room, share_before, 1.0), 0.0)

    def resample_points(self, key: Key, points: Points, surviving_share: Array) -> Points:
        """As many points as before, drawn from those that are left."""
        xp, chains = self._xp, points.log_x.shape[0]
        surviving_share = xp.reshape(surviving_share, (-1, chains))
        mean = xp.mean(surviving_share, axis=0)
        # If no point is left, any point may be copied: the weight of the copies is 0.
        weights = xp.where(mean > 0, surviving_share, 1.0)
        parents = resample_systematically(
            self._backend, self._backend.uniform(key, (chains,)), weights / xp.sum(weights, axis=0)
        )
        places = xp.reshape(parents * chains + xp.arange(chains, dtype=xp.int32), (-1,))
        log_survival = xp.where(mean > 0, xp.log(xp.where(mean > 0, mean, 1.0)), -xp.inf)
        x, d = xp.take(points.x, places, axis=1), self._backend.take(points.d, places)
        return Points(x, d, points.log_x + log_survival)

    def exact_log_weights(self, t: Tables, x: Array) -> Array:
        """(P C,) D, -inf where a state meets a hard zero."""
        return self._bath.log_weights(t.sweep.entries, x)


def label_share_above(xp: Namespace, d: Array, level: Array) -> Array:
    """The share of labels with which D and the label are above the level."""
    share = (d + LABEL_NATS - level) / LABEL_NATS
    return xp.where(share > 1, xp.ones_like(d), xp.where(share > 0, share, xp.zeros_like(d)))


class NestedSamplingProgram(IndependentSteps, Shells):
    """Init, step and observe. A step is a whole run, with `sweeps` after each level, in half of the chains
    `SWEEP_FACTOR` times as many."""

    observe = PopulationProgram.observe

    def __init__(self, backend: Backend, sweeps: int) -> None:
        super().__init__(backend)
        self._sweeps = sweeps

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """Of no run."""
        # Derived from `start`: a new constant would lie on another device than the results of steps, and JAX would
        # compile the step a second time.
        none = 0.0 * start[0, :]
        return State(none, none + self._xp.zeros((t.states.shape[0], 1), dtype=none.dtype))

    def step(self, key: Key, t: Tables, state: State) -> State:
        """One run of every population."""
        backend, xp = self._backend, self._xp
        shape = t.points.shape[0], state.log_z.shape[0]
        points = self.draw_points(backend.fold_in(key, 0), t, shape)
        none = State(points.log_x - xp.inf, 0.0 * state.p)

        def climb(k: Index, carry: tuple[Points, State]) -> tuple[Points, State]:
            points, evidence = carry
            level_key, level = backend.fold_in(key, k), backend.take(t.levels, k)
            left = self.surviving_share(points.d, backend.take(t.levels, k - 1), level)
            evidence = self._add_evidence(t, points, 1 - left, evidence)
            points = self.resample_points(backend.fold_in(level_key, 0), points, left)
            return self._sweep_points(backend.fold_in(level_key, 1), t, points, level), evidence

        points, evidence = backend.fori_loop(1, t.levels.shape[0], climb, (points, none))
        return self._add_evidence(t, points, xp.ones_like(points.d), evidence)

    def _sweep_points(self, key: Key, t: Tables, points: Points, level: Array) -> Points:
        """The sweeps after a level; those of the second half of the chains alone go on."""
        xp, backend, chains = self._xp, self._backend, points.log_x.shape[0]

        def sweep(j: Index, points: Points) -> Points:
            return self.sweep(backend.fold_in(key, j), t, points, level)

        points = backend.fori_loop(0, self._sweeps, sweep, points)
        numbers = xp.arange(points.d.shape[0], dtype=xp.int32)
        # The halves of the chains differ only in their number of sweeps: a difference between their results shows that
        # there are too few sweeps.
        late = numbers % chains >= chains // 2
        places = xp.reshape(xp.reshape(numbers, (-1, chains))[:, chains // 2 :], (-1,))
        extra = Points(xp.take(points.x, places, axis=1), backend.take(points.d, places), points.log_x)
        extra = backend.fori_loop(self._sweeps, SWEEP_FACTOR * self._sweeps, sweep, extra)
        # Consecutive numbers of the late points, from 1 on.
        number = xp.astype(xp.cumulative_sum(xp.astype(late, xp.int32)), xp.int32)
        source = xp.where(late, numbers.shape[0] - 1 + number, numbers)
        x, d = xp.concat([points.x, extra.x], axis=1), xp.concat([points.d, extra.d], axis=0)
        return points._replace(x=xp.take(x, source, axis=1), d=backend.take(d, source))

    def _add_evidence(self, t: Tables, points: Points, share: Array, evidence: State) -> State:
        """With what the points' share `share` (P C,) weighs, of all states that are left."""
        xp, chains = self._xp, points.log_x.shape[0]
        has_share = share > 0
        log_w = xp.where(
            has_share, xp.log(xp.where(has_share, share, 1.0)) + self.exact_log_weights(t, points.x), -xp.inf
        )
        log_w = xp.reshape(log_w, (-1, chains)) + points.log_x
        top = xp.maximum(xp.max(log_w, axis=0), evidence.log_z)
        # -∞ - -∞ would be NaN where no state so far has weight.
        top = xp.where(top == -xp.inf, 0.0, top)
        w, previous = xp.exp(log_w - top) / log_w.shape[0], xp.exp(evidence.log_z - top)
        total = previous + xp.sum(w, axis=0)
        hit = self._backend.take(points.x, t.variables) == t.states[:, None]
        hits = xp.sum(xp.where(xp.reshape(hit, (-1, *log_w.shape)), w, 0.0), axis=1)
        safe = xp.where(total > 0, total, 1.0)
        log_z = xp.where(total > 0, top + xp.log(safe), -xp.inf)
        return State(log_z, (evidence.p * previous + hits) / safe)
