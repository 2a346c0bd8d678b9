"""Numba: whole chains in compiled loops. It offers no array namespace, so it runs native kernels only."""

from __future__ import annotations

from typing import Any, ClassVar

from spinbench.api import Backend, Precision
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


def use_cache_of_sources() -> None:
    """Let Numba keep compiled kernels in a folder that belongs to their sources, unless the user chose one.

    To be called before a module with kernels is imported.
    """
    from numba.core import config

    from spinbench.backends.numba.machine_code import numba_folder

    settings: Any = config  # its names are made at run time
    if not settings.CACHE_DIR:
        settings.CACHE_DIR = str(numba_folder())
