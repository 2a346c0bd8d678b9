"""Exact answers of Forney models."""

from __future__ import annotations

from spinbench.models.forney.model import ForneyModel
from spinbench.reference.answering import DEFAULT_MAX_BYTES, solve


def forney_log_z(model: ForneyModel, *, max_bytes: int = DEFAULT_MAX_BYTES) -> float:
    """log Z of a Forney model.

    Raises:
        ModelError: Z = 0.
        IntractableError: too wide for the memory.
    """
    if not model.num_edges:
        return model.log_constant
    return solve(model.to_factor_graph(), marginals=False, cache=False, max_bytes=max_bytes).log_z
