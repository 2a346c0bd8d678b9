"""How the kernels of the tree are compiled. Most of the time of a first call goes into what LLVM makes of them."""

from __future__ import annotations

from typing import Any

from spinbench.backends.numba.kernel_cache import CALLEE

ALLOCATES: dict[str, Any] = {"cache": True, "error_model": "numpy"}
"""What Python calls."""
CALLED: dict[str, Any] = {**ALLOCATES, "_nrt": False, "nogil": True}
"""The same where no array is made, so that references need no counting; slices run in threads."""
SHARED: dict[str, Any] = {"error_model": "numpy", "_nrt": False, **CALLEE}
"""What several kernels call."""
ONCE: dict[str, Any] = {"error_model": "numpy", "inline": "always"}
"""What one kernel calls, at one place: LLVM would optimise it for itself and again for its caller."""
