"""How functions are compiled that compiled code alone calls."""

from __future__ import annotations

from typing import Any

# Numba makes two wrappers of each function, one for Python and one for C: a third of what a kernel costs to compile.
CALLEE: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""Options of such a function; Python cannot call it."""
