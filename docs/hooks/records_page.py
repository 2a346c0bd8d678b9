"""The page of records: every column of `spinbench.read`, from the types of records."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping
from typing import Any

import methods_page
import msgspec

from spinbench.api.metric import Metric
from spinbench.measuring.record_parts import Checkpoint
from spinbench.measuring.record_types import Record
from spinbench.metrics import METRICS, registry
from spinbench.reporting.leaderboard import Row

HEAD = """# Columns of records: the record fields

A sweep writes a record, a JSON file, for each cell. `spinbench.read(FOLDER)` and `cells.csv` of
`spinbench report --tables` have a line a record and these columns, whose names are those of the JSON joined by dots.
NAME stands for the name of a setting, a package, an estimator or a metric. Settings are `config.…`, as
[Configuration](configuration.md) has them; numbers of plugins stand under `metrics.NAME`. The [metrics](#metrics) and
the columns of [leaderboard.csv](#leaderboard) and [trajectories.csv](#trajectories) are below.

| column | type | meaning |
|---|---|---|
| `schema` | number | version of the format of records. |
"""
OMITTED = {"content"}
"""No column: the whole of a record."""
BOARD_OMITTED = {"records", "metric_means"}
"""No columns: the records behind a row, and what has columns of its own."""


MAPPINGS = (dict, Mapping)

METRICS_HEAD = """
## Metrics { #metrics }

`metrics.NAME.value` is there for each of these names, or `metrics.NAME.failed` says why not. Lower is better.

| NAME | meaning |
|---|---|
"""
LEADERBOARD = """
## leaderboard.csv { #leaderboard }

`spinbench report FOLDER` and `spinbench report --tables FOLDER` write a line for each row of the leaderboard. A
*replicate* is a record of one seed. A plugin's metric adds a column with its title, and one with its standard error.

| column | meaning |
|---|---|
"""
TRAJECTORIES = """
## trajectories.csv { #trajectories }

It has a line for each checkpoint of each cell. `key` is the record's, `model`, `method` and `backend` are its axes,
`seed` is its seed.

| column | type | meaning |
|---|---|---|
"""


def text() -> str:
    """Markdown."""
    meanings = methods_page.attribute_meanings(Row)
    board = "".join(
        f"| `{field.name}` | {_one_line(meanings[field.name])} |\n"
        for field in dataclasses.fields(Row)
        if field.name not in BOARD_OMITTED
    )
    summaries = {name: _summary(registry.load_metric(name)) for name in registry.metric_names()}
    names = "".join(f"| `{name}` | {_one_line(meaning)}. |\n" for name, meaning in (METRICS | summaries).items())
    return f"{HEAD}{_rows(Record)}{METRICS_HEAD}{names}{LEADERBOARD}{board}{TRAJECTORIES}{_rows(Checkpoint)}"


def _summary(metric: Metric) -> str:
    """The first paragraph of its docstring."""
    return methods_page.prose(type(metric)).partition("\n\n")[0].removesuffix(".")


def _rows(part: type[msgspec.Struct]) -> str:
    return "".join(f"| `{name}` | {kind} | {meaning} |\n" for name, kind, meaning in columns(part))


def _one_line(meaning: str) -> str:
    """As a cell of a table."""
    return " ".join(meaning.split()).replace("|", r"\|")


def columns(part: type, prefix: str = "") -> Iterator[tuple[str, str, str]]:
    """Name, type and meaning of each column of a part and of its parts."""
    meanings = methods_page.attribute_meanings(part)
    hints = typing.get_type_hints(part, include_extras=False)
    for attribute, key in _fields(part):
        if attribute in OMITTED:
            continue
        name = prefix + key
        meaning = _one_line(meanings[attribute])
        inner, suffix = part_of(hints[attribute])
        if inner is not None:
            yield from columns(inner, f"{name}{suffix}.")
        else:
            yield name + suffix, kind_of(hints[attribute]), meaning


def _fields(part: type) -> list[tuple[str, str]]:
    """Attributes of a part and their names in JSON."""
    if dataclasses.is_dataclass(part):
        return [(field.name, field.name) for field in dataclasses.fields(part)]
    return [(field.name, field.encode_name) for field in msgspec.structs.fields(part)]


def part_of(hint: Any) -> tuple[type | None, str]:
    """The part that a type holds, if any, and what its name ends with: ".NAME" of a mapping."""
    suffix = ""
    (inner, *_) = (choice for choice in _choices(hint) if choice is not types.NoneType)
    for choice in _choices(hint):
        if typing.get_origin(choice) in MAPPINGS:
            inner, suffix = typing.get_args(choice)[1], ".NAME"
    return (inner if _is_part(inner) else None), suffix


def _is_part(hint: Any) -> bool:
    return isinstance(hint, type) and (issubclass(hint, msgspec.Struct) or dataclasses.is_dataclass(hint))


def kind_of(hint: Any) -> str:
    """In a reader's words."""
    names = {bool: "true or false", int: "number", float: "number", str: "text"}
    kinds = []
    for choice in _choices(hint):
        if typing.get_origin(choice) is list:
            kinds.append("list, as JSON")
        elif typing.get_origin(choice) in MAPPINGS:
            kinds.append("any")
        elif typing.get_origin(choice) is typing.Literal:
            kinds.append("text")
        elif choice is not types.NoneType:
            kinds.append(names.get(choice, "any"))
    return " or ".join(dict.fromkeys(kinds))


def _choices(hint: Any) -> tuple[Any, ...]:
    is_union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if is_union else (hint,)
