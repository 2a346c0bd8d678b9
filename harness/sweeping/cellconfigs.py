"""Which cells a sweep has, and their configurations in a twentieth of the time that Hydra takes for each.

Cells of a sweep mostly differ in plain values, `seed=3`, and not in what is read from files, `method=gibbs`. Hydra
reads and merges all files for each cell; here it does so once for each choice of files, and the values are set in a
copy.

An experiment leaves combinations out of its product, `left_out` in its file: an entry {method: [blocks, pt], backend:
[numpy, jax]} leaves out each cell that has one of the values of every key. It holds unless a key of it is given on the
command line: who asks for a method gets it on whatever is asked for beside.
"""

from __future__ import annotations

import copy
import itertools
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.core.config_loader import ConfigLoader
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override, ValueType
from hydra.types import RunMode
from omegaconf import DictConfig, OmegaConf, flag_override
from omegaconf.errors import OmegaConfBaseException

from spinbench.errors import SpinbenchError
from spinbench.foundation import overrides
from spinbench.sweeping import hydra_errors

# Number of combinations of configuration files that are cached, 0.1 MB each.
CHOICES = 64

_known: dict[tuple[str, ...], DictConfig] = {}
_groups: dict[str, bool] = {}

# Of the values of each key: what is left out of a product.
Exclusion = Mapping[str, Collection[str]]
_NOTHING = object()


def forget() -> None:
    """Read all files anew, as for another sweep."""
    _known.clear()
    _groups.clear()


def with_values(config: DictConfig, lines: Sequence[str]) -> DictConfig:
    """A copy of a configuration with other values of some keys.

    Raises:
        HydraException, OmegaConfBaseException: there is no such key.
    """
    changed = copy.deepcopy(config)
    ConfigLoaderImpl._apply_overrides_to_config([_parse(line) for line in lines], changed)
    return changed


def in_turn(config: DictConfig, lines: Sequence[str]) -> Iterator[DictConfig]:
    """One copy of a configuration, without Hydra's part, with each value of a key in turn.

    Raises:
        HydraException, OmegaConfBaseException: there is no such key.
    """
    cell = without_hydra(config)
    for line in lines:
        ConfigLoaderImpl._apply_overrides_to_config([_parse(line)], cell)
        yield cell


def without_hydra(config: DictConfig) -> DictConfig:
    """A copy without what Hydra adds, which is the most of a configuration."""
    subset = OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])
    OmegaConf.set_struct(subset, True)
    return subset


def value_of(line: str) -> Any:
    """What an override sets its key to."""
    return _parse(line).value()


def of_cells_alone(lines: Sequence[str], varied: Sequence[str]) -> list[str]:
    """Overrides for Hydra, which tries what is the same in all cells first, with the default member of a group of which
    several were asked for: what belongs to these members becomes a choice of one value, which cells alone get.

    Args:
        lines: the overrides.
        varied: keys of more than one value.
    """
    cell_lines = []
    for line in lines:
        override, (key, _, value) = _parse(line), line.partition("=")
        inside = "." in override.key_or_group and override.key_or_group.partition(".")[0] in varied
        single = override.value_type is ValueType.ELEMENT and not override.is_delete() and value.strip()
        if inside and single:
            line = f"{key}=choice({value})"
        cell_lines.append(line)
    return cell_lines


def compose(loader: ConfigLoader, master_config: DictConfig, sweep_overrides: Sequence[str]) -> DictConfig:
    """What Hydra's loader has for a cell; `hydra.job.override_dirname` knows the chosen files alone."""
    parsed = [_parse(line) for line in sweep_overrides]
    plain = [override for override in parsed if not override.is_hydra_override() and not _is_of_group(loader, override)]
    lines = {str(override.input_line) for override in plain}
    files = tuple(line for line in sweep_overrides if line not in lines)
    try:
        config = copy.deepcopy(_compose_files(loader, master_config, files))
        ConfigLoaderImpl._apply_overrides_to_config(plain, config)
    except OmegaConfBaseException:
        # Composed by Hydra once more, for its own error message.
        return loader.load_sweep_config(master_config, list(sweep_overrides))
    config.hydra.overrides.task = list(sweep_overrides)
    OmegaConf.copy_cache(from_config=master_config, to_config=config)
    return config


def _compose_files(loader: ConfigLoader, master_config: DictConfig, files: tuple[str, ...]) -> DictConfig:
    hydra_overrides: Any = OmegaConf.to_container(master_config.hydra.overrides.hydra)
    key = (str(master_config.hydra.job.config_name), *hydra_overrides, *files)
    if key not in _known:
        if len(_known) >= CHOICES:
            _known.clear()
        composed = loader.load_configuration(
            config_name=master_config.hydra.job.config_name, overrides=[*hydra_overrides, *files], run_mode=RunMode.RUN
        )
        _slim(composed)
        _known[key] = composed
    return _known[key]


def _slim(config: DictConfig) -> None:
    """Drop what no job reads of Hydra's node, which Hydra copies five times for each job."""
    with flag_override(config.hydra, ["struct", "readonly"], False):
        config.hydra.runtime.config_sources = []
        config.hydra.runtime.choices = {}
        config.hydra.hydra_logging = {}
        config.hydra.sweeper = {"_target_": config.hydra.sweeper._target_}


def _is_of_group(loader: ConfigLoader, override: Override) -> bool:
    """Whether an override chooses files, and does not set a value."""
    key = override.key_or_group
    if key not in _groups:
        _groups[key] = bool(loader.get_group_options(key, None))
    return _groups[key]


@lru_cache(maxsize=4096)
def _parse(line: str) -> Override:
    return OverridesParser.create().parse_override(line)


def exclusion_entries(config: DictConfig, keys: Collection[str]) -> tuple[Exclusion, ...]:
    """Those that hold, where the keys `keys` are on the command line.

    Raises:
        SpinbenchError: no list of such entries.
    """
    setting = config.left_out
    written: object = setting
    if OmegaConf.is_config(setting):
        written = OmegaConf.to_container(setting, resolve=True)
    if not (isinstance(written, list) and all(_is_entry(entry) for entry in written)):
        raise SpinbenchError(
            f"left_out={overrides.format_value(written)} was given; a list of entries {{NAME: [VALUE, …], …}} is needed"
        )
    return tuple(
        {key: [str(value) for value in entry[key]] for key in entry} for entry in written if not {*entry} & {*keys}
    )


def check_exclusions(config: DictConfig, keys: Collection[str], members: Callable[[str], Collection[str]]) -> None:
    """Refuse entries that can leave nothing out.

    Args:
        config: of the first cell, Hydra's node included.
        keys: the keys of which values are given, here or by an experiment.
        members: names of the configurations of a group.

    Raises:
        SpinbenchError: one names no setting, or what a group has not.
    """
    groups = config.hydra.runtime.choices
    for key, values in itertools.chain.from_iterable(entry.items() for entry in exclusion_entries(config, ())):
        if key not in keys and OmegaConf.select(config, key, default=_NOTHING) is _NOTHING:
            raise SpinbenchError(f"left_out: {hydra_errors.unknown_key(key, config)}")
        for value in values:
            group, _, name = f"{key}/{value}".rpartition("/")
            if key in groups and name not in members(group):
                raise SpinbenchError(f"left_out={{{key}: [{value}]}} was given, and there is no {key} of that name")


def count_cells(options: Mapping[str, Sequence[str]], out: Sequence[Exclusion], chosen: Collection[str] = ()) -> int:
    """How many cells are left of the product of all options, each NAME=VALUE.

    Args:
        options: of each key.
        out: what is left out.
        chosen: keys of which one value is chosen: the cells are then those of the choice that leaves most.

    Raises:
        SpinbenchError: none is left.
    """
    named = {key: values for key, values in options.items() if any(key in entry for entry in out)}
    choices = itertools.product(*(named[key] for key in named if key in chosen))
    others = [values for key, values in named.items() if key not in chosen]
    left = max(sum(not is_excluded([*choice, *cell], out) for cell in itertools.product(*others)) for choice in choices)
    if not left:
        raise SpinbenchError("left_out has every combination in it; at least one must be left")
    return left * math.prod(len(values) for key, values in options.items() if key not in {*named, *chosen})


def product_cells(overrides: Sequence[Override], out: Sequence[Exclusion]) -> list[list[str]]:
    """The cells, each a list of overrides, of which the first varies slowest; a later one of a key replaces it."""
    options: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if override.is_sweep_override():
            options[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            options[key] = [f"{key}={override.get_value_element_as_str()}"]
    return [list(cell) for cell in itertools.product(*options.values()) if not is_excluded(cell, out)]


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and bool(entry) and all(isinstance(values, list) for values in entry.values())


def is_excluded(cell: Sequence[str], out: Sequence[Exclusion]) -> bool:
    """Whether a cell, one NAME=VALUE for each key, is left out."""
    values = dict(line.split("=", 1) for line in cell)
    return any(all(values.get(key) in entry[key] for key in entry) for entry in out)
