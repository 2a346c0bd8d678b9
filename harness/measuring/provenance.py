"""Where the plugins that a cell runs come from, and in which state: as much of what is measured as its settings."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

from spinbench.errors import SpinbenchError
from spinbench.foundation import git, plugins
from spinbench.inference import kernels
from spinbench.measuring.environment import git_state, source_digest, spinbench_state
from spinbench.models import families, formats

# Kinds of the kernels that a cell may run: the first choice, and the one that runs if the first refuses.
KERNELS = ("kernels", "kernels_next")


def foreign_plugins(cell: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of the plugins that a cell runs those of other distributions, by kind; of kernels those that it asks; of
    metrics all, by "metrics.NAME".

    Nothing is imported but formats, to see which one a model's file is of. Each has "name", "distribution", "version",
    "source" (a hash of the files of all packages and modules of its distribution, and of distributions with plugins
    that it requires: it may inherit from theirs), and, where its own are tracked by git, "commit" and "dirty".
    """
    method, backend = str(cell["method"]["name"]), str(cell["backend"]["name"])
    plugin_names = {"methods": method, "backends": backend, "models": str(cell["model"]["name"])}
    if plugin_names["models"] == families.FILE and (path := cell["model"].get("path")):
        plugin_names["formats"] = str(formats.detect_format_name(Path(str(path))))
    points = {kind: plugins.entry_points(kind).get(name, ())[:1] for kind, name in plugin_names.items()}
    # An invalid kernel request is reported when the cell is measured.
    with suppress(SpinbenchError):
        wish = kernels.Wish(cell["backend"].get("tier"), cell["backend"].get("kernel"))
        for kind, point in zip(KERNELS, kernels.candidates(method, backend, wish), strict=False):
            points[kind] = (point,)
    points |= {f"metrics.{name}": metric_points[:1] for name, metric_points in plugins.entry_points("metrics").items()}
    others = {
        kind: point
        for kind, candidates in points.items()
        for point in candidates
        if plugins.distribution(point) != plugins.OWN
    }
    return {kind: _plugin_state(point) for kind, point in others.items()}


def plugin_states() -> dict[str, str]:
    """The states of spinbench and of all distributions with plugins, by name."""
    others = {plugins.distribution(point): point for point in plugins.every()}
    states = {name: _plugin_state(point) for name, point in others.items() if name != plugins.OWN}
    descriptions = {
        name: " ".join(filter(None, (state["version"], state.get("source")))) for name, state in states.items()
    }
    return {plugins.OWN: spinbench_state(), **dict(sorted(descriptions.items()))}


def _plugin_state(point: EntryPoint) -> dict[str, Any]:
    state_entry: dict[str, Any] = {
        "name": point.name,
        "distribution": getattr(point.dist, "name", None),
        "version": getattr(point.dist, "version", None),
    }
    home = next(iter(_module_locations(point.module)), None)
    if home is None:
        return state_entry
    folder = home if home.is_dir() else home.parent
    state_entry["source"] = _plugin_source_digest(home, point.dist)
    tracked = _is_tracked(home, folder)
    state = git_state(folder) if tracked else {}
    return {**state_entry, "commit": state.get("commit"), "dirty": state.get("dirty")}


def _plugin_source_digest(home: Path, distribution: Distribution | None) -> str:
    """Hash of what a plugin is in, and of all else that its distribution and those it requires bring to be imported."""
    related = _with_required_plugins(distribution) if distribution else []
    others = {
        location for each in related for module in _top_level_modules(each) for location in _module_locations(module)
    } - {home}
    digests = [source_digest(location) for location in (home, *sorted(others))]
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def _with_required_plugins(distribution: Distribution) -> list[Distribution]:
    """A distribution, and those with plugins, but for spinbench, which it requires, or they require in turn."""
    plugin_distributions = {
        plugins.distribution(point): point.dist for point in plugins.every() if point.dist is not None
    }
    plugin_distributions.pop(plugins.OWN, None)
    related = {plugins.normalise(distribution.name): distribution}
    pending = [distribution]
    while pending:
        for name in plugins.requirement_names(pending.pop()) & plugin_distributions.keys() - related.keys():
            related[name] = plugin_distributions[name]
            pending.append(plugin_distributions[name])
    return list(related.values())


def _top_level_modules(distribution: Distribution) -> set[str]:
    """Names of its modules and packages: those that it lists or has files of, and modules that it has plugins in."""
    listed = (distribution.read_text("top_level.txt") or "").split()
    files = [file.parts[0].removesuffix(".py") for file in distribution.files or () if file.suffix == ".py"]
    tops = {name for name in (*listed, *files) if name.isidentifier() and not name.startswith("__editable__")}
    plugin_modules = {point.module for point in distribution.entry_points}
    return (
        tops | plugin_modules | {name for module in plugin_modules for name in _sibling_modules(module, distribution)}
    )


def _sibling_modules(module: str, distribution: Distribution) -> list[str]:
    """Modules in the folder of one that is in no package, unless it is that of what pip installed: of an editable
    distribution."""
    homes = _module_locations(module)
    installed = Path(str(distribution.locate_file(""))).resolve()
    if not homes or not homes[0].is_file() or homes[0].parent.resolve() == installed:
        return []
    return [file.stem for file in sorted(homes[0].parent.glob("*.py")) if file.stem.isidentifier()]


def _module_locations(module: str) -> list[Path]:
    """The folder of the package that a module is in, or the file of one that is in none; of a namespace, which other
    distributions may share, and which may lie where no folder is, the folder within it, or all that it has here."""
    name, _, rest = module.partition(".")
    while True:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError):
            return []
        if spec is None:
            return []
        if spec.origin is not None:
            file = Path(spec.origin)
            return [file.parent if spec.submodule_search_locations or "." in name else file]
        if not rest:
            return [Path(location) for location in spec.submodule_search_locations or () if Path(location).is_dir()]
        part, _, rest = rest.partition(".")
        name = f"{name}.{part}"


def _is_tracked(home: Path, folder: Path) -> bool:
    try:
        done = git.ask(folder, "ls-files", "--", str(home.relative_to(folder)))
    except OSError:
        return False
    return done.returncode == 0 and bool(done.stdout)
