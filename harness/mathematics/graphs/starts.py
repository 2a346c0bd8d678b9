"""Starts that are not uniform: ordered ones, and those at which a model's strongest parities hold.

Ordered states grow from a few variables, of which each neighbour is drawn given them. Uniform states are disordered,
all in the same way: what hundreds of uniform neighbours say to a variable hardly differs from one state to the next,
so that chains that start there may all fall into one well. States that grow take the sides of the variables they
begin with. Chains from both kinds agree where either has forgotten its start (the hot and the cold starts of lattice
field theory: Creutz, Jacobs, Rebbi, "Experiments with a gauge-invariant Ising system", Phys. Rev. Lett. 1979).

In the Walsh basis the log weight of binary variables is a sum of J_S Π_{i in S} (-1)^{x_i}, and each term prefers a
parity of its variables. Strongest first, parities are made variables of their own until they settle every state: linear
algebra modulo 2, which finds a planted state that no local move leads to (a "golf hole"), as of parity checks or
diluted p-spin models, and of frustrated models one state of many that are no worse than others. Where some parities or
fields contradict such a state, a few of those that settle it are wrong. So they are chosen anew many times, and of each
choice the two whose turning gains most are turned, as long as there are any (Fossorier and Lin, "Soft-decision decoding
of linear block codes based on ordered statistics", IEEE Trans. Information Theory 1995, do so with the bits of a
received word).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs import colouring, modular_starts
from spinbench.mathematics.graphs.factor_tables import FactorTables, FloatArray, IntArray
from spinbench.mathematics.graphs.rows import compressed_rows, matrix
from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.models.groups import merge_groups

States = npt.NDArray[np.signedinteger]
# A variable with this many times its neighbours' average degree is a hub: its state determines its neighbours', so that
# growth begins there.
HUB = 2.0
# Longest distance in steps that a state grows from its seed; the rest of it is uniform.
FARTHEST = 256
BitArray = npt.NDArray[np.uint8]
# Largest number of variables of a factor, whose 2^k Walsh coefficients are all computed; larger factors are ignored.
HIGHEST = 8
# Number of the strongest terms that are examined, per variable: N independent terms determine all variables.
TERMS = 4
# Choices of terms for all starts together, for parities of three or more variables; local moves find parities of two by
# themselves.
CHOICES = 64
# Approximate limit of the floating-point operations for these choices; each start has at least one choice.
WORK = 2.0**31
# Largest number of pairs that are flipped.
TURNS = 16


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


def layers(graph: colouring.Adjacency, rng: np.random.Generator) -> Iterator[IntArray]:
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


def _roots(graph: colouring.Adjacency, rng: np.random.Generator) -> IntArray:
    """The hubs, and of each connected part without hubs a vertex of most neighbours, random where there are several."""
    from scipy.sparse import csgraph, csr_array

    n, degree = len(graph.start) - 1, np.diff(graph.start)
    square = csr_array((np.ones(len(graph.others)), graph.others, graph.start), shape=(n, n))
    hub = (degree > 0) & (degree**2 >= HUB * (square @ degree.astype(np.float64)))
    count, part = csgraph.connected_components(square, connection="strong")  # strong: no transposed matrix
    without = np.ones(count, dtype=bool)
    without[part[hub]] = False
    order = np.lexsort((rng.random(n), degree, part))
    last = order[np.append(np.diff(part[order]) > 0, np.ones(min(n, 1), dtype=bool))]
    return np.sort(np.concatenate([np.flatnonzero(hub), last[without[part[last]]]]))


def _grow_pairs(model: PairwiseModel, start: States, rng: np.random.Generator) -> None:
    n = model.num_variables
    rows = compressed_rows(model, np.arange(n))
    couplings = matrix(rows)
    # Variables that have not been reached yet have no weight.
    grown = np.zeros(start.shape)
    for distance, layer in enumerate(layers(colouring.Adjacency(rows.start.astype(np.int64), rows.columns), rng)):
        if distance:
            # selecting most of the rows takes longer than multiplying all
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
    by_distance = list(layers(colouring.Adjacency.of(n, np.array(sorted(pairs), dtype=np.int64).reshape(-1, 2)), rng))
    of = np.full(n, len(by_distance))
    for distance, layer in enumerate(by_distance):
        of[layer] = distance
    touching: list[list[tuple[int, int]]] = [[] for _ in by_distance]
    for index, factor in enumerate(model.factors):
        for axis, v in enumerate(factor.scope):
            if 0 < of[v] < len(by_distance):
                touching[of[v]].append((index, axis))
    for distance, layer in enumerate(by_distance[1:], start=1):
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
    earlier = [k for k in range(len(scope)) if rank[k] < rank[axis]]
    left: FloatArray = np.logaddexp.reduce(table, axis=summed)
    # The variable's own axis first, then those of variables drawn before, in their order.
    left = np.moveaxis(left, sum(k not in summed for k in range(axis)), 0)
    if not earlier:
        return left[:, None]
    return left[(slice(None), *(start[scope[k]] for k in earlier))]


def parity_starts(flat: FactorTables, starts: int, rng: np.random.Generator) -> BitArray:
    """(N, `starts`) states of binary variables, each the likeliest of as many choices; what no parity settles is
    random, and so is what others have."""
    n = len(flat.cardinalities)
    terms = sorted(walsh_terms(flat).items(), key=lambda term: -abs(term[1]))[: TERMS * n]
    states = rng.integers(0, 2, size=(n, starts), dtype=np.uint8)
    if not terms:
        return states
    strengths = np.array([strength for _, strength in terms])
    members = np.array([[s >> v & 1 for s, _ in terms] for v in range(n)], dtype=np.uint8)
    hidden = members.sum(axis=0).max() > 2
    pairs = hidden and TURNS * members.size * n * starts < WORK
    rounds = 1
    if pairs:
        rounds = int(min(CHOICES, WORK / (TURNS * members.size * n)) // starts)
    for state in states.T:
        best = -np.inf
        for _ in range(rounds):
            order = np.argsort(-np.abs(strengths) * np.exp(modular_starts.NOISE * rng.standard_normal(len(terms))))
            x, weight = _satisfy_parities(members, strengths, order, rng.integers(0, 2, n, dtype=np.uint8), pairs)
            if weight > best:
                best, state[:] = weight, x
    return states


def walsh_terms(flat: FactorTables) -> dict[int, float]:
    """J_S other than 0, by sets S of variables as bits of an integer, of factors of at most `HIGHEST` binary variables;
    factors are averaged over others."""
    strengths: dict[int, float] = {}
    for f in range(len(flat.offsets) - 1):
        scope = flat.scope_variables[flat.scope_starts[f] : flat.scope_starts[f + 1]].tolist()
        sizes = flat.cardinalities[scope]
        others = tuple(np.flatnonzero(sizes != 2).tolist())
        if len(scope) - len(others) > HIGHEST:
            continue
        table = modular_starts.finite(flat.values[flat.offsets[f] : flat.offsets[f + 1]])
        if others:
            table = table.reshape(sizes).mean(axis=others).ravel()
            scope = [v for v, size in zip(scope, sizes.tolist(), strict=True) if size == 2]
        sets = [0]
        for v in scope:
            sets = [s | bit for s in sets for bit in (0, 1 << v)]
        coefficients = _walsh(table, len(scope))
        for s, strength in zip(sets[1:], coefficients.tolist()[1:], strict=True):
            strengths[s] = strengths.get(s, 0.0) + strength
    return {s: strength for s, strength in strengths.items() if strength}


def _walsh(values: FloatArray, order: int) -> FloatArray:
    """(2^k,) coefficients of a table, in C order of whether a variable is in the set."""
    table = values.reshape((2,) * order)
    for axis in range(order):
        first, second = np.take(table, 0, axis), np.take(table, 1, axis)
        table = np.stack([first + second, first - second], axis) / 2
    return np.asarray(table.ravel())


def _satisfy_parities(
    members: BitArray, strengths: FloatArray, order: npt.NDArray[np.int64], y: BitArray, pairs: bool
) -> tuple[BitArray, float]:
    """States x (N,) and their log weight; members (N, T) whether a variable is in a term; y (N,) for what stays free.

    Columns of the terms are added to each other until single ones are the parities of the first terms in this order;
    identity rows below them become those of x in these variables y.
    """
    n, count = members.shape
    columns = np.concatenate([members, np.eye(n, dtype=np.uint8)], axis=1)
    free = np.ones(n, dtype=bool)
    for term in order.tolist():
        column = columns[:, term]
        if not (column & free).any():
            continue
        chosen = int((column & free).argmax())
        others = column.astype(bool)
        others[chosen] = False
        columns[others] ^= columns[chosen]
        y[chosen], free[chosen] = strengths[term] < 0, False
        if not free.any():
            break
    signs = 1.0 - 2.0 * columns[:, :count]
    if pairs:
        _turn(y, signs, strengths)
    x = (y @ columns[:, count:].astype(np.int64)) & 1
    return x.astype(np.uint8), float((strengths * np.prod(np.where(y[:, None] > 0, signs, 1.0), axis=0)).sum())


def _turn(y: BitArray, signs: FloatArray, strengths: FloatArray) -> None:
    """Turn y_j, or y_j and y_k, as long as that makes terms (T,) larger, whose signs (N, T) it changes."""
    turned = np.concatenate([signs, np.ones((1, len(strengths)))])
    terms = strengths * np.prod(np.where(y[:, None] > 0, signs, 1.0), axis=0)
    for _ in range(TURNS):
        weights = (turned * terms) @ turned.T
        first, second = np.unravel_index(int(weights.argmax()), weights.shape)
        if weights[first, second] <= terms.sum() * (1 + 1e-12) + 1e-12:
            return
        for place in (first, second):
            terms = terms * turned[place]
            if place < len(y):
                y[place] ^= 1
