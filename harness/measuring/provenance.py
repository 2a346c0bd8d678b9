"""Where the plugins that a cell runs come from, and in which state: as much of what is measured as its settings."""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import Distribution, EntryPoint
from pathlib import Path
from typing import Any

from packaging.markers import UndefinedEnvironmentName
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import NormalizedName, canonicalize_name

from spinbench.errors import SpinbenchError
from spinbench.foundation import git, plugins
from spinbench.foundation.plugins import OWN
from spinbench.inference import kernels
from spinbench.measuring.environment import git_state, own_state, source_digest
from spinbench.models import families, formats

KERNELS = ("kernels", "kernels_next")
"""Under which kinds the kernels stand that are asked: the first, and one that is asked where it refuses."""


def foreign(cell: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Of the plugins that a cell runs those of other distributions, by kind; of kernels those that it asks; of
    metrics all, by "metrics.NAME".

    Nothing is imported but formats, to see which one a model's file is of. Each has "name", "distribution", "version",
    "source" (a hash of the files of all packages and modules of its distribution, and of distributions with plugins
    that it requires: it may inherit from theirs), and, where its own are tracked by git, "commit" and "dirty".
    """
    method, backend = str(cell["method"]["name"]), str(cell["backend"]["name"])
    asked = {"methods": method, "backends": backend, "models": str(cell["model"]["name"])}
    if asked["models"] == families.FILE and (path := cell["model"].get("path")):
        asked["formats"] = str(formats.detect_format_name(Path(str(path))))
    points = {kind: plugins.entry_points(kind).get(name, ())[:1] for kind, name in asked.items()}
    with suppress(SpinbenchError):  # a wish that makes no sense: measuring the cell says so
        wish = kernels.Wish(cell["backend"].get("tier"), cell["backend"].get("kernel"))
        for kind, point in zip(KERNELS, kernels.asked(method, backend, wish), strict=False):
            points[kind] = (point,)
    points |= {f"metrics.{name}": found[:1] for name, found in plugins.entry_points("metrics").items()}
    others = {kind: point for kind, found in points.items() for point in found if plugins.distribution(point) != OWN}
    return {kind: _described(point) for kind, point in others.items()}


def installed() -> dict[str, str]:
    """The states of spinbench and of all distributions with plugins, by name."""
    others = {plugins.distribution(point): point for point in plugins.every()}
    found = {name: _described(point) for name, point in others.items() if name != OWN}
    told = {name: " ".join(filter(None, (one["version"], one.get("source")))) for name, one in found.items()}
    return {OWN: own_state(), **dict(sorted(told.items()))}


def _described(point: EntryPoint) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": point.name,
        "distribution": None if point.dist is None else point.dist.name,
        "version": None if point.dist is None else point.dist.version,
    }
    home = next(iter(_homes(point.module)), None)
    if home is None:
        return found
    folder = home if home.is_dir() else home.parent
    found["source"] = _source(home, point.dist)
    tracked = _is_tracked(home, folder)
    state = git_state(folder) if tracked else {}
    return {**found, "commit": state.get("commit"), "dirty": state.get("dirty")}


def _source(home: Path, distribution: Distribution | None) -> str:
    """Hash of what a plugin is in, and of all else that its distribution and those it requires bring to be imported."""
    related = _related(distribution) if distribution else []
    others = {one for each in related for module in _modules(each) for one in _homes(module)} - {home}
    digests = [source_digest(one) for one in (home, *sorted(others))]
    return digests[0] if len(digests) == 1 else hashlib.sha256(" ".join(digests).encode()).hexdigest()[:16]


def _related(distribution: Distribution) -> list[Distribution]:
    """A distribution, and those with plugins, but for spinbench, which it requires, or they require in turn."""
    known = {canonicalize_name(point.dist.name): point.dist for point in plugins.every() if point.dist is not None}
    known.pop(canonicalize_name(OWN), None)
    found = {canonicalize_name(distribution.name): distribution}
    open_ones = [distribution]
    while open_ones:
        for name in _required(open_ones.pop()) & known.keys() - found.keys():
            found[name] = known[name]
            open_ones.append(known[name])
    return list(found.values())


def _required(distribution: Distribution) -> set[NormalizedName]:
    """Names of what a distribution requires here, without its extras; of what cannot be read, nothing."""
    names: set[NormalizedName] = set()
    for line in distribution.requires or ():
        with suppress(InvalidRequirement, UndefinedEnvironmentName):
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                names.add(canonicalize_name(requirement.name))
    return names


def _modules(distribution: Distribution) -> set[str]:
    """Names of its modules and packages: those that it lists or has files of, and modules that it has plugins in."""
    listed = (distribution.read_text("top_level.txt") or "").split()
    files = [file.parts[0].removesuffix(".py") for file in distribution.files or () if file.suffix == ".py"]
    tops = {name for name in (*listed, *files) if name.isidentifier() and not name.startswith("__editable__")}
    own = {point.module for point in distribution.entry_points}
    return tops | own | {name for module in own for name in _neighbours(module, distribution)}


def _neighbours(module: str, distribution: Distribution) -> list[str]:
    """Modules in the folder of one that is in no package, unless it is that of what pip installed: of an editable
    distribution."""
    homes = _homes(module)
    folder = homes[0].parent if homes and homes[0].is_file() else None
    installed = Path(str(distribution.locate_file(""))).resolve()
    if folder is None or folder.resolve() == installed:
        return []
    return [file.stem for file in sorted(folder.glob("*.py")) if file.stem.isidentifier()]


def _homes(module: str) -> list[Path]:
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
            return [Path(one) for one in spec.submodule_search_locations or () if Path(one).is_dir()]
        part, _, rest = rest.partition(".")
        name = f"{name}.{part}"


def _is_tracked(home: Path, folder: Path) -> bool:
    try:
        done = git.ask(folder, "ls-files", "--", "." if home.is_dir() else home.name)
    except OSError:
        return False
    return done.returncode == 0 and bool(done.stdout)
