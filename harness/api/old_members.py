"""Members as version 0.1 had them, which plugins may still have or read: they stand for those of today."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
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
    """A function that engines had by this name in version 0.1, called with a warning."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, engine: object, cls: type) -> Any:
        _warn(f"{cls.__name__}.{self.name}", KERNELS[self.name], stacklevel=3)
        return getattr(cls if engine is None else engine, KERNELS[self.name])


def translate_kernel(kernel: Any) -> None:
    """Give a kernel the members of today by those of version 0.1 that it, or the nearest of its bases, has alone."""
    for old, new in KERNELS.items():
        home = next(base for base in kernel.__mro__ if not {old, new}.isdisjoint(vars(base)))
        if new not in vars(home):
            _warn(f"{kernel.__name__}.{old}", new, stacklevel=5)
            setattr(kernel, new, vars(home)[old])


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
