"""Families of models: functions of named parameters, registered as entry points in the group `spinbench.models`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args, get_origin

from spinbench.errors import BrokenPluginError, ModelError, SpinbenchError
from spinbench.foundation import plugins
from spinbench.foundation.parameters import convert, hints_of
from spinbench.models import catalogue
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.pairwise import PairwiseModel

Model = PairwiseModel | FactorGraph
Family = Callable[..., Model]

# Name of the family that reads models from files.
FILE = "file"
# Marks a parameter without a default.
REQUIRED = inspect.Parameter.empty


def names() -> list[str]:
    """Registered names, sorted; reads metadata only."""
    return list(plugins.entry_points("models"))


def load(name: str) -> Family:
    """The function behind a name.

    Raises:
        UnknownNameError: no such family; the closest names are offered.
        BrokenPluginError: the plugin raised on import or is no function of named parameters, or the name belongs to
            another distribution's family or to a model of spinbench's own.
    """
    if name in names() and (name == FILE or name in catalogue.names()):
        raise BrokenPluginError(f"{plugins.label('models', name)} has the name of a model of spinbench's own")
    family: Family = plugins.load("models", name, _describe_malformation)
    return family


def load_errors() -> dict[str, str]:
    """Families that cannot be used, each with the reason; imports all of them."""
    return plugins.load_all("models", load)[1]


def parameter_defaults(name: str) -> dict[str, Any]:
    """The parameters of a family with their defaults, `REQUIRED` for those without one.

    None at all for other names and for families that are broken, of which `build` says what is wrong.
    """
    if name not in names():
        return {}
    try:
        parameters = inspect.signature(load(name)).parameters
    except BrokenPluginError:
        return {}
    return {key: parameter.default for key, parameter in parameters.items()}


def build(name: str, parameters: Mapping[str, Any]) -> Model:
    """A model of a family; parameters that are not given have their defaults.

    Raises:
        UnknownNameError, BrokenPluginError: as `load`; also where what the family returns is no model.
        ModelError: a parameter is unknown, missing, of the wrong type or out of range.
    """
    family, default_values = load(name), parameter_defaults(name)
    check_parameter_names(name, parameters, list(default_values))
    for key, default in default_values.items():
        if default is REQUIRED and key not in parameters:
            raise ModelError(f"model {name!r} needs the parameter {key}")
    try:
        model: object = family(**parameters)
    except SpinbenchError:
        raise
    except Exception as error:
        error.add_note(f"{plugins.label('models', name)} raised it")
        raise
    if not isinstance(model, Model):
        kind = type(model).__name__
        raise BrokenPluginError(
            f"{plugins.label('models', name)} returned a {kind}; a PairwiseModel or a FactorGraph is needed"
        )
    return model


def check_parameter_names(name: str, parameters: Mapping[str, object], allowed: list[str]) -> None:
    """Refuses parameters that a model does not have.

    Raises:
        ModelError: names the parameters that it has.
    """
    for key in parameters:
        if key not in allowed:
            offer = "it has no parameters"
            if allowed:
                offer = f"its parameters are {', '.join(allowed)}"
            raise ModelError(f"model {name!r} has no parameter {key!r}; {offer}")


def check_parameter_types(name: str, parameters: Mapping[str, object]) -> None:
    """Refuses parameters that are not of the types, or none of the texts, which a family's hints allow.

    Raises:
        ModelError: the first of them.
    """
    hints = hints_of(load(name))
    for key, value in parameters.items():
        hint = hints.get(key, Any)
        try:
            convert(value, hint)
        except TypeError as error:
            raise ModelError(f"model {name!r}: {key} = {error}") from error
        if get_origin(hint) is Literal and value not in (texts := get_args(hint)):
            raise ModelError(f"model {name!r}: {key} = {value!r} was given; {' or '.join(map(str, texts))} is needed")


def _describe_malformation(plugin: object) -> str:
    """Why what an entry point names is no family; empty if it is one."""
    if not callable(plugin):
        return f"is of type {type(plugin).__name__}; a function that returns a model is needed"
    try:
        parameters = inspect.signature(plugin).parameters
    except (TypeError, ValueError):
        return "does not say what its parameters are; a Python function is needed"
    named_kinds = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if unnamed := [str(each) for each in parameters.values() if each.kind not in named_kinds]:
        return f"takes {', '.join(unnamed)}; parameters that are given by name are needed"
    if "name" in parameters:
        return "takes a parameter called name, which is what the family is found by"
    return ""
