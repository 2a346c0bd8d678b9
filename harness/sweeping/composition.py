"""Hydra's side of a sweep: overrides to cells. Besides `searchpath`, `axes` and the modules beside this one, nothing
knows Hydra."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, RangeSweep
from omegaconf import DictConfig, OmegaConf

from spinbench.conf import searchpath
from spinbench.errors import SpinbenchError
from spinbench.measuring import environment
from spinbench.sweeping import cellconfigs, hydra_errors, search
from spinbench.sweeping.settings_checks import CHECKS, Refusals


def _seed(*parameters: int | float) -> int:
    """Resolver `${spinbench.seed:a,b,…}`: a seed for each choice of parameters, their hundredths one after another.

    Models of one family that share a seed share their random numbers, merely scaled.
    """
    return sum(round(100 * float(value)) * 1000**place for place, value in enumerate(reversed(parameters)))


searchpath.register_resolver("spinbench.seed", _seed)


def _select_field(table: str, entries: DictConfig, name: str, value: object, field: str) -> object:
    """Resolver `${spinbench.chosen:TABLE,${TABLE},NAME,${NAME},FIELD}`: a field of the entry that NAME names."""
    if str(value) not in entries:
        raise SpinbenchError(f"{name}={value} was given; {table} has {', '.join(map(str, entries))}")
    return entries[str(value)][field]


searchpath.register_resolver("spinbench.chosen", _select_field)


def _class(classes: DictConfig, name: str) -> str | None:
    """Resolver `${spinbench.class:${classes},${model.name}}`: which list has a pattern of the name, if any."""
    return next((str(key) for key, patterns in classes.items() if any(fnmatchcase(name, p) for p in patterns)), None)


searchpath.register_resolver("spinbench.class", _class)
# number of cells that can be timed in parallel on this machine
searchpath.register_resolver("spinbench.cores", lambda: len(environment.timing_cores()))
# Of one setting: a sweep of a million cells takes a day at a tenth of a second each.
MAX_VALUES = 10**6
# In the names of folders whose files are unpickled: nobody could put files there before.
_SECRET = secrets.token_hex(8)
searchpath.register_resolver("spinbench.secret", lambda: _SECRET)


@dataclass(frozen=True)
class Plan:
    """What a list of overrides asks for.

    Attributes:
        config: the first cell's configuration, Hydra's node included.
        multirun: whether there is more than one value of anything, or the experiment says so.
        cells: how many cells there are; of a search, at most.
        varied: the keys with more than one value.
        left_out: which combinations are not among them.
        choices: the overrides of each key, one a value.
    """

    config: DictConfig
    multirun: bool
    cells: int
    varied: tuple[str, ...]
    left_out: tuple[cellconfigs.Exclusion, ...]
    choices: Mapping[str, Sequence[str]]

    @property
    def first(self) -> list[str]:
        """The first cell's overrides."""
        return _first(self.choices)


def choices(overrides: Sequence[str], key: str) -> list[str]:
    """Overrides of a key, one for each value that is given, whatever they mean; none where the key is not given.

    Raises:
        SpinbenchError: an override cannot be read.
    """
    with hydra_errors.explain_errors():
        return _values(OverridesParser.create(), overrides).get(key, [])


def plan(overrides: Sequence[str], *, multirun: bool) -> Plan:
    """Try every value once, so that nothing is measured before all names and settings are known to be right.

    Raises:
        SpinbenchError: what is wrong, as unknown names, or values that a method or a model refuses.
    """
    searchpath.install()
    with hydra_errors.explain_errors(), searchpath.initialize():
        loader: ConfigLoader = GlobalHydra.instance().config_loader()
        parser = OverridesParser.create(config_loader=loader)
        refused = Refusals()
        line_choices = _values(parser, overrides)
        choices, config = _drop_unknown(line_choices, refused)
        many = multirun or (config.hydra.mode is not None and config.hydra.mode.name == "MULTIRUN")
        many = many or any(len(options) > 1 for options in choices.values())
        params: list[str] = []
        if many:
            params = [f"{key}={value}" for key, value in (config.hydra.sweeper.get("params") or {}).items()]
            choices, config = _drop_unknown(_values(parser, params) | choices, refused)
        if not search.is_search(config):
            _enumerable(parser, [*params, *overrides])
        _try(choices, config, refused)
        _try_appended(parser, choices, config, refused)
        with refused.collect():
            _no_subfolders(config)
        with refused.collect():
            cellconfigs.check_exclusions(config, choices, loader.get_group_options)
        refused.raise_if_any()
        varied = tuple(key for key, options in choices.items() if len(options) > 1)
        out = cellconfigs.exclusion_entries(config, line_choices)
        if search.is_search(config):
            search.check(config, choices)
            cells = search.cells(config, choices, out)
        else:
            cells = cellconfigs.count_cells(choices, out)
        return Plan(config, many, cells, varied, out, choices)


def _no_subfolders(config: DictConfig) -> None:
    # Unresolved: it may refer to values that only exist within a job.
    written: Any = OmegaConf.to_container(config.hydra.sweep, resolve=False)
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


def _drop_unknown(choices: Mapping[str, list[str]], refused: Refusals) -> tuple[dict[str, list[str]], DictConfig]:
    """Without what names no group's member and no setting, which is noted; and the configuration of the rest."""
    left = dict(choices)
    while True:
        lines = _first(left)
        try:
            with hydra_errors.explain_errors():
                return left, hydra_errors.compose_first_cell(lines)
        except SpinbenchError as error:
            wrong = hydra_errors.at_fault(error.__cause__, lines)
            rest = {key: left[key] for key in left if not f"{key.lstrip('+')}.".startswith(f"{wrong}.")}
            # No override is wrong, but a configuration file.
            if len(rest) == len(left):
                raise
            refused.add(error)
            left = rest


def _try(choices: Mapping[str, list[str]], config: DictConfig, refused: Refusals) -> None:
    """Try every value that was given, beside the first of all others, and every setting with each member of its group.

    What is refused would fail all of its cells.
    """
    groups = set(config.hydra.runtime.choices)
    heads = {key: key.lstrip("+").partition(".")[0] for key in choices}
    for name in [*CHECKS, *sorted({*heads.values()} & groups - {*CHECKS})]:
        members = choices.get(name, [""]) if name in groups else [""]
        settings = [key for key in choices if heads[key] == name and not (key == name and name in groups)]
        for member in members:
            with refused.collect(), hydra_errors.explain_errors():
                lines = _first({**choices, name: [member]})
                composed = config
                if member != members[0]:
                    composed = hydra_errors.compose_first_cell(lines)
                _check(composed, [name], refused)
                for key in settings:
                    for other in cellconfigs.in_turn(composed, choices[key][1:]):
                        _check(other, [name], refused)
    for key in choices:
        # A setting of the experiment's own, to which its other parts may refer.
        if heads[key] not in {*CHECKS, *groups, "hydra"}:
            for other in cellconfigs.in_turn(config, choices[key][1:]):
                _check(other, CHECKS, refused)


def _check(config: DictConfig, names: Iterable[str], refused: Refusals) -> None:
    for name in (name for name in names if name in CHECKS):
        with refused.collect(), hydra_errors.explain_errors():
            node = config[name]
            if OmegaConf.is_config(node):
                node = OmegaConf.to_container(node, resolve=True, throw_on_missing=True)
            CHECKS[name](node)


def _try_appended(
    parser: OverridesParser, choices: Mapping[str, list[str]], config: DictConfig, refused: Refusals
) -> None:
    """What is appended beside the parts that know their settings has no effect: a slip of the keyboard."""
    lines = _first(choices)
    plain = [line for line in lines if not line.startswith("+")]
    plain_config = config
    if plain != lines:
        plain_config = hydra_errors.compose_first_cell(plain)
    for override in parser.parse_overrides(lines):
        key = override.key_or_group
        appended = (override.is_add() or override.is_force_add()) and not override.is_hydra_override()
        elsewhere = key in config.hydra.runtime.choices or key.startswith(tuple(f"{name}." for name in CHECKS))
        if appended and not elsewhere and OmegaConf.select(plain_config, key, default=plain_config) is plain_config:
            refused.add(hydra_errors.unknown_key(key, plain_config))


def _parse_overrides(parser: OverridesParser, lines: Sequence[str]) -> Iterator[Override]:
    for line in lines:
        with hydra_errors.readable(line):
            parsed = parser.parse_overrides([line])
        yield from parsed


def _values(parser: OverridesParser, lines: Sequence[str]) -> dict[str, list[str]]:
    """Overrides of each key, one for each value; a later line of the same key replaces an earlier one.

    An interval has a few, its ends among them.
    """
    options: dict[str, list[str]] = {}
    for override in _parse_overrides(parser, lines):
        hydra_errors.check(override)
        key = override.get_key_element()
        if override.is_interval_sweep():
            options[key] = [f"{key}={value}" for value in search.ends(override)]
            continue
        options[key] = [str(override.input_line)]
        if override.is_sweep_override():
            _check_range(override)
            with hydra_errors.readable(str(override.input_line)):
                options[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        if not options[key]:
            raise SpinbenchError(f"{override.input_line} was given, and nothing has such a name")
    return options


def _check_range(override: Override) -> None:
    """Refuses a range that would be written out for minutes, or for ever."""
    values = override.value()
    if isinstance(values, RangeSweep):
        step = float(values.step or 0)
        if not step:
            raise SpinbenchError(f"{override.input_line} was given, whose values cannot be made")
        if abs((float(values.stop or 0) - float(values.start or 0)) / step) > MAX_VALUES:
            raise SpinbenchError(f"{override.input_line} was given; a range has at most {MAX_VALUES} values")


def _first(choices: Mapping[str, Sequence[str]]) -> list[str]:
    return [options[0] for options in choices.values()]
