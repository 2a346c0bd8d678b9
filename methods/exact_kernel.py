"""The exact solvers as a kernel: one `advance` is the whole computation."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbench import reference
from spinbench.api import Backend, Kernel, Model, States, Tables
from spinbench.foundation import deadline
from spinbench.methods.exact import COST_NAMES, Exact
from spinbench.reference import NUMPY_SOLVERS, Solvers
from spinbench.reference.elimination.array_tree import ArrayTrees
from spinbench.reference.enumeration import Enumeration
from spinbench.reference.problem import Problem
from spinbench.reference.solvers import Kind


class ExactKernel(Kernel[Tables, int]):
    """The solvers of the reference floor. Never reads an answer from the cache.

    Attributes:
        solvers: what is chosen from; kernels of other backends bring their own.
    """

    solvers: Solvers = NUMPY_SOLVERS

    def __init__(self, method: Exact, backend: Backend, model: Model, tables: Tables) -> None:
        self._method = method
        self._model = model

    def init(self, seed: int, start: States) -> int:
        return seed

    def advance(self, state: int, steps: int) -> tuple[int, dict[str, np.ndarray]]:
        method, max_bytes = self._method, self._method.max_bytes
        options: dict[str, Any] = {"method": method.solver, "max_bytes": max_bytes, "solvers": self.solvers}
        answer = reference.solve(self._model, cache=False, **options)
        assert answer.flat is not None
        diagnostics = answer.diagnostics
        if answer.cost is not None and answer.cost.order is not None:
            diagnostics |= {"order_digest": float(int(answer.cost.order_digest, 16))}
        # Unknown costs are -1: a trace only holds numbers, in arrays of one shape.
        cost = np.array([[diagnostics.get(name, -1.0)] for name in COST_NAMES])
        statistics = {"log_z": np.array([answer.log_z]), "marginals": answer.flat[:, None], "cost": cost}
        if method.pairs:
            tables = reference.pairs(self._model, max_bytes=max_bytes)
            statistics["pairs"] = np.concatenate([np.empty(0), *(tables if isinstance(tables, list) else [tables])])[
                :, None
            ]
        if method.draws:
            statistics["states"] = reference.sample(self._model, method.draws, state, **options).T
        return state, statistics


class HostEnumeration(Enumeration):
    """NumPy's, for who asks for it by name."""

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Always, since elimination is at hand on the device."""
        return True


class ArrayExactKernel(ExactKernel):
    """Elimination over the backend's arrays; closed forms, which hold no tables, on the host. Float64 whatever is asked
    for."""

    def __init__(self, method: Exact, backend: Backend, model: Model, tables: Tables) -> None:
        super().__init__(method, backend, model, tables)
        # Always float64: float32 sums over many states would lose digits of an answer that is reported as exact.
        trees = ArrayTrees(type(backend)(precision="float64", device=backend.device))
        kinds: dict[str, Kind] = {**NUMPY_SOLVERS.kinds, "enumeration": HostEnumeration, "bucket_tree": trees}
        self.solvers = Solvers(kinds, loading_seconds=lambda: deadline.compilation()[0])
