"""Models as immutable host data, and everything that makes, converts, reads and writes them."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from spinbench.models.convert import to_factor_graph, to_pairwise
from spinbench.models.evidence import condition
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel
from spinbench.models.simplification import simplify

if TYPE_CHECKING:
    from spinbench.models.forney.convert import to_forney
    from spinbench.models.forney.model import ForneyModel
    from spinbench.models.loading import load, save
    from spinbench.models.specs import build

# Models that methods are planned for, and that all other code takes or returns.
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
    "simplify",
    "to_factor_graph",
    "to_forney",
    "to_pairwise",
]

# Readers, generators and Forney models are imported on first use: most code that handles models needs none.
_HOME = {
    "ForneyModel": "spinbench.models.forney.model",
    "build": "spinbench.models.specs",
    "load": "spinbench.models.loading",
    "save": "spinbench.models.loading",
    "to_forney": "spinbench.models.forney.convert",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(_HOME[name]), name)
    return value
