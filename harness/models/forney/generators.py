"""Deprecated until 0.3: the generators of Forney models stand in `spinbench.models.networks`."""

from __future__ import annotations

import importlib
import warnings
from typing import Any


def __getattr__(name: str) -> Any:
    # by name, since an import of `networks`, which imports this folder, would be a circle
    value = getattr(importlib.import_module("spinbench.models.networks"), name)
    message = f"spinbench.models.forney.generators.{name} is spinbench.models.networks.{name}; 0.3 ends the former"
    warnings.warn(message, DeprecationWarning, stacklevel=2)
    return value
