"""Where the exact solvers get compiled code from."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType


@functools.cache
def kernels(name: str) -> ModuleType:
    """Module `exact_NAME` of the Numba backend, whose machine code is kept for these very sources.

    Without that, Numba would run old code after an update: it looks at changes of a function's own file alone.
    """
    from spinbench.backends.numba import use_cache_of_sources

    use_cache_of_sources()
    return importlib.import_module(f"spinbench.backends.numba.exact.{name}")
