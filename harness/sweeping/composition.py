"""Hydra's side of a sweep: overrides to cells, and Hydra's errors to sentences. Besides `searchpath`, `axes`,
`launchers`, `shares`, `search`, `job` and `sweep`, nothing knows Hydra."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

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
from spinbench.sweeping import cellconfigs, launchers, omissions, search
from spinbench.sweeping.refusals import CHECKS, Refusals


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
        cells: how many cells there are; of a search, at most.
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
    """Try every value once, so that nothing is measured before all names and settings are known to be right.

    Raises:
        SpinbenchError: what is wrong, as unknown names, or values that a method or a model refuses.
    """
    searchpath.install()
    with explained(), initialize_config_module(searchpath.PACKAGE, version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        parser = OverridesParser.create(config_loader=loader)
        refused = Refusals()
        asked = _values(parser, overrides)
        given, config = _known(asked, refused)
        many = multirun or (config.hydra.mode is not None and config.hydra.mode.name == "MULTIRUN")
        many = many or any(len(options) > 1 for options in given.values())
        params: list[str] = []
        if many:
            params = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
            given, config = _known(_values(parser, params) | given, refused)
        if not search.is_search(config):
            _enumerable(parser, [*params, *overrides])
        _try(given, config, refused)
        _try_appended(parser, given, config, refused)
        with refused.noted():
            _no_subfolders(config)
        refused.told()
        varied = tuple(key for key, options in given.items() if len(options) > 1)
        out = omissions.entries(config, asked)
        if search.is_search(config):
            search.check(config, given)
            cells = search.cells(config, given, out)
        else:
            cells = omissions.count(given, out)
        return Plan(config, many, cells, varied, out, tuple(_first(given)))


def _no_subfolders(config: DictConfig) -> None:
    written: Any = OmegaConf.to_container(config.hydra.sweep, resolve=False)  # it may hold what only a job has
    if written["subdir"] != ".":
        raise SpinbenchError(
            f"hydra.sweep.subdir={written['subdir']} was given; the cells of a sweep share its folder, sweep_dir=FOLDER"
        )


def _enumerable(parser: OverridesParser, lines: Sequence[str]) -> None:
    for override in parser.parse_overrides(list(lines)):
        if override.is_interval_sweep():
            raise SpinbenchError(
                f"{override.input_line} was given; the values of an interval are searched, with hydra/sweeper=optuna"
            )


def _known(given: Mapping[str, list[str]], refused: Refusals) -> tuple[dict[str, list[str]], DictConfig]:
    """Without what names no group's member and no setting, which is noted; and the configuration of the rest."""
    left = dict(given)
    while True:
        lines = _first(left)
        try:
            with explained():
                return left, _compose(lines)
        except SpinbenchError as error:
            wrong = _at_fault(error.__cause__, lines)
            rest = {key: left[key] for key in left if not f"{key.lstrip('+')}.".startswith(f"{wrong}.")}
            if len(rest) == len(left):  # none of these lines, but a file
                raise
            refused.add(error)
            left = rest


def _at_fault(error: BaseException | None, lines: Sequence[str]) -> str | None:
    """The key of the line for which Hydra raised this; None: of no single one."""
    if isinstance(error, MissingConfigException):
        asked = [line.partition("=") for line in lines]
        return next((key for key, _, name in asked if f"{key}/{name}" == error.missing_cfg_file), None)
    found = _NOT_A_KEY.search(str(error)) if isinstance(error, HydraException) else None
    return None if found is None else found[1] or found[2]


def _try(given: Mapping[str, list[str]], config: DictConfig, refused: Refusals) -> None:
    """Try every value that was given, beside the first of all others, and every setting with each member of its group.

    What is refused would fail all of its cells.
    """
    groups = set(config.hydra.runtime.choices)
    heads = {key: key.lstrip("+").partition(".")[0] for key in given}
    for name in [*CHECKS, *sorted({*heads.values()} & groups - {*CHECKS})]:
        members = given.get(name, [""]) if name in groups else [""]
        settings = [key for key in given if heads[key] == name and not (key == name and name in groups)]
        for member in members:
            with refused.noted(), explained():
                composed = config if member == members[0] else _compose(_first({**given, name: [member]}))
                _check(composed, [name], refused)
                for line in (line for key in settings for line in given[key][1:]):
                    _check(cellconfigs.with_value(composed, line), [name], refused)
    for key in given:
        if heads[key] not in {*CHECKS, *groups, "hydra"}:  # of an experiment, whose parts refer to it
            for line in given[key][1:]:
                _check(cellconfigs.with_value(config, line), CHECKS, refused)


def _check(config: DictConfig, names: Iterable[str], refused: Refusals) -> None:
    for name in (name for name in names if name in CHECKS):
        with refused.noted(), explained():
            node = config[name]
            whole = OmegaConf.is_config(node)
            CHECKS[name](OmegaConf.to_container(node, resolve=True, throw_on_missing=True) if whole else node)


def _try_appended(
    parser: OverridesParser, given: Mapping[str, list[str]], config: DictConfig, refused: Refusals
) -> None:
    """What is appended beside the parts that know their settings has no effect: a slip of the keyboard."""
    lines = _first(given)
    plain = [line for line in lines if not line.startswith("+")]
    known = config if plain == lines else _compose(plain)
    for override in parser.parse_overrides(lines):
        key = override.key_or_group
        appended = (override.is_add() or override.is_force_add()) and not override.is_hydra_override()
        elsewhere = key in config.hydra.runtime.choices or key.startswith(tuple(f"{name}." for name in CHECKS))
        if appended and not elsewhere and OmegaConf.select(known, key, default=known) is known:
            refused.add(_unknown_key(key, known))


def _values(parser: OverridesParser, lines: Sequence[str]) -> dict[str, list[str]]:
    """Overrides of each key, one for each value; a later line of the same key replaces an earlier one.

    An interval has a few, its ends among them.
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
