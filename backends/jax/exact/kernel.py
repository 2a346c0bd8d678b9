"""Exact solvers in JAX, as a kernel."""

from __future__ import annotations

from typing import Any, ClassVar

from spinbench.api import Backend, Tables
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.exact.tree import JaxTree
from spinbench.foundation import deadline
from spinbench.methods.exact import Exact
from spinbench.methods.exact_kernel import ExactKernel
from spinbench.models import Model
from spinbench.reference import NUMPY_SOLVERS, Solvers
from spinbench.reference.enumeration import Enumeration
from spinbench.reference.problem import Problem


class AskedEnumeration(Enumeration):
    """NumPy's, for who asks for it by name."""

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Always, since elimination is at hand on the device."""
        return True


class JaxExactKernel(ExactKernel):
    """Elimination on the device; closed forms, which hold no tables, on the host. Float64 whatever is asked for."""

    solvers: ClassVar[Solvers] = Solvers(
        {**NUMPY_SOLVERS.kinds, "enumeration": AskedEnumeration, "bucket_tree": JaxTree},
        loading_seconds=lambda: deadline.compilation()[0],
    )

    def __init__(self, method: Exact, backend: Backend, model: Model, tables: Tables) -> None:
        super().__init__(method, backend, model, tables)
        self._on = JaxBackend(precision="float64", device=backend.device)

    def advance(self, state: int, steps: int) -> tuple[int, dict[str, Any]]:
        with self._on.scope():
            return super().advance(state, steps)
