"""Models as lists of tables, for libraries of factor graphs."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from comparison.answers import FloatArray
from comparison.problems import Model
from spinbench.models import to_factor_graph


class Tables(NamedTuple):
    """Factors of a model.

    Attributes:
        sizes: (N,) numbers of states.
        scopes: the variables of each factor, sorted and distinct: tables of the same scope are multiplied.
        tables: of each factor; scale: log of what they were divided by, so that none overflows.
    """

    sizes: tuple[int, ...]
    scopes: list[tuple[int, ...]]
    tables: list[FloatArray]
    scale: float


def tables(model: Model) -> Tables:
    """One table for each scope, its largest entry 1."""
    graph = to_factor_graph(model)
    logs: dict[tuple[int, ...], FloatArray] = {}
    scale = graph.log_constant
    for factor in graph.factors:
        scope = tuple(sorted(factor.scope))
        turned = np.transpose(factor.log_table, np.argsort(factor.scope)) if scope else factor.log_table
        if not scope:
            scale += float(turned)
        else:
            logs[scope] = logs[scope] + turned if scope in logs else turned
    for v, size in enumerate(graph.cardinalities):
        logs.setdefault((v,), np.zeros(size))
    found = []
    for table in logs.values():
        top = float(table.max())
        scale += top
        found.append(np.ascontiguousarray(np.exp(table - top)))
    return Tables(tuple(graph.cardinalities), list(logs), found, scale)
