"""Numba: whole chains in compiled loops, by kernels of its own; generic programs run over NumPy's arrays, with the
sweeps that they share in compiled code."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

from spinbench.api import Precision
from spinbench.backends.numba.machine_code import use_cache_of_sources
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import UnsupportedError
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.baselines.draws import ForestDraws
from spinbench.methods.baselines.jumps import Jumps


class NumbaBackend(NumpyBackend):
    """NumPy's arrays, and kernels that are registered as METHOD.numba."""

    name = "numba"
    provides = NumpyBackend.provides | {"compiled"}
    requires: ClassVar[tuple[str, ...]] = ("numba",)
    install = "pip install numba"

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend numba runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
        use_cache_of_sources()
        from spinbench.backends.numba.compiling import count_compilation, look_for_blas_late

        look_for_blas_late()
        count_compilation()

    def operations(self, kind: Callable[..., Any]) -> Any:
        if kind is TableBath:
            from spinbench.backends.numba.tables.array_sweeps import CompiledTableBath, compile_table_bath

            compile_table_bath(self.precision)
            return CompiledTableBath(self)
        if kind is ForestDraws:
            from spinbench.backends.numba.tables.array_sweeps import CompiledForestDraws, compile_forest_draws

            compile_forest_draws(self.precision)
            return CompiledForestDraws(self)
        if kind is Jumps:
            from spinbench.backends.numba.tables.jumps import CompiledJumps, compile_jumps

            compile_jumps(self.precision)
            return CompiledJumps(self)
        return kind(self)
