"""From a model to the tables that `spinbench.mathematics.graphs.message_layouts` describes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, Group, IntArray, Pairs, Scopes
from spinbench.models import Factor, FactorGraph, Model, Origin, PairwiseModel
from spinbench.models.possible_states import origin_of_possible_states, possible_states
from spinbench.reference.problem import Problem

# Floor of messages (`Graph.floor`) if no weight is finite.
FLOOR = -2000.0


class _Layout(NamedTuple):
    """(n,) states of the variables that are left; and of a `Graph` readout, source and aim."""

    cardinalities: IntArray
    readout: IntArray
    source: IntArray
    aim: IntArray


def lower(model: Model, *, merge: bool = False) -> Graph:
    """The tables of a model.

    Args:
        model: any model.
        merge: whether factors of order 2 over the same variables are multiplied into one.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """
    if isinstance(model, PairwiseModel):
        if model.groups:
            return _lower_groups(model)
        return _lower_pairwise(model)
    return _lower_graph(model, merge)


def _lower_pairwise(model: PairwiseModel) -> Graph:
    n = model.num_variables
    nonzero = model.couplings != 0
    weights = model.couplings[nonzero]
    every = np.arange(n)
    return Graph(
        theta=model.biases,
        pairs=Pairs(weights, np.ascontiguousarray(model.edges[nonzero].T), np.stack([weights, weights]) / 2),
        groups=(),
        constant=np.array(model.log_constant),
        first=every,
        readout=2 * every + 1,
        source=every,
        aim=np.ones(n, dtype=np.int64),
        floor=_floor(model.biases, weights, ()),
    )


def _lower_groups(model: PairwiseModel) -> Graph:
    """1-of-K groups become variables of K states."""
    problem = Problem(model)
    origin, network = problem.origin, problem.network
    cards = np.array(problem.cardinalities, dtype=np.int64)
    states = np.cumsum(cards) - cards
    free = np.flatnonzero(origin.carriers >= 0)
    # Index of the constant 1, for the only member of a group.
    readout = np.full(model.num_variables, int(cards.sum()) + 1)
    readout[free] = states[origin.carriers[free]] + [origin.states[v].index(1) for v in free.tolist()]
    source = np.empty(int(cards.sum()), dtype=np.int64)
    source[readout[free]] = free
    rows = np.delete(source, states)
    pieces = _by_shape(list(network.tables), list(network.tables.values()))
    return _assemble(_Layout(cards, readout, rows, np.ones_like(rows)), pieces, network.constant)


def _lower_graph(graph: FactorGraph, merge: bool) -> Graph:
    if merge:
        graph = _multiply_pairs(graph)
    origin = origin_of_possible_states(graph)
    free = np.flatnonzero(origin.carriers >= 0)
    cards = np.array(origin.derived_cardinalities, dtype=np.int64)
    size, states = int(cards.sum()), np.cumsum(cards) - cards
    readouts = [np.arange(size)]
    if not origin.is_identity:
        readouts = [np.full(full, size) for full in graph.cardinalities]
        for row, possible, carrier in zip(readouts, origin.states, origin.carriers.tolist(), strict=True):
            row[list(possible)] = size + 1 if carrier < 0 else states[carrier] + np.arange(cards[carrier])
    readout = np.concatenate(readouts)
    if all(k == 2 for k in graph.cardinalities):
        readout = readout[1::2]
    # each row's initial message favours the state of the chain's initial state
    aim = np.fromiter(itertools.chain.from_iterable(origin.states[v][1:] for v in free.tolist()), dtype=np.int64)
    layout = _Layout(cards, readout, np.repeat(free, cards - 1), aim)
    return _assemble(layout, _by_shape(*_restrict_factors(graph, origin)), graph.log_constant)


def pieces(graph: FactorGraph) -> tuple[list[tuple[int, ...]], list[FloatArray]]:
    """What `lower` takes each factor for: the variables that are left of its scope, and a table of their states."""
    return _restrict_factors(graph, origin_of_possible_states(graph))


def _restrict_factors(graph: FactorGraph, origin: Origin) -> tuple[list[tuple[int, ...]], list[FloatArray]]:
    """The factors over the possible states of the variables that are not determined."""
    if origin.is_identity:
        return [factor.scope for factor in graph.factors], [factor.log_table for factor in graph.factors]
    members: list[tuple[int, ...]] = []
    tables = []
    for factor in graph.factors:
        scope = tuple(int(origin.carriers[v]) for v in factor.scope if origin.carriers[v] >= 0)
        index = [origin.states[v] for v in factor.scope]
        table = factor.log_table[np.ix_(*index)]
        tables.append(table.reshape([k for k in table.shape if k > 1]))
        members.append(scope)
    return members, tables


def _multiply_pairs(graph: FactorGraph) -> FactorGraph:
    """The same law with factors of order 2 over the same variables multiplied, and without determined variables in
    scopes of factors: a product has zeros that arc consistency sees only now, so again until nothing changes."""
    while True:
        masks = possible_states(graph)
        fixed = {v: int(mask.argmax()) for v, mask in enumerate(masks) if mask.sum() == 1}
        pairs: dict[tuple[int, ...], FloatArray] = {}
        factors = []
        for factor in graph.factors:
            table = factor.log_table[tuple(fixed.get(v, slice(None)) for v in factor.scope)]
            scope = tuple(v for v in factor.scope if v not in fixed)
            if len(scope) != 2:
                factors.append(Factor(scope, table))
                continue
            if scope[0] > scope[1]:
                scope, table = scope[::-1], table.T
            pairs[scope] = pairs.get(scope, 0.0) + table
        ruled_out = [(v, mask) for v, mask in enumerate(masks) if not mask.all()]
        factors += [Factor(scope, table) for scope, table in pairs.items()]
        factors += [Factor((v,), np.where(mask, 0.0, -np.inf)) for v, mask in ruled_out]
        result = replace(graph, factors=tuple(factors))
        if _large_scopes(result) == _large_scopes(graph):
            return result
        graph = result


def _large_scopes(graph: FactorGraph) -> list[tuple[int, ...]]:
    return sorted(factor.scope for factor in graph.factors if len(factor.scope) > 1)


def _by_shape(members: Sequence[tuple[int, ...]], tables: Sequence[FloatArray]) -> Scopes:
    """Stacks tables of one shape; axes are put in the order of their lengths, so that there are fewer shapes."""
    chosen: dict[tuple[int, ...], tuple[list[tuple[int, ...]], list[FloatArray]]] = {}
    for scope, table in zip(members, tables, strict=True):
        shape = table.shape
        if any(a > b for a, b in itertools.pairwise(shape)):
            order = sorted(range(len(shape)), key=shape.__getitem__)
            scope, table = tuple(scope[k] for k in order), table.transpose(order)
        mine = chosen.setdefault(table.shape, ([], []))
        mine[0].append(scope)
        mine[1].append(table)
    return {
        shape: (np.array(ends, dtype=np.int64).reshape(len(ends), len(shape)), np.stack(values))
        for shape, (ends, values) in chosen.items()
    }


def _assemble(layout: _Layout, pieces: Scopes, constant: float) -> Graph:
    cards, readout, source, aim = layout
    first = np.cumsum(cards - 1) - (cards - 1)
    theta = np.zeros(int((cards - 1).sum()))
    pairs = Pairs(np.zeros(0), np.zeros((2, 0), dtype=np.int64), np.zeros((2, 0)))
    groups = []
    for shape, (members, tables) in pieces.items():
        rows = first[members]
        if len(shape) == 0:
            constant += float(tables.sum())
        elif len(shape) == 1:
            constant += float(tables[:, 0].sum())
            np.add.at(theta, rows + np.arange(shape[0] - 1), tables[:, 1:] - tables[:, :1])
        else:
            if shape == (2, 2) and (finite := np.isfinite(tables).all(axis=(1, 2))).any():
                ends, corner = np.ascontiguousarray(rows[finite].T), tables[finite, 0, 0]
                sides = tables[finite, 1, 0] - corner, tables[finite, 0, 1] - corner
                constant += float(corner.sum())
                for end, side in zip(ends, sides, strict=True):
                    theta += np.bincount(end, side, minlength=len(theta))
                # w = f(1,1) - f(0,1) - f(1,0) + f(0,0); fields go to θ and f(0,0) to the constant.
                weights = (tables[finite, 1, 1] - tables[finite, 0, 1]) - sides[0]
                pairs = Pairs(weights, ends, -np.stack(sides))
                rows, tables = rows[~finite], tables[~finite]
            if len(tables):
                axes = tuple(range(1, tables.ndim))
                peak = tables.max(axis=axes, keepdims=True)
                constant += float(peak.sum())
                groups.append(Group(tables - peak, np.ascontiguousarray(rows.T)))
    floor = _floor(theta, pairs.weights, groups)
    return Graph(theta, pairs, tuple(groups), np.array(constant), first, readout, source, aim, floor)


def _floor(theta: FloatArray, weights: FloatArray, groups: Sequence[Group]) -> FloatArray:
    """`Graph.floor`: half of it is below what all finite weights together can say."""
    low = 0.0
    for group in groups:
        finite = np.where(np.isneginf(group.log_tables), 0.0, group.log_tables)
        low += float(finite.reshape(len(finite), -1).min(axis=1).sum())
    return np.array(FLOOR + 2.0 * (low - float(np.abs(theta).sum() + np.abs(weights).sum())))
