"""States of high probability, by simulated annealing and coordinate ascent on the host."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar
from weakref import WeakKeyDictionary

import numpy as np
import numpy.typing as npt

from spinbench.api import FactorGraph, PairwiseModel
from spinbench.mathematics.graphs.feasible_starts import feasible_starts
from spinbench.mathematics.graphs.rows import DENSE_FACTOR
from spinbench.mathematics.graphs.sweep_layouts import Scan, Sweep
from spinbench.mathematics.graphs.table_layouts import TableSweep
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.mathematics.heat_bath.tiles import WIDTH, in_tiles
from spinbench.mathematics.heat_bath.updates import HeatBath
from spinbench.methods.gibbs.host_arrays import FloatArray, HostArrays

States = TypeVar("States", bound=npt.NDArray[np.generic])

# Inverse temperature at which every draw takes the likeliest state.
FROZEN = 1e9
# Annealing runs of a factor graph, side by side: a single one may end in a poor local maximum, and arrays of eight
# columns cost little more than one.
N_SEARCHES = 8
# Largest number of table look-ups of all of them, so that planning of large models stays short; the least number of
# sweeps is always made.
MAX_LOOKUPS = 4e6
GRAPH_SWEEPS, MAX_BETA = (6, 40), 4.0
# Single-site updates of a pairwise model at most, half a second of NumPy, shared out among sweeps and searches; and
# vectorised block updates: small blocks cost what a call does. What an entry of a matrix takes, of an update.
MAX_UPDATES, MAX_CALLS, DENSE_ENTRY = 1.2e7, 20_000, 0.25
PAIR_SWEEPS, MAX_PAIR_SEARCHES = (4, 200), 16
# What models that are there still were found to have, by kind of tables and order.
_MODES: WeakKeyDictionary[PairwiseModel, dict[tuple[type, bytes], npt.NDArray[np.bool_]]] = WeakKeyDictionary()


def find_pair_mode(model: PairwiseModel, order: npt.NDArray[np.signedinteger], tables: Sweep | Scan) -> FloatArray:
    """A local maximum of p(s) under changes of one variable, the best of several searches.

    A second call for the same model and order costs nothing.

    Args:
        model: the model.
        order: (N,) variable of each row of `tables`.
        tables: of a scan.

    Returns:
        (N,) 0 and 1 in float64, in the order of the rows.
    """
    modes = _MODES.setdefault(model, {})
    key = (type(tables), order.tobytes())
    if key not in modes:
        modes[key] = _search_pairs(model, order, tables) > 0
    return modes[key].astype(np.float64)


def find_graph_mode(model: FactorGraph, sweep: TableSweep, seed: int = 0) -> npt.NDArray[np.int32]:
    """(N,) the best of several annealings that end in a local maximum of p(s) under changes of one variable.

    Where there are zeros, they stay among the states of positive weight.
    """
    rng = np.random.default_rng(seed)
    cards = np.array(model.cardinalities)[:, None]
    if model.has_zeros:
        x = feasible_starts(model, N_SEARCHES, seed).astype(np.int32)
    else:
        x = rng.integers(0, cards, size=(len(cards), N_SEARCHES)).astype(np.int32)
    bath = TableBath(HostArrays())
    lookups_per_sweep = N_SEARCHES * sum(section.bases.size * section.states.shape[1] for section in sweep.sections)
    sweeps = int(np.clip(MAX_LOOKUPS / max(lookups_per_sweep, 1), *GRAPH_SWEEPS))
    # Ends above β = 1, since a likelier s* is better. With zeros it also starts at β = 1: below, zeros are soft and a
    # feasible start would be lost.
    betas = np.geomspace(1.0 if model.has_zeros else 0.3, MAX_BETA, sweeps)
    x = _anneal(lambda x, beta: bath.sweep(rng, sweep, x, np.full(N_SEARCHES, beta)), x, betas, GRAPH_SWEEPS[1])
    return x[:, int(model.log_weight(x.T).argmax())].copy()


def _search_pairs(model: PairwiseModel, order: npt.NDArray[np.signedinteger], tables: Sweep | Scan) -> FloatArray:
    n, (min_sweeps, max_sweeps) = model.num_variables, PAIR_SWEEPS
    updates = float(n + model.num_edges)
    if 2 * model.num_edges * DENSE_FACTOR >= n * n:
        updates = n + DENSE_ENTRY * n * n
    if isinstance(tables, Scan):
        blocks = n // WIDTH["cpu"] + 1 if in_tiles(tables) else len(tables.rows)
    else:
        blocks = len(tables.first + tables.middle + tables.last)
    searches = int(np.clip(MAX_UPDATES / (max_sweeps * updates), 1, MAX_PAIR_SEARCHES))
    sweeps = int(np.clip(min(MAX_UPDATES / (searches * updates), MAX_CALLS / blocks), min_sweeps, max_sweeps))
    scale = np.sqrt((np.sum(model.biases**2) + 2 * np.sum(model.couplings**2)) / n)
    bath, rng = HeatBath(HostArrays()), np.random.default_rng(0)

    def sweep(s: FloatArray, beta: float) -> FloatArray:
        # At 1/2 a variable without a field stays where it is put, so that the ascent ends.
        u = np.full(s.shape, 0.5) if beta == FROZEN else rng.random(s.shape)
        if isinstance(tables, Scan):
            return np.asarray(bath.sweep_chunks(tables, s, (), u, backward=False, beta=beta)[0])
        return np.asarray(bath.sweep_blocks(tables, s, u, beta)[0])

    betas = 1 / (np.geomspace(3.0, 0.03, sweeps) * (scale or 1.0))
    ascents = max_sweeps if n * max_sweeps <= MAX_UPDATES else 10
    s = _anneal(sweep, np.zeros((n, searches)), betas, ascents)
    if searches == 1:
        return s[:, 0]
    states = np.empty((searches, n))
    states[:, order] = s.T
    return s[:, int(model.log_weight(states).argmax())]


def _anneal(
    sweep: Callable[[States, float], States], states: States, betas: Iterable[float], max_ascents: int
) -> States:
    """The states after a sweep at each inverse temperature, and then sweeps upwards until nothing changes."""
    for beta in betas:
        states = sweep(states, beta)
    for _ in range(max_ascents):
        previous = states.copy()
        states = sweep(states, FROZEN)
        if (previous == states).all():
            break
    return states
