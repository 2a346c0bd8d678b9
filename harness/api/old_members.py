"""Members as version 0.1 had them, which plugins may still have or read: they stand for those of today."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from inspect import getattr_static
from typing import Any

from spinbench.api.types import CAPABILITIES
from spinbench.foundation.arithmetic import Arithmetic, make_operations

KINDS = {"anytime": "direct", "stochastic": "iteration", "started": "draws"}
"""Which kind False stands for, of several the first."""
CONFORMANCE = {"burnt_in": "burn_in_first", "exact_on_trees": "exact_on_trees"}
NEW = {
    **dict.fromkeys(KINDS, "kind"),
    **dict.fromkeys(CONFORMANCE, "conformance"),
    "takes": "model_form",
    "needs": "requires",
}
PLANNING = "a prediction at the beginning of `plan`, by `spinbench.foundation.deadline.require`,"
ESTIMATE = {"converged": 'the doubt "not converged"', "pairs_se": "nothing"}
OPERATIONS = ("window", "add", "add_product", "add_compensated", "sigmoid")
VERDICTS = ("status", "doubted")
KERNELS = {"climb": "temper", "slopes": "slope"}


class OldMember:
    """What a member of version 0.1 that no subclass defines is by today's, read with a warning."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, instance: object, method: Any) -> Any:
        _warn(f"{method.__name__}.{self.name}", NEW[self.name], stacklevel=3)
        if self.name in CONFORMANCE:
            return getattr(method.conformance, CONFORMANCE[self.name])
        if self.name in KINDS:
            return method.kind not in ("direct", KINDS[self.name])
        if self.name == "needs":
            return frozenset({"arrays", *CAPABILITIES.intersection(method.requires)})
        return method.model_form


class Accelerators:
    """A base that backends of version 0.1 could name beside `Backend`, which has its members."""


class OldOperation:
    """An array operation that backends of version 0.1 had, called with a warning."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, backend: Any, cls: Any) -> Any:
        if backend is None:
            return self
        _warn(f"{cls.__name__}.{self.name}", "an operation of `xp`", stacklevel=3)
        return getattr(make_operations(backend, Arithmetic), self.name)


def add_old_operations(backend: Any) -> None:
    """Make the array operations of version 0.1 callable of a class and its subclasses."""
    for name in OPERATIONS:
        setattr(backend, name, OldOperation(name))


def add_old_functions(cls: type, **functions: Callable[[Any], object]) -> None:
    """Make what `Result` has alone readable of a class of estimates, too."""
    for name, function in functions.items():
        setattr(cls, name, property(partial(_read_old, name, function)))


def _read_old(name: str, function: Callable[[Any], object], estimate: object) -> object:
    _warn(f"Estimate.{name}", "its `doubts`", stacklevel=3)
    return function(estimate)


class OldFunction:
    """A function that kernels had by this name in version 0.1, called with a warning: its class's own of today, since a
    subclass may call it from the one that takes its place."""

    def __init__(self, name: str, owner: type) -> None:
        self.name, self.function = name, vars(owner)[KERNELS[name]]

    def __get__(self, engine: object, cls: type) -> Any:
        _warn(f"{cls.__name__}.{self.name}", KERNELS[self.name], stacklevel=3)
        return self.function.__get__(engine, cls)


class OldDevices:
    """The devices that a kernel which names none was for in version 0.1, read with a warning."""

    def __get__(self, kernel: object, cls: type) -> frozenset[str]:
        _warn(f"{cls.__name__}.devices", "`refuses`", stacklevel=3)
        return frozenset({"cpu", "gpu"})


class OldUpdates:
    """The updates in a step of a method that does not count them, which those that do may ask their base for."""

    def __call__(self, tables: object) -> float:
        _warn("Method.step_updates", "nothing", stacklevel=3)
        return 0.0


def read_own(plugin: object, name: str, default: Any) -> Any:
    """A member that plugins may define as in version 0.1, without a warning where they do not."""
    is_default = isinstance(getattr_static(plugin, name, None), OldDevices | OldUpdates)
    return default if is_default else getattr(plugin, name, default)


def add_old_kernel_members(kernel: Any) -> None:
    """Make the members of version 0.1 readable of a kernel's base."""
    kernel.devices = OldDevices()
    translate_kernel(kernel)


def translate_kernel(kernel: Any) -> None:
    """Give a kernel the members of today by those of version 0.1 that it, or the nearest of its bases, has alone; and
    those of version 0.1 by those of today that it defines."""
    for old, new in KERNELS.items():
        home: Any = next((base for base in kernel.__mro__ if not {old, new}.isdisjoint(vars(base))), None)
        if home is not None and new not in vars(home):
            _warn(f"{kernel.__name__}.{old}", new, stacklevel=5)
            setattr(kernel, new, vars(home)[old])
        elif home is kernel and old not in vars(kernel):
            setattr(kernel, old, OldFunction(old, kernel))


def replace_old_arguments(doubts: tuple[str, ...], **arguments: object) -> tuple[str, ...]:
    """The doubts of an estimate that was made with arguments of version 0.1."""
    for name, value in arguments.items():
        if value is not None:
            _warn(f"Estimate.{name}", ESTIMATE[name], stacklevel=5)
    if arguments["converged"] is None or arguments["converged"]:
        return doubts
    return ("not converged", *doubts)


def predict_planning(method: Any, model: Any) -> float:
    """Seconds of `plan` that a method predicts as in version 0.1; 0 where it does not."""
    predicted: float = getattr(method, "planning_seconds", lambda model: 0.0)(model)
    return predicted


def find_old_name(name: str) -> type | None:
    """What `spinbench.api` had by this name in version 0.1 and has no more, with a warning; None if it had not."""
    if name != "Accelerators":
        return None
    _warn(f"spinbench.api: {name}", "Backend", stacklevel=4)
    return Accelerators


def add_old_members(method: Any) -> None:
    """Make the members of version 0.1 readable of a class and its subclasses."""
    for name in NEW:
        setattr(method, name, OldMember(name))
    method.step_updates = OldUpdates()


def translate_members(method: Any) -> None:
    """Set the members of today that a subclass of `Method` does not define by those of version 0.1 that it does."""
    own = vars(method)
    # version 0.1 had `requires` as well
    old = {name: own[name] for name, new in NEW.items() if name in own and (name == "needs" or new not in own)}
    for name in old:
        _warn(f"{method.__name__}.{name}", NEW[name], stacklevel=5)
    if "planning_seconds" in own:
        _warn(f"{method.__name__}.planning_seconds", PLANNING, stacklevel=5)
    if "takes" in old:
        method.model_form = old["takes"]
    if "needs" in old:
        method.requires = (*sorted(old["needs"] - {"arrays", *method.requires}), *method.requires)
    if flags := {CONFORMANCE[name]: value for name, value in old.items() if name in CONFORMANCE}:
        method.conformance = method.conformance._replace(**flags)
    if not KINDS.keys().isdisjoint(old):
        # its bases may have said the others
        kinds = [kind for name, kind in KINDS.items() if _first_definition(method, name) is False]
        method.kind = kinds[0] if kinds else "sampler"


def _first_definition(method: type, name: str) -> object:
    """A member as the class or the nearest of its bases defines it, without a warning."""
    return next(vars(base)[name] for base in method.__mro__ if name in vars(base))


def _warn(member: str, new: str, stacklevel: int) -> None:
    message = f"{member} is a member of spinbench 0.1; {new} is in its place, and 0.3 ends it"
    warnings.warn(message, DeprecationWarning, stacklevel)
