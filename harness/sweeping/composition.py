"""Hydra's side of a sweep: overrides to cells, and Hydra's errors to sentences. Besides `searchpath`, `axes`,
`launchers`, `shares`, `search`, `job` and `sweep`, nothing knows Hydra."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from hydra import compose, initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import MissingMandatoryValue, OmegaConfBaseException

from spinbench.conf import searchpath
from spinbench.errors import SpinbenchError
from spinbench.foundation.names import unknown_name
from spinbench.inference import registry
from spinbench.measuring import environment
from spinbench.models import formats, specs
from spinbench.sweeping import launchers, omissions, search


def _seed(*parameters: float) -> int:
    """Resolver `${spinbench.seed:a,b,…}`: a seed for each choice of parameters, their hundredths one after another.

    Models of one family that share a seed share their random numbers, merely scaled.
    """
    return sum(round(100 * float(value)) * 1000**place for place, value in enumerate(reversed(parameters)))


OmegaConf.register_new_resolver("spinbench.seed", _seed, replace=True)


def _chosen(table: str, entries: DictConfig, name: str, value: Any, field: str) -> Any:
    """Resolver `${spinbench.chosen:TABLE,${TABLE},NAME,${NAME},FIELD}`: a field of the entry that NAME names."""
    if str(value) not in entries:
        raise SpinbenchError(f"{name}={value} was given; {table} has {', '.join(map(str, entries))}")
    return entries[str(value)][field]


OmegaConf.register_new_resolver("spinbench.chosen", _chosen, replace=True)


def _class(classes: DictConfig, name: str) -> str | None:
    """Resolver `${spinbench.class:${classes},${model.name}}`: which list has the model or its family, if any."""
    return next((str(key) for key, members in classes.items() if name in members), None)


OmegaConf.register_new_resolver("spinbench.class", _class, replace=True)
# how many cells can be timed at once on this machine
OmegaConf.register_new_resolver("spinbench.cores", lambda: len(environment.cores()), replace=True)

_NOT_A_KEY = re.compile(r"Could not override '([^']+)'|Key '([^']+)' is not in struct")


@dataclass(frozen=True)
class Plan:
    """What a list of overrides asks for.

    Attributes:
        config: the first cell's configuration, Hydra's node included.
        multirun: whether there is more than one value of anything, or the experiment says so.
        cells: how many cells there are.
        varied: the keys with more than one value.
        left_out: which combinations are not among them.
        first: the first cell's overrides.
    """

    config: DictConfig
    multirun: bool
    cells: int
    varied: tuple[str, ...]
    left_out: tuple[omissions.Entry, ...]
    first: tuple[str, ...]


def choices(overrides: Sequence[str], key: str) -> list[str]:
    """Overrides of a key, one for each value that is given, whatever they mean; none where the key is not given.

    Raises:
        SpinbenchError: an override cannot be read.
    """
    with explained():
        return _values(OverridesParser.create(), overrides).get(key, [])


def plan(overrides: Sequence[str], *, multirun: bool) -> Plan:
    """Compose every value of every group once, so that nothing is measured before all names are known to be right.

    Raises:
        SpinbenchError: an unknown name, a value that Hydra or a method refuses, or a glob(…) that meets nothing.
    """
    searchpath.install()
    with explained(), initialize_config_module(searchpath.PACKAGE, version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        parser = OverridesParser.create(config_loader=loader)
        asked = given = _values(parser, overrides)
        config = _compose(_first(given))
        many = multirun or (config.hydra.mode is not None and config.hydra.mode.name == "MULTIRUN")
        many = many or any(len(options) > 1 for options in given.values())
        params: list[str] = []
        if many:
            params = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
            given = _values(parser, params) | given
            config = _compose(_first(given))
        for group in set(given) & set(loader.list_groups("")):
            for option in given[group][1:]:
                _compose(_first({**given, group: [option]}))
        _try_settings(given)
        varied = tuple(key for key, options in given.items() if len(options) > 1)
        out = omissions.entries(config, asked)
        cells = omissions.count(given, out)
        if search.is_search(config):
            search.check(config, given)
            cells = search.cells(config, given)
        else:
            _enumerable(parser, [*params, *overrides])
        return Plan(config, many, cells, varied, out, tuple(_first(given)))


def _enumerable(parser: OverridesParser, lines: Sequence[str]) -> None:
    for override in parser.parse_overrides(list(lines)):
        if override.is_interval_sweep():
            raise SpinbenchError(
                f"{override.input_line} was given; the values of an interval are searched, with hydra/sweeper=optuna"
            )


def _try_settings(given: Mapping[str, list[str]]) -> None:
    """Make each method with each value of the settings that were given: what it refuses would fail all of its cells."""
    settings = [key for key in given if key.lstrip("+").startswith("method.")]
    for key, method in itertools.product(settings, given.get("method", [""])):
        for option in given[key]:
            chosen = {**given, key: [option]} | ({"method": [method]} if method else {})
            method_node = _compose(_first(chosen)).method
            settings_of = cast("dict[str, Any]", OmegaConf.to_container(method_node, resolve=True))
            try:
                made = registry.method_class(settings_of.pop("name"))
            except SpinbenchError:  # not installed: its cells say so
                continue
            registry.made(made, settings_of)


def _values(parser: OverridesParser, lines: Sequence[str]) -> dict[str, list[str]]:
    """Overrides of each key, one for each value; a later line of the same key replaces an earlier one.

    An interval has two: its ends.
    """
    found: dict[str, list[str]] = {}
    for override in parser.parse_overrides(list(lines)):
        key = override.get_key_element()
        if override.is_interval_sweep():
            found[key] = [f"{key}={value}" for value in search.ends(override)]
            continue
        sweep = override.sweep_string_iterator() if override.is_sweep_override() else None
        found[key] = [str(override.input_line)] if sweep is None else [f"{key}={value}" for value in sweep]
        if not found[key]:
            raise SpinbenchError(f"{override.input_line} was given, and nothing has such a name")
    return found


@contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of Hydra and OmegaConf into one sentence each."""
    try:
        yield
    except MissingConfigException as error:
        raise _missing(error) from error
    except OverrideParseException as error:
        raise SpinbenchError(
            f"the override {error.override!r} cannot be read; write NAME=VALUE, or NAME=A,B without spaces for several "
            "values, with quotes around a value that itself holds spaces, commas, brackets or the like"
        ) from error
    except MissingMandatoryValue as error:
        name = str(error.full_key or "a value")
        raise SpinbenchError(f"{name} was not given; add {name}=VALUE") from error
    except (HydraException, OmegaConfBaseException) as error:
        within: BaseException | None = error
        while within is not None and not isinstance(within, SpinbenchError):
            within = within.__context__
        if within is not None:  # of a resolver
            raise within from None
        reason = str(error.__cause__ or error) if _NOT_A_KEY.search(str(error)) is None else str(error)
        raise SpinbenchError(" ".join(reason.split())) from error


def _compose(overrides: list[str]) -> DictConfig:
    try:
        return compose("config", overrides, return_hydra_config=True)
    except ValueError as error:  # Hydra's for a group that is set to a number
        loader = GlobalHydra.instance().config_loader()
        for line in overrides:
            group, _, value = line.partition("=")
            if group in loader.list_groups("") and value not in (options := loader.get_group_options(group)):
                known = f"{group} is one of {', '.join(options)}"
                raise SpinbenchError(f"{line} was given; {known}; its values are set as {group}.NAME=VALUE") from error
        raise SpinbenchError(" ".join(str(error).split())) from error
    except HydraException as error:
        found = _NOT_A_KEY.search(str(error))
        if found is None:
            raise
        key = found[1] or found[2]
        others = [line for line in overrides if line.partition("=")[0] != key]
        if len(others) == len(overrides):
            raise
        raise _unknown_key(key, _compose(others)) from error


def _first(given: Mapping[str, list[str]]) -> list[str]:
    return [options[0] for options in given.values()]


def _unknown_key(key: str, config: DictConfig) -> SpinbenchError:
    parent, _, leaf = key.rpartition(".")
    node: Any = OmegaConf.select(config, parent) if parent else config
    if not isinstance(node, DictConfig):
        return _unknown_key(parent, config)
    allowed = [str(name) for name in node if name != "hydra"]
    if parent in ("model", "method", "backend"):
        what = f"setting of {parent} {node['name']}"
        allowed.remove("name")
    else:
        what = f"setting in {parent}" if parent else "setting or group"
        allowed += [] if parent else ["experiment", "launcher"]
    return unknown_name(what, leaf, allowed)


def _missing(error: MissingConfigException) -> SpinbenchError:
    path = str(error.missing_cfg_file)
    group = next((group for group in ("model", "method", "backend") if path.startswith(f"{group}/")), None)
    allowed = {str(option) for option in error.options or ()}
    if group is None:
        head, _, name = path.rpartition("/")
        if head == "hydra/launcher" and (refusal := launchers.not_installed(name)) is not None:
            return refusal
        return unknown_name(head or "config", name, sorted(allowed))
    if group == "model":
        if formats.of_name(name := path.removeprefix("model/")):
            return SpinbenchError(f"model={name} was given; a file is read with model=file model.path={name}")
        allowed |= set(specs.names())
    else:
        allowed |= set(registry.names("methods" if group == "method" else "backends"))
    return unknown_name(group, path.removeprefix(f"{group}/"), sorted(allowed))
