"""What a backend of another library is, and what its kernels share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType
from typing import ClassVar

from spinbench.api import Backend, Method, Precision


class LibraryBackend(Backend):
    """Another library on the CPU, in double precision where it says no more; it runs kernels of its own alone."""

    provides: ClassVar[frozenset[str]] = frozenset({"f64"})
    install = "pip install 'spinbench[peers]'"


class JaxLibraryBackend(LibraryBackend):
    """One on JAX, in either precision and on a GPU, too."""

    provides: ClassVar[frozenset[str]] = frozenset({"f32", "f64", "gpu"})

    def __init__(self, *, precision: Precision = "float64", device: str = "cpu") -> None:
        super().__init__(precision=precision, device=device)
        if device != "cpu":
            import jax

            from spinbench.backends.jax import find_device

            find_device(jax, self.name, device)


def setting_refusal(backend: Backend, method: Method, allowed: Mapping[str, tuple[object, ...]]) -> str:
    """Why a library does not do what is asked for; empty: it does. The first of the allowed values is the plain one."""
    for setting, values in allowed.items():
        if (value := getattr(method, setting, values[0])) not in values:
            return f"{backend.name} does {setting}={' or '.join(map(str, values))}, not {setting}={value}"
    return ""


class OnJax:
    """A kernel of a library on JAX: its programs are kept; its device and 64 bits are set for its own calls alone."""

    def load_jax(self, backend: Backend) -> ModuleType:
        """JAX, imported."""
        import jax

        from spinbench.backends.jax import find_device, keep_programs

        keep_programs(jax)
        self._jax, self._wide = jax, backend.precision == "float64"
        self._device = find_device(jax, backend.name, backend.device)
        return jax

    @contextmanager
    def _scope(self) -> Iterator[None]:
        with self._jax.enable_x64(self._wide), self._jax.default_device(self._device):
            yield
