"""States of high probability of binary factor graphs and Forney models, by simulated annealing and ascent.

Labels decide how tight gauged bounds are: the label 0 of every edge should mean a good mode.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.forney.model import FloatArray, ForneyModel, IntArray

# Largest number of flips that are tried, divided among sweeps and parallel searches: under a second.
MAX_UPDATES = 2e6
# Limits of the sweeps of a search, and of the parallel searches.
MAX_SWEEPS, MIN_SWEEPS, MAX_SEARCHES = 60, 10, 16


def find_mode(model: ForneyModel, seed: int = 0) -> IntArray:
    """(E,) 0/1: the best local maximum of several searches, or 0…0 where none is better.

    Moves flip one edge, two edges of a node (factors that prefer as many ones as zeros need them), or all edges of a
    node that only allows 0…0 and 1…1.

    Raises:
        ModelError: no state of positive weight was found.
    """
    if not model.num_edges:
        return np.zeros(0, dtype=np.int64)
    blocks = [
        list(slots) for slots, table in zip(model.incident, model.log_tables, strict=True) if _is_equality_table(table)
    ]
    pairs = {pair for slots in model.incident for pair in itertools.combinations(sorted(slots), 2)}
    moves = [[e] for e in range(model.num_edges)] + [list(pair) for pair in sorted(pairs)] + blocks
    return _search_mode(model, model.num_edges, model.incident, model.log_tables, moves, seed)


def find_factor_graph_mode(graph: FactorGraph, seed: int = 0) -> IntArray:
    """(N,) 0/1 of a binary factor graph, by moves that flip one variable; as `find_mode`.

    Raises:
        ModelError: no state of positive weight was found.
    """
    n = graph.num_variables
    scopes = [factor.scope for factor in graph.factors if factor.scope]
    tables = [factor.log_table for factor in graph.factors if factor.scope]
    return _search_mode(graph, n, scopes, tables, [[v] for v in range(n)], seed)


def _is_equality_table(table: FloatArray) -> bool:
    support = table > -np.inf
    return table.ndim > 1 and int(support.sum()) == 2 and bool(support.flat[0] and support.flat[-1])


def _search_mode(
    model: ForneyModel | FactorGraph,
    n: int,
    scopes: Sequence[tuple[int, ...]],
    tables: Sequence[FloatArray],
    moves: list[list[int]],
    seed: int,
) -> IntArray:
    anneal = _Annealing(n, scopes, tables, moves)
    searches = int(np.clip(MAX_UPDATES / (MAX_SWEEPS * len(moves)), 1, MAX_SEARCHES))
    sweeps = int(np.clip(MAX_UPDATES / (searches * len(moves)), MIN_SWEEPS, MAX_SWEEPS))
    states = anneal.anneal(np.random.default_rng(seed), searches, sweeps)
    # The current labels come first and are kept if no other is better.
    states = np.concatenate([np.zeros((1, n), dtype=np.int64), states])
    values = model.log_weight(states)
    best = int(values.argmax())
    if values[best] == -np.inf:
        raise ModelError(
            f"{model.name}: no state of positive weight was found in {searches} searches of {sweeps} sweeps, and the "
            "labels of a gauged bound need one"
        )
    return np.asarray(states[best])


class _Annealing:
    """Heat-bath flips of sets of variables, in classes that share no factor, for R searches at a time."""

    def __init__(
        self, n: int, scopes: Sequence[tuple[int, ...]], tables: Sequence[FloatArray], moves: list[list[int]]
    ) -> None:
        self.n = n
        flat = np.concatenate([*(table.ravel() for table in tables), np.zeros(1)])
        finite = flat[np.isfinite(flat)]
        spread = [np.var(t[np.isfinite(t)]) for t in tables]
        self.scale = float(np.sqrt(sum(spread) / max(n, 1))) or 1.0
        # Soft zeros can be crossed while annealing is hot; for the final ascent a zero costs more than all other
        # factors.
        self.soft = np.where(np.isfinite(flat), flat, finite.min() - 10 * self.scale)
        self.hard = np.where(np.isfinite(flat), flat, -1e6 * (1.0 + np.abs(finite).max()))
        self.offset = np.cumsum([0, *(table.size for table in tables)])
        # For each variable: a factor that contains it, and its bit in that factor's index.
        self.place = np.zeros((2, n), dtype=np.int64)
        is_constrained = np.zeros(n, dtype=bool)
        masks: list[dict[int, int]] = [{} for _ in range(n)]
        for k, scope in enumerate(scopes):
            for axis, v in enumerate(scope):
                bit = 1 << (len(scope) - 1 - axis)
                masks[v][k] = bit
                self.place[:, v], is_constrained[v] = (k, bit), True
        self.free = np.flatnonzero(~is_constrained)
        self.classes = _colour_moves(moves, masks, len(tables))

    def anneal(self, rng: np.random.Generator, num_searches: int, num_sweeps: int) -> IntArray:
        """(searches, n) states."""
        index = np.zeros((len(self.offset), num_searches), dtype=np.int64)
        for temperature in np.geomspace(1.0, 0.1, num_sweeps) * self.scale:
            for nodes, masks in self.classes:
                gain, flipped = self._move_gains(index, nodes, masks, self.soft)
                # 2 u - 1 < tanh(x / 2) is u < σ(x), the heat bath.
                accept = 2 * rng.random(gain.shape) - 1 < np.tanh(gain / (2 * temperature))
                index[nodes] = np.where(accept[:, None], flipped, index[nodes])
        for _ in range(MAX_SWEEPS):
            moved = False
            for nodes, masks in self.classes:
                gain, flipped = self._move_gains(index, nodes, masks, self.hard)
                accept = gain > 1e-12
                moved |= bool(accept.any())
                index[nodes] = np.where(accept[:, None], flipped, index[nodes])
            if not moved:
                break
        states = (index[self.place[0]] & self.place[1][:, None]) > 0
        states[self.free] = False
        return np.asarray(states.T, dtype=np.int64)

    def _move_gains(
        self, index: IntArray, nodes: IntArray, masks: IntArray, logs: FloatArray
    ) -> tuple[FloatArray, IntArray]:
        """(m, R) change of the log weight by each of m moves, and (m, K, R) the entries it leads to."""
        now = index[nodes]
        flipped = now ^ masks[:, :, None]
        offset = self.offset[nodes][:, :, None]
        return (logs[offset + flipped] - logs[offset + now]).sum(axis=1), flipped


def _colour_moves(
    moves: list[list[int]], masks: list[dict[int, int]], idle: int
) -> list[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]:
    """Moves in classes without common factors: for each (m, K) factors and bits, filled up with an idle factor."""
    colours_by_factor: list[set[int]] = [set() for _ in range(idle)]
    moves_by_colour: list[list[dict[int, int]]] = []
    for move in moves:
        touched: dict[int, int] = {}
        for v in move:
            for k, bit in masks[v].items():
                touched[k] = touched.get(k, 0) | bit
        if not touched:
            continue
        used = set().union(*(colours_by_factor[k] for k in touched))
        colour = next(c for c in range(len(moves_by_colour) + 1) if c not in used)
        if colour == len(moves_by_colour):
            moves_by_colour.append([])
        moves_by_colour[colour].append(touched)
        for k in touched:
            colours_by_factor[k].add(colour)
    classes = []
    for members in moves_by_colour:
        width = max(len(touched) for touched in members)
        nodes = np.full((len(members), width), idle, dtype=np.int64)
        bits = np.zeros((len(members), width), dtype=np.int64)
        for row, touched in enumerate(members):
            nodes[row, : len(touched)] = list(touched)
            bits[row, : len(touched)] = list(touched.values())
        classes.append((nodes, bits))
    return classes
