"""The generic program of nested sampling: populations that climb through levels given once for all runs."""

from __future__ import annotations

from spinbench.api import Array, Backend, Index, Key
from spinbench.methods.baselines.shells import Points, Shells, Tables
from spinbench.methods.chain_program import IndependentSteps
from spinbench.methods.population.program import PopulationProgram, State

# Factor by which chains in the second half make more sweeps; their results have to agree with those of the first half.
SWEEP_FACTOR = 3


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
