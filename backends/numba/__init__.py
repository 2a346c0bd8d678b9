"""Numba: whole chains in compiled loops. It offers no array namespace, so it runs native kernels only."""

from __future__ import annotations

from typing import ClassVar

from spinbench.api import Backend, Precision
from spinbench.backends.numba.machine_code import use_cache_of_sources
from spinbench.errors import UnsupportedError


class NumbaBackend(Backend):
    """Names the precision for kernels that are registered as METHOD.numba."""

    name = "numba"
    provides = frozenset({"loop", "f32", "f64"})
    requires: ClassVar[tuple[str, ...]] = ("numba",)
    install = "pip install numba"

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend numba runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        use_cache_of_sources()
        from spinbench.backends.numba.compile_clock import count_compilation
        from spinbench.backends.numba.late_blas import look_for_blas_late

        look_for_blas_late()
        count_compilation()
