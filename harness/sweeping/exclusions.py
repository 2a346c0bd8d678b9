"""Combinations that an experiment leaves out of its product: `left_out` in its file.

An entry {method: [blocks, pt], backend: [numpy, jax]} leaves out each cell that has one of the values of every key. It
holds unless a key of it is given on the command line: who asks for a method gets it on whatever is asked for beside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Collection, Mapping, Sequence

from hydra.core.override_parser.types import Override
from omegaconf import DictConfig, OmegaConf

from spinbench.errors import SpinbenchError
from spinbench.foundation import overrides
from spinbench.sweeping import hydra_errors

Entry = Mapping[str, Collection[str]]
_NOTHING = object()


def entries(config: DictConfig, keys: Collection[str]) -> tuple[Entry, ...]:
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


def check(config: DictConfig, keys: Collection[str], is_member: Callable[[str], bool]) -> None:
    """Refuse entries that can leave nothing out.

    Args:
        config: of the first cell, Hydra's node included.
        keys: the keys of which values are given, here or by an experiment.
        is_member: whether "GROUP/NAME" is a configuration.

    Raises:
        SpinbenchError: one names no setting, or what a group has not.
    """
    groups = config.hydra.runtime.choices
    for key, values in itertools.chain.from_iterable(entry.items() for entry in entries(config, ())):
        if key not in keys and OmegaConf.select(config, key, default=_NOTHING) is _NOTHING:
            raise SpinbenchError(f"left_out: {hydra_errors.unknown_key(key, config)}")
        for value in values:
            if key in groups and not is_member(f"{key}/{value}"):
                raise SpinbenchError(f"left_out={{{key}: [{value}]}} was given, and there is no {key} of that name")


def count(options: Mapping[str, Sequence[str]], out: Sequence[Entry]) -> int:
    """How many cells are left of the product of all options, each NAME=VALUE.

    Raises:
        SpinbenchError: none is.
    """
    return most(options, out, ())


def most(options: Mapping[str, Sequence[str]], out: Sequence[Entry], chosen: Collection[str]) -> int:
    """The same, at most, where one value is chosen of each of some keys.

    Raises:
        SpinbenchError: none is left whatever is chosen.
    """
    named = {key: values for key, values in options.items() if any(key in entry for entry in out)}
    choices = itertools.product(*(named[key] for key in named if key in chosen))
    others = [values for key, values in named.items() if key not in chosen]
    left = max(sum(not is_out([*choice, *cell], out) for cell in itertools.product(*others)) for choice in choices)
    if not left:
        raise SpinbenchError("left_out has every combination in it; at least one must be left")
    return left * math.prod(len(values) for key, values in options.items() if key not in {*named, *chosen})


def product(overrides: Sequence[Override], out: Sequence[Entry]) -> list[list[str]]:
    """The cells, each a list of overrides, of which the first varies slowest; a later one of a key replaces it."""
    options: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if override.is_sweep_override():
            options[key] = [f"{key}={value}" for value in override.sweep_string_iterator()]
        else:
            options[key] = [f"{key}={override.get_value_element_as_str()}"]
    return [list(cell) for cell in itertools.product(*options.values()) if not is_out(cell, out)]


def _is_entry(entry: object) -> bool:
    return isinstance(entry, dict) and bool(entry) and all(isinstance(values, list) for values in entry.values())


def is_out(cell: Sequence[str], out: Sequence[Entry]) -> bool:
    """Whether a cell, one NAME=VALUE for each key, is left out."""
    values = dict(line.split("=", 1) for line in cell)
    return any(all(values.get(key) in entry[key] for key in entry) for entry in out)
