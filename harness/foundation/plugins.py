"""Entry points to plugins. Discovery reads metadata only; a plugin that fails on import hurts nobody else.

A kind is an entry-point group without "spinbench.", in the plural: "methods", "models".
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable
from functools import cache
from importlib.metadata import EntryPoint
from typing import Any

from spinbench.errors import BrokenPluginError
from spinbench.foundation.names import unknown_name


@cache
def entry_points(kind: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Plugins of a kind by name, sorted; more than one where distributions claim the same name."""
    found: dict[str, dict[str, EntryPoint]] = {}
    for point in importlib.metadata.entry_points(group=f"spinbench.{kind}"):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: tuple(found[name].values()) for name in sorted(found)}


def load(kind: str, name: str, malformed: Callable[[Any], str]) -> Any:
    """What is registered under a name.

    Args:
        kind: of plugin.
        name: of the entry point.
        malformed: says of what was found why it cannot be used as this kind; empty if it can.

    Raises:
        UnknownNameError: no such plugin; the closest names are offered.
        BrokenPluginError: the plugin raised on import or is malformed, or two distributions claim the name.
    """
    points = entry_points(kind)
    if name not in points:
        raise unknown_name(kind[:-1], name, points)
    point, *others = points[name]
    if others:
        owners = " and ".join(sorted(_origin(owner) for owner in points[name]))
        raise BrokenPluginError(f"{owners} both register {kind[:-1]} {name!r}; uninstall one")
    try:
        found = point.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a plugin may raise anything, SystemExit included
        text = " ".join(str(error).split())
        raise BrokenPluginError(f"{titled(kind, name)} failed on import: {type(error).__name__}: {text}") from error
    if wrong := malformed(found):
        raise BrokenPluginError(f"{titled(kind, name)} {wrong}")
    return found


def titled(kind: str, name: str) -> str:
    """A plugin as errors name it; for these alone, since reading a distribution's metadata takes milliseconds."""
    point = entry_points(kind)[name][0]
    return f"{kind[:-1]} {name!r} ({point.value}, from {_origin(point)})"


def _origin(point: EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown distribution"
