"""Methods, backends and kernels that are installed: which pair runs how, and why not."""

from __future__ import annotations

import importlib.util
from collections.abc import Set
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from typing import Any, Literal, cast

from spinbench.api import Backend, Engine, Kernel, Method, Precision, Tables, Tier
from spinbench.errors import (
    BrokenPluginError,
    SpinbenchError,
    UnavailableError,
    UnsupportedError,
)
from spinbench.foundation import plugins
from spinbench.foundation.names import unknown_name
from spinbench.foundation.parameters import convert, hints_of
from spinbench.inference.engine import ProgramEngine
from spinbench.models import Model

if __name__ != "spinbench.inference.registry":
    raise ImportError(f"imported as {__name__}; import spinbench.inference.registry, not the checkout's folder")

Kind = Literal["backends", "methods", "kernels"]


@dataclass(frozen=True)
class Support:
    """How a (method, backend) pair runs.

    Attributes:
        tier: "native" (own kernel), "generic" (the method's program on the backend's arrays), "unsupported",
            "unavailable" (a dependency is missing) or "broken" (a plugin failed on import).
        reason: for the last three, one sentence.
    """

    tier: Tier
    reason: str = ""

    @property
    def runs(self) -> bool:
        """Whether the pair can be run here."""
        return self.tier in ("native", "generic")


def names(kind: Kind) -> list[str]:
    """Registered names, sorted."""
    return list(plugins.entry_points(kind))


def load(kind: Kind, name: str) -> Any:
    """The class behind a name.

    Raises:
        UnknownNameError: no such plugin; the closest names are offered.
        BrokenPluginError: the plugin raised on import or is not what its kind has to be, or two distributions claim
            the name.
    """
    return plugins.load(kind, name, partial(_malformed, kind))


def method_class(name: str) -> type[Method]:
    """The `Method` subclass of this name; errors as in `load`."""
    return cast("type[Method]", load("methods", name))


def backend_class(name: str) -> type[Backend]:
    """The `Backend` subclass of this name; errors as in `load`."""
    return cast("type[Backend]", load("backends", name))


def missing_modules(backend: type[Backend]) -> list[str]:
    """What the backend requires and is not installed here; found without importing it."""
    return [module for module in backend.requires if importlib.util.find_spec(module) is None]


def make_method(name: str, settings: dict[str, Any]) -> Method:
    """A method with settings; a wrong setting's name or value is one sentence."""
    cls = method_class(name)
    allowed = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for key in settings:
        if key not in allowed:
            raise unknown_name(f"setting of method {name}", key, allowed)
    hints = hints_of(cls)
    given = {}
    for key, value in settings.items():
        try:
            given[key] = convert(value, hints.get(key, Any))
        except TypeError as error:
            raise SpinbenchError(f"method {name}: {key}={error}") from error
    try:
        return cls(**given)
    except TypeError as error:  # of a plugin's own checks
        raise SpinbenchError(f"method {name}: {error}") from error


def support(method: str, backend: str) -> Support:
    """How `method` runs on `backend`, without importing a framework."""
    try:
        m, b = method_class(method), backend_class(backend)
    except BrokenPluginError as error:
        return Support("broken", str(error))
    missing = missing_modules(b)
    native = f"{method}.{backend}" in plugins.entry_points("kernels")
    if not native and not m.needs:
        return Support("unsupported", _where_else(method, f"{method} has no kernel for {backend}"))
    if not native and (lacking := m.needs - b.provides):
        why = f"{backend} does not provide {', '.join(sorted(lacking))} and there is no kernel {method}.{backend}"
        return Support("unsupported", _where_else(method, why))
    if missing:
        hint = f": {b.install}" if b.install else ""
        return Support("unavailable", f"backend {backend} needs {', '.join(missing)}, not installed here{hint}")
    return Support("native" if native else "generic")


def check(method: str, backend: str, precision: Precision) -> Support:
    """How the pair runs, before anything is planned for it.

    Raises:
        UnsupportedError, UnavailableError, BrokenPluginError: as `support` says.
    """
    how = support(method, backend)
    if how.tier == "unsupported":
        raise UnsupportedError(how.reason)
    if how.tier == "unavailable":
        raise UnavailableError(how.reason)
    if how.tier == "broken":
        raise BrokenPluginError(how.reason)
    if {"float32": "f32", "float64": "f64"}[precision] not in backend_class(backend).provides:
        raise UnsupportedError(f"backend {backend} does not offer precision={precision}")
    return how


def bind(
    method: Method, backend: str, model: Model, tables: Tables, *, precision: Precision, device: str = "cpu"
) -> Engine:
    """The engine that runs a planned method on a backend.

    Raises:
        UnsupportedError, UnavailableError, BrokenPluginError: as `check`.
    """
    how = check(method.name, backend, precision)
    cls = backend_class(backend)
    instance = cls(precision=precision, device=device)
    if how.tier == "native":
        kernel = cast("type[Kernel]", load("kernels", f"{method.name}.{backend}"))
        return kernel(method, instance, model, tables)
    return ProgramEngine(method.program(instance), instance, tables, method.reductions)


def _malformed(kind: Kind, found: Any) -> str:
    """Why what an entry point names cannot be used as this kind; empty if it can."""
    if kind == "kernels":
        return "" if callable(found) else "is no class"
    base = Method if kind == "methods" else Backend
    if not (isinstance(found, type) and issubclass(found, base)):
        return f"is no subclass of spinbench.api.{base.__name__}"
    attributes = ("name", "summary") if kind == "methods" else ("name", "provides")
    if lacking := [attribute for attribute in attributes if not hasattr(found, attribute)]:
        return f"lacks the class attribute {' and '.join(lacking)}"
    if issubclass(found, Method):
        return "" if is_dataclass(found) else "is no dataclass"
    provides, requires = cast("tuple[Any, Any]", (found.provides, found.requires))  # plugins' types are not checked
    if not isinstance(provides, Set):
        return f"has provides={provides!r}; a frozenset is needed"
    return "" if isinstance(requires, tuple) else f"has requires={requires!r}; a tuple is needed"


def _where_else(method: str, why: str) -> str:
    needs = method_class(method).needs
    kernels = plugins.entry_points("kernels")
    runs = []
    for name in names("backends"):
        try:
            generic = bool(needs) and needs <= backend_class(name).provides
        except BrokenPluginError:
            continue
        if generic or f"{method}.{name}" in kernels:
            runs.append(name)
    return f"{why}; {method} runs on {', '.join(runs) or 'no installed backend'}"
