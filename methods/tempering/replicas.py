"""Replicas of binary pairwise models, and of any factor graph, by look-ups: Gibbs sweeps over a backend's arrays, each
chain at a β of its own.

Where β < 1, hard zeros are soft, so that replicas may pass them; at β = 1 they are zeros, see
`mathematics.heat_bath.table_updates`.

How many rungs a ladder needs is measured: the barrier Λ between β = 0 and the model, from an annealing on the host.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Key, PairwiseModel
from spinbench.api import Tables as ReplicaTables
from spinbench.foundation import deadline
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import (
    Scan,
    Sweep,
    choose_tables,
    layout,
)
from spinbench.mathematics.graphs.table_layouts import TableSweep, marginal_rows, table_sweep
from spinbench.methods.gibbs.sweeps import GraphSweeps, PairSweeps
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


class GraphTables(NamedTuple):
    """Attributes: sweep; zeros (1,), or None where the model has none; blank (R + 1,) 0, R rows being reported."""

    sweep: TableSweep
    zeros: Array | None
    blank: Array


def build_graph_tables(graph: FactorTables) -> GraphTables:
    """Colour by colour."""
    sweep = table_sweep(graph, "chromatic", single=False)
    zeros = np.zeros(1) if np.isneginf(graph.values).any() else None
    return GraphTables(sweep, zeros, np.zeros(len(marginal_rows(graph.cardinalities)[0]) + 1))


class GraphReplicas(GraphSweeps):
    """What tempering calls of `GraphSweeps`."""

    def sweep(self, key: Key, t: GraphTables, x: Array, beta: Array) -> tuple[Array, Array]:
        """(x, p), p of p(x_v = k | rest)^β as of the update; `x` is given up."""
        return self.sweep_forward(key, t, x, self.initial_conditionals(t, x), beta)

    def log_weights(self, t: GraphTables, x: Array) -> tuple[Array, Array | None]:
        """(C,) D with soft zeros, less the constant, and whether x meets a hard one; None where the model has none."""
        log_weights = self.slope(t, x)
        if t.zeros is None:
            return log_weights, None
        exact = self._bath.log_weights(t.sweep.entries, x)
        return log_weights, self._xp.astype(exact == -self._xp.inf, log_weights.dtype)


class PairTables(NamedTuple):
    """Attributes: order (N,) the variable of each row; sweep: its tables."""

    order: Array
    sweep: Sweep | Scan


def build_pair_tables(model: PairwiseModel) -> PairTables:
    """Of a model without groups, colour by colour."""
    plan = layout(model, "chromatic")
    rows = compressed_rows(model, plan.order)
    return PairTables(plan.order, choose_tables(model, plan, rows))


class PairReplicas(PairSweeps):
    """What tempering calls of `PairSweeps`."""

    def sweep(self, key: Key, t: PairTables, s: Array, beta: Array) -> tuple[Array, Array]:
        """(s, p), p (N, C) of p(s_i = 1 | rest)^β as of the update; `s` is given up."""
        return self.sweep_forward(key, t, s, self.initial_conditionals(t, s), beta)

    def log_weights(self, t: PairTables, s: Array) -> tuple[Array, None]:
        """(C,) D, less the model's constant; there are no hard zeros."""
        return self.slope(t, s), None


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
