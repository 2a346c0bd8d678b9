"""Methods, backends and kernels that are installed: which pair runs how, and why not."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import Any, cast

from spinbench.api import Backend, Method, Precision, Tier, malformed
from spinbench.api.malformed import Kind
from spinbench.api.types import CAPABILITIES, PROVIDED
from spinbench.errors import BrokenPluginError, SpinbenchError, UnavailableError, UnsupportedError
from spinbench.foundation import parameters, plugins, remarks
from spinbench.inference import kernels
from spinbench.inference.kernels import ANY, Wish

if __name__ != "spinbench.inference.registry":
    raise ImportError(f"imported as {__name__}; import spinbench.inference.registry, not the checkout's folder")

_ERRORS: dict[str, type[SpinbenchError]] = {"unsupported": UnsupportedError, "unavailable": UnavailableError}


@dataclass(frozen=True)
class Support:
    """How a (method, backend) pair runs.

    Attributes:
        tier: "native" (own kernel), "generic" (the method's program on the backend's arrays), "unsupported",
            "unavailable" (a dependency is missing) or "broken" (a plugin failed on import).
        reason: for the last three, one sentence.
        notes: for the first two, a sentence for each kernel of another distribution that is not asked.
    """

    tier: Tier
    reason: str = ""
    notes: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether the pair can be run here."""
        return self.tier in ("native", "generic")


def names(kind: Kind) -> list[str]:
    """Registered names, sorted."""
    return list(plugins.entry_points(kind))


@plugins.cache_until_forget
def load(kind: Kind, name: str) -> Any:
    """The class behind a name.

    Raises:
        UnknownNameError: no such plugin; the closest names are offered.
        BrokenPluginError: the plugin raised on import or is not what its kind has to be, or two distributions claim
            the name.
    """
    plugin = plugins.load(kind, name, partial(malformed.why, kind))
    if kind != "kernels" and plugin.name != name:
        raise BrokenPluginError(f"{plugins.label(kind, name)} has name={plugin.name!r}; both names have to be the same")
    return plugin


def method_class(name: str) -> type[Method]:
    """The `Method` subclass of this name; errors as in `load`."""
    return cast("type[Method]", load("methods", name))


def backend_class(name: str) -> type[Backend]:
    """The `Backend` subclass of this name; errors as in `load`."""
    return cast("type[Backend]", load("backends", name))


def missing(plugin: type[Backend] | type[Method]) -> list[str]:
    """Modules and programs that a backend or a method requires and that are not here; none is imported or called."""
    if issubclass(plugin, Method):
        return [name for name in plugin.requires if name not in CAPABILITIES and not plugins.is_there(name)]
    modules = [module for module in plugin.requires if not plugins.is_there(module)]
    return [*modules, *(program for program in plugin.programs if shutil.which(program) is None)]


def _missing_requirements(plugin: type[Backend] | type[Method], subject: str) -> str:
    """Which modules and programs are missing, and what installs them; empty if none is."""
    if not (names := missing(plugin)):
        return ""
    install = f"pip install {' '.join(names)}" if issubclass(plugin, Method) else plugin.install
    return ": ".join(filter(None, [f"{subject} needs {', '.join(names)}, not installed here", install]))


def setting_replacements(method: type[Method]) -> Mapping[str, str]:
    """{name: what to do instead} of settings that earlier versions of a method had."""
    removed: Mapping[str, str] = getattr(method, "removed", {})
    return removed


def make_method(method: str | type[Method] | Method, settings: dict[str, Any]) -> Method:
    """A method with settings, of a registered name or a class; one that has its settings as it is.

    Raises:
        SpinbenchError: what is wrong with its class, or with a setting's name or value.
    """
    if isinstance(method, Method):
        if settings:
            raise SpinbenchError(
                f"{', '.join(settings)} was given beside a Method, which has its settings; give its name"
            )
        return method
    cls = method_class(method) if isinstance(method, str) else method
    _check_method(cls)
    name = cls.name
    allowed = [field.name for field in fields(cls)]  # type: ignore[arg-type]
    for key in settings:
        if key not in allowed:
            raise remarks.unknown_name(f"setting of method {name}", key, allowed, setting_replacements(cls))
    hints = parameters.hints_of(cls)
    converted = {}
    for key, value in settings.items():
        try:
            converted[key] = parameters.convert(value, hints.get(key, Any))
        except TypeError as error:
            raise SpinbenchError(f"method {name}: {key}={error}") from error
    try:
        return cls(**converted)
    except TypeError as error:
        # Raised by the checks of a plugin.
        raise SpinbenchError(f"method {name}: {error}") from error


def support(method: str | Method, backend: str, wish: Wish = ANY) -> Support:
    """How `method` runs on `backend`, without importing a framework.

    Args:
        method: a registered name; or a Method, whose class need not be registered.

    Raises:
        UnknownNameError: there is no such plugin, or no distribution with kernels as `wish` names it.
        SpinbenchError: a Method's class is malformed, or has the name of another one that is registered.
    """
    try:
        return _support(_class_of(method), backend, wish)
    except BrokenPluginError as error:
        return Support("broken", str(error))


def require_support(method: str | Method, backend: str, precision: Precision, wish: Wish = ANY) -> Support:
    """How the pair runs, before anything is planned for it; arguments as of `support`.

    Raises:
        UnsupportedError, UnavailableError, BrokenPluginError: as `support` says.
    """
    return _require_support(_class_of(method), backend, precision, wish)


# Once for each pair, since looking for what it requires takes as long as a small model's answer.
@plugins.cache_until_forget
def _require_support(method: type[Method], backend: str, precision: Precision, wish: Wish) -> Support:
    how = _support(method, backend, wish)
    if not how.runs:
        raise _ERRORS[how.tier](how.reason)
    if PROVIDED[precision] not in backend_class(backend).provides:
        raise UnsupportedError(f"backend {backend} does not offer precision={precision}, but the other of the two")
    return how


def _support(method: type[Method], backend: str, wish: Wish) -> Support:
    cls, name = backend_class(backend), method.name
    native, notes = bool(kernels.candidates(name, backend, wish)), kernels.describe_others(name, backend, wish)
    tier: Tier = "native"
    lacking = _missing_requirements(cls, f"backend {backend}")
    if not native:
        if why := _no_engine(method, cls, wish):
            if wish == ANY:
                why = f"{why}; {_elsewhere(method)}"
            return Support("unsupported", "; ".join([why, *notes]))
        tier, lacking = "generic", lacking or _missing_requirements(method, f"method {name}")
    if lacking:
        return Support("unavailable", lacking)
    return Support(tier, notes=notes)


def _no_engine(method: type[Method], backend: type[Backend], wish: Wish) -> str:
    """Why a pair without a kernel to ask does not run; empty if the program does."""
    owner = "" if wish.kernel is None else f" from {wish.kernel}"
    if owner or wish.tier == "native" or (wish == ANY and method.program is Method.program):
        return f"{method.name} has no kernel for {backend.name}{owner}"
    why = why_no_program(method, backend)
    if why and wish == ANY:
        return f"{why} and there is no kernel {method.name}.{backend.name}"
    return why


def why_no_program(method: type[Method], backend: type[Backend]) -> str:
    """Why the method's program does not run on the backend; empty if it does."""
    if method.program is Method.program:
        return f"{method.name} has no generic program"
    if "arrays" not in backend.provides:
        return f"{backend.name} provides no arrays, and runs its own kernels alone"
    lacking = {"arrays", *CAPABILITIES.intersection(method.requires)} - backend.provides
    if lacking:
        return f"{backend.name} does not provide {', '.join(sorted(lacking))}"
    return ""


def _class_of(method: str | Method) -> type[Method]:
    if isinstance(method, str):
        return method_class(method)
    _check_method(type(method))
    return type(method)


@plugins.cache_until_forget
def _check_method(cls: type[Method]) -> None:
    """Kernels and records know methods by name, so that no other class may have a registered one."""
    if why := malformed.why("methods", cls):
        raise SpinbenchError(f"{_path(cls)} was given, which {why}")
    if cls.name in names("methods") and (registered := method_class(cls.name)) is not cls:
        raise SpinbenchError(f"{_path(cls)} was given, whose name {cls.name} is that of {_path(registered)}; rename it")


def _path(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"


def _elsewhere(method: type[Method]) -> str:
    runs = []
    for name in names("backends"):
        try:
            program = not why_no_program(method, backend_class(name))
        except BrokenPluginError:
            continue
        if program or kernels.candidates(method.name, name):
            runs.append(name)
    return f"{method.name} runs on {', '.join(runs) or 'no installed backend'}"
