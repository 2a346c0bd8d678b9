"""Models as one table a scope, for libraries of factor graphs."""

from __future__ import annotations

import dataclasses
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Factor, FactorGraph, Model, to_factor_graph
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.reference.orders.order import elimination_order, pairs_of

FloatArray = npt.NDArray[np.float64]


class Tables(NamedTuple):
    """Factors of a model.

    Attributes:
        sizes: (N,) numbers of states.
        scopes: the variables of each factor, sorted and distinct: tables of the same scope are multiplied. Each
            variable has one of its own.
        tables: of each factor; scale: log of what they were divided by, so that none overflows.
    """

    sizes: tuple[int, ...]
    scopes: list[tuple[int, ...]]
    tables: list[FloatArray]
    scale: float


def tables(model: Model) -> Tables:
    """One table for each scope, its largest entry 1."""
    flat = factor_tables(model, absorb=False)
    sizes, logs = tuple(flat.cardinalities.tolist()), dict[tuple[int, ...], FloatArray]()
    for scope, values in zip(pairwise(flat.scope_starts), pairwise(flat.offsets), strict=True):
        variables = tuple(flat.scope_variables[slice(*scope)].tolist())
        logs[variables] = flat.values[slice(*values)].reshape([sizes[v] for v in variables])
    for v, size in enumerate(sizes):
        logs.setdefault((v,), np.zeros(size))
    tops = [float(table.max()) for table in logs.values()]
    scaled = [np.exp(table - top) for table, top in zip(logs.values(), tops, strict=True)]
    return Tables(sizes, list(logs), scaled, flat.log_constant + sum(tops))


def all_named(model: Model) -> FactorGraph:
    """The model with a factor for each variable, and constants in `log_constant`, for readers that need it so."""
    graph = to_factor_graph(model)
    factors = [factor for factor in graph.factors if factor.scope]
    constant = sum(float(factor.log_table) for factor in graph.factors if not factor.scope)
    named = {v for factor in factors for v in factor.scope}
    factors += [Factor((v,), np.zeros(k)) for v, k in enumerate(graph.cardinalities) if v not in named]
    return dataclasses.replace(graph, factors=tuple(factors), log_constant=graph.log_constant + constant)


def span(model: Model) -> float:
    """Nats between the largest and the least weight of a table that is not zero, of the widest table."""
    flat = to_factor_graph(model).flat
    if not len(flat):
        return 0.0
    is_finite = np.isfinite(flat.logs)
    tops = np.maximum.reduceat(np.where(is_finite, flat.logs, -np.inf), flat.offsets[:-1])
    lows = np.minimum.reduceat(np.where(is_finite, flat.logs, np.inf), flat.offsets[:-1])
    return float((tops - lows).max())


def too_wide(library: str, model: Model, max_gib: float) -> str:
    """Why a library is not asked: even the order that we find is too wide for the memory; empty: it is not."""
    graph = to_factor_graph(model)
    order = elimination_order(graph.cardinalities, pairs_of(factor.scope for factor in graph.factors))
    if order.complete and 8 * 2.0**order.log2_total <= max_gib * 2**30:
        return ""
    return (
        f"{library} is not asked for {model.name}: in an order of width {order.width} tables take more than "
        f"max_gib={max_gib:g}"
    )
