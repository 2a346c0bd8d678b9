"""The UAI inference competitions' answers: marginals (`.MAR`), log10 of Z (`.PR`), a state (`.MPE`)."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import numpy.typing as npt


def format_mar(marginals: Iterable[npt.NDArray[np.float64]]) -> bytes:
    """Of each variable how many states it has and their probabilities, in as many digits as tell them apart.

    Args:
        marginals: (K_v,) of each variable.
    """
    variables = [" ".join([str(len(p)), *(repr(float(q)) for q in p)]) for p in marginals]
    return f"MAR\n{' '.join([str(len(variables)), *variables])}\n".encode()


def format_pr(log_z: float) -> bytes:
    """Of log Z in nats."""
    return f"PR\n{log_z / math.log(10)!r}\n".encode()


def format_mpe(state: npt.NDArray[np.int64]) -> bytes:
    """Of how many variables, and their states (N,)."""
    return f"MPE\n{' '.join(map(str, [len(state), *state.tolist()]))}\n".encode()
