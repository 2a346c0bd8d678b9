"""Laws over a tree that know their density, to draw states from: uniform, mean field, beliefs of belief propagation.

    uniform      every state alike.
    mean_field   the product of factors that is nearest to p in KL(q || p), by coordinate ascent: Wainwright and Jordan,
                 "Graphical models, exponential families, and variational inference", 2008, section 5.
    bp_tree      beliefs of pairs along the spanning forest of the largest mutual information, of sum-product messages:
                 p itself where factors of two variables make a forest.

With any messages m_{f→v}, p* = Π_f (f / Π_v m_{f→v}) Π_v Π_f m_{f→v}; what is drawn is set against a factor that holds
it, and maxima of what is left bound p* / q. For q alone, hard zeros lie below the other entries of a factor, for mean
field `MEAN_FIELD_FLOOR_NATS` nats: it would give up states for them that have weight elsewhere.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import FloatArray, replace_zeros

Kind = Literal["bp_tree", "mean_field", "uniform"]
# Largest number of sweeps of message passing or coordinate ascent that does not converge.
MAX_SWEEPS = 60
# Largest number of factor updates after the first sweep, about 0.2 s in Python. The first sweep is always finished: it
# is exact on forests.
MAX_FACTOR_UPDATES = 10_000
# Largest change of a probability or message at which the sweeps have converged.
TOLERANCE = 1e-8
# Mean field puts hard zeros this many nats below the lowest finite entry of their factor: with -∞ it would exclude
# states that have weight in other configurations.
MEAN_FIELD_FLOOR_NATS = 2.0


class ForestProposal(NamedTuple):
    """q(x) = Π_v q(x_v | x_parent).

    Attributes:
        order: variables, parents first.
        parents: of each variable, -1 of a root.
        logs: of each variable, (K_parent, K_v) log q; of a root, (1, K_v).
        bounds: from below and above of log p* / q, without the model's constant.
    """

    order: list[int]
    parents: list[int]
    logs: list[FloatArray]
    bounds: tuple[float, float]


class FactorPieces(NamedTuple):
    """Attributes: cards; scopes, tables of factors; soft: tables without zeros; around: (factor, axis) of each
    variable."""

    cards: list[int]
    scopes: list[list[int]]
    tables: list[FloatArray]
    soft: list[FloatArray]
    around: list[list[tuple[int, int]]]


def build_proposal(model: FactorTables, kind: Kind) -> ForestProposal:
    """The law, and the bound on weights."""
    parts = _unpack_factors(model)
    n = len(parts.cards)
    messages = [[np.zeros(parts.cards[v]) for v in scope] for scope in parts.scopes]
    parents, homes, order = [-1] * n, [-1] * n, list(range(n))
    logs = [np.full((1, k), -np.log(k)) for k in parts.cards]
    if kind == "mean_field":
        logs = _fit_mean_field(parts, logs)
    elif kind == "bp_tree":
        messages = _run_belief_propagation(parts, messages)
        joint = [_log_factor_belief(parts, messages, f) for f in range(len(parts.scopes))]
        order, parents, homes = _max_information_forest(parts, joint)
        logs = [_log_conditional(parts, messages, joint, v, parents[v], homes[v]) for v in range(n)]
    return ForestProposal(order, parents, logs, _weight_bounds(parts, messages, parents, homes, logs))


def _unpack_factors(model: FactorTables) -> FactorPieces:
    cards = model.cardinalities.tolist()
    scopes = [model.scope_variables[a:b].tolist() for a, b in pairwise(model.scope_starts)]
    values = (model.values, replace_zeros(model) if len(model.values) else model.values)
    tables, soft = (
        [
            part[a:b].reshape([cards[v] for v in scope])
            for scope, (a, b) in zip(scopes, pairwise(model.offsets), strict=True)
        ]
        for part in values
    )
    around: list[list[tuple[int, int]]] = [[] for _ in cards]
    for f, scope in enumerate(scopes):
        for axis, v in enumerate(scope):
            around[v].append((f, axis))
    return FactorPieces(cards, scopes, tables, soft, around)


def _fit_mean_field(parts: FactorPieces, logs: list[FloatArray]) -> list[FloatArray]:
    soft = [np.maximum(table, table[np.isfinite(table)].min() - MEAN_FIELD_FLOOR_NATS) for table in parts.tables]
    for _ in range(_max_sweeps(parts)):
        change = 0.0
        for v, factors in enumerate(parts.around):
            field = np.zeros(parts.cards[v])
            for f, axis in factors:
                others = [(np.exp(logs[u][0]), k) for k, u in enumerate(parts.scopes[f]) if k != axis]
                expected = np.moveaxis(soft[f], axis, 0)
                # From the last axis to the first, so that the numbers of the earlier axes stay valid.
                for q, _ in reversed(others):
                    expected = expected @ q
                field += expected
            new = _normalise_log(field)[None]
            change, logs[v] = max(change, float(np.abs(np.exp(new) - np.exp(logs[v])).max())), new
        if change < TOLERANCE:
            break
    return logs


def _max_sweeps(parts: FactorPieces) -> int:
    return max(1, min(MAX_SWEEPS, MAX_FACTOR_UPDATES // (2 * len(parts.scopes) + 1)))


def _run_belief_propagation(parts: FactorPieces, messages: list[list[FloatArray]]) -> list[list[FloatArray]]:
    """Factor by factor there and back, which is exact after one round on forests."""
    totals = [np.zeros(k) for k in parts.cards]
    forward = list(range(len(parts.scopes)))
    for _ in range(_max_sweeps(parts)):
        change = 0.0
        for f in [*forward, *reversed(forward)]:
            cavities = [totals[v] - m for v, m in zip(parts.scopes[f], messages[f], strict=True)]
            joint = _add_along_axes(parts.soft[f], cavities)
            for axis, v in enumerate(parts.scopes[f]):
                new = _normalise_log(_log_marginal(joint, axis) - cavities[axis])
                change = max(change, float(np.abs(new - messages[f][axis]).max()))
                messages[f][axis] = new
                totals[v] = cavities[axis] + new
        if change < TOLERANCE:
            break
    return messages


def _log_factor_belief(parts: FactorPieces, messages: list[list[FloatArray]], f: int) -> FloatArray:
    """Log b_f, normalised."""
    cavities = [
        np.sum([messages[g][k] for g, k in parts.around[v] if g != f], axis=0) + np.zeros(parts.cards[v])
        for v in parts.scopes[f]
    ]
    joint = _add_along_axes(parts.soft[f], cavities)
    return np.asarray(joint - np.logaddexp.reduce(joint, axis=None))


def _max_information_forest(parts: FactorPieces, joint: list[FloatArray]) -> tuple[list[int], list[int], list[int]]:
    """(order, parents, homes) of the forest of the largest mutual information, from the middle of each tree."""
    edges = []
    for f, scope in enumerate(parts.scopes):
        for a in range(len(scope)):
            for b in range(a):
                pair = np.exp(_log_marginal(joint[f], a, b))
                independent = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0, keepdims=True)
                information = np.sum(pair * np.log(np.maximum(pair, 1e-300) / np.maximum(independent, 1e-300)))
                edges.append((float(information), f, scope[a], scope[b]))
    label = list(range(len(parts.cards)))

    def root(v: int) -> int:
        while label[v] != v:
            label[v] = v = label[label[v]]
        return v

    adjacency: list[list[tuple[int, int]]] = [[] for _ in label]
    for _, f, u, v in sorted(edges, reverse=True):
        if root(u) != root(v):
            label[root(u)] = root(v)
            adjacency[u].append((v, f))
            adjacency[v].append((u, f))
    order, parents, homes, reached = list[int](), [-1] * len(label), [-1] * len(label), set[int]()
    for v in range(len(label)):
        if v not in reached:
            for u, parent, f in _walk_breadth_first(adjacency, _centre_of_tree(adjacency, v)):
                parents[u], homes[u] = parent, f
                order.append(u)
                reached.add(u)
    return order, parents, homes


def _walk_breadth_first(adjacency: list[list[tuple[int, int]]], start: int) -> list[tuple[int, int, int]]:
    """(variable, parent, factor), breadth first."""
    visits = [(start, -1, -1)]
    for u, parent, _ in visits:
        visits += [(w, u, f) for w, f in adjacency[u] if w != parent]
    return visits


def _centre_of_tree(adjacency: list[list[tuple[int, int]]], v: int) -> int:
    """Of the longest path."""
    # Two breadth-first searches: the vertex farthest from any vertex is an end of a longest path. Rooted at the middle
    # of that path, a tree has the fewest layers, which are drawn one after another.
    end = _walk_breadth_first(adjacency, v)[-1][0]
    parent_of = {u: parent for u, parent, _ in _walk_breadth_first(adjacency, end)}
    path = [list(parent_of)[-1]]
    while parent_of[path[-1]] >= 0:
        path.append(parent_of[path[-1]])
    return path[len(path) // 2]


def _log_conditional(
    parts: FactorPieces, messages: list[list[FloatArray]], joint: list[FloatArray], v: int, parent: int, home: int
) -> FloatArray:
    if parent < 0:
        return _normalise_log(np.sum([messages[f][k] for f, k in parts.around[v]], axis=0) + np.zeros(parts.cards[v]))[
            None
        ]
    scope = parts.scopes[home]
    pair = _log_marginal(joint[home], scope.index(parent), scope.index(v))
    pair = pair if scope.index(parent) < scope.index(v) else pair.T
    return np.asarray(pair - np.logaddexp.reduce(pair, axis=1, keepdims=True))


def _weight_bounds(
    parts: FactorPieces, messages: list[list[FloatArray]], parents: list[int], homes: list[int], logs: list[FloatArray]
) -> tuple[float, float]:
    """Σ of minima and of maxima; a variable's own term goes to the factor that it is drawn by, or to all it is in."""
    remainders = [_add_along_axes(table, [-m for m in messages[f]]) for f, table in enumerate(parts.tables)]
    isolated = [np.zeros(1)]
    for v, factors in enumerate(parts.around):
        variable_term = np.sum([messages[f][k] for f, k in factors], axis=0) - logs[v]
        # Every division of the variable's term among its factors gives valid bounds on p* / q. The factor that a
        # variable is drawn from also contains its parent: terms of both cancel there, which gives the tightest bound.
        targets = [(f, k) for f, k in factors if f == homes[v]] or factors
        for f, k in targets:
            shape = [1] * remainders[f].ndim
            shape[k] = parts.cards[v]
            part = variable_term
            if homes[v] >= 0:
                parent_axis = parts.scopes[f].index(parents[v])
                shape[parent_axis] = parts.cards[parents[v]]
                part = variable_term if parent_axis < k else variable_term.T
            remainders[f] = remainders[f] + part.reshape(shape) / len(targets)
        if not factors:
            isolated.append(np.asarray(variable_term))
    every = [*remainders, *isolated]
    return sum(float(table.min()) for table in every), sum(float(table.max()) for table in every)


def _add_along_axes(table: FloatArray, terms: list[FloatArray]) -> FloatArray:
    """The table, and a term of each axis."""
    for axis, term in enumerate(terms):
        table = table + term.reshape([-1 if k == axis else 1 for k in range(table.ndim)])
    return table


def _log_marginal(log: FloatArray, *kept_axes: int) -> FloatArray:
    """Over all kept_axes but those that are kept, in their order in the table."""
    others = tuple(k for k in range(log.ndim) if k not in kept_axes)
    return np.asarray(np.logaddexp.reduce(log, axis=others))


def _normalise_log(log: FloatArray) -> FloatArray:
    return np.asarray(log - np.logaddexp.reduce(log))
