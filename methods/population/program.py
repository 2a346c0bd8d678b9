"""The generic program of annealed populations, over any replicas that can be swept at a β and weighed.

A chain is a population of P particles; its columns in arrays (…, P C) are those of the other chains beside it.
"""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Backend, Index, Key
from spinbench.methods.chain_program import IndependentSteps
from spinbench.methods.tempering.program import ReplicaTables


class Tables(NamedTuple):
    """What `Annealed.plan` prepares.

    Attributes:
        betas: (T + 1,) ascending from 0 to 1.
        particles: (P,) 0, for its length.
        sizes: (N,) states of the variables.
        replicas: the tables of what is swept.
        rows: (M,) of p, in the order of the variables and their states; of binary variables those of state 1.
        signs: (M,) of p there: -1 of 1 - p, 0 of 1.
        base: () log Z at β = 0, and what is added to every log weight.
    """

    betas: Array
    particles: Array
    sizes: Array
    replicas: ReplicaTables
    rows: Array
    signs: Array
    base: Array


class State(NamedTuple):
    """Of the last run. Attributes: log_z (C,) the logarithm of its Ẑ, less `Tables.base`; p (M, C) its marginals."""

    log_z: Array
    p: Array


class Population(NamedTuple):
    """On its way. Attributes: x (N, P C) states; log_w (P, C) weights; log_z (C,) of what resampling took from them."""

    x: Array
    log_w: Array
    log_z: Array


class PopulationProgram(IndependentSteps):
    """A step is a whole run from β = 0 to 1, and knows nothing of those before it.

    Args:
        backend: the backend.
        moves: sweeps at each temperature.
        resample: the share of P below which the effective number of particles may not fall.
    """

    def __init__(
        self,
        backend: Backend,
        moves: int,
        min_effective_share: float,
    ) -> None:
        super().__init__(backend)
        self._moves, self._min_effective_share = moves, min_effective_share

    def init(self, key: Key, t: Tables, start: Array) -> State:
        """Of no run."""
        # Derived from `start`: a new constant would lie on another device than the results of steps, and JAX would
        # compile the step a second time.
        none = 0.0 * start[0, :]
        return State(none, none + self._xp.zeros((t.rows.shape[0], 1), dtype=none.dtype))

    def step(self, key: Key, t: Tables, state: State) -> State:
        """One run of every population."""
        backend, xp, replicas = self._backend, self._xp, t.replicas.over(self._backend)
        shape = t.particles.shape[0], state.log_z.shape[0]
        # 0 times an array shaped as `log_z`, not times `log_z`, which may be -∞.
        zeros = t.particles[:, None] * xp.zeros_like(state.log_z)
        flat = xp.reshape(zeros, (-1,))
        x = replicas.arrange_states(t.replicas, t.sizes[:, None] * flat)
        x, _ = replicas.sweep(backend.fold_in(key, 0), t.replicas, x, flat)

        def rung(k: Index, carry: Population) -> Population:
            rung_key, beta = backend.fold_in(key, k), backend.take(t.betas, k)
            log_weights, _ = replicas.log_weights(t.replicas, carry.x)
            rise = beta - backend.take(t.betas, k - 1)
            carry = carry._replace(log_w=carry.log_w + rise * xp.reshape(log_weights, shape))
            carry = self._resample_populations(backend.fold_in(rung_key, 0), carry)
            x = carry.x
            for j in range(self._moves):
                x, _ = replicas.sweep(backend.fold_in(rung_key, 1 + j), t.replicas, x, flat + beta)
            return carry._replace(x=x)

        last = t.betas.shape[0] - 1
        final = backend.fori_loop(1, last, rung, Population(x, zeros, zeros[0, :]))
        log_weights, hard_zeros = replicas.log_weights(t.replicas, final.x)
        log_w = final.log_w + (1 - t.betas[last - 1]) * xp.reshape(log_weights, shape)
        # Hard zeros are soft at β < 1; at β = 1 a state that meets one has weight 0.
        if hard_zeros is not None:
            log_w = xp.where(xp.reshape(hard_zeros, shape) > 0, -xp.inf, log_w)
        _, p = replicas.sweep(backend.fold_in(key, last), t.replicas, final.x, flat + 1)
        weights, log_mean = self._normalise_weights(log_w)
        signs = t.signs[:, None]
        p = xp.astype(signs < 1, self._backend.real) + signs * xp.take(p, t.rows, axis=0)
        p = xp.reshape(p, (-1, *shape))
        return State(final.log_z + log_mean, xp.sum(p * weights, axis=1))

    def observe(self, t: Tables, state: State) -> dict[str, Array]:
        """The statistics of `Annealed.reductions`."""
        safe = self._xp.where(state.p > 0, state.p, 1.0)
        parts = self._xp.where(state.p > 0, self._xp.log(safe), -self._xp.inf)
        return {"z": state.log_z, "square": 2 * state.log_z, "p": state.log_z + parts}

    def _normalise_weights(self, log_w: Array) -> tuple[Array, Array]:
        """(weights (P, C) with sum 1, log of their mean (C,)); equal weights where there are none."""
        xp = self._xp
        top = xp.max(log_w, axis=0)
        none = top == -xp.inf
        # Equal weights if no particle has any: 0 / 0 would be NaN, and the Ẑ of this run is 0 in any case.
        weights = xp.where(none, 1.0, xp.exp(log_w - xp.where(none, 0.0, top)))
        mean = xp.mean(weights, axis=0)
        return weights / (mean * log_w.shape[0]), xp.where(none, top, top + xp.log(mean))

    def _resample_populations(self, key: Key, population: Population) -> Population:
        """Systematic resampling of those whose effective number of particles is too small."""
        x, log_w, log_z = population
        if not self._min_effective_share:
            return population
        xp, (count, chains) = self._xp, log_w.shape
        weights, log_mean = self._normalise_weights(log_w)
        # 1 / Σ w² of normalised weights is the effective number of particles (Kong, Liu and Wong 1994).
        is_poor = xp.sum(weights**2, axis=0) * count * self._min_effective_share >= 1
        parents = resample_systematically(self._backend, self._backend.uniform(key, (chains,)), weights)
        parents = xp.where(is_poor, parents, xp.arange(count, dtype=xp.int32)[:, None])
        places = xp.reshape(parents * chains + xp.arange(chains, dtype=xp.int32), (-1,))
        return Population(
            xp.take(x, places, axis=1), xp.where(is_poor, 0.0, log_w), log_z + xp.where(is_poor, log_mean, 0.0)
        )


def resample_systematically(backend: Backend, u: Array, weights: Array) -> Array:
    """(P, C) int32 systematically resampled numbers of particles; weights (P, C) of sum 1, u (C,) uniform."""
    xp, count = backend.xp, weights.shape[0]
    reached = xp.cumulative_sum(weights, axis=0)
    goals = (xp.arange(count, dtype=weights.dtype)[:, None] + u) / count
    parents = xp.sum(xp.astype(reached[:, None, :] <= goals[None, :, :], xp.int32), axis=0, dtype=xp.int32)
    # Rounding may leave the last cumulated weight below 1.
    return xp.minimum(parents, xp.zeros_like(parents) + (count - 1))
