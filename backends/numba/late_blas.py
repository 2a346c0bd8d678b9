"""Numba looks for SciPy's BLAS when anything is compiled or loaded: a sixth of a second that no kernel needs.

This replaces a function of Numba's while a module is imported. A Numba without a function of that name loses nothing
but the time, and `tests/backends/numba/test_late_blas.py` says so.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from numba.np import linalg

_LINALG: Any = linalg


@cache
def look_for_blas_late() -> None:
    """Import Numba's array functions without it. Numba looks again where it compiles a product of matrices."""
    look = getattr(_LINALG, "ensure_blas", None)  # a Numba without it looks at no other time
    _LINALG.ensure_blas = lambda: None
    try:
        from numba.np import arraymath  # noqa: F401  # asks when it is imported
    finally:
        _LINALG.ensure_blas = look
