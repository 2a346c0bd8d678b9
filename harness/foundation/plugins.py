"""Entry points to plugins. Discovery reads metadata only; a plugin that fails on import hurts nobody else.

A kind is an entry-point group without "spinbench.", in the plural: "methods", "models".
"""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import importlib.util
import re
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from importlib.metadata import Distribution, EntryPoint
from typing import Any, TypeVar, cast

from spinbench.errors import BrokenPluginError
from spinbench.foundation import deadline, remarks

# Distribution whose names plugins cannot replace.
OWN = "spinbench"
_REMEMBERED: list[Any] = []

Looked = TypeVar("Looked", bound=Callable[..., Any])


def cache_until_forget(look: Looked) -> Looked:
    """What it finds of the plugins that are installed is found once, until `forget`; errors are raised anew."""
    once = cache(look)
    _REMEMBERED.append(once)
    return cast(Looked, once)


@cache_until_forget
def entry_points(kind: str) -> dict[str, tuple[EntryPoint, ...]]:
    """Plugins of a kind by name, sorted; several where distributions claim the same one, spinbench's own first."""
    points: dict[str, list[EntryPoint]] = {}
    for point in importlib.metadata.entry_points(group=f"spinbench.{kind}"):
        points.setdefault(point.name, []).append(point)
    return {name: _different(points[name]) for name in sorted(points)}


def _different(points: list[EntryPoint]) -> tuple[EntryPoint, ...]:
    """Without those of a distribution that Python finds twice."""
    if len(points) == 1:
        return (points[0],)
    distinct: dict[tuple[str, str], EntryPoint] = {}
    for point in points:
        distinct.setdefault((point.value, distribution(point)), point)
    return tuple(sorted(distinct.values(), key=lambda point: distribution(point) != OWN))


@cache_until_forget
def _import_point(point: EntryPoint) -> Any:
    with deadline.compiling():
        return point.load()


def forget() -> None:
    """Look for plugins, and load them, anew: others were installed or removed in this process."""
    for once in _REMEMBERED:
        once.cache_clear()


def is_there(module: str) -> bool:
    """Whether a module can be imported, found without importing it or the package that it is in."""
    top, _, rest = module.partition(".")
    spec = importlib.util.find_spec(top)
    for name in filter(None, rest.split(".")):
        if spec is None or spec.submodule_search_locations is None:
            return False
        spec = importlib.machinery.PathFinder.find_spec(f"{spec.name}.{name}", spec.submodule_search_locations)
    return spec is not None


def every() -> list[EntryPoint]:
    """Plugins of all kinds."""
    points = importlib.metadata.entry_points()
    groups = sorted(group for group in points.groups if group.startswith("spinbench."))
    return [point for group in groups for point in points.select(group=group)]


def load(kind: str, name: str, malformed: Callable[[object], str]) -> Any:
    """What is registered under a name.

    Args:
        kind: of plugin.
        name: of the entry point.
        malformed: says of what was found why it cannot be used as this kind; empty if it can.

    Raises:
        UnknownNameError: no such plugin; the closest names are offered.
        BrokenPluginError: the plugin raised on import or is malformed, or two distributions claim the name, neither of
            them spinbench, whose names stay its own.
    """
    points = entry_points(kind)
    if name not in points:
        raise remarks.unknown_name(kind[:-1], name, points)
    point, *others = points[name]
    if others and distribution(point) != OWN:
        owners = " and ".join(sorted(origin(owner) for owner in points[name]))
        raise BrokenPluginError(f"{owners} both register {kind[:-1]} {name!r}; uninstall one")
    return load_point(kind, point, malformed)


def load_point(kind: str, point: EntryPoint, malformed: Callable[[object], str]) -> Any:
    """As `load`, of one of the entry points of a name."""
    try:
        plugin = _import_point(point)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        # Importing a plugin may raise anything, SystemExit included.
        raise BrokenPluginError(
            f"{_label(kind, point)} failed on import: {describe_error(error)}{_explain_hidden_module(point)}"
        ) from error
    if wrong := malformed(plugin):
        raise BrokenPluginError(f"{_label(kind, point)} {wrong}")
    return plugin


def _explain_hidden_module(point: EntryPoint) -> str:
    """A folder of the plugin's name where Python was started is taken for a package, and hides the installed module."""
    module = sys.modules.get(point.module)
    if module is None or getattr(module, "__file__", None) or not hasattr(module, "__path__"):
        return ""
    return f"; the folder {next(iter(module.__path__))} hides the installed module: start Python elsewhere, or in it"


def create(kind: str, name: str, malformed: Callable[[object], str]) -> Any:
    """An instance of the class that is registered under a name.

    Raises:
        UnknownNameError, BrokenPluginError: as `load`; or its constructor raised.
    """
    plugin = load(kind, name, malformed)
    try:
        return plugin()
    except Exception as error:
        raise BrokenPluginError(f"{label(kind, name)} cannot be made: {describe_error(error)}") from error


def name_clashes(kind: str) -> dict[str, str]:
    """Others' plugins with the name of one of spinbench's, by "NAME of DISTRIBUTION": a sentence each."""
    points = [
        point
        for first, *others in entry_points(kind).values()
        if others and distribution(first) == OWN
        for point in others
    ]
    why = "has the name of spinbench's own, which stays; rename it"
    return {f"{point.name} of {distribution(point)}": f"{_label(kind, point)} {why}" for point in points}


def load_all(kind: str, load: Callable[[str], Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """What `load` makes of all plugins of a kind, by name; and of those that cannot be used, the reasons."""
    loaded, failed = {}, name_clashes(kind)
    for name in entry_points(kind):
        try:
            loaded[name] = load(name)
        except BrokenPluginError as error:
            failed[name] = str(error)
    return loaded, failed


def describe_error(error: BaseException) -> str:
    """What a plugin raised, in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def label(kind: str, name: str) -> str:
    """A plugin as errors name it."""
    return _label(kind, entry_points(kind)[name][0])


def origin(point: EntryPoint) -> str:
    """The name and version of the distribution that a plugin comes from."""
    if point.dist:
        return " ".join(_name_and_version(point.dist))
    return "an unknown distribution"


@cache_until_forget
def distribution(point: EntryPoint) -> str:
    """The name of the distribution that a plugin comes from, as pip compares names; empty where it is not known."""
    return normalise(_name_and_version(point.dist)[0]) if point.dist else ""


def requirement_names(distribution: Distribution) -> set[str]:
    """Names of what a distribution requires here, without its extras; of what cannot be read, nothing."""
    # commands that look for plugins alone start without it
    from packaging.markers import UndefinedEnvironmentName
    from packaging.requirements import InvalidRequirement, Requirement

    names = set()
    for line in distribution.requires or ():
        with suppress(InvalidRequirement, UndefinedEnvironmentName):
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                names.add(normalise(requirement.name))
    return names


def normalise(name: str) -> str:
    """A distribution's name as pip compares names: "My_Plugin" is "my-plugin"."""
    return re.sub(r"[-_.]+", "-", name).lower()


def is_own(kind: str, name: str) -> bool:
    """Whether a name is that of one of spinbench's plugins."""
    return any(distribution(point) == OWN for point in entry_points(kind).get(name, ()))


@cache
def _name_and_version(installed: Distribution) -> tuple[str, str]:
    """Its name and version; once, since reading a distribution's metadata takes milliseconds."""
    return installed.name, installed.version


def _label(kind: str, point: EntryPoint) -> str:
    return f"{kind[:-1]} {point.name!r} ({point.value}, from {origin(point)})"
