"""The result type of the exact solvers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinbench.errors import UnsupportedError
from spinbench.reference.network import FloatArray


@dataclass(frozen=True, eq=False)
class ExactAnswer:
    """log Z and marginals without approximation.

    Attributes:
        log_z: natural logarithm of Z, the model's log_constant included.
        marginals: for each variable of the model its probabilities, float64 of shape (K_v,); empty if they were
            not asked for.
        method: the solver that gave it.
        width: its induced width, or the number of variables summed jointly; None for a closed form.
        seconds: wall-clock time of the computation, also where the answer then comes from the cache.
        cached: whether it was read from the cache.
    """

    log_z: float
    marginals: tuple[FloatArray, ...]
    method: str
    width: int | None
    seconds: float
    cached: bool = False

    def __repr__(self) -> str:
        return f"ExactAnswer(log_z={self.log_z!r}, {len(self.marginals)} marginals, method={self.method!r})"

    @property
    def probabilities(self) -> FloatArray:
        """(N,) p(s_i = 1) of a binary model.

        Raises:
            UnsupportedError: marginals were not computed, or a variable is not binary.
        """
        if not self.marginals:
            raise UnsupportedError("this exact answer holds log Z alone; ask for it with marginals=True")
        if any(len(vector) != 2 for vector in self.marginals):
            v = next(v for v, vector in enumerate(self.marginals) if len(vector) != 2)
            raise UnsupportedError(
                f"variable {v} has {len(self.marginals[v])} states; p(s = 1) of all variables is there for binary "
                "models only, use .marginals"
            )
        return np.array([vector[1] for vector in self.marginals])
