"""Why an entry point's object is no plugin of its kind, as the end of a sentence "backend 'mine' …"."""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from typing import Any, Literal, cast, get_args

from spinbench.api.backend import Backend
from spinbench.api.kernel import ProgramKernel
from spinbench.api.method import Method
from spinbench.api.old_members import translate_kernel
from spinbench.api.profile import BackendProfile, MethodProfile
from spinbench.api.types import PROVIDED, MethodKind, ModelForm

Kind = Literal["backends", "methods", "kernels"]
_REQUIRED: dict[Kind, tuple[type, tuple[str, ...]]] = {
    "methods": (Method, ("name", "summary")),
    "backends": (Backend, ("name", "provides")),
}
"""Class and class attributes of a plugin."""


def why(kind: Kind, plugin: object) -> str:
    """Why an entry point's object cannot be used as this kind of plugin; empty if it can."""
    if kind == "kernels":
        return kernel(plugin)
    base, attributes = _REQUIRED[kind]
    if not (isinstance(plugin, type) and issubclass(plugin, base)):
        return f"is no subclass of spinbench.api.{base.__name__}"
    if lacking := [attribute for attribute in attributes if not hasattr(plugin, attribute)]:
        return f"lacks the class attribute {' and '.join(lacking)}"
    if issubclass(plugin, Method):
        return _wrong_method(plugin)
    return _wrong_backend(plugin)


def _wrong_method(plugin: Any) -> str:
    """Plugins' types are not checked, hence Any."""
    if not dataclasses.is_dataclass(cast("object", plugin)):
        return "is no dataclass"
    if not isinstance(plugin.requires, tuple):
        return f"has requires={plugin.requires!r}; a tuple is needed"
    if not isinstance(plugin.profile, MethodProfile):
        return f"has profile={plugin.profile!r}; a MethodProfile is needed"
    for member, allowed in (("kind", get_args(MethodKind)), ("model_form", get_args(ModelForm))):
        if (value := getattr(plugin, member)) not in allowed:
            return f"has {member}={value!r}; {', '.join(allowed)} are allowed"
    return ""


def _wrong_backend(plugin: Any) -> str:
    if not isinstance(plugin.provides, Set):
        return f"has provides={plugin.provides!r}; a frozenset is needed"
    if not plugin.provides & set(PROVIDED.values()):
        return f"has provides={set(plugin.provides)!r}; {' or '.join(PROVIDED.values())} has to be in it"
    if not isinstance(plugin.profile, BackendProfile):
        return f"has profile={plugin.profile!r}; a BackendProfile is needed"
    for name in ("requires", "programs"):
        if not isinstance(value := getattr(plugin, name), tuple):
            return f"has {name}={value!r}; a tuple is needed"
    return ""


def kernel(plugin: object) -> str:
    """Why an entry point's object is no kernel; empty if it may be one."""
    if not callable(plugin):
        return "is no class"
    is_bare = isinstance(plugin, type) and not issubclass(plugin, ProgramKernel)
    lacking = [name for name in ("init", "advance") if is_bare and not hasattr(plugin, name)]
    if lacking:
        return f"has no {' and no '.join(lacking)}; a spinbench.api.Kernel is needed"
    if is_bare:
        translate_kernel(plugin)
    return ""
