"""Exact solvers in compiled code, as a kernel."""

from __future__ import annotations

from spinbench.backends.numba.compiling import compile_seconds
from spinbench.backends.numba.exact import grid, tree
from spinbench.methods.exact_kernel import ExactKernel
from spinbench.reference import NUMPY_SOLVERS, Solvers


class NumbaExactKernel(ExactKernel):
    """Compiled solvers wherever there is one."""

    solvers = Solvers(
        {**NUMPY_SOLVERS.kinds, "grid": grid.Grid, "bucket_tree": tree.CompiledTree},
        compiled_from=0,
        nothing=1e-4,
        loading_seconds=compile_seconds,
    )
