"""Probes: where chains stay that were cooled from unlikely places, and what such a place weighs at most.

What the well weighs that a product law stands in: annealed importance sampling from that law to the model.

Draws of q(x) = Π_v q_v(x_v) are swept at q^(1-β) p*^β while β rises from 0 to 1. The mean of their weights is Z
whatever q is, but draws do not leave the well in which q lies, so that it is what the well has; but for chance it is no
more than Z.

Neal, "Annealed importance sampling", Statistics and Computing 2001.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics import all_states
from spinbench.mathematics.graphs import factor_tables, starts, table_layouts
from spinbench.mathematics.graphs.modular_starts import PRIMES, modular_starts
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.replicas import GraphReplicas, GraphTables
from spinbench.models import Model

if TYPE_CHECKING:
    from spinbench.api import Array, Index

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PROBES = 32
# Probes start at different β from 1 to this: cold ones go to the nearest mode, whatever its weight.
COLDEST = 8.0
# Sweeps of the warm-up to β = 1; further sweeps before recording; recorded sweeps.
SWEEPS = 6, 8, 24
# Inverse temperatures of initial states in which each variable prefers the largest entries of its factors.
EAGER = 0.25, 4.0
# A variable in this many times as many factors as the median variable is a hub: it is fixed while its neighbours adapt
# to it, since before that they would only reset it.
HUB = 3.0
# Sweeps for which hubs are fixed.
HELD = 10
# Probes that start from solutions of the strongest parities or other linear forms (`parity_starts`, `modular_starts`):
# planted states that local moves do not reach.
ELIMINATED = 4


# Default number of annealing steps: within one mode a few suffice.
STEPS = 16


@dataclass(frozen=True, eq=False)
class Content:
    """A model, equal to others of the same content, so that probes are sent once."""

    model: Model

    def __hash__(self) -> int:
        return hash(self.model.content_hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Content) and self.model.content_hash == other.model.content_hash


class Probed(NamedTuple):
    """Of P probes, each in a well of its own.

    Attributes:
        laws: (S, P) probabilities of all states, variable by variable.
        entropies: (P,) of the product laws.
        upper: (P,) log Z of the well at most, but for chance.
    """

    laws: FloatArray
    entropies: FloatArray
    upper: FloatArray


def probe(flat: factor_tables.FactorTables, tables: GraphTables, rng: np.random.Generator) -> Probed:
    """Cool, warm up, and look. A law of marginals p_v has E[log p*] + Σ_v H(p_v) >= log Z of what it is the law of."""
    replicas, sizes = GraphReplicas(HostArrays()), flat.cardinalities
    x = replicas.arrange_states(tables, _starts(flat, rng))
    # Just below 1, where hard zeros are still soft.
    below = np.nextafter(1, 0)
    cold = rng.permutation(np.geomspace(1.0, COLDEST, PROBES))
    degrees = np.diff(flat.starts)
    holding = _Holding(degrees >= HUB * np.median(degrees))
    for sweep, left in enumerate([*np.linspace(1.0, 0.0, SWEEPS[0]), *np.zeros(SWEEPS[1])]):
        bath = holding if sweep < HELD else TableBath(HostArrays())
        x = bath.sweep(rng, tables.sweep, x, np.maximum(cold**left, 1.0) * below)
    total, energy = np.zeros(1), np.zeros(PROBES)
    for _ in range(SWEEPS[2]):
        x, p = replicas.sweep(rng, tables, x, np.full(PROBES, below))
        total = total + np.asarray(p)
        energy += np.asarray(replicas.log_weights(tables, x)[0])
    laws = all_states.of_reported(sizes.tolist(), total / SWEEPS[2])
    of_laws = entropies(laws)
    return Probed(laws, of_laws, energy / SWEEPS[2] + flat.log_constant + of_laws)


def entropies(laws: FloatArray) -> FloatArray:
    """(P,) nats of product laws (S, P), the sums over their variables."""
    return np.asarray(-(laws * np.log(np.where(laws > 0, laws, 1.0))).sum(axis=0))


class _Holding(TableBath):
    """Sweeps that leave some variables, of which it is told, (N,) bool, as they are."""

    def __init__(self, fixed: npt.NDArray[np.bool_]) -> None:
        super().__init__(HostArrays())
        self._fixed = fixed

    def choose(
        self, section: table_layouts.Section, b: Index, weights: Array, x: Array, u: Array
    ) -> tuple[Array, Array]:
        states, total = super().choose(section, b, weights, x, u)
        rows = section.rows[b]
        return np.where(self._fixed[rows][:, None], x[rows], states), total


def _starts(flat: factor_tables.FactorTables, rng: np.random.Generator) -> FloatArray:
    """(N, P): half where each state counts by the best that every factor offers it, most others at random."""
    sizes = flat.cardinalities
    x = rng.integers(0, sizes[:, None], size=(len(sizes), PROBES))
    _make_eager(x[:, : PROBES // 2], flat, rng)
    if (binary := sizes == 2).any():
        x[binary, -ELIMINATED:] = starts.parity_starts(flat, ELIMINATED, rng)[binary]
    for q in PRIMES:
        if (of_size := sizes == q).any():
            x[of_size, -ELIMINATED:] = modular_starts(flat, q, ELIMINATED, rng)[of_size]
    return x.astype(np.float64)


def _make_eager(x: IntArray, flat: factor_tables.FactorTables, rng: np.random.Generator) -> None:
    """Draw x (N, C) anew, at inverse temperatures from the first of `EAGER` to the last."""
    sizes, firsts = flat.cardinalities, np.cumsum(flat.cardinalities) - flat.cardinalities
    offered = np.zeros(int(sizes.sum()))
    for f in range(len(flat.offsets) - 1):
        scope = flat.scope_variables[flat.scope_starts[f] : flat.scope_starts[f + 1]]
        table = flat.values[flat.offsets[f] : flat.offsets[f + 1]].reshape(sizes[scope])
        for axis, v in enumerate(scope):
            others = tuple(other for other in range(len(scope)) if other != axis)
            offered[firsts[v] : firsts[v] + sizes[v]] += table.max(axis=others)
    betas = np.geomspace(*EAGER, x.shape[1])[:, None]
    for v, first in enumerate(firsts):
        log_weights = np.maximum(offered[first : first + sizes[v]], -1e300)
        x[v] = (betas * (log_weights - log_weights.max()) + rng.gumbel(size=(len(betas), sizes[v]))).argmax(axis=1)


class _Tilted(TableBath):
    """Sweeps under p*^β times powers of a product law, (N, K) with 1 for states that are none."""

    def __init__(self, tilt: FloatArray) -> None:
        super().__init__(HostArrays())
        self._tilt = tilt

    def choose(
        self, section: table_layouts.Section, b: Index, weights: Array, x: Array, u: Array
    ) -> tuple[Array, Array]:
        tilt = self._tilt[section.rows[b], : weights.shape[0]]
        return super().choose(section, b, weights * tilt.T[:, :, None], x, u)


def anneal(
    flat: factor_tables.FactorTables,
    sweep: table_layouts.TableSweep,
    law: FloatArray,
    draws: int,
    rng: np.random.Generator,
    steps: int = STEPS,
) -> tuple[FloatArray, IntArray]:
    """Log weights (C,), of which none allows for hard zeros before the last, and the states (N, C) they are of.

    Args:
        flat: the model.
        sweep: of it.
        law: (S,) positive probabilities of all states, variable by variable.
        draws: C.
        rng: of draws and sweeps.
        steps: in which β rises.
    """
    logs = _pad(flat.cardinalities, np.log(law))
    upto = np.cumsum(np.exp(logs), axis=1)
    u = rng.random((len(logs), draws)) * upto[:, -1:]
    x = (u[:, None, :] >= upto[:, :-1, None]).sum(axis=1).astype(np.int32)
    plain, log_w = TableBath(HostArrays()), np.zeros(draws)
    # Just below 1, where hard zeros are still soft.
    below = np.nextafter(1, 0)
    for step in range(1, steps + 1):
        log_q = np.take_along_axis(logs, x, axis=1).sum(axis=0)
        soft = plain.log_weights(sweep.entries, x, floored=True)
        log_w += (soft - log_q) / steps
        if step < steps:
            beta = step / steps
            tilted = _Tilted(np.exp((1 - beta) * np.where(np.isfinite(logs), logs, 0.0)))
            x = np.asarray(tilted.sweep(rng, sweep, x, np.full(draws, min(beta, below))))
    log_w += plain.log_weights(sweep.entries, x) - soft
    return log_w + flat.log_constant, x.astype(np.int64)


def _pad(sizes: IntArray, values: FloatArray) -> FloatArray:
    """(N, K) of values (S,), with -inf for states that are none."""
    padded = np.full((len(sizes), int(sizes.max())), -np.inf)
    padded[np.arange(padded.shape[1]) < sizes[:, None]] = values
    return padded
