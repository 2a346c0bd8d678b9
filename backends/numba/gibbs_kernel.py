"""The kernel gibbs.numba: of binary pairwise models, or of any other factor graph."""

from __future__ import annotations

from spinbench.api import Backend, Kernel, Model, PairwiseModel, Tables
from spinbench.backends.numba.gibbs.kernel import GibbsKernel
from spinbench.backends.numba.tables.kernel import GraphKernel
from spinbench.methods.gibbs.gibbs import Gibbs


def gibbs_kernel(method: Gibbs, backend: Backend, model: Model, tables: Tables) -> Kernel:
    """The one for tables of the model's kind."""
    if isinstance(model, PairwiseModel):
        return GibbsKernel(method, backend, model, tables)
    return GraphKernel(method, backend, model, tables)
