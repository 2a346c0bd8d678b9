"""Names of types of arrays on the host that the contracts share; the others, which need no NumPy, are in `types`."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

PerVariable = npt.NDArray[np.float64] | list[npt.NDArray[np.float64]]
"""(N,) a number of each variable of a binary model; else (K_v,) numbers of each variable's states."""
Pairs = npt.NDArray[np.float64] | list[npt.NDArray[np.float64]] | None
"""(E,) joint probabilities of a pairwise model's edges; else a flat table of each factor. None: there are none."""
PairsWithErrors = tuple[Pairs, Pairs]
"""Joint probabilities and their standard errors."""
States = npt.NDArray[np.signedinteger]
"""(variable, chain) states 0 … K - 1, int8 or, where that is too short, int32."""
Draws = tuple[np.ndarray, np.ndarray | None]
"""(N, S) integer states and their log weights (S,); None: all weigh the same."""
