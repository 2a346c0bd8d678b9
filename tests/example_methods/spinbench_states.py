"""Gibbs sampling of factor graphs whose variables have any number of states."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import (
    Array,
    Backend,
    Estimate,
    FactorGraph,
    Key,
    Method,
    Model,
    PairwiseModel,
    Program,
    Reduction,
    Trace,
    marginal_claims,
    to_factor_graph,
)
from spinbench.errors import UnsupportedError


class Tables(NamedTuple):
    """All log tables, laid flat one after the other behind a zero, and where each variable finds its factors in them.

    logs: (T,). sizes: (N,) states. offset: (N, D) of each variable's d-th factor; 0, the zero, where there are fewer.
    stride: (N, D) of the variable in it, 0 there. others: (N, D, M) further variables, and strides: (N, D, M) theirs.
    states: (K,) 0 … K - 1, K the most states of a variable.
    """

    logs: Any
    sizes: Any
    offset: Any
    stride: Any
    others: Any
    strides: Any
    states: Any


@dataclass(frozen=True)
class StateGibbs(Method):
    """Single-site Gibbs sampling, variable after variable (Geman and Geman, IEEE PAMI 6, 1984)."""

    name: ClassVar[str] = "state_gibbs"
    summary: ClassVar[str] = "Gibbs sampling of variables of any number of states"
    model_form = "any"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """(N K, C) 1 where a variable is in a state, K the most states of a variable."""
        return {"there": "sum"}

    def plan(self, model: Model) -> Tables:
        if not isinstance(model, PairwiseModel | FactorGraph):
            raise UnsupportedError(f"{model.name}: state_gibbs takes pairwise models and factor graphs")
        graph = to_factor_graph(model)
        if graph.has_zeros:
            raise UnsupportedError(f"{model.name}: state_gibbs takes no model in which states are impossible")
        return tables_of(graph)

    def program(self, backend: Backend) -> Program:
        """Starts hold states, 0 … K - 1, of each variable."""
        xp, take = backend.xp, backend.take

        def conditional(v: Any, t: Tables, s: Array) -> Array:
            """(K, C) weights of the states of variable v, the largest 1."""
            moved = xp.sum(take(t.strides, v)[:, :, None] * take(s, take(t.others, v)), axis=1)
            base = take(t.offset, v)[:, None] + moved
            own = xp.minimum(t.states, take(t.sizes, v) - 1)[:, None] * take(t.stride, v)
            logs = xp.sum(take(t.logs, base[None, :, :] + own[:, :, None]), axis=1)
            weights = xp.exp(logs - xp.max(logs, axis=0))
            return xp.where((t.states < take(t.sizes, v))[:, None], weights, 0.0)

        def step(key: Key, t: Tables, s: Array) -> Array:
            u = backend.uniform(key, s.shape)

            def site(v: Any, s: Array) -> Array:
                reached = xp.cumulative_sum(conditional(v, t, s), axis=0)
                target = take(u, v) * reached[-1, :]
                drawn = xp.argmax(xp.astype((reached > target) | (reached >= reached[-1, :]), xp.int32), axis=0)
                return backend.update(s, v, xp.astype(drawn, s.dtype), donate=True)

            return backend.fori_loop(0, s.shape[0], site, s)

        def observe(t: Tables, s: Array) -> dict[str, Array]:
            there = s[:, None, :] == t.states[None, :, None]
            return {"there": xp.reshape(xp.astype(there, backend.real), (-1, s.shape[1]))}

        return Program(lambda key, t, start: xp.astype(start, t.sizes.dtype), step, observe)

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        series = trace.series("there")
        ends = np.zeros(series.shape[1]), np.ones(series.shape[1])
        found = marginal_claims(series, trace.samples, *ends)
        doubts = (f"marginals {found.doubt}",) if found.doubt else ()
        values = (trace.mean("there").mean(axis=-1), found.se, found.error_bounds, found.r_hat)
        means, se, error_bounds, r_hat = (_by_variable(tables, array) for array in values)
        return Estimate(
            marginals=means, marginals_se=se, marginals_error_bound=error_bounds, r_hat=r_hat, doubts=doubts
        )


def tables_of(graph: FactorGraph) -> Tables:
    """The tables of a factor graph without zeros."""
    n, starts = graph.num_variables, np.cumsum([1, *(factor.log_table.size for factor in graph.factors)])
    rows: list[list[tuple[int, int, list[tuple[int, int]]]]] = [[] for _ in range(n)]
    for start, factor in zip(starts.tolist(), graph.factors, strict=False):
        strides = [step // factor.log_table.itemsize for step in np.ascontiguousarray(factor.log_table).strides]
        ends = list(zip(factor.scope, strides, strict=True))
        for v, own in ends:
            rows[v].append((start, own, [end for end in ends if end[0] != v]))
    depth = max((len(row) for row in rows), default=0)
    width = max((len(others) for row in rows for _, _, others in row), default=0)
    offset, stride = np.zeros((2, n, max(depth, 1)), dtype=np.int64)
    others, strides = np.zeros((2, n, max(depth, 1), max(width, 1)), dtype=np.int64)
    for v, row in enumerate(rows):
        for d, (start, own, rest) in enumerate(row):
            offset[v, d], stride[v, d] = start, own
            for m, (u, step) in enumerate(rest):
                others[v, d, m], strides[v, d, m] = u, step
    logs = np.concatenate([[0.0], *(factor.log_table.ravel() for factor in graph.factors)])
    sizes = np.array(graph.cardinalities)
    return Tables(logs, sizes, offset, stride, others, strides, np.arange(sizes.max(initial=1)))


def _by_variable(tables: Tables, values: Any) -> Any:
    """(N K,) values of states as p(s = 1) is laid out where all variables have two, else as a list of (K_v,)."""
    rows = np.asarray(values).reshape(len(tables.sizes), len(tables.states))
    if (tables.sizes == 2).all():
        return rows[:, 1]
    return [row[:size] for row, size in zip(rows, tables.sizes, strict=True)]
