"""What asv's history tracks, read from conf/axes/*.yaml: the suite, the recorder and the gate share it.

A family is a set of benchmarks over the same axes; the file conf/axes/FAMILY.yaml defines it, or in another repository
FAMILY.yaml beside the FAMILY.py that asv finds. A cell of a family is one value of each axis. Its canonical
configuration (defaults, the family's settings, the cell's overrides) is the only one whose results enter the series.
"""

from __future__ import annotations

import copy
import importlib.resources
import itertools
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast

from spinbench.errors import HistoryError
from spinbench.foundation.remarks import unknown_name
from spinbench.measuring import environment
from spinbench.metrics import registry

if TYPE_CHECKING:
    from omegaconf import DictConfig, ListConfig

CONF = "spinbench.conf"
SUITE = "benchmarks"  # of a repository that is not spinbench's own

# A value per axis, in the family's order.
Cell = tuple[str, ...]

# A cell with names: ("family", name) and a pair (axis, value) per axis; empty if there is no family.
Column = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Axis:
    """A parameter of asv's benchmarks.

    Attributes:
        name: asv's parameter name, and the key in a record's `axes`.
        group: the config group that a value selects.
        values: labels, append only.
        select: overrides of those labels that are not simply the name of a file of the group.
    """

    name: str
    group: str
    values: tuple[str, ...]
    select: Mapping[str, tuple[str, ...]]

    def overrides(self, value: str) -> tuple[str, ...]:
        """Hydra overrides that select a value."""
        return self.select.get(value, (f"{self.group}={value}",))


Judged = Literal["cost", "accuracy", "certain", "no"]


@dataclass(frozen=True)
class Metric:
    """A tracked number; lower is better. The attributes are explained in conf/axes/inference.yaml, and for those of
    `spinbench.metrics` in `spinbench.api.Metric`."""

    name: str
    title: str
    unit: str
    version: str
    floor: float
    judged: Judged = "no"
    margin: float = 0.0
    alpha: float = 0.0
    seeds: int = 1
    falls: float = 0.0


@dataclass(frozen=True)
class Family:
    """Benchmarks over the same axes; asv calls them NAME.track_METRIC."""

    name: str
    timeout: float
    settings: tuple[str, ...]
    axes: tuple[Axis, ...]
    metrics: tuple[Metric, ...]

    @property
    def cells(self) -> list[Cell]:
        """All cells in asv's order (the last axis varies fastest)."""
        return list(itertools.product(*(axis.values for axis in self.axes)))

    def find_cell(self, values: Mapping[str, Any]) -> Cell | None:
        """The cell that a record's `axes` name; None where a value or an axis is not tracked."""
        same_axes = set(values) == {axis.name for axis in self.axes}
        if not same_axes or any(values[axis.name] not in axis.values for axis in self.axes):
            return None
        return tuple(values[axis.name] for axis in self.axes)

    def column(self, cell: Cell) -> Column:
        """The cell by names."""
        return ("family", self.name), *zip((axis.name for axis in self.axes), cell, strict=True)

    def overrides(self, cell: Cell) -> list[str]:
        """Hydra overrides that give the cell's canonical configuration."""
        chosen = (axis.overrides(value) for axis, value in zip(self.axes, cell, strict=True))
        return [*self.settings, *itertools.chain.from_iterable(chosen)]

    def benchmark_name(self, metric: str) -> str:
        """asv's name of the benchmark that tracks a metric."""
        return f"{self.name}.track_{metric}"


def families() -> Mapping[str, Family]:
    """All families by name: from the installed conf/axes, and from the suite of the repository that is measured."""
    home = environment.history_root()
    own = {} if home is None else own_families(home / SUITE)
    return {**own, **default_families()}


@cache
def default_families() -> Mapping[str, Family]:
    """Those of the installed conf/axes."""
    files = importlib.resources.files(CONF).joinpath("axes").iterdir()
    names = sorted(file.name.removesuffix(".yaml") for file in files if file.name.endswith(".yaml"))
    with composer() as compose:
        return {name: _parse_benchmark_family(_resolve(compose([], f"axes/{name}"))) for name in names}


@cache
def own_families(suite: Path) -> Mapping[str, Family]:
    """Those that a suite defines beside its modules; without metrics of their own they have the gate's."""
    from omegaconf import OmegaConf

    own = {}
    for file in sorted(file for file in suite.glob("*.yaml") if file.with_suffix(".py").is_file()):
        try:
            raw = {"timeout": 300, "settings": [], "metrics": {}, **_resolve(OmegaConf.load(file)), "family": file.stem}
            family = _parse_benchmark_family(raw)
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise HistoryError(f"{file} defines no benchmarks: {type(error).__name__}: {error}") from error
        own[file.stem] = replace(family, metrics=family.metrics or default_families()["gate"].metrics)
    return own


def families_in(suite: Path) -> dict[str, Family]:
    """Those that a project's suite has a module of, by name: none in a repository that only keeps what is swept."""
    return {name: family for name, family in families().items() if (suite / f"{name}.py").is_file()}


def metrics() -> tuple[Metric, ...]:
    """All tracked metrics; families share those of one name."""
    return tuple({metric.name: metric for family in families().values() for metric in family.metrics}.values())


def family(name: str) -> Family:
    """The family of this name.

    Raises:
        UnknownNameError: there is none; the closest names are offered.
    """
    if name not in families():
        raise unknown_name("benchmark family", name, families())
    return families()[name]


@contextmanager
def composer() -> Iterator[Callable[..., DictConfig]]:
    """A function over spinbench.conf and the config groups of plugins: from overrides to a `DictConfig`.

    Its second argument is the primary config, by default "config"; Hydra's own node is left out. Hydra keeps one
    configuration source for the whole process; that of a running sweep is put back afterwards.
    """
    from hydra import compose
    from hydra.core.global_hydra import GlobalHydra

    from spinbench.conf import searchpath

    searchpath.install()
    outer = GlobalHydra.instance().hydra
    GlobalHydra.instance().clear()
    try:
        with searchpath.initialize():
            yield lambda overrides, config="config": compose(config, list(overrides))
    finally:
        GlobalHydra.instance().clear()
        if outer is not None:
            GlobalHydra.instance().initialize(outer)


def canonical_configs(family: Family, cells: Iterable[Cell]) -> dict[Cell, dict[str, object]]:
    """The canonical configurations of cells, resolved to plain containers; each is composed once in a process.

    Raises:
        HistoryError: a value that conf/axes lists selects no configuration.
    """
    from hydra.errors import HydraException

    overrides = {cell: tuple(family.overrides(cell)) for cell in cells}
    if new := {cell: cell_overrides for cell, cell_overrides in overrides.items() if cell_overrides not in _composed}:
        with composer() as compose:
            for cell, cell_overrides in new.items():
                try:
                    config = compose(cell_overrides)
                except HydraException as error:
                    reason = " ".join(str(error).split())
                    raise HistoryError(f"conf/axes/{family.name}.yaml lists {cell}, but {reason}") from error
                _composed[cell_overrides] = _resolve(config)
    return {cell: copy.deepcopy(_composed[cell_overrides]) for cell, cell_overrides in overrides.items()}


# Cache of canonical configurations by overrides; conf/axes is also read once.
_composed: dict[tuple[str, ...], dict[str, object]] = {}


@cache
def run_defaults() -> Mapping[str, Any]:
    """The number of chains and the budget of a cell that says nothing of them."""
    with composer() as compose:
        config = compose([])
    return {"chains": config.chains, "budget": _resolve(config.budget)}


def _resolve(config: DictConfig | ListConfig) -> dict[str, Any]:
    from omegaconf import OmegaConf

    return cast("dict[str, Any]", OmegaConf.to_container(config, resolve=True))


def _parse_benchmark_family(raw: Mapping[str, Any]) -> Family:
    return Family(
        name=raw["family"],
        timeout=float(raw["timeout"]),
        settings=tuple(raw["settings"]),
        axes=tuple(
            Axis(
                name=name,
                group=axis["group"],
                values=tuple(map(str, axis["values"])),
                select={key: tuple(value) for key, value in axis.get("select", {}).items()},
            )
            for name, axis in raw["axes"].items()
        ),
        metrics=tuple(
            Metric(
                name=name,
                title=metric["title"],
                unit=metric["unit"],
                version=str(metric["version"]),
                floor=float(metric["floor"]),
                judged=metric.get("judged") or "no",
                margin=float(metric.get("margin", 0.0)),
                alpha=float(metric.get("alpha", 0.0)),
                seeds=int(metric.get("seeds", 1)),
                falls=float(metric.get("falls", 0.0)),
            )
            for name, metric in raw["metrics"].items()
        )
        + _registry_metrics(raw["family"], raw["metrics"]),
    )


def _registry_metrics(family: str, defined_names: Container[str]) -> tuple[Metric, ...]:
    """The metrics of `spinbench.metrics` that a family tracks; one that is better where it is higher by its inverse."""
    return tuple(
        Metric(
            name=name,
            title=metric.title if metric.better == "lower" else f"1 / {metric.title}",
            unit=metric.unit if metric.better == "lower" else f"1 / {metric.unit or 'unit'}",
            version=metric.version,
            floor=metric.floor,
            judged=metric.judged,
            margin=metric.margin,
            alpha=metric.alpha,
            falls=metric.falls,
        )
        for name, metric in registry.usable_metrics().items()
        if family in metric.families and name not in defined_names
    )
