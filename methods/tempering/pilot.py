"""How many rungs a ladder needs: the barrier Λ between β = 0 and the model, from a short annealing on the host."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.api import Tables as ReplicaTables
from spinbench.foundation import deadline
from spinbench.methods.tempering.program import Replicas

FloatArray = npt.NDArray[np.float64]

# Smallest and largest number of particles, chosen so that they have `MAX_VALUES` values in all. Λ and its error both
# grow with the square root of the number of variables, so that few particles suffice on large models: eight give 5 % on
# grids of 10 to 100 a side.
PARTICLE_RANGE = 8, 32
MAX_VALUES = 2**15
# Temperatures of the pilot's annealing.
N_TEMPERATURES = 32
# Sweeps at each temperature. Particles lag behind equilibrium, so that the barrier is overestimated: too many rungs
# cost time in proportion, too few cost round trips.
SWEEPS_PER_TEMPERATURE = 4
# Smallest and largest number of rungs: the time of a step is proportional to it.
RUNG_RANGE = (4, 64)


def estimate_barriers(
    replicas: Replicas, tables: ReplicaTables, cardinalities: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """(betas, Λ up to each of them), by annealing particles; the same for the same tables.

    Args:
        replicas, tables, cardinalities: see `anneal_particles`.
    """
    betas, log_weights = anneal_particles(replicas, tables, cardinalities)
    return betas, cumulative_barriers(betas, log_weights)


def anneal_particles(
    replicas: Replicas, tables: ReplicaTables, cardinalities: npt.ArrayLike
) -> tuple[FloatArray, FloatArray]:
    """(betas (T,) from 0 to 1, D (T, P) of P particles at each); the same for the same tables.

    Args:
        replicas: over `HostArrays`.
        tables: of the replicas.
        cardinalities: (N,) of the variables.
    """
    # A fixed seed: the plan depends only on the model and the settings.
    rng = np.random.default_rng(0)
    # (k / 31)², denser near 0, where the law changes fastest with β. The last value stays just below 1, where hard
    # zeros become exact and a particle that meets one would have no D.
    betas = np.minimum((np.arange(N_TEMPERATURES) / (N_TEMPERATURES - 1)) ** 2, np.nextafter(1, 0))
    particles = int(np.clip(MAX_VALUES // max(np.size(cardinalities), 1), *PARTICLE_RANGE))
    start = rng.integers(0, np.asarray(cardinalities)[:, None], size=(np.size(cardinalities), particles))
    x = replicas.arrange_states(tables, start.astype(np.float64))
    log_weights = []
    for beta in betas:
        for _ in range(SWEEPS_PER_TEMPERATURE if beta else 1):
            deadline.check()
            x, _ = replicas.sweep(rng, tables, x, np.full(particles, beta))
        log_weights.append(np.asarray(replicas.log_weights(tables, x)[0]))
    return np.append(betas[:-1], 1.0), np.array(log_weights)


def cumulative_barriers(betas: FloatArray, log_weights: FloatArray) -> FloatArray:
    """(T,) Λ up to each of the betas: where a swap between near rungs is rejected at the rate λ dβ,
    λ = E |D - D'| / 2 of two independent states (Syed et al., JRSS B 2022, equation 13)."""
    spread = np.array([_mean_absolute_difference(values) for values in log_weights])
    return np.concatenate([[0.0], np.cumsum(np.diff(betas) * (spread[1:] + spread[:-1]) / 4)])


def place_rungs(betas: FloatArray, barriers: FloatArray, num_rungs: int) -> FloatArray:
    """Betas of `num_rungs` rungs (0: as many as Λ asks for), with equal parts of the barrier between neighbours."""
    count = num_rungs or int(np.clip(np.ceil(2 * barriers[-1]) + 1, *RUNG_RANGE))
    # np.interp needs increasing abscissae, and the barrier is flat where D does not vary.
    rising = barriers + 1e-9 * np.arange(len(barriers))
    rung_betas = np.interp(np.linspace(0.0, rising[-1], count), rising, betas)
    rung_betas[-1] = 1.0
    return rung_betas


def _mean_absolute_difference(values: FloatArray) -> float:
    """E |D - D'| of two of the values."""
    ordered, count = np.sort(values), len(values)
    # The sum over all pairs in O(P log P): sorted value k is the larger one in k pairs and the smaller one in the rest.
    weights = 2 * np.arange(count) - count + 1
    return float(2 * (weights * ordered).sum() / (count * (count - 1)))
