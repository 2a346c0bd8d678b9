"""Classes of exchangeable variables: any permutation within a class leaves the model as it is.

Two variables are exchangeable if swapping them does so. That is an equivalence, and swaps generate all permutations of
a class. A swap of two that share no table keeps the model where both have the same tables with the same neighbours;
where the two share a table, it has to be symmetric too. Both are seen from one random number for each variable, summed
over its tables: one round of colour refinement in which the colour of each neighbour is the neighbour itself.

Variables of at most two neighbours are summed out before symmetry is looked for: each leaves a table over those.
"""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models.factor_graph import FactorArrays
from spinbench.reference.network import FlatFactors, FloatArray, IntArray, Network, Pairwise, Scope, merge_tables

# Relative difference up to which log values count as equal: sums of the same terms in another order differ by rounding.
RELATIVE_DIFFERENCE = 1e-12
# Largest change of log Z by treating nearly equal values as equal; above it, values have to be identical.
MAX_LOG_Z_ERROR = 1e-9
Mask = npt.NDArray[np.bool_]
# uint64 arithmetic, modulo 2^64.
Hashes = npt.NDArray[np.uint64]
# Largest number of neighbours of a variable that is summed out first, which leaves a table over a pair.
MAX_NEIGHBOURS = 2


class Tables(NamedTuple):
    """Tables of one shape.

    Attributes:
        scopes: (table, axis) ascending variables.
        logs: (table, *states) log tables.
    """

    scopes: IntArray
    logs: FloatArray


def tables_by_shape(network: FlatFactors) -> list[Tables]:
    """All tables, of which no two are over the same variables."""
    flat = FactorArrays(network.states, network.scope, np.diff(network.start), network.values[:], network.offset)
    return [Tables(scopes, flat.stack_tables(factors, shape)) for factors, scopes, shape in flat.group_by_shape()]


def exchangeable_classes(tables: list[Tables], states: IntArray) -> IntArray:
    """(n,) the class of each variable, numbered from 0.

    Args:
        tables: one of each scope.
        states: (n,) of the variables.
    """
    # A fixed seed, so that classes are numbered alike in every process.
    rng = np.random.default_rng(0)
    order = max((group.scopes.shape[1] for group in tables), default=1)
    size = max((group.logs[0].size for group in tables), default=1)
    names, entries = _random(rng, order, len(states)), _random(rng, size)
    signature = _random(rng, int(states.max(initial=0)) + 1)[states]
    hashes = _hash_values(np.concatenate([np.empty(0), *(group.logs.ravel() for group in tables)]), rng)
    pairs: list[tuple[IntArray, list[Hashes]]] = []
    begin = 0
    for scopes, logs in tables:
        hashed = hashes[begin : begin + logs.size].reshape(logs.shape)
        begin += logs.size
        views = []
        for axis, variables in enumerate(scopes.T):
            # the table with this variable's axis first
            views.append(np.moveaxis(hashed, 1 + axis, 1).reshape(len(logs), -1) @ entries[: logs[0].size])
            product = views[-1].copy()
            # One factor per place: a table need not be symmetric in its other axes.
            for place, neighbours in enumerate(np.delete(scopes, axis, axis=1).T):
                product *= names[place, neighbours]
            np.add.at(signature, variables, product)
        if scopes.shape[1] == 2:
            pairs.append((scopes, views))
    twins = []
    for scopes, (view, turned) in pairs:
        i, j = scopes.T
        swapped = signature[i] + turned * names[0, i]
        symmetric = (view == turned) & (swapped == signature[j] + view * names[0, j])
        twins.append((scopes[symmetric], swapped[symmetric]))
    # Exchangeable coupled variables are neighbours of each other and not of themselves, so that their signatures
    # differ. Both get the signature that a swap of the two gives.
    for ends, common in twins:
        signature[ends] = common[:, None]
    return np.asarray(np.unique(signature, return_inverse=True)[1], dtype=np.int64)


def _random(rng: np.random.Generator, *shape: int) -> Hashes:
    # Odd numbers are invertible modulo 2^64, so that a product loses no information on its factors.
    return rng.integers(0, 2**64, shape, dtype=np.uint64) | np.uint64(1)


def _hash_values(values: FloatArray, rng: np.random.Generator) -> Hashes:
    """A random number for each value, the same for values that differ by rounding alone."""
    # Most entries of coupling tables are zero.
    nonzero = values != 0
    levels, at, counts = np.unique(np.append(0.0, values[nonzero]), return_inverse=True, return_counts=True)
    near = np.diff(levels) <= RELATIVE_DIFFERENCE * np.maximum(1.0, np.abs(levels[1:]))
    cluster = np.append(0, np.cumsum(~near))
    first, last = np.searchsorted(cluster, cluster), np.searchsorted(cluster, cluster, side="right") - 1
    spread = np.where(first < last, levels[last], 0.0) - np.where(first < last, levels[first], 0.0)
    if float(counts @ spread) > MAX_LOG_Z_ERROR:
        cluster = np.arange(len(levels))
    hashed = _random(rng, len(levels))[cluster]
    result = np.full(values.shape, hashed[at[0]])
    result[nonzero] = hashed[at[1:]]
    return result


def least_classes(pairwise: Pairwise) -> int:
    """A lower bound on the number of classes, from a random projection of what the variables are coupled to.

    It takes a few passes over the edges, where `exchangeable_classes` sorts all values.
    """
    n, weights = pairwise.size, pairwise.couplings
    random = np.random.default_rng(0).random(n)
    i, j = pairwise.edges.T
    pull = np.bincount(i, weights * random[j], n) + np.bincount(j, weights * random[i], n)
    # For a lower bound, values within rounding count as equal.
    rounding = 1e-9 * max(1.0, float(np.abs(pull).max(initial=0.0)))
    # 0 if two coupled variables are exchangeable.
    swapped = pull[i] - pull[j] + weights * (random[i] - random[j])
    coupled, apart = np.abs(swapped) <= rounding, np.diff(np.sort(pull)) <= rounding
    return int(n - coupled.sum() - apart.sum())


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


def sum_out(network: Network, inner: Mask) -> tuple[list[InnerVariable], Network]:
    """The inner variables, and the network without their tables. Variables keep their numbers."""
    touching: dict[int, list[tuple[Scope, FloatArray]]] = defaultdict(list)
    pieces: list[tuple[Scope, FloatArray]] = []
    for scope, table in network.tables.items():
        v = next((v for v in scope if inner[v]), None)
        (pieces if v is None else touching[v]).append((scope, table))
    removed = []
    alike: dict[tuple[object, ...], tuple[FloatArray, FloatArray]] = {}
    for v in np.flatnonzero(inner).tolist():
        neighbours = tuple(sorted({u for scope, _ in touching[v] for u in scope} - {v}))
        axes = {u: k for k, u in enumerate((*neighbours, v))}
        placed = [(tuple(axes[u] for u in scope), table) for scope, table in touching[v]]
        states = tuple(network.cardinalities[u] for u in axes)
        # thousands of variables have equal tables; they share one array per key
        key = (states, *((at, table.tobytes()) for at, table in placed))
        if key not in alike:
            alike[key] = _eliminate(states, placed)
        message, conditional = alike[key]
        removed.append(InnerVariable(v, neighbours, conditional))
        pieces.append((neighbours, message))
    return removed, merge_tables(network.cardinalities, pieces, network.constant)


def _eliminate(states: Scope, tables: list[tuple[tuple[int, ...], FloatArray]]) -> tuple[FloatArray, FloatArray]:
    """The log sum over the last axis, and the conditional probabilities along it."""
    logs = np.zeros(states)
    for axes, table in tables:
        turned = table.transpose(np.argsort(axes))
        logs += np.expand_dims(turned, [axis for axis in range(len(states)) if axis not in axes])
    peak = logs.max(axis=-1, keepdims=True)
    weights = np.exp(logs - np.where(np.isneginf(peak), 0.0, peak))
    total = weights.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        message = np.where(total > 0, peak + np.log(total), -np.inf)[..., 0]
    return message, np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
