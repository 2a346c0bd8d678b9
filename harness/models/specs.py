"""Models from configuration: a name and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinbench.errors import ModelError
from spinbench.foundation.names import unknown_name
from spinbench.models import catalogue, families
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.families import FILE
from spinbench.models.loading import load
from spinbench.models.pairwise import PairwiseModel


def names() -> list[str]:
    """All that `build` knows: families of models, the shipped ones, and "file"."""
    return sorted({*families.names(), *catalogue.names(), FILE})


def build(spec: Mapping[str, Any]) -> PairwiseModel | FactorGraph:
    """The model that a configuration names.

    Args:
        spec: `name` is a shipped model ("uai14/Grids_12"), a family ("grid") with its parameters, or "file" with
            `path` and perhaps `evidence` and `beta`, as in `load`. None stands for a default.

    Raises:
        UnknownNameError: offers the closest names.
        BrokenPluginError: the family's plugin cannot be used.
        ModelError: a parameter is unknown, missing, of the wrong type or out of range.
    """
    parameters = {str(key): value for key, value in spec.items() if value is not None}
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise ModelError(f"the model's name is {name!r}; a family, a shipped model or 'file' is needed")
    if name in families.names():
        return families.build(name, parameters)
    if name == FILE:
        families.check_names(name, parameters, ["path", "evidence", "beta"])
        if "path" not in parameters:
            raise ModelError("model 'file' needs the parameter path, the file to read")
        return load(str(parameters["path"]), evidence=parameters.get("evidence"), beta=parameters.get("beta"))
    if name not in catalogue.names():
        raise unknown_name("model", name, names())
    families.check_names(name, parameters, [])
    return catalogue.load(name)
