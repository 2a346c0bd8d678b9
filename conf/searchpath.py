"""Where Hydra finds configurations: spinbench.conf, the config groups of plugins, and the registry itself.

A plugin adds yaml files through the entry-point group `spinbench.conf`, whose values are packages that hold the
config groups. Methods, backends and models need none: their options are the defaults of their classes and functions,
and the presets of presets.yaml are these but for a few values.
"""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache
from importlib.resources import files
from typing import Any

import hydra
from hydra import initialize_config_module
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
UNLISTED = "model/default"
"""What config.yaml names, and nobody has to: it is another option's other name."""
_OLD = hydra.__version__.startswith("1.3.")
BASE: dict[str, Any] = {"version_base": "1.3"} if _OLD else {}
"""What Hydra 1.3 is asked for, and 1.4 is by itself."""
RUNNING: dict[str, Any] = BASE if _OLD else {"execution_whitelist": ["hydra.*", "hydra_plugins.*", "spinbench.*"]}
"""Of `hydra.main`: from 1.4 on it asks whose classes a configuration may name as launchers, sweepers and callbacks."""
OWN, PLUGINS = "own", "plugins"
"""Two parts of the registry, since a plugin's files go before its classes' defaults and behind what is ours."""


def install() -> None:
    """Register with Hydra; doing it again changes nothing."""
    for plugin in (RegistrySource, SpinbenchSearchPath):
        Plugins.instance().register(plugin)


def initialize() -> AbstractContextManager[None]:
    """Hydra's context in which configurations of spinbench.conf are composed."""
    return initialize_config_module(PACKAGE, **BASE)


def register_resolver(name: str, resolver: Callable[..., Any]) -> None:
    """What `${name:…}` stands for; in OmegaConf 2.3, of Hydra 1.3, `register_resolver` is another function."""
    register: Any = OmegaConf.register_new_resolver if _OLD else OmegaConf.register_resolver
    register(name, resolver, replace=True)


class SpinbenchSearchPath(SearchPathPlugin):
    """Behind spinbench.conf: our own options and presets, plugins' packages in alphabetical order, plugins' options."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Called by Hydra whenever it is initialised."""
        search_path.append(provider="registry", path=f"registry://{OWN}")
        points = importlib.metadata.entry_points(group="spinbench.conf")
        for point in sorted(points, key=lambda point: point.name):
            if point.value == PACKAGE:
                continue
            try:  # as Hydra will, which lets no plugin fail
                importlib.import_module(point.value)
            except (Exception, SystemExit) as error:
                left_out(f"config groups of plugin {point.name!r} ({point.value}): {plugins.describe_error(error)}")
            else:
                search_path.append(provider=f"plugin {point.name}", path=f"pkg://{point.value}")
        search_path.append(provider="registry", path=f"registry://{PLUGINS}")


class RegistrySource(ConfigSource):
    """Options of registered methods, backends and models and their presets, made when they are asked for."""

    @staticmethod
    def scheme() -> str:
        """Of search path entries."""
        return "registry"

    def load_config(self, config_path: str) -> ConfigResult:
        """The values of one option."""
        if not self.is_config(config_path):
            raise ConfigLoadError(f"{config_path} is not in the registry of {self.path}")
        return ConfigResult(
            config=OmegaConf.create(option(*_bare(config_path).split("/", 1))),
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
        return path == "" or any(name.startswith(f"{path}/") for name in _names(self.path))

    def is_config(self, config_path: str) -> bool:
        """GROUP/NAME."""
        return _bare(config_path) in _names(self.path)

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """What stands directly below a group."""
        prefix = f"{config_path.strip('/')}/".lstrip("/")
        inside = [name[len(prefix) :] for name in _names(self.path) if name.startswith(prefix) and name != UNLISTED]
        groups = {name.partition("/")[0] for name in inside if "/" in name}
        configs = {name for name in inside if "/" not in name}
        chosen = {None: groups | configs, ObjectType.GROUP: groups, ObjectType.CONFIG: configs}
        return sorted(chosen[results_filter])


@cache
def presets() -> Mapping[str, Mapping[str, Mapping[str, Any]]]:
    """By group and name: what each is a variant `of`, and the values that are not its defaults."""
    content = OmegaConf.create(files(PACKAGE).joinpath("presets.yaml").read_text(encoding="utf-8"))
    return OmegaConf.to_container(content)  # type: ignore[return-value]


def option(group: str, name: str) -> dict[str, Any]:
    """The values of a method, a backend, a model or a preset of one."""
    changed = dict(presets().get(group, {}).get(name, {}))
    defaults = {"method": method_defaults, "backend": backend_defaults, "model": model_defaults}[group]
    return defaults(changed.pop("of", name)) | changed


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
    known = families.parameter_defaults(name)
    return {"name": name, **{key: MISSING if value is families.REQUIRED else value for key, value in known.items()}}


def _names(part: str) -> list[str]:
    """GROUP/NAME of all options of a part of the registry."""
    names = {"method": registry.names("methods"), "backend": registry.names("backends"), "model": specs.names()}
    own = {f"{group}/{name}" for group in names for name in names[group] if _is_own(group, name)}
    if part == OWN:
        return sorted({*own, *(f"{group}/{name}" for group, variants in presets().items() for name in variants)})
    return sorted({f"{group}/{name}" for group in names for name in names[group]} - own)


def _is_own(group: str, name: str) -> bool:
    """Whether no plugin brings it: models of data and of files are no entry points."""
    points = plugins.entry_points(f"{group}s").get(name, ())
    return not points or plugins.distribution(points[0]) == plugins.OWN


def _bare(config_path: str) -> str:
    return config_path.strip("/").removesuffix(".yaml")
