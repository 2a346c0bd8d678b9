"""The exact solvers as a kernel: one `advance` is the whole computation."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from spinbench import reference
from spinbench.api import Backend, Kernel, Tables
from spinbench.methods.exact import Exact
from spinbench.models import Model
from spinbench.reference import NUMPY_SOLVERS, Solvers


class ExactKernel(Kernel):
    """The solvers of the reference floor. Never reads an answer from the cache.

    Attributes:
        solvers: what is chosen from; kernels of other backends bring their own.
    """

    solvers: ClassVar[Solvers] = NUMPY_SOLVERS

    def __init__(self, method: Exact, backend: Backend, model: Model, tables: Tables) -> None:
        self._method = method
        self._model = model

    def init(self, seed: int, start: np.ndarray) -> None:
        return None

    def advance(self, state: None, steps: int) -> tuple[None, dict[str, Any]]:
        answer = reference.solve(
            self._model,
            method=self._method.solver,
            max_bytes=int(self._method.max_gib * 2**30),
            cache=False,
            solvers=self.solvers,
        )
        assert answer.flat is not None
        return None, {"log_z": np.array([answer.log_z]), "marginals": answer.flat[:, None]}
