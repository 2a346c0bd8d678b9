"""Ordered starts: states that grow from a few variables, of which each neighbour is drawn given them.

Uniform states are disordered, all in the same way: what hundreds of uniform neighbours say to a variable hardly differs
from one state to the next, so that chains that start there may all fall into one well. States that grow take the sides
of the variables they begin with. Chains from both kinds agree where either has forgotten its start (the hot and the
cold starts of lattice field theory: Creutz, Jacobs, Rebbi, "Experiments with a gauge-invariant Ising system", Phys.
Rev. Lett. 1979).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.colouring import Adjacency
from spinbench.mathematics.graphs.merged_groups import merge_groups
from spinbench.mathematics.graphs.rows import compressed_rows, matrix
from spinbench.models import FactorGraph, Model, PairwiseModel

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]
States = npt.NDArray[np.signedinteger[Any]]

HUB = 2.0
"""Times as many neighbours as these have on average: what the neighbours are is left to such a variable."""
FARTHEST = 256
"""Steps from where a state began to grow; the rest of it is uniform."""


def grow(model: Model, start: States, rng: np.random.Generator) -> None:
    """Grow states in place.

    They begin with the hubs and with one variable of each connected part that has none; these stay as they are. Layer
    by layer, neighbours are then drawn given what has been drawn before.

    Args:
        model: without hard zeros.
        start: (N, C) uniform states.
        rng: of the draws.
    """
    if isinstance(model, PairwiseModel) and model.groups:
        _grow_groups(model, start, rng)
    elif isinstance(model, PairwiseModel):
        _grow_pairs(model, start, rng)
    else:
        _grow_graph(model, start, rng)


def layers(graph: Adjacency, rng: np.random.Generator) -> Iterator[IntArray]:
    """The vertices to begin with, their neighbours, the neighbours of those, …, each vertex once."""
    layer, waiting = _roots(graph, rng), np.ones(len(graph.start) - 1, dtype=bool)
    for _ in range(FARTHEST):
        if not len(layer):
            return
        yield layer
        waiting[layer] = False
        if not waiting.any():
            return
        near = graph.around(layer)[1]
        layer = np.unique(near[waiting[near]]).astype(np.int64)


def _roots(graph: Adjacency, rng: np.random.Generator) -> IntArray:
    """The hubs, and of each connected part without hubs a vertex of most neighbours, random where there are several."""
    from scipy.sparse import csgraph, csr_array

    n, degree = len(graph.start) - 1, np.diff(graph.start)
    square = csr_array((np.ones(len(graph.others)), graph.others, graph.start), shape=(n, n))
    hub = (degree > 0) & (degree**2 >= HUB * (square @ degree.astype(np.float64)))
    count, part = csgraph.connected_components(square, connection="strong")  # symmetric: others would transpose it
    without = np.ones(count, dtype=bool)
    without[part[hub]] = False
    order = np.lexsort((rng.random(n), degree, part))
    last = order[np.append(np.diff(part[order]) > 0, np.ones(min(n, 1), dtype=bool))]
    return np.sort(np.concatenate([np.flatnonzero(hub), last[without[part[last]]]]))


def _grow_pairs(model: PairwiseModel, start: States, rng: np.random.Generator) -> None:
    n = model.num_variables
    rows = compressed_rows(model, np.arange(n))
    couplings = matrix(rows)
    grown = np.zeros(start.shape)  # what has not grown yet has no weight
    for distance, layer in enumerate(layers(Adjacency(rows.start.astype(np.int64), rows.columns), rng)):
        if distance:
            # to pick out most of the rows takes longer than to multiply them all
            pull = (couplings @ grown)[layer] if 2 * len(layer) > n else couplings[layer] @ grown
            fields = model.biases[layer, None] + pull
            start[layer] = rng.logistic(size=fields.shape) < fields
        grown[layer] = start[layer]


def _grow_groups(model: PairwiseModel, start: States, rng: np.random.Generator) -> None:
    """Of variables of several states in place of groups."""
    graph = merge_groups(replace(model, origin=None))
    assert graph.origin is not None
    states = graph.origin.lower(start.T).T
    _grow_graph(graph, states, rng)
    start[:] = graph.origin.lift(states.T).T


def _grow_graph(model: FactorGraph, start: States, rng: np.random.Generator) -> None:
    """Of a factor, what is in the same layer as a variable or in a later one is summed out."""
    n, widest = model.num_variables, max(model.cardinalities, default=1)
    pairs = {tuple(sorted(pair)) for f in model.factors for pair in itertools.combinations(f.scope, 2)}
    found = list(layers(Adjacency.of(n, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)), rng))
    of = np.full(n, len(found))
    for distance, layer in enumerate(found):
        of[layer] = distance
    touching: list[list[tuple[int, int]]] = [[] for _ in found]
    for index, factor in enumerate(model.factors):
        for axis, v in enumerate(factor.scope):
            if 0 < of[v] < len(found):
                touching[of[v]].append((index, axis))
    for distance, layer in enumerate(found[1:], start=1):
        place = np.zeros(n, dtype=np.int64)
        place[layer] = np.arange(len(layer))
        states = np.array(model.cardinalities)[layer]
        fields = np.zeros((len(layer), widest, start.shape[1]))
        fields[np.arange(widest) >= states[:, None]] = -np.inf
        for index, axis in touching[distance]:
            factor = model.factors[index]
            v = factor.scope[axis]
            fields[place[v], : model.cardinalities[v]] += _message(factor.log_table, factor.scope, axis, of, start)
        start[layer] = (fields + rng.gumbel(size=fields.shape)).argmax(axis=1)


def _message(table: FloatArray, scope: tuple[int, ...], axis: int, of: IntArray, start: States) -> FloatArray:
    """(K, C), or (K, 1): log of the sum over all but the axis and what is in earlier layers, as it has grown."""
    rank = of[list(scope)]
    summed = tuple(k for k in range(len(scope)) if k != axis and rank[k] >= rank[axis])
    known = [k for k in range(len(scope)) if rank[k] < rank[axis]]
    left = np.logaddexp.reduce(table, axis=summed) if summed else table
    left = np.moveaxis(left, sum(k not in summed for k in range(axis)), 0)  # then what is known, in order
    if not known:
        return left[:, None]
    return left[(slice(None), *(start[scope[k]] for k in known))]
