"""Who takes part in a race: methods with settings, on a backend."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any

from spinbench.api import Method
from spinbench.errors import SpinbenchError
from spinbench.foundation import defaults, plugins
from spinbench.foundation.remarks import unknown_name
from spinbench.inference import kernels, registry
from spinbench.inference.runner import run
from spinbench.models import PairwiseModel


@dataclass(frozen=True)
class Candidate:
    """A method on a backend.

    Attributes:
        method, backend: registered names.
        settings: that are not the method's defaults.
        instance: of the method, where one was given instead of a name.
    """

    method: str
    backend: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    instance: Method | None = None

    @property
    def kind(self) -> str:
        """How it goes about it: candidates of other kinds err in other ways."""
        return (self.instance or registry.method_class(self.method)).profile.family or self.method

    @property
    def label(self) -> str:
        """As tables name it: "blocks(size=4096).numba"."""
        settings = ",".join(f"{name}={value}" for name, value in self.settings.items())
        if settings:
            return f"{self.method}({settings}).{self.backend}"
        return f"{self.method}.{self.backend}"

    @property
    def name_with_settings(self) -> str:
        """Its name in tables of runs on any backend: "blocks(size=4096)"."""
        return self.label.removesuffix(f".{self.backend}")

    @property
    def method_with_settings(self) -> Method:
        """The method with its settings."""
        return self.instance or registry.make_method(self.method, dict(self.settings))

    def without_compilation(self) -> Candidate | None:
        """The same method where nothing has to be compiled, for where that takes longer than there is."""
        if self.backend == defaults.INTERPRETED or not registry.support(self.method, defaults.INTERPRETED).runs:
            return None
        return Candidate(self.method, defaults.INTERPRETED, self.settings, self.instance)


def default(recorded: Iterable[str]) -> list[Candidate]:
    """Methods whose errors are recorded, such as "blocks(size=4096)", and those of plugins with their variants, each on
    the first backend that runs it."""
    pairs: list[tuple[str, str | None, Mapping[str, object]]] = [
        (name, _first_backend(name), settings) for name, settings in map(_parse_recorded, recorded)
    ]
    for name in registry.names("methods"):
        if not plugins.is_own("methods", name) and (backend := _first_backend(name)):
            pairs += [(name, backend, settings) for settings in registry.method_class(name).profile.variants]
    return [Candidate(name, backend, settings) for name, backend, settings in pairs if backend is not None]


def _parse_recorded(label: str) -> tuple[str, dict[str, object]]:
    name, _, settings = label.removesuffix(")").partition("(")
    pairs = (pair.split("=") for pair in settings.split(",") if pair)
    return name, {setting: json.loads(value) for setting, value in pairs}


def parse(candidates: Sequence[object] | None, recorded: Iterable[str]) -> tuple[list[Candidate], bool]:
    """Candidates, and whether the exact answer is among them.

    Args:
        candidates: names "gibbs" or "gibbs.numpy", methods with settings, such as ("wmb", {"ibound": 6}), or pairs of
            either and a backend; None: `default`.
        recorded: names of those whose errors are recorded.

    Raises:
        SpinbenchError: there are none, an unknown name, or a pair that does not run.
    """
    if candidates is None:
        return default(recorded), True
    if isinstance(candidates, str) or not isinstance(candidates, Sequence) or not candidates:
        raise SpinbenchError(f"candidates={candidates!r} was given; a list of methods is needed, or None for all")
    parts: list[Candidate] = []
    for candidate in map(_one, candidates):
        if candidate not in parts:
            parts.append(candidate)
    exact = any(candidate.method == "exact" for candidate in parts)
    return [candidate for candidate in parts if candidate.method != "exact"], exact


def _one(item: object) -> Candidate:
    method, backend = item if isinstance(item, tuple) and len(item) == 2 else (item, None)
    # A method with its settings, such as ("wmb", {"ibound": 6}), and not a pair of method and backend.
    if isinstance(method, str) and isinstance(backend, Mapping):
        method, backend = registry.make_method(method, dict(backend)), None
    if isinstance(method, Method):
        name, instance, settings = method.name, method, _settings_off_default(method)
    elif isinstance(method, str):
        name, _, place = method.partition(".")
        instance, settings, backend = None, {}, backend or place or None
        if name not in registry.names("methods"):
            raise unknown_name("method", name, registry.names("methods"))
    else:
        raise SpinbenchError(
            f"candidate {item!r} was given; a name such as 'gibbs' or 'pt.numba', or a Method is needed"
        )
    backend = backend or _first_backend(name)
    if backend is None:
        raise SpinbenchError(f"{name} runs on no backend that is installed here")
    registry.require_support(name, backend, "float64")
    return Candidate(name, backend, settings, instance)


def _settings_off_default(method: Method) -> dict[str, object]:
    """Settings that are not at their defaults."""
    settings = fields(method)  # type: ignore[arg-type]
    return {f.name: getattr(method, f.name) for f in settings if getattr(method, f.name) != f.default}


def _first_backend(method: str) -> str | None:
    runs = [(name, registry.support(method, name)) for name in kernels.backends_by_preference()]
    native = [name for name, how in runs if how.tier == "native"]
    return next(iter([*native, *(name for name, how in runs if how.runs)]), None)


def prepare(candidates: Iterable[Candidate]) -> None:
    """Import, once before processes are forked, what built-in candidates run; each would load it for itself."""
    _compile_shared()
    for candidate in candidates:
        profile = kernels.backend_profile(candidate.backend)
        if profile.before_fork is not None:
            profile.before_fork()
        if profile.survives_fork:
            for point in kernels.candidates(candidate.method, candidate.backend):
                if plugins.distribution(point) == plugins.OWN:
                    kernels.load(point)


@lru_cache
def _compile_shared() -> None:
    pair = PairwiseModel.from_edges([0.0, 0.0], [(0, 1)], [1.0])
    run(pair, defaults.METHOD, defaults.INTERPRETED, 2, burn_in=1, chains=2)
