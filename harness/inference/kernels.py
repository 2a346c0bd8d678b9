"""Kernels of a pair: whose are asked and in which order, which one runs, and why the others do not."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import Any, Literal

from spinbench.api import Backend, Engine, Kernel, Method, Tables, malformed
from spinbench.api.kernel import ProgramKernel
from spinbench.api.old_members import read_own
from spinbench.api.profile import BackendProfile
from spinbench.errors import BrokenPluginError, SpinbenchError, UnsupportedError
from spinbench.foundation import plugins, remarks
from spinbench.models import Model


@dataclass(frozen=True)
class Wish:
    """What is asked of a pair beyond its names.

    Attributes:
        tier: "native": a kernel or nothing; "generic": the method's program or nothing; None: the first kernel that
            does not refuse, else the program.
        kernel: the distribution whose kernel is asked; None: those of the method's own distribution, then of the
            backend's.

    Raises:
        SpinbenchError: it makes no sense.
    """

    tier: Literal["native", "generic"] | None = None
    kernel: str | None = None

    def __post_init__(self) -> None:
        if self.tier not in (None, "native", "generic"):
            raise SpinbenchError(f"tier={self.tier!r} was given; native and generic are allowed")
        if not isinstance(self.kernel, str | None):
            raise SpinbenchError(f"kernel={self.kernel!r} was given; the name of a distribution is needed")
        if self.kernel is not None and self.tier == "generic":
            raise SpinbenchError(f"kernel={self.kernel} was given with tier=generic, which runs no kernel")


ANY = Wish()


@plugins.cache_until_forget
def candidates(method: str, backend: str, wish: Wish = ANY) -> tuple[EntryPoint, ...]:
    """The kernels of a pair in the order in which they are asked; nothing is imported.

    Nobody takes over a pair of others: kernels of further distributions are asked by `Wish.kernel` alone.

    Raises:
        UnknownNameError: the distribution that `wish` names has no kernel at all.
    """
    if wish.tier == "generic":
        return ()
    if wish.kernel is not None:
        homes = [check_distribution(wish.kernel)]
    else:
        owners = (plugins.entry_points("methods").get(method, ()), plugins.entry_points("backends").get(backend, ()))
        homes = [plugins.distribution(point) for points in owners for point in points[:1]]
    points = _of_pair(method, backend)
    return tuple(dict.fromkeys(point for home in homes for point in points if plugins.distribution(point) == home))


@plugins.cache_until_forget
def describe_others(method: str, backend: str, wish: Wish = ANY) -> tuple[str, ...]:
    """A sentence for each kernel of another distribution, which is asked only where it is chosen."""
    if wish.tier == "generic" or wish.kernel is not None:
        return ()
    ours, sentences = candidates(method, backend, wish), []
    for point in _of_pair(method, backend):
        if point not in ours:
            name = plugins.distribution(point)
            ways = f"kernel={name} (backend.kernel in a sweep)"
            sentences.append(f"{plugins.origin(point)} has a kernel {point.name}, which is asked only with {ways}")
    return tuple(sentences)


def device_of(backend: type[Backend]) -> str:
    """Where it runs unless told otherwise: the default of its constructor."""
    return str(inspect.signature(backend).parameters["device"].default)


def own_backends() -> list[str]:
    """Names of the backends that are no other libraries."""
    return [name for name in plugins.entry_points("backends") if not is_peer(name)]


def backends_by_preference() -> list[str]:
    """Names of the same, in the order in which they are asked for a method."""
    return sorted(own_backends(), key=lambda name: -backend_profile(name).priority)


def cache_variables() -> list[str]:
    """Environment variables with the folders of compiled code that processes share."""
    return [name for backend in backends_by_preference() if (name := backend_profile(backend).compiled)]


@plugins.cache_until_forget
def backend_profile(backend: str) -> BackendProfile:
    """What a backend's class says of itself; the default where it says nothing, is broken or not installed."""
    try:
        profile = vars(plugins.load("backends", backend, lambda plugin: "")).get("profile")
    except (SpinbenchError, TypeError):
        profile = None
    return profile if isinstance(profile, BackendProfile) else BackendProfile()


def is_peer(backend: str) -> bool:
    """Whether a backend is another library, which has its own kernels alone; a broken one is none."""
    try:
        return "arrays" not in getattr(plugins.load("backends", backend, lambda plugin: ""), "provides", {"arrays"})
    except BrokenPluginError:
        return False


def load(point: EntryPoint) -> Any:
    """The class of a kernel.

    Raises:
        BrokenPluginError: it raised on import, or is no class with what an `Engine` has.
    """
    return plugins.load_point("kernels", point, malformed.kernel)


def first(
    points: Iterable[EntryPoint], method: Method, backend: Backend, model: Model, tables: Tables
) -> tuple[Engine | ProgramKernel | None, str, list[str]]:
    """The first of the kernels that does not refuse, constructed.

    Returns:
        The kernel, or None where all refuse or there is none; its distribution and version; the refusals of those
        before it, a sentence each.

    Raises:
        BrokenPluginError: one of them cannot be loaded, or says nothing understandable when it is asked.
    """
    refusals: list[str] = []
    for point in points:
        kernel = load(point)
        why = _refusal(kernel, point, method, backend, model)
        if not why:
            try:
                return kernel(method, backend, model, tables), plugins.origin(point), refusals
            except UnsupportedError as refusal:
                why = str(refusal)
            except SpinbenchError:
                raise
            except Exception as error:
                error.add_note(f"kernel {point.name!r} (from {plugins.origin(point)}) could not be made")
                raise
        refusals.append(f"kernel {point.name} of {plugins.origin(point)} refused: {' '.join(why.split())}")
    return None, "", refusals


def is_for_device(point: EntryPoint, device: str) -> bool:
    """Whether a kernel is made for a device; an `Engine` that does not say is made for all."""
    return device in read_own(load(point), "devices", {device})


def _refusal(
    kernel: type[Kernel] | Callable[..., Kernel], point: EntryPoint, method: Method, backend: Backend, model: Model
) -> str:
    # An `Engine` need not be a `Kernel` and may lack `refuses`.
    ask = getattr(kernel, "refuses", None)
    if ask is None:
        return ""
    name = f"kernel {point.name!r} (from {plugins.origin(point)})"
    try:
        why = ask(method, backend, model)
    except Exception as error:
        text = " ".join(str(error).split())
        raise BrokenPluginError(f"{name} failed in refuses: {type(error).__name__}: {text}") from error
    if not isinstance(why, str) or (why and not why.strip()):
        raise BrokenPluginError(f"{name} answered refuses with {why!r}; a sentence is needed, or an empty text")
    return why


def astray() -> tuple[str, ...]:
    """A sentence for each kernel whose name is that of no pair: misspelt, or for what is not installed."""
    methods, backends = plugins.entry_points("methods"), plugins.entry_points("backends")
    sentences = []
    for name, points in plugins.entry_points("kernels").items():
        method, _, backend = name.partition(".")
        if method not in methods or backend not in backends:
            sentences += [
                f"{plugins.origin(point)} has a kernel {name}: there is no such METHOD.BACKEND" for point in points
            ]
    return tuple(sentences)


def _of_pair(method: str, backend: str) -> list[EntryPoint]:
    return sorted(plugins.entry_points("kernels").get(f"{method}.{backend}", ()), key=plugins.distribution)


def check_distribution(name: str) -> str:
    """The distribution of that name, as packages write it.

    Raises:
        UnknownNameError: it has no kernel at all.
    """
    owners = {plugins.distribution(point) for points in plugins.entry_points("kernels").values() for point in points}
    if plugins.normalise(name) not in owners:
        raise remarks.unknown_name("distribution with kernels", name, sorted(owners))
    return plugins.normalise(name)
