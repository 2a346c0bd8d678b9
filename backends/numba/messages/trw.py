"""Tree-reweighted sum-product in compiled code: sequential sweeps, and log Z of forests."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Backend, Model
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.messages.schedules import sequential_sweep, sum_up_all
from spinbench.backends.numba.messages.tables import Factors, make_factors, reweight, work_space
from spinbench.backends.numba.simd import Array, empty_array, larger
from spinbench.mathematics.graphs.message_layouts import FloatArray
from spinbench.methods.messages import spanning_trees, trw, trw_kernels


class NumbaTRWKernel(trw_kernels.TRWKernel[Array, Factors]):
    """Messages by sequential sweeps; float32 and float64."""

    def __init__(self, method: trw.TreeReweighted, backend: Backend, model: Model, tables: trw.Tables) -> None:
        super().__init__(method, backend, model, tables)
        self._real = np.dtype(backend.precision)
        self._factors = make_factors(tables.graph, self._real)
        self._work = work_space(self._factors)

    def _host(self, messages: Array) -> FloatArray:
        return np.asarray(messages, dtype=np.float64)

    def _first_messages(self) -> Array:
        return np.zeros(len(self._tables.incidence.target), dtype=self._real)

    def _prepare(self, rho: FloatArray) -> Factors:
        return reweight(self._factors, rho)

    def _sweep(self, prepared: Factors, messages: Array) -> tuple[Array, float]:
        totals = np.empty(len(self._tables.graph.theta), dtype=self._real)
        # ρ weights the messages in the totals and may have changed since the last sweep.
        sum_up_all(prepared, messages, totals)
        return messages, float(sequential_sweep(prepared, messages, totals, self._method.damping or 0.0, self._work))

    def _forest_log_z(self, forests: list[spanning_trees.Forest], nodes: FloatArray, tables: FloatArray) -> FloatArray:
        edges = self._tables.edges
        return np.array([_forest_log_z(edges, f.order, f.parent, f.edge, nodes.copy(), tables) for f in forests])


@njit(cache=True, error_model="numpy")
def _forest_log_z(edges, order, parent, edge, nodes, tables):
    """log Z on one forest; `nodes` (n, K) is overwritten."""
    n, width = nodes.shape
    total = 0.0
    row = empty_array(width, np.float64)
    # `order` lists parents before children: in reverse, each node is complete before it sends.
    for k in range(n - 1, -1, -1):
        v = order[k]
        p, e = parent[v], edge[v]
        for y in range(1 if p < 0 else width):
            top = -np.inf
            for x in range(width):
                log = nodes[v, x]
                if p >= 0:
                    log += tables[e, x, y] if edges[e, 0] == v else tables[e, y, x]
                row[x] = log
                top = larger(top, log)
            # The parent's state is absent from its variable, or a zero excludes it: top - top below would be NaN.
            if top == -np.inf:
                nodes[p, y] = -np.inf
                continue
            weight = 0.0
            for x in range(width):
                weight += math.exp(row[x] - top)
            if p < 0:
                total += top + math.log(weight)
            else:
                nodes[p, y] += top + math.log(weight)
    return total
