"""The kernel metropolis.jax: chains packed as those of gibbs.jax, by Metropolis' rule.

Both proposals name the other of two states. It is entered where it weighs more; otherwise the ratio of the weights is a
threshold of each level.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from spinbench.api import Backend, Model, to_pairwise
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax import packed_sweeps as packed
from spinbench.backends.jax.packed_gibbs import PackedGibbsKernel, PackedState
from spinbench.backends.jax.packed_layout import packing_refusal
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.methods.baselines.metropolis import Metropolis
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.graph_plan import GraphTables
from spinbench.methods.gibbs.sweeps import Tables
from spinbench.methods.tempering.pt import is_binary_pairwise


class PackedMetropolisKernel(PackedGibbsKernel):
    """Sweeps by colour of binary pairwise models, with either proposal and either estimate of marginals."""

    @classmethod
    def refuses(cls, method: Any, backend: Backend, model: Model) -> str:
        """As of `Kernel`."""
        if backend.device not in cls.devices:
            return f"chains are packed into words on device=gpu; device={backend.device} was asked for"
        if not is_binary_pairwise(model):
            return f"packed chains are of binary pairwise models, which {model.name} is not"
        return packing_refusal(to_pairwise(model))

    def __init__(self, method: Metropolis, backend: JaxBackend, model: Model, tables: GraphTables) -> None:
        """Raises UnsupportedError as `PackedGibbsKernel`."""
        sweeps, pairwise = Gibbs(marginals=method.marginals, log_z="none"), to_pairwise(model)
        plan = sweeps.plan(pairwise)
        assert isinstance(plan, Tables)
        super().__init__(sweeps, backend, pairwise, plan)

    def advance(self, state: PackedState, steps: int) -> tuple[PackedState, dict[str, np.ndarray]]:
        """With rows in the order of variables, as the method's tables have them."""
        state, statistics = super().advance(state, steps)
        return state, {name: by_variable(self._tables.order, values) for name, values in statistics.items()}

    def _compute_levels(self, fields: Sequence[jax.Array], beta: jax.Array) -> tuple[packed.Acceptance, ...]:
        return tuple(packed.acceptance(block) for block in fields)
