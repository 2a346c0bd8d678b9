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

    def init(self, seed: int, start: np.ndarray) -> int:
        return seed

    def advance(self, state: int, steps: int) -> tuple[int, dict[str, Any]]:
        method, max_bytes = self._method, int(self._method.max_gib * 2**30)
        options: dict[str, Any] = {"method": method.solver, "max_bytes": max_bytes, "solvers": self.solvers}
        answer = reference.solve(self._model, cache=False, **options)
        assert answer.flat is not None
        found = {"log_z": np.array([answer.log_z]), "marginals": answer.flat[:, None]}
        if method.pairs:
            tables = reference.pairs(self._model, max_bytes=max_bytes)
            found["pairs"] = np.concatenate([np.empty(0), *(tables if isinstance(tables, list) else [tables])])[:, None]
        if method.draws:
            found["states"] = reference.sample(self._model, method.draws, state, **options).T
        return state, found
