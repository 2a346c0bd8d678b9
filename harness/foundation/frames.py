"""Tables, lists of lines, as the data frames that people work with; the libraries are optional."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from spinbench.errors import SpinbenchError, UnavailableError

Table = list[dict[str, Any]]
Kind = Literal["pandas", "polars", "arrow"]
# Package that each kind of data frame needs.
KINDS: Mapping[Kind, str] = {"pandas": "pandas", "polars": "polars", "arrow": "pyarrow"}


def frame(columns: Mapping[str, object], kind: Kind = "pandas") -> Any:
    """A pandas or polars DataFrame, or a pyarrow Table.

    Raises:
        SpinbenchError: no such kind.
        UnavailableError: its package is not installed.
    """
    if kind not in KINDS:
        raise SpinbenchError(f"kind={kind!r} was given; {', '.join(KINDS)} are allowed")
    package = KINDS[kind]
    if find_spec(package) is None:
        raise UnavailableError(f"{package} is not installed; pip install {package}")
    library = import_module(package)
    if kind == "arrow":
        return library.table(dict(columns))
    return library.DataFrame(dict(columns))


def columns_of(table: Table) -> dict[str, list[object]]:
    """Its columns, in the order in which they first appear, each of one kind.

    Numbers become floats where some are; a setting that is a number here and a text there becomes a text.
    """
    columns: dict[str, list[object]] = {}
    for name in dict.fromkeys(key for line in table for key in line):
        values = [line.get(name) for line in table]
        kinds = {type(value) for value in values if value is not None}
        if len(kinds) > 1:
            common_type: Any = float if kinds <= {int, float} else str
            values = [None if value is None else common_type(value) for value in values]
        columns[name] = values
    return columns
