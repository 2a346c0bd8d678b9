"""A correct kernel over the edges of large models, in whose indices a test may plant a bug.

Installed as a plugin by test_planted_bugs.py.
"""

from dataclasses import dataclass

import numpy as np

from spinbench.api import Estimate, Kernel, Method, standard_error
from spinbench.errors import UnsupportedError


@dataclass(frozen=True)
class Sparse(Method):
    """Gibbs over rows of neighbours, a colour at a time."""

    bug: str = ""

    name = "sparse"
    summary = "Gibbs over the edges"

    @property
    def reductions(self):
        return {"p": "sum"}

    def plan(self, model):
        if model.groups:
            raise UnsupportedError("sparse takes binary variables")
        n, W = model.num_variables, model.csr()
        row = np.repeat(np.arange(n), np.diff(W.indptr))
        colours = [0] * n
        for i in range(n):
            taken = {colours[j] for j in W.indices[W.indptr[i] : W.indptr[i + 1]].tolist() if j < i}
            colours[i] = next(c for c in range(n) if c not in taken)
        column, moving = W.indices.astype(np.int64), np.ones(n)
        match self.bug:
            case "products of indices in 32 bits":
                column = (row.astype(np.int32) * np.int32(n) + column.astype(np.int32)) % np.int32(n)
            case "indices in 16 bits":
                column = column.astype(np.uint16).astype(np.int64)
            case "variables beyond 2^16 stand still":
                moving[2**16 :] = 0
        return model.biases.copy(), row, column, W.data, np.array(colours), moving

    def program(self, backend):
        raise UnsupportedError("sparse has a kernel alone")

    def estimate(self, model, tables, trace):
        series = trace.series("p")
        return Estimate(marginals=trace.mean("p").mean(axis=-1), marginals_se=standard_error(series))


class SparseKernel(Kernel):
    def __init__(self, method, backend, model, tables):
        from scipy.sparse import csr_array

        biases, row, column, weights, colours, self.moving = tables
        n = len(biases)
        W = csr_array((weights, (row, column)), shape=(n, n))
        parts = [np.flatnonzero(colours == c) for c in range(colours.max(initial=0) + 1)]
        self.parts = [(part, biases[part, None], W[part]) for part in parts]

    def init(self, seed, start):
        return seed, 0, start.astype(float)

    def advance(self, state, steps):
        seed, index, s = state
        s, total = s.copy(), np.zeros(s.shape)
        for step in range(index, index + steps):
            rng, p = np.random.default_rng((seed, step)), np.zeros(s.shape)
            for part, biases, W in self.parts:
                p[part] = 1 / (1 + np.exp(-biases - W @ s))
                drawn = rng.random((len(part), s.shape[1])) < p[part]
                s[part] = np.where(self.moving[part, None] > 0, drawn, s[part])
            total += np.where(self.moving[:, None] > 0, p, s)
        return (seed, index + steps, s), {"p": total}
