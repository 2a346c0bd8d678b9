"""Numba: whole chains in compiled loops, by kernels of its own; generic programs run over NumPy's arrays, with the
sweeps that they share in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import ClassVar

from spinbench.api import BackendProfile, Precision
from spinbench.backends.numba.machine_code import numba_folder, use_cache_of_sources
from spinbench.backends.numpy import NumpyBackend
from spinbench.foundation.arithmetic import Operations


@cache
def compile_first() -> None:
    """Fill Numba's own tables, as it does when it compiles for the first time."""
    NumbaBackend()
    from numba import njit

    njit()(_nothing)()


def _nothing() -> int:
    return 0


class NumbaBackend(NumpyBackend):
    """NumPy's arrays, and kernels that are registered as METHOD.numba."""

    name = "numba"
    provides = NumpyBackend.provides | {"compiled"}
    requires: ClassVar[tuple[str, ...]] = ("numba",)
    install = "pip install numba"
    profile = BackendProfile(
        priority=3,
        packages=("numba", "llvmlite"),
        compiled="NUMBA_CACHE_DIR",
        compiled_folder=numba_folder,
        before_fork=compile_first,
    )

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        super().__init__(precision=precision, device=device)
        use_cache_of_sources()
        from spinbench.backends.numba.kernel_cache import count_compilation, look_for_blas_late

        look_for_blas_late()
        count_compilation()

    def operations(self, kind: Callable[..., Operations]) -> Operations:
        from spinbench.backends.numba.tables.operations import find_operations_class

        compiled: Callable[..., Operations] = find_operations_class(kind, self.precision)
        return super().operations(compiled)
