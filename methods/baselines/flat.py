"""The generic program of multicanonical sampling: single updates with weights that are a function of D = log p*."""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Index, Key
from spinbench.mathematics.graphs.table_layouts import TableSweep
from spinbench.mathematics.heat_bath.table_updates import LevelWeights
from spinbench.methods.chain_program import TableProgram

# Step t of burn-in lowers θ at a knot by GAIN / (t + DELAY) times the excess of its visits over the average. The sum of
# 1 / t diverges, so that θ can reach every value, while single steps become small (Belardinelli and Pereyra 2007).
GAIN, DELAY = 2.0, 16.0


class Tables(NamedTuple):
    """What `Multicanonical.plan` prepares.

    Attributes:
        sweep: with single variables.
        knots: (M,) D, ascending, equally spaced; levels: (M,) θ there, where burn-in begins.
        variables, states: (R,) int32, what is reported; sizes: (N,) numbers of the variables' states.
        base: () log Z at β = 0, and what is added to every log weight; barrier: () Λ.
    """

    sweep: TableSweep
    knots: Array
    levels: Array
    variables: Array
    states: Array
    sizes: Array
    base: Array
    barrier: Array


class State(NamedTuple):
    """Attributes: x (N, C) int32; d (C,) D; theta (M,); moves_up (C,) 1 on the way up from the first knot, 0 on the way
    down from the last, -1 before the last has been reached; trips (C,) ended in the step."""

    x: Array
    d: Array
    theta: Array
    moves_up: Array
    trips: Array


class FlatHistogramProgram(TableProgram):
    """Init, step, warm, observe and look."""

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """The chains' states are `start` itself."""
        none = self._xp.zeros_like(start[0, :])
        x = self._xp.astype(start, self._xp.int32)
        return State(x, self.log_weights(t.sweep.entries, x), t.levels + 0, none - 1, none)

    def step(self, key: Key, t: Tables, state: State) -> State:
        """A sweep."""
        xp, d = self._xp, self.log_weights(t.sweep.entries, state.x)
        x, d = self._bath.sweep_by_level(key, t.sweep, state.x, d, self._level_weights(t, state.theta))
        top = d >= t.knots[t.knots.shape[0] - 1]
        ended = top & (state.moves_up > 0)
        moves_up = xp.where(top, 0.0, xp.where((d <= t.knots[0]) & (state.moves_up >= 0), 1.0, state.moves_up))
        return State(x, d, state.theta, moves_up, xp.astype(ended, d.dtype))

    def warm(self, key: Key, t: Tables, state: State, index: Index) -> State:
        """A step, after which θ falls where chains are, by less from step to step."""
        xp, state = self._xp, self.step(key, t, state)
        _, low, part = self._level_weights(t, state.theta).interpolate(self._backend, state.d)
        number = xp.arange(t.knots.shape[0], dtype=xp.int32)[:, None]
        shares = xp.where(number == low, 1 - part, 0.0) + xp.where(number == low + 1, part, 0.0)
        # All chains adapt one common θ: the mean of the visits of C chains has less noise than the visits of one.
        shares = xp.mean(shares, axis=1)
        size = GAIN / (xp.astype(xp.zeros_like(t.base) + index, shares.dtype) + DELAY)
        return state._replace(theta=state.theta - size * (shares * t.knots.shape[0] - 1))

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Multicanonical.reductions`."""
        xp, last = self._xp, t.knots.shape[0] - 1
        theta = self._interpolate_theta(t, state.theta, state.d)
        hot, cold = state.theta[0], t.knots[last] - state.theta[last]
        # The walk treats hard zeros as soft; a state that meets a hard zero has weight 0 at β = 1.
        lost = self._bath.log_weights(t.sweep.entries, state.x) == -xp.inf
        w = xp.where(lost, 0.0, xp.exp(state.d - theta - cold))
        in_state = self._backend.take(state.x, t.variables) == t.states[:, None]
        level = (xp.zeros_like(w) + (hot + cold))[None, :]
        statistics = {"s": xp.where(in_state, w, 0.0), "w": w, "up": w[None, :], "down": xp.exp(hot - theta)[None, :]}
        return statistics | {"levels": level, "trips": state.trips}

    def look(self, key: Key, t: Tables, state: State) -> dict[str, Array]:
        """θ, less that of β = 0, of the chains and of as many independent draws at β = 0."""
        hot_log_weights = self.log_weights(t.sweep.entries, self.uniform_states(key, t.sizes, state.d.shape[0]))
        at_chains, at_draws = (self._interpolate_theta(t, state.theta, d) for d in (state.d, hot_log_weights))
        return {"there": at_chains - state.theta[0], "free": at_draws - state.theta[0]}

    def _level_weights(self, t: Tables, theta: Array) -> LevelWeights:
        """Of slope 0 below the knots and 1 above them."""
        return LevelWeights(t.knots[0], t.knots[1] - t.knots[0], theta, 1.0, logs=True)

    def _interpolate_theta(self, t: Tables, theta: Array, d: Array) -> Array:
        return self._level_weights(t, theta).interpolate(self._backend, d)[0]
