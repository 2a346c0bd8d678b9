"""Models from configuration: a name and its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from spinbench.errors import BrokenPluginError, ModelError
from spinbench.foundation.remarks import unknown_name
from spinbench.models import catalogue, families
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.families import FILE
from spinbench.models.loading import load
from spinbench.models.pairwise import PairwiseModel

# OmegaConf's mark for a value that the user has to give.
MISSING = "???"


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
    name, parameters = _split_name(spec)
    if name in families.names():
        return families.build(name, parameters)
    _check_parameters(name, parameters)
    if name == FILE:
        return load(str(parameters["path"]), evidence=parameters.get("evidence"), beta=parameters.get("beta"))
    return catalogue.load(name)


def check_spec(spec: Mapping[str, Any]) -> None:
    """Refuse what can be refused of a configuration without building its model; for `spec` and errors see `build`.

    None, for which `build` has the default, is refused of a parameter that has another one and takes no None. A model
    whose plugin is not installed or broken passes, as does a parameter that is still missing ("???").
    """
    name, parameters = _split_name(spec)
    present = {key: value for key, value in parameters.items() if value != MISSING}
    if name == FILE and not isinstance(present.get("evidence", ""), str):
        raise ModelError(f"model.evidence={present['evidence']} was given; the path of a file with evidence is needed")
    if name not in families.names():
        _check_parameters(name, {"path": ""} | present if name == FILE else present)
        return
    try:
        families.load(name)
    except BrokenPluginError:
        return
    families.check_parameter_names(name, present, list(families.parameter_defaults(name)))
    defaults = families.parameter_defaults(name)
    nothing = {key: None for key, value in spec.items() if value is None and defaults.get(key) is not None}
    families.check_parameter_types(name, {**present, **nothing})


def _split_name(spec: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    parameters = {str(key): value for key, value in spec.items() if value is not None}
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise ModelError(f"the model's name is {name!r}; a family, a shipped model or 'file' is needed")
    return name, parameters


def check_name(name: str, kind: str = "model") -> None:
    """Raise UnknownNameError, with the closest names, where no family and no shipped model has this one."""
    if name not in names():
        raise unknown_name(kind, name, names())


def _check_parameters(name: str, parameters: Mapping[str, Any]) -> None:
    """Of a file or shipped model."""
    if name == FILE:
        families.check_parameter_names(name, parameters, ["path", "evidence", "beta"])
        if "path" not in parameters:
            raise ModelError("model 'file' needs the parameter path, the file to read")
        return
    check_name(name)
    families.check_parameter_names(name, parameters, [])
