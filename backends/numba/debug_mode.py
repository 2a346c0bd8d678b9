"""Whether this process checks what kernels do with raw addresses."""

from __future__ import annotations

import os

VARIABLE = "SPINBENCH_SIMD_CHECKS"
ON = os.environ.get(VARIABLE, "0") not in ("", "0")
"""Read once: it decides what is compiled."""
