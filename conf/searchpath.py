"""Where Hydra finds configurations: spinbench.conf, the config groups of plugins, and the registry itself.

A plugin adds yaml files through the entry-point group `spinbench.conf`, whose values are packages that hold the
config groups. A method or backend without a yaml file gets the defaults of its class all the same.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
from typing import Any

from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import MISSING, OmegaConf

from spinbench.errors import BrokenPluginError, SpinbenchError
from spinbench.foundation import plugins
from spinbench.foundation.remarks import left_out
from spinbench.inference import kernels, registry
from spinbench.models import families, specs

PACKAGE = "spinbench.conf"


def install() -> None:
    """Register with Hydra; doing it again changes nothing."""
    for plugin in (RegistrySource, SpinbenchSearchPath):
        Plugins.instance().register(plugin)


class SpinbenchSearchPath(SearchPathPlugin):
    """Plugins' packages in alphabetical order, then what the registry knows; spinbench.conf itself comes first."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra whenever it is initialised."""
        points = importlib.metadata.entry_points(group="spinbench.conf")
        for point in sorted(points, key=lambda point: point.name):
            if point.value == PACKAGE:
                continue
            try:  # as Hydra will, which lets no plugin fail
                importlib.import_module(point.value)
            except (Exception, SystemExit) as error:
                left_out(f"config groups of plugin {point.name!r} ({point.value}): {plugins.told(error)}")
            else:
                search_path.append(provider=f"plugin {point.name}", path=f"pkg://{point.value}")
        search_path.append(provider="registry", path="registry://")


class RegistrySource(ConfigSource):
    """Configurations of registered methods, backends and families of models, made when they are asked for."""

    @staticmethod
    def scheme() -> str:
        """Of search path entries."""
        return "registry"

    def load_config(self, config_path: str) -> ConfigResult:
        """The defaults of one name."""
        if not self.is_config(config_path):
            raise ConfigLoadError(f"{config_path} is not in the registry")
        group, _, name = _bare(config_path).partition("/")
        defaults = {"method": method_defaults, "backend": backend_defaults, "model": model_defaults}[group](name)
        return ConfigResult(
            config=OmegaConf.create(defaults),
            path=f"{self.scheme()}://",
            provider=self.provider,
            header={"package": None},
        )

    def available(self) -> bool:
        """Always."""
        return True

    def is_group(self, config_path: str) -> bool:
        """method, backend, model, and the parts before the slash of models' names."""
        path = config_path.strip("/")
        return path == "" or any(name.startswith(f"{path}/") for name in _all_names())

    def is_config(self, config_path: str) -> bool:
        """GROUP/NAME."""
        return _bare(config_path) in _all_names()

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """What stands directly below a group."""
        prefix = f"{config_path.strip('/')}/".lstrip("/")
        inside = [name[len(prefix) :] for name in _all_names() if name.startswith(prefix)]
        groups = {name.partition("/")[0] for name in inside if "/" in name}
        configs = {name for name in inside if "/" not in name}
        chosen = {None: groups | configs, ObjectType.GROUP: groups, ObjectType.CONFIG: configs}
        return sorted(chosen[results_filter])


def method_defaults(name: str) -> dict[str, Any]:
    """The name and the default settings of a method; the name alone where its plugin is broken."""
    try:
        settings = dataclasses.asdict(registry.method_class(name)())  # type: ignore[call-overload]
    except BrokenPluginError:
        settings = {}  # measuring the cell fails with the plugin's error
    # as YAML has them
    return {"name": name, **{key: list(v) if isinstance(v, tuple) else v for key, v in settings.items()}}


def backend_defaults(name: str) -> dict[str, Any]:
    """The name, device and precision of a backend, float64 where it has it, and which of its kernels are asked."""
    try:
        kind = registry.backend_class(name)
        double, device = "f64" in kind.provides, kernels.device_of(kind)
    except SpinbenchError:
        double, device = True, "cpu"  # measuring the cell fails with the error; a record's backend need not be here
    return {
        "name": name,
        "device": device,
        "precision": "float64" if double else "float32",
        "tier": None,
        "kernel": None,
    }


def model_defaults(name: str) -> dict[str, Any]:
    """The name of a model, and its parameters with their defaults."""
    if name == families.FILE:
        return {"name": name, "path": MISSING, "evidence": None, "beta": None}
    known = families.defaults(name)
    return {"name": name, **{key: MISSING if value is families.REQUIRED else value for key, value in known.items()}}


def _all_names() -> list[str]:
    names = {"method": registry.names("methods"), "backend": registry.names("backends"), "model": specs.names()}
    return [f"{group}/{name}" for group, members in names.items() for name in members]


def _bare(config_path: str) -> str:
    return config_path.strip("/").removesuffix(".yaml")
