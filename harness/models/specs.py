"""Models from configuration: a name and its parameters."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from spinbench.errors import ModelError
from spinbench.models import catalogue, generators
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.forney import generators as forney_generators
from spinbench.models.loading import load
from spinbench.models.pairwise import PairwiseModel
from spinbench.papers.relaxation.crf.model import skip_chain

FAMILIES = {
    family.__name__: family
    for family in (
        generators.chimera,
        generators.complete,
        forney_generators.gauge_complete,
        forney_generators.gauge_cycle,
        forney_generators.gauge_grid,
        forney_generators.gauge_regular,
        generators.grid,
        generators.planar_glass,
        generators.random_regular,
        generators.rbm,
        generators.ring,
        generators.sherrington_kirkpatrick,
        generators.torus,
        generators.tree,
        skip_chain,
    )
}


def build(spec: Mapping[str, Any]) -> PairwiseModel | FactorGraph:
    """The model that a configuration names.

    Args:
        spec: `name` is a shipped model ("uai14/Grids_12"), a family ("grid") with its parameters, or "file" with
            `path` and perhaps `evidence` and `beta`, as in `load`. None stands for a default.

    Raises:
        UnknownNameError: offers the closest names.
        ModelError: a parameter is unknown, missing, of the wrong type or out of range.
    """
    parameters = {str(key): value for key, value in spec.items() if value is not None}
    name = parameters.pop("name", None)
    if not isinstance(name, str):
        raise ModelError(f"the model's name is {name!r}; a family, a shipped model or 'file' is needed")
    if name in FAMILIES:
        _check_names(name, parameters, list(inspect.signature(FAMILIES[name]).parameters))
        return FAMILIES[name](**parameters)
    if name == "file":
        _check_names(name, parameters, ["path", "evidence", "beta"])
        if "path" not in parameters:
            raise ModelError("model 'file' needs the parameter path, the file to read")
        return load(str(parameters["path"]), evidence=parameters.get("evidence"), beta=parameters.get("beta"))
    if name not in catalogue.names():
        raise catalogue.unknown(name, sorted([*FAMILIES, *catalogue.names(), "file"]), "model")
    _check_names(name, parameters, [])
    return catalogue.load(name)


def _check_names(name: str, parameters: Mapping[str, Any], allowed: list[str]) -> None:
    for key in parameters:
        if key not in allowed:
            offer = f"its parameters are {', '.join(allowed)}" if allowed else "it has no parameters"
            raise ModelError(f"model {name!r} has no parameter {key!r}; {offer}")
