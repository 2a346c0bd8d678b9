"""Laws over a tree that know their density, to draw states from: uniform, mean field, beliefs of belief propagation.

    uniform      every state alike.
    mean_field   the product of factors that is nearest to p in KL(q || p), by coordinate ascent: Wainwright and Jordan,
                 "Graphical models, exponential families, and variational inference", 2008, section 5.
    bp_tree      beliefs of pairs along the spanning forest of the largest mutual information, of sum-product messages:
                 p itself where factors of two variables make a forest.

With any messages m_{f→v}, p* = Π_f (f / Π_v m_{f→v}) Π_v Π_f m_{f→v}; what is drawn is set against a factor that holds
it, and maxima of what is left bound p* / q. For q alone, hard zeros lie below the other entries of a factor, for mean
field `SHALLOW` nats: it would give up states for them that have weight elsewhere.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np

from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.mathematics.graphs.table_layouts import FloatArray, replace_zeros

Kind = Literal["bp_tree", "mean_field", "uniform"]
SWEEPS = 60
"""Of messages, or of coordinate ascent, at most."""
UPDATES = 10_000
"""Of factors at most, about a fifth of a second, but for the first sweep, which suffices for forests."""
SETTLED = 1e-8
SHALLOW = 2.0


class Forest(NamedTuple):
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


class Pieces(NamedTuple):
    """Attributes: cards; scopes, tables of factors; soft: tables without zeros; around: (factor, axis) of each
    variable."""

    cards: list[int]
    scopes: list[list[int]]
    tables: list[FloatArray]
    soft: list[FloatArray]
    around: list[list[tuple[int, int]]]


def forest(model: FactorTables, kind: Kind) -> Forest:
    """The law, and the bound on weights."""
    parts = _pieces(model)
    n = len(parts.cards)
    messages = [[np.zeros(parts.cards[v]) for v in scope] for scope in parts.scopes]
    parents, homes, order = [-1] * n, [-1] * n, list(range(n))
    logs = [np.full((1, k), -np.log(k)) for k in parts.cards]
    if kind == "mean_field":
        logs = _mean_field(parts, logs)
    elif kind == "bp_tree":
        messages = _messages(parts, messages)
        joint = [_belief(parts, messages, f) for f in range(len(parts.scopes))]
        order, parents, homes = _spanning(parts, joint)
        logs = [_conditional(parts, messages, joint, v, parents[v], homes[v]) for v in range(n)]
    return Forest(order, parents, logs, _bounds(parts, messages, parents, homes, logs))


def _pieces(model: FactorTables) -> Pieces:
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
    return Pieces(cards, scopes, tables, soft, around)


def _mean_field(parts: Pieces, logs: list[FloatArray]) -> list[FloatArray]:
    soft = [np.maximum(table, table[np.isfinite(table)].min() - SHALLOW) for table in parts.tables]
    for _ in range(_sweeps(parts)):
        moved = 0.0
        for v, factors in enumerate(parts.around):
            field = np.zeros(parts.cards[v])
            for f, axis in factors:
                others = [(np.exp(logs[u][0]), k) for k, u in enumerate(parts.scopes[f]) if k != axis]
                expected = np.moveaxis(soft[f], axis, 0)
                for q, _ in reversed(others):
                    expected = expected @ q
                field += expected
            new = _normal(field)[None]
            moved, logs[v] = max(moved, float(np.abs(np.exp(new) - np.exp(logs[v])).max())), new
        if moved < SETTLED:
            break
    return logs


def _sweeps(parts: Pieces) -> int:
    return max(1, min(SWEEPS, UPDATES // (2 * len(parts.scopes) + 1)))


def _messages(parts: Pieces, messages: list[list[FloatArray]]) -> list[list[FloatArray]]:
    """Factor by factor there and back, which is exact after one round on forests."""
    totals = [np.zeros(k) for k in parts.cards]
    there = list(range(len(parts.scopes)))
    for _ in range(_sweeps(parts)):
        moved = 0.0
        for f in [*there, *reversed(there)]:
            cavities = [totals[v] - m for v, m in zip(parts.scopes[f], messages[f], strict=True)]
            joint = _spread(parts.soft[f], cavities)
            for axis, v in enumerate(parts.scopes[f]):
                new = _normal(_summed(joint, axis) - cavities[axis])
                moved = max(moved, float(np.abs(new - messages[f][axis]).max()))
                messages[f][axis] = new
                totals[v] = cavities[axis] + new
        if moved < SETTLED:
            break
    return messages


def _belief(parts: Pieces, messages: list[list[FloatArray]], f: int) -> FloatArray:
    """Log b_f, normalised."""
    cavities = [
        np.sum([messages[g][k] for g, k in parts.around[v] if g != f], axis=0) + np.zeros(parts.cards[v])
        for v in parts.scopes[f]
    ]
    joint = _spread(parts.soft[f], cavities)
    return np.asarray(joint - np.logaddexp.reduce(joint, axis=None))


def _spanning(parts: Pieces, joint: list[FloatArray]) -> tuple[list[int], list[int], list[int]]:
    """(order, parents, homes) of the forest of the largest mutual information, from the middle of each tree."""
    found = []
    for f, scope in enumerate(parts.scopes):
        for a in range(len(scope)):
            for b in range(a):
                pair = np.exp(_summed(joint[f], a, b))
                alone = pair.sum(axis=1, keepdims=True) * pair.sum(axis=0, keepdims=True)
                information = np.sum(pair * np.log(np.maximum(pair, 1e-300) / np.maximum(alone, 1e-300)))
                found.append((float(information), f, scope[a], scope[b]))
    label = list(range(len(parts.cards)))

    def root(v: int) -> int:
        while label[v] != v:
            label[v] = v = label[label[v]]
        return v

    near: list[list[tuple[int, int]]] = [[] for _ in label]
    for _, f, u, v in sorted(found, reverse=True):
        if root(u) != root(v):
            label[root(u)] = root(v)
            near[u].append((v, f))
            near[v].append((u, f))
    order, parents, homes, reached = list[int](), [-1] * len(label), [-1] * len(label), set[int]()
    for v in range(len(label)):
        if v not in reached:
            for u, parent, f in _walk(near, _middle(near, v)):
                parents[u], homes[u] = parent, f
                order.append(u)
                reached.add(u)
    return order, parents, homes


def _walk(near: list[list[tuple[int, int]]], start: int) -> list[tuple[int, int, int]]:
    """(variable, parent, factor), breadth first."""
    found = [(start, -1, -1)]
    for u, parent, _ in found:
        found += [(w, u, f) for w, f in near[u] if w != parent]
    return found


def _middle(near: list[list[tuple[int, int]]], v: int) -> int:
    """Of the longest path."""
    end = _walk(near, v)[-1][0]
    back = {u: parent for u, parent, _ in _walk(near, end)}
    path = [list(back)[-1]]
    while back[path[-1]] >= 0:
        path.append(back[path[-1]])
    return path[len(path) // 2]


def _conditional(
    parts: Pieces, messages: list[list[FloatArray]], joint: list[FloatArray], v: int, parent: int, home: int
) -> FloatArray:
    if parent < 0:
        return _normal(np.sum([messages[f][k] for f, k in parts.around[v]], axis=0) + np.zeros(parts.cards[v]))[None]
    scope = parts.scopes[home]
    pair = _summed(joint[home], scope.index(parent), scope.index(v))
    pair = pair if scope.index(parent) < scope.index(v) else pair.T
    return np.asarray(pair - np.logaddexp.reduce(pair, axis=1, keepdims=True))


def _bounds(
    parts: Pieces, messages: list[list[FloatArray]], parents: list[int], homes: list[int], logs: list[FloatArray]
) -> tuple[float, float]:
    """Σ of minima and of maxima; a variable's own term goes to the factor that it is drawn by, or to all it is in."""
    left = [_spread(table, [-m for m in messages[f]]) for f, table in enumerate(parts.tables)]
    loose = [np.zeros(1)]
    for v, factors in enumerate(parts.around):
        own = np.sum([messages[f][k] for f, k in factors], axis=0) - logs[v]
        homely = [(f, k) for f, k in factors if f == homes[v]] or factors
        for f, k in homely:
            shape = [1] * left[f].ndim
            shape[k] = parts.cards[v]
            part = own
            if homes[v] >= 0:
                above = parts.scopes[f].index(parents[v])
                shape[above] = parts.cards[parents[v]]
                part = own if above < k else own.T
            left[f] = left[f] + part.reshape(shape) / len(homely)
        if not factors:
            loose.append(np.asarray(own))
    every = [*left, *loose]
    return sum(float(table.min()) for table in every), sum(float(table.max()) for table in every)


def _spread(table: FloatArray, terms: list[FloatArray]) -> FloatArray:
    """The table, and a term of each axis."""
    for axis, term in enumerate(terms):
        table = table + term.reshape([-1 if k == axis else 1 for k in range(table.ndim)])
    return table


def _summed(log: FloatArray, *kept: int) -> FloatArray:
    """Over all axes but those that are kept, in their order in the table."""
    others = tuple(k for k in range(log.ndim) if k not in kept)
    return np.asarray(np.logaddexp.reduce(log, axis=others) if others else log)


def _normal(log: FloatArray) -> FloatArray:
    return np.asarray(log - np.logaddexp.reduce(log))
