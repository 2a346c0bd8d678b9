"""A factor graph as a few flat arrays, for samplers that look entries up.

Beside its states, a chain may keep where each factor's entry stands: a conditional of v is then a sum of look-ups
`values[position_f + (k - x_v) * stride]` over the factors that hold v, at any order and any number of states.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models import FactorGraph, Model, PairwiseModel, to_factor_graph

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# {scope, ascending: log table}.
Tables = dict[tuple[int, ...], FloatArray]
# Entries of a block of look-ups, small enough for a cache.
NEAR = 2**16


def links(model: Model) -> int:
    """Pairs of a factor, or a coupling, and a variable that it holds."""
    if isinstance(model, PairwiseModel):
        return 2 * model.num_edges
    return sum(len(f.scope) for f in model.factors)


class FactorTables(NamedTuple):
    """N variables, F factors, T entries; S is the sum of the factors' orders, all of them 1 or more.

    Factor f's entry at x is `offsets[f] + Σ_j scope_strides[j] x[scope_variables[j]]`, j over its slice of the scopes.

    Attributes:
        cardinalities: (N,) int64.
        values: (T,) float64, log tables one after another, each in C order; -inf is a hard zero.
        offsets: (F + 1,) int64, where each table begins in `values`.
        scope_starts: (F + 1,) int64, where each factor's scope begins.
        scope_variables: (S,) int64, ascending within a factor.
        scope_strides: (S,) int64, of the variable beside it in the factor's table.
        starts: (N + 1,) int64, where each variable's factors begin.
        factors: (S,) int64, ascending within a variable.
        strides: (S,) int64, of the variable in the table of the factor beside it.
        log_constant: added to every log weight.
    """

    cardinalities: IntArray
    values: FloatArray
    offsets: IntArray
    scope_starts: IntArray
    scope_variables: IntArray
    scope_strides: IntArray
    starts: IntArray
    factors: IntArray
    strides: IntArray
    log_constant: float

    def positions(self, states: npt.NDArray[np.integer]) -> IntArray:
        """(F, ...) indices into `values` of states (N, ...)."""
        alike = [1] * (states.ndim - 1)
        positions = self.offsets[:-1].reshape(-1, *alike) + np.zeros(states.shape[1:], dtype=np.int64)
        orders = np.diff(self.scope_starts)
        for axis in range(int(orders.max(initial=0))):
            longer = slice(None) if (orders > axis).all() else np.flatnonzero(orders > axis)
            at = self.scope_starts[:-1][longer] + axis
            positions[longer] += self.scope_strides[at].reshape(-1, *alike) * states[self.scope_variables[at]]
        return positions

    def log_weights(self, states: npt.NDArray[np.integer]) -> FloatArray:
        """(C,) of states (N, C), a few at a time: what they look up stays in a cache."""
        log_weights = np.full(states.shape[1], self.log_constant)
        width = max(1, NEAR // len(self.offsets))
        for first in range(0, states.shape[1], width):
            few = slice(first, first + width)
            log_weights[few] += self.values[self.positions(states[:, few])].sum(axis=0)
        return log_weights


def factor_tables(model: Model, absorb: bool = True) -> FactorTables:
    """The tables of a model, with one factor for each set of variables.

    Args:
        model: any model; the units of a 1-of-K group stay binary variables, tied by one factor.
        absorb: whether a factor goes into another that holds all of its variables, the one of the fewest entries.

    Raises:
        ConversionError: a 1-of-K group of more than 20 members.
    """
    if isinstance(model, PairwiseModel) and not model.groups:
        return _of_pairs(model, absorb)
    graph = to_factor_graph(model)
    tables, constant = _multiply_equal_scopes(graph)
    if absorb:
        tables = _absorb_subsets(tables)
    return _flat(np.array(graph.cardinalities, dtype=np.int64), tables, constant)


def _multiply_equal_scopes(graph: FactorGraph) -> tuple[Tables, float]:
    """One table for each set of variables, and what depends on none."""
    tables: Tables = {}
    constant = graph.log_constant
    for factor in graph.factors:
        order = sorted(range(len(factor.scope)), key=factor.scope.__getitem__)
        scope = tuple(factor.scope[axis] for axis in order)
        table = factor.log_table.transpose(order)
        if not scope:
            constant += float(table)
        else:
            tables[scope] = tables.get(scope, 0.0) + table
    return tables, constant


def _absorb_subsets(tables: Tables) -> Tables:
    """No scope lies within another."""
    maximal: Tables = {}
    holding: dict[int, list[tuple[int, ...]]] = {}
    # Largest scopes first, so that each smaller scope finds a table that contains it.
    for scope in sorted(tables, key=lambda scope: (-len(scope), scope)):
        # Such a table contains every variable of the scope, so that the shortest of their lists is searched.
        rarest = min((holding.get(v, []) for v in scope), key=len)
        homes = [other for other in rarest if set(scope) <= set(other)]
        if homes:
            home = min(homes, key=lambda other: maximal[other].size)
            sizes = dict(zip(scope, tables[scope].shape, strict=True))
            maximal[home] = maximal[home] + tables[scope].reshape([sizes.get(v, 1) for v in home])
        else:
            maximal[scope] = tables[scope]
            for v in scope:
                holding.setdefault(v, []).append(scope)
    return maximal


def _of_pairs(model: PairwiseModel, absorb: bool) -> FactorTables:
    """What `_flat` of `_absorb_subsets` gives, without a table of its own for each of many couplings."""
    edges, pair = model.edges, np.zeros((model.num_edges, 2, 2))
    pair[:, 1, 1] = model.couplings
    alone = np.flatnonzero(model.biases)
    if absorb:
        coupled, first = np.unique(edges, return_index=True)
        for axis in (0, 1):
            on_axis = first % 2 == axis
            pair.swapaxes(1, 2 - axis)[first[on_axis] // 2, :, 1] += model.biases[coupled[on_axis], None]
        alone = np.setdiff1d(alone, coupled)
    unary = np.zeros((len(alone), 2))
    unary[:, 1] = model.biases[alone]
    parts = [(1, alone, (1,), unary), (2, edges, (2, 1), pair)]
    if absorb:
        parts.reverse()
    orders, variables, strides, values = zip(*parts, strict=True)
    counts = [len(tables) for tables in values]
    return _tables(
        np.full(model.num_variables, 2, dtype=np.int64),
        np.repeat(orders, counts),
        np.concatenate([part.ravel() for part in variables]),
        np.concatenate([np.tile(part, count) for part, count in zip(strides, counts, strict=True)]),
        np.concatenate([tables.ravel() for tables in values]),
        model.log_constant,
    )


def _flat(cardinalities: IntArray, tables: Tables, constant: float) -> FactorTables:
    return _tables(
        cardinalities,
        np.array([len(scope) for scope in tables], dtype=np.int64),
        np.array([v for scope in tables for v in scope], dtype=np.int64),
        np.array([s for table in tables.values() for s in _strides(table.shape)], dtype=np.int64),
        np.concatenate([np.zeros(0), *(table.ravel() for table in tables.values())]),
        constant,
    )


def _tables(
    cardinalities: IntArray,
    orders: IntArray,
    variables: IntArray,
    strides: IntArray,
    values: FloatArray,
    constant: float,
) -> FactorTables:
    """From the factors' orders (F,), and what stands beside each of their variables (S,)."""
    scope_starts = starts_of(orders)
    touched = np.argsort(variables, kind="stable")
    # the first variable's stride times its number of states is the size of the table
    first = scope_starts[:-1]
    return FactorTables(
        cardinalities=cardinalities,
        values=values,
        offsets=starts_of(strides[first] * cardinalities[variables[first]]),
        scope_starts=scope_starts,
        scope_variables=variables,
        scope_strides=strides,
        starts=starts_of(np.bincount(variables, minlength=len(cardinalities))),
        factors=np.repeat(np.arange(len(orders)), orders)[touched],
        strides=strides[touched],
        log_constant=constant,
    )


def _strides(shape: tuple[int, ...]) -> IntArray:
    """Entries that a step along each axis passes, in C order."""
    return np.cumprod([1, *shape[:0:-1]], dtype=np.int64)[::-1]


def starts_of(lengths: npt.ArrayLike) -> IntArray:
    """Where parts of these lengths begin, and the end."""
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])
