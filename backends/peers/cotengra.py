"""cotengra: contraction of the model's tables as a tensor network.

log Z is the contraction, and all marginals together are its gradient with respect to the tables of single variables:
the derivative of log Z by an entry t of such a table is p / t. As its documentation shows for repeated contractions,
the expression is made once (`array_contract_expression`) and compiled together with its gradient by JAX, which takes
seconds for a small model and minutes for a large one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from spinbench.api import BackendProfile, Model
from spinbench.backends.jax import keep_programs
from spinbench.backends.peers import library

if TYPE_CHECKING:
    import jax

    # Returns log Z and its gradients with respect to the tables.
    Contraction = Callable[[Sequence[np.ndarray]], tuple[jax.Array, Sequence[jax.Array]]]

# Trials of the greedy search for a contraction order; on a 10 × 10 grid they find one of the optimal width 10.
TRIALS = 64


class CotengraBackend(library.LibraryBackend):
    """cotengra, with JAX."""

    name = "cotengra"
    requires: ClassVar[tuple[str, ...]] = ("cotengra", "jax")
    profile = BackendProfile(packages=("cotengra",))


class CotengraExact(library.LibraryAnswer["tuple[Contraction, library.ModelTables]"]):
    """log Z and its gradient, compiled."""

    compiles = True
    notes = ("the search for an order counts as compilation, since the contraction is compiled for one",)

    def build(self, model: Model) -> tuple[Contraction, library.ModelTables]:
        import cotengra
        import jax

        keep_programs(jax)
        problem = library.build_tables(model)
        inputs = [tuple(map(str, scope)) for scope in problem.scopes]
        sizes = {str(v): size for v, size in enumerate(problem.sizes)}
        search = cotengra.RandomGreedyOptimizer(max_repeats=TRIALS, accel=False, seed=0)
        contract = cotengra.array_contract_expression(inputs, (), size_dict=sizes, optimize=search)
        return jax.jit(jax.value_and_grad(lambda arrays: jax.numpy.log(contract(*arrays)))), problem

    def solve(self, built: tuple[Contraction, library.ModelTables], seed: int) -> library.Answer:
        import jax

        both, problem = built
        with jax.enable_x64(True):
            log_z, gradients = jax.block_until_ready(both(problem.tables))
        single = {
            scope[0]: np.asarray(gradient) * table
            for scope, gradient, table in zip(problem.scopes, gradients, problem.tables, strict=True)
            if len(scope) == 1
        }
        return library.Answer([single[v] for v in range(len(problem.sizes))], float(log_z) + problem.scale)
