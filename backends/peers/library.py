"""What a backend of another library is."""

from __future__ import annotations

from typing import ClassVar

from spinbench.api import Backend, Precision
from spinbench.errors import UnsupportedError


class LibraryBackend(Backend):
    """Another library on the CPU, in double precision where it says no more; it runs kernels of its own alone."""

    provides: ClassVar[frozenset[str]] = frozenset({"f64"})
    install = "pip install 'spinbench[peers]'"
    peer: ClassVar[bool] = True

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        if device != "cpu":
            raise UnsupportedError(f"backend {self.name} runs on device=cpu; device={device} was asked for")
        super().__init__(precision=precision, device=device)
