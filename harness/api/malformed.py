"""Why what an entry point names is no plugin of its kind, in the words that complete "backend 'mine' …"."""

from __future__ import annotations

import dataclasses
from collections.abc import Set
from typing import Any, Literal, cast

from spinbench.api.backend import Backend
from spinbench.api.method import Method
from spinbench.api.types import Precision

Kind = Literal["backends", "methods", "kernels"]
TAKES = ("pairwise", "any", "categorical", "either")
PROVIDED: dict[Precision, str] = {"float32": "f32", "float64": "f64"}
"""What a backend provides for a precision."""


def why(kind: Kind, found: Any) -> str:
    """Why what an entry point names cannot be used as this kind; empty if it can."""
    if kind == "kernels":
        return kernel(found)
    base = Method if kind == "methods" else Backend
    if not (isinstance(found, type) and issubclass(found, base)):
        return f"is no subclass of spinbench.api.{base.__name__}"
    attributes = ("name", "summary") if kind == "methods" else ("name", "provides")
    if lacking := [attribute for attribute in attributes if not hasattr(found, attribute)]:
        return f"lacks the class attribute {' and '.join(lacking)}"
    return _wrong_method(found) if issubclass(found, Method) else _wrong_backend(found)


def _wrong_method(found: Any) -> str:
    """Plugins' types are not checked, hence Any."""
    if not dataclasses.is_dataclass(cast("object", found)):
        return "is no dataclass"
    if not isinstance(found.needs, Set):
        return f"has needs={found.needs!r}; a frozenset is needed"
    return "" if found.takes in TAKES else f"has takes={found.takes!r}; {', '.join(TAKES)} are allowed"


def _wrong_backend(found: Any) -> str:
    if not isinstance(found.provides, Set):
        return f"has provides={found.provides!r}; a frozenset is needed"
    if not found.provides & set(PROVIDED.values()):
        return f"has provides={set(found.provides)!r}; {' or '.join(PROVIDED.values())} has to be in it"
    for name in ("requires", "programs"):
        if not isinstance(given := getattr(found, name), tuple):
            return f"has {name}={given!r}; a tuple is needed"
    return ""


def kernel(found: Any) -> str:
    """Why what an entry point names is no kernel; empty if it may be one."""
    if not callable(found):
        return "is no class"
    lacking = [name for name in ("init", "advance") if isinstance(found, type) and not hasattr(found, name)]
    return f"has no {' and no '.join(lacking)}; a spinbench.api.Kernel is needed" if lacking else ""
