"""The draws of `importance` and `rejection` in compiled code, over the same arrays: one call for all chains."""

from __future__ import annotations

from functools import cache

import numpy as np

from spinbench.api import Array, Precision
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.tables.array_sweeps import JIT, small_model_tables
from spinbench.methods.baselines.draws import ForestDraws, Layers
from spinbench.methods.baselines.weighted import Importance


class CompiledForestDraws(ForestDraws):
    """Of NumPy arrays."""

    def draw(self, layers: Layers, u: Array, x: Array) -> tuple[Array, Array]:
        x, log_q = x.copy(), np.zeros_like(u[0])
        _draw_forest(layers, u, x, log_q)
        return x, log_q


@cache
def compile_forest_draws(precision: Precision) -> None:
    """Compile what `CompiledForestDraws` calls, or find it compiled, so that no step of a run has to."""
    backend, t = small_model_tables(precision, Importance().plan)
    CompiledForestDraws(backend).draw(t.layers, np.zeros((3, 1), dtype=precision), np.zeros((3, 1), dtype=np.int32))


@njit(**JIT)
def _draw_forest(layers, u, x, log_q):
    last = len(x) - 1
    for i in range(layers.rows.shape[0]):
        for j in range(layers.rows.shape[1]):
            v, parent = layers.rows[i, j], layers.parents[i, j]
            if v < last:
                passed, logs, own = layers.passed[i, j], layers.logs[i, j], x[v]
                for c in range(log_q.size):
                    above = 0 if parent == last else x[parent, c]
                    k = 0
                    while u[v, c] >= passed[above, k]:  # 2 from the last state on
                        k += 1
                    own[c] = k
                    log_q[c] += logs[above, k]
