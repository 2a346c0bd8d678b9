"""Variables of at most two neighbours, summed out before symmetry is looked for: each leaves a table over those."""

from __future__ import annotations

import itertools
from collections import defaultdict
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from spinbench.reference.exchangeable.symmetry import Mask
from spinbench.reference.flat import FlatNetwork
from spinbench.reference.network import FloatArray, IntArray, Scope

MAX_NEIGHBOURS = 2


class InnerVariable(NamedTuple):
    """A variable that is summed out.

    Attributes:
        variable: its number.
        neighbours: ascending, at most two, none of them summed out.
        conditional: (*neighbour states, states) its probabilities given those; zeros where those are impossible.
    """

    variable: int
    neighbours: Scope
    conditional: FloatArray


def inner_variables(size: int, pairs: IntArray) -> Mask:
    """(n,) those of at most two neighbours, all of which have more."""
    inner = np.asarray(np.bincount(pairs.ravel(), minlength=size) <= MAX_NEIGHBOURS)
    i, j = pairs.T
    inner[pairs[inner[i] & inner[j]]] = False
    return inner


def pairs_without(inner: Mask, pairs: IntArray) -> IntArray:
    """(E, 2) pairs of neighbours once the inner ones are summed out; a pair may come twice, not oftener."""
    i, j = pairs.T
    hanging = inner[i] | inner[j]
    ends = pairs[hanging]
    within, beyond = ends[inner[ends]], ends[~inner[ends]]
    order = np.argsort(within, kind="stable")
    bridged = np.flatnonzero(np.diff(within[order]) == 0)
    bridges = np.sort(np.stack([beyond[order[bridged]], beyond[order[bridged + 1]]], axis=1), axis=1)
    return np.concatenate([pairs[~hanging], np.unique(bridges, axis=0)])


def sum_out(network: FlatNetwork, inner: Mask) -> tuple[list[InnerVariable], FlatNetwork]:
    """The inner variables, and the network without them; it may have several tables of one scope.

    Variables keep their numbers.
    """
    owner = np.repeat(np.arange(len(network.start) - 1), np.diff(network.start))
    touched = np.zeros(len(network.start) - 1, dtype=bool)
    touched[owner[inner[network.scope]]] = True
    tables: dict[int, list[tuple[Scope, FloatArray]]] = defaultdict(list)
    for t in np.flatnonzero(touched).tolist():
        scope = tuple(network.scope[network.start[t] : network.start[t + 1]].tolist())
        values = network.values[network.offset[t] : network.offset[t + 1]]
        tables[next(v for v in scope if inner[v])].append((scope, values.reshape(network.states[list(scope)])))
    constant, removed, left = network.constant, [], []
    alike: dict[tuple[object, ...], tuple[FloatArray, FloatArray]] = {}
    for v in np.flatnonzero(inner).tolist():
        neighbours = tuple(sorted({u for scope, _ in tables[v] for u in scope} - {v}))
        axes = {u: k for k, u in enumerate((*neighbours, v))}
        placed = [(tuple(axes[u] for u in scope), table) for scope, table in tables[v]]
        # thousands of them have the same tables; those of one key share their arrays
        key = (network.states[list(axes)].tobytes(), *((at, table.tobytes()) for at, table in placed))
        if key not in alike:
            alike[key] = _eliminate(network.states[list(axes)], placed)
        message, conditional = alike[key]
        removed.append(InnerVariable(v, neighbours, conditional))
        if neighbours:
            left.append((neighbours, message))
        else:
            constant += float(message)
    return removed, _with_tables(replace(network, constant=constant), ~touched, left)


def _eliminate(states: IntArray, tables: list[tuple[tuple[int, ...], FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """The log sum over the last axis, and the conditional probabilities along it."""
    logs = np.zeros(states)
    for axes, table in tables:
        turned = table.transpose(np.argsort(axes))
        logs += turned.reshape([k if axis in axes else 1 for axis, k in enumerate(states.tolist())])
    peak = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.where(np.isneginf(peak), 0.0, peak))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        message = np.where(total > 0, peak + np.log(total), -np.inf)[..., 0]
    return message, np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)


def _with_tables(network: FlatNetwork, kept: Mask, added: list[tuple[Scope, FloatArray]]) -> FlatNetwork:
    """Some of a network's tables, and others behind them."""
    orders, sizes = np.diff(network.start), np.diff(network.offset)
    scopes = list(itertools.chain.from_iterable(scope for scope, _ in added))
    return replace(
        network,
        start=np.cumsum([0, *orders[kept], *(len(scope) for scope, _ in added)], dtype=np.int64),
        scope=np.concatenate([network.scope[np.repeat(kept, orders)], np.array(scopes, dtype=np.int64)]),
        offset=np.cumsum([0, *sizes[kept], *(table.size for _, table in added)], dtype=np.int64),
        values=np.concatenate([network.values[np.repeat(kept, sizes)], *(table.ravel() for _, table in added)]),
    )
