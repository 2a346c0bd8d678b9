"""Kernels do without SciPy's linear algebra; who compiles a product of matrices gets it."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import numba
import numpy as np
import spinbench
from spinbench.models import generators

spinbench.run(generators.grid(3, 3, seed=0), method="exact", backend="numba")
assert "scipy.linalg" not in sys.modules
product = numba.njit(lambda a: a @ a)(np.full((2, 2), 0.5))
assert "scipy.linalg" in sys.modules and (product == 0.5).all()
"""


def test_blas_is_looked_for_where_it_is_needed() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)
