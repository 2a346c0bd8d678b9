"""Phases: places of much weight that nothing leads to, which a run may have missed as a whole.

At a transition of first order chains and populations that come from independent states stay in the wide phase, agree
with each other, and know nothing of a narrow one that weighs as much. So some states are drawn at which each factor
would like to be, and others at random; they are cooled, and swept at β = 1. Where each of these probes stays, states
look like draws of a product law, and the mixture of all of them is a proposal: the mean of the weights p* / q of its
draws is Z, and that of those with x_v = k is Z P(x_v = k). What it does not cover is missing from both, so that they
are bounds from below, but for chance, and the better the more a phase is like independent variables. A run that claims
less is not believed. Of a model that is no such thing they are many nats too low, and say nothing.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate
from spinbench.mathematics.graphs.factor_tables import FactorTables, factor_tables
from spinbench.mathematics.graphs.table_layouts import state_rows
from spinbench.methods.tempering.graphs import GraphReplicas, graph_tables
from spinbench.methods.tempering.pilot import HostArrays
from spinbench.models import Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

PROBES = 32
COLDEST = 8.0
"""Where they begin; each at a β of its own from 1 to this."""
SWEEPS = 6, 8, 24
"""While they are warmed up to β = 1, before and while they are looked at."""
EAGER = 0.25, 4.0
"""β of the starts at which factors would like to be: by each the best that it offers a state."""
FLOOR = 1e-3
"""Of each probe's law, shared by all states."""
DRAWS = 64
"""Of each probe."""
MOST_VARIABLES, MOST_FACTORS, MOST_ENTRIES = 500, 5000, 2**18
"""Of larger models probes take too long."""
CLAIMS = 3.0
"""By which a run may be below."""
ERRORS = 5.0
"""Standard errors by which means of weights may be above: there are as many means as states."""


class Least(NamedTuple):
    """Logarithms of what there is at least. Attributes: z: Z; states: (S,) Z P(x_v = k), variable by variable."""

    z: float
    states: FloatArray


class Phases:
    """What runs of one model have to know of."""

    def __init__(self, model: Model, sampler: bool) -> None:
        grouped = isinstance(model, PairwiseModel) and bool(model.groups)
        small = model.num_variables <= MOST_VARIABLES and not grouped
        self._least = _least(_Content(model)) if sampler and small else None
        self._cardinalities = model.cardinalities

    def doubted(self, said: Estimate) -> Estimate:
        """With doubts of what a phase contradicts that it has missed."""
        if self._least is None or said.log_z is None or said.log_z_kind != "estimate":
            return said
        error = 0.0 if said.log_z_se is None else said.log_z_se
        if not np.isfinite(error) or _about("log Z", said):
            return said
        most = said.log_z + CLAIMS * error + 1e-6
        doubts = list(said.doubts)
        if not _about("marginals", said) and self._contradicted(said, max(most, self._least.z)):
            doubts.insert(0, "marginals not mixed")
        if self._least.z <= most:
            return dataclasses.replace(said, doubts=tuple(doubts))
        return dataclasses.replace(said, doubts=(*doubts, "log Z unresolved"), log_z_se=np.inf)

    def _contradicted(self, said: Estimate, log_z: float) -> bool:
        assert self._least is not None
        if said.marginals is None or said.marginals_se is None:
            return False
        found, claims = (self._every_state(values) for values in (said.marginals, said.marginals_se))
        if all(k == 2 for k in self._cardinalities):
            found[::2] = 1 - found[1::2]
        return bool((np.exp(self._least.states - log_z) > found + CLAIMS * claims + 1e-6).any())

    def _every_state(self, values: FloatArray | list[FloatArray]) -> FloatArray:
        """(S,); of binary models each value twice."""
        if isinstance(values, list):
            return np.concatenate(values)
        return np.repeat(np.asarray(values, dtype=np.float64), 2)


@dataclasses.dataclass(frozen=True, eq=False)
class _Content:
    """A model, equal to others of the same content, so that probes are sent once."""

    model: Model

    def __hash__(self) -> int:
        return hash(self.model.content_hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.model.content_hash == other.model.content_hash


@lru_cache(maxsize=16)
def _least(content: _Content) -> Least | None:
    """None where probes would take too long."""
    flat = factor_tables(content.model)
    if len(flat.offsets) > MOST_FACTORS or len(flat.values) > MOST_ENTRIES:
        return None
    rng = np.random.default_rng(0)
    law = (1 - FLOOR) * _laws(flat, rng) + (FLOOR / np.repeat(flat.cardinalities, flat.cardinalities))[:, None]
    rows = _drawn(flat.cardinalities, law, rng)
    log_q = np.zeros((PROBES, rows.shape[1]))
    logs = np.log(law)
    for own in rows:
        log_q += logs[own].T
    log_p = flat.log_constant + flat.values[flat.positions(rows - _firsts(flat.cardinalities)[:, None])].sum(axis=0)
    log_w = log_p - np.logaddexp.reduce(log_q) + np.log(PROBES)
    top = float(log_w.max())
    if not np.isfinite(top):
        return Least(-np.inf, np.full(len(law), -np.inf))
    w = np.exp(log_w - top)
    of_states, squares = (np.bincount(rows.ravel(), np.tile(part, len(rows)), len(law)) for part in (w, w**2))
    return Least(float(_surely(w.sum(), (w**2).sum(), top)), _surely(of_states, squares, top))


def _surely(total: npt.ArrayLike, squares: npt.ArrayLike, top: float) -> Any:
    """Logarithm of the mean of PROBES * DRAWS weights, in units of e^top, less so many standard errors."""
    number = PROBES * DRAWS
    mean = np.asarray(total) / number
    error = np.sqrt(np.maximum(np.asarray(squares) / number - mean**2, 0.0) / number)
    with np.errstate(divide="ignore"):
        return np.log(np.maximum(mean - ERRORS * error, 0.0)) + top


def _laws(flat: FactorTables, rng: np.random.Generator) -> FloatArray:
    """(S, P) probabilities of all states, of each probe where it stays."""
    tables, replicas, sizes = graph_tables(flat), GraphReplicas(HostArrays()), flat.cardinalities
    x = replicas.begin(tables, _starts(flat, rng))
    below = np.nextafter(1, 0)  # where hard zeros are soft
    cold = rng.permutation(np.geomspace(1.0, COLDEST, PROBES))
    for left in np.linspace(1.0, 0.0, SWEEPS[0]):
        x, _ = replicas.sweep(rng, tables, x, np.maximum(cold**left, 1.0) * below)
    total = np.zeros(1)
    for sweep in range(SWEEPS[1] + SWEEPS[2]):
        x, p = replicas.sweep(rng, tables, x, np.full(PROBES, below))
        total = total + np.asarray(p) * (sweep >= SWEEPS[1])
    rows, signs = state_rows(sizes)
    p = (signs[:, None] < 1) + signs[:, None] * (total / SWEEPS[2])[rows]
    return np.asarray(np.stack([1 - p, p], axis=1).reshape(-1, PROBES) if (sizes == 2).all() else p)


def _starts(flat: FactorTables, rng: np.random.Generator) -> FloatArray:
    """(N, P): half of them at random, half where each state counts by the best that every factor offers it."""
    sizes, eager = flat.cardinalities, PROBES // 2
    offered = np.zeros(int(sizes.sum()))
    firsts = _firsts(sizes)
    for f in range(len(flat.offsets) - 1):
        scope = flat.scope_variables[flat.scope_starts[f] : flat.scope_starts[f + 1]]
        table = flat.values[flat.offsets[f] : flat.offsets[f + 1]].reshape(sizes[scope])
        for axis, v in enumerate(scope):
            others = tuple(other for other in range(len(scope)) if other != axis)
            offered[firsts[v] : firsts[v] + sizes[v]] += table.max(axis=others)
    x = rng.integers(0, sizes[:, None], size=(len(sizes), PROBES)).astype(np.float64)
    for v, first in enumerate(firsts):
        own = np.maximum(offered[first : first + sizes[v]], -1e300)
        noise = rng.gumbel(size=(eager, sizes[v]))
        x[v, :eager] = (np.geomspace(*EAGER, eager)[:, None] * (own - own.max()) + noise).argmax(axis=1)
    return x


def _drawn(sizes: IntArray, law: FloatArray, rng: np.random.Generator) -> IntArray:
    """(N, P DRAWS) places in the law's first axis of states drawn from the probes' laws."""
    rows = np.empty((len(sizes), PROBES, DRAWS), dtype=np.int64)
    for v, first in enumerate(_firsts(sizes)):
        reached = np.cumsum(law[first : first + sizes[v]], axis=0)
        goals = rng.random((PROBES, DRAWS)) * reached[-1][:, None]
        rows[v] = first + (goals >= reached[:-1, :, None]).sum(axis=0)
    return rows.reshape(len(sizes), -1)


def _firsts(sizes: IntArray) -> IntArray:
    return np.asarray(np.cumsum(sizes) - sizes)


def _about(what: str, said: Estimate) -> bool:
    return any(doubt.startswith(what) for doubt in said.doubts)
