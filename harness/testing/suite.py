"""The list of checks of a backend, a method, a pair or everything."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from spinbench.api import Backend, Method
from spinbench.errors import BrokenPluginError, SpinbenchError, UnsupportedError
from spinbench.foundation.remarks import unknown_name
from spinbench.inference import kernels, registry
from spinbench.inference.kernels import Wish
from spinbench.inference.runner import run
from spinbench.testing import (  # noqa: F401  modules register their checks
    agreement,
    answers,
    behaviour,
    diagnostics,
    many_variables,
    shapes,
    state_leaks,
    stationarity,
    stored_states,
    streams,
    variants,
    whole_numbers,
)
from spinbench.testing.backends import arrays, default_members, randomness  # noqa: F401
from spinbench.testing.check import BACKEND_CHECKS, PAIR_CHECKS, Check, require, require_refusal, skip
from spinbench.testing.diagnostics import MAX_REPLICAS
from spinbench.testing.laws.cases import three_state_model
from spinbench.testing.pair import CHAINS, Pair

# The checks that find most errors, in this order, if time is short.
FIRST = (
    *("kernel", "plan", "accuracy, dense", "accuracy, one to nine states", "accuracy, zeros"),
    *("accuracy, a state of no weight", "accuracy, 101 variables", "17 chains", "determinism", "hidden state"),
    *("independence of batching", "end of iterations", "stationarity, dense", "calibration, dense"),
    *("calibration, three states", "independence of chains", "seeds", "last digits", "accuracy, dense, float32"),
)


def checks(
    backend: str | None = None,
    method: str | None = None,
    *,
    chains: int = CHAINS,
    tier: Literal["native", "generic"] | None = None,
    kernel: str | None = None,
    device: str = "cpu",
    **settings: Any,
) -> list[Check]:
    """All checks of a backend, of a method, of both as a pair, or of everything.

    A backend's checks are those of its own and those of every method on it; a method's are those on every backend.

    Args:
        backend, method: names; by default all, but no backend that is another library.
        chains: that most checks run; fewer are quicker, and find less.
        tier, kernel: as of `spinbench.run`: the program beside a kernel, or another distribution's kernel.
        device: "cpu" or "gpu", which leaves backends out that have none.
        settings: of the method.

    Raises:
        UnknownNameError, SpinbenchError: there is no such plugin or setting; settings of no method; a device of no
            backend; chains that are no multiple of 64.
    """
    if settings and method is None:
        raise SpinbenchError(f"the setting {next(iter(settings))} was given without a method; name one")
    for kind, name in (("backends", backend), ("methods", method)):
        if name is not None and name not in registry.names(kind):  # type: ignore[arg-type]
            raise unknown_name(kind[:-1], name, registry.names(kind))  # type: ignore[arg-type]
    backends = [name for name in kernels.own_backends() if _has_device(name, device)]
    if backend is not None:
        backends = [backend]
    if not backends:
        raise SpinbenchError(f"device={device} was given, which no backend provides; cpu and gpu are known")
    methods = [name for name in registry.names("methods") if method in (None, name)]
    selected: list[Check] = []
    if method is None or backend is not None:
        selected += [check for name in backends for check in backend_checks(name, device)]
    how: dict[str, Any] = {"chains": chains, "tier": tier, "kernel": kernel, "device": device, **settings}
    return selected + [check for m in methods for b in backends for check in method_checks(m, b, **how)]


def _has_device(backend: str, device: str) -> bool:
    try:
        return device == "cpu" or device in registry.backend_class(backend).provides
    except BrokenPluginError:
        return True


def _device_refusal(backend: str, device: str) -> str:
    """Why a backend finds no such device; empty if it does, or is its own by default, which need not be asked for."""
    kind = registry.backend_class(backend)
    try:
        if device != "cpu" or device != kernels.device_of(kind):
            kind(precision=arrays.available_precisions(backend)[-1], device=device)
    except UnsupportedError as refusal:
        return str(refusal)
    return ""


def backend_checks(backend: str, device: str = "cpu") -> list[Check]:
    """Checks of a backend without methods. A backend that is not installed, or lacks the device, gives a single check,
    which is skipped with the reason."""
    try:
        provides = registry.backend_class(backend).provides
    except BrokenPluginError as error:
        return [Check(backend, "import", partial(_raise_error, error))]
    if missing := registry.missing(registry.backend_class(backend)):
        return [Check(backend, "construction", partial(skip, f"{', '.join(missing)} not installed here"))]
    if why := _device_refusal(backend, device):
        return [Check(backend, "construction", partial(skip, why))]
    named_bodies: list[tuple[str, Callable[[], None]]] = [
        ("declaration", partial(default_members.check_declaration, backend)),
        ("construction", partial(default_members.check_construction, backend)),
    ]
    if "arrays" not in provides:
        return [Check(backend, name, body) for name, body in named_bodies]
    for precision in arrays.available_precisions(backend):
        make = partial(registry.backend_class(backend), precision=precision, device=device)
        for name, body, arguments in BACKEND_CHECKS.checks_for(make):
            named_bodies.append((f"{name} ({precision})", partial(_run_on_backend, body, make, *arguments)))
    return [Check(backend, name, body) for name, body in named_bodies]


def method_checks(
    method: str,
    backend: str,
    *,
    chains: int = CHAINS,
    tier: Literal["native", "generic"] | None = None,
    kernel: str | None = None,
    device: str = "cpu",
    **settings: Any,
) -> list[Check]:
    """Checks of a method with these settings on a backend, most informative first; some repeat for each value that the
    types of its settings name. A pair that does not run here gives a single check: that the refusal has a reason.

    Raises:
        UnknownNameError, SpinbenchError: an unknown plugin or setting; chains that are no multiple of 64.
    """
    if chains < MAX_REPLICAS or chains % MAX_REPLICAS:
        raise SpinbenchError(f"chains={chains} was given; a multiple of {MAX_REPLICAS} is needed")
    subject = f"{method}.{backend}"
    wish = Wish(tier, kernel)
    how = registry.support(method, backend, wish)
    if how.tier == "broken":
        return [Check(subject, "import", partial(_raise_error, BrokenPluginError(how.reason)))]
    chosen = registry.make_method(method, settings)
    if how.tier == "unavailable":
        return [Check(subject, "accuracy", partial(skip, how.reason))]
    if how.tier == "unsupported":
        return [Check(subject, "refusal", partial(_check_refusal, chosen, backend, wish))]
    if why := _device_refusal(backend, device):
        return [Check(subject, "accuracy", partial(skip, why))]
    pair = Pair(chosen, backend, arrays.available_precisions(backend)[-1], chains, wish, device)
    bodies = {name: partial(body, pair, *arguments) for name, body, arguments in PAIR_CHECKS.checks_for(pair)}
    first = [name for name in FIRST if name in bodies]
    return [Check(subject, name, bodies[name]) for name in dict.fromkeys([*first, *bodies])]


def _run_on_backend(body: Callable[..., None], make: Callable[[], Backend], *arguments: str) -> None:
    body(make(), *arguments)


def _raise_error(error: Exception) -> None:
    raise error


def _check_refusal(method: Method, backend: str, wish: Wish) -> None:
    """An unsupported pair is refused with the reason that `registry.support` gives, before any work."""
    reason = registry.support(method.name, backend, wish).reason
    require(reason.strip() and "\n" not in reason, f"the reason is {reason!r}; one sentence is needed")
    options: dict[str, Any] = {"budget": 1, "tier": wish.tier, "kernel": wish.kernel}
    message = require_refusal(
        lambda: run(three_state_model(), method, backend, **options), f"method={method.name}, backend={backend}"
    )
    require(message == reason, f"run says {message!r}, support says {reason!r}")
