"""Nested tuples and dictionaries of arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def map_arrays(function: Callable[[Any], Any], tree: Any) -> Any:
    """Apply `function` to the leaves of nested tuples, named tuples, lists and dicts; None stays None."""
    if tree is None:
        return None
    if isinstance(tree, dict):
        return {name: map_arrays(function, leaf) for name, leaf in tree.items()}
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return type(tree)(*(map_arrays(function, leaf) for leaf in tree))
    if isinstance(tree, tuple | list):
        return type(tree)(map_arrays(function, leaf) for leaf in tree)
    return function(tree)
