"""Check that a precision is what it is called, by the last digits of what is reported."""

from __future__ import annotations

import numpy as np

from spinbench.api import Precision
from spinbench.testing.check import require, skip
from spinbench.testing.pair import FEW_CHAINS, Pair, advance
from spinbench.testing.trial import watched

SEED = 7


def digits(pair: Pair) -> None:
    """float32 and float64 must differ where numbers are not whole: the same digits mean the same arithmetic."""
    seen = {}
    precisions: tuple[Precision, ...] = ("float32", "float64")
    for precision in precisions:
        at = watched(pair, precision)
        state = at.engine.init(SEED, np.zeros((at.given.num_variables, FEW_CHAINS), dtype=np.int8))
        steps = 3 if pair.method.anytime else 1
        seen[precision] = advance(at.engine, state, [steps])[1][0][1]
    broken = {name: np.isfinite(a) & (a != np.rint(a)) for name, a in seen["float64"].items() if a.dtype.kind == "f"}
    if not any(where.any() for where in broken.values()):
        skip("it reports whole numbers alone, which do not show the precision")
    same = all(
        np.array_equal(seen["float32"][name][where].astype(np.float32), seen["float64"][name][where].astype(np.float32))
        for name, where in broken.items()
        if seen["float32"][name].shape == where.shape
    )
    short = all(
        np.array_equal(seen["float64"][name][where], seen["float64"][name][where].astype(np.float32))
        for name, where in broken.items()
    )
    kind = "float64 is computed in float32" if short else "float32 is computed in float64"
    require(not same, f"float32 and float64 give the same digits: {kind}")
