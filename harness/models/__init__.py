"""Models as immutable host data, and everything that makes, converts, reads and writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from spinbench.models.convert import to_factor_graph, to_pairwise
from spinbench.models.evidence import condition
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel

if TYPE_CHECKING:
    from spinbench.models.forney.model import ForneyModel
    from spinbench.models.loading import load, save
    from spinbench.models.specs import build

Model = PairwiseModel | FactorGraph

__all__ = [
    "Factor",
    "FactorGraph",
    "ForneyModel",
    "Model",
    "Origin",
    "PairwiseModel",
    "build",
    "condition",
    "load",
    "save",
    "to_factor_graph",
    "to_pairwise",
]


def __getattr__(name: str) -> Any:
    """Readers, generators and Forney models are imported on first use: most of what handles models needs none."""
    if name in ("load", "save"):
        from spinbench.models import loading

        return getattr(loading, name)
    if name == "ForneyModel":
        from spinbench.models.forney.model import ForneyModel

        return ForneyModel
    if name == "build":
        from spinbench.models.specs import build

        return build
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
