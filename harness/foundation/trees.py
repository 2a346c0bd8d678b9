"""Nested tuples and dictionaries, of arrays or of settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Tree = TypeVar("Tree")
"""Nested tuples, named tuples, lists and dicts of arrays."""


@dataclass(frozen=True)
class OnHost(Generic[Value]):
    """A leaf that stays where it is: of tables, what an estimate reads and no program."""

    value: Value


def map_arrays(function: Callable[[Any], object], tree: object) -> Any:
    """Apply `function` to the leaves of nested tuples, named tuples, lists and dicts; None stays None, as does an
    `OnHost`."""
    if tree is None or isinstance(tree, OnHost):
        return None
    if isinstance(tree, dict):
        return {name: map_arrays(function, leaf) for name, leaf in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*[map_arrays(function, leaf) for leaf in tree])
    if isinstance(tree, tuple | list):
        return type(tree)([map_arrays(function, leaf) for leaf in tree])
    return function(tree)


def flatten(content: Mapping[str, object], path: str = "") -> dict[str, object]:
    """Nested settings by their dotted names."""
    flat: dict[str, object] = {}
    for key, value in content.items():
        if isinstance(value, Mapping):
            flat |= flatten(value, f"{path}{key}.")
        else:
            flat[f"{path}{key}"] = value
    return flat
