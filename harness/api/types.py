"""Names of types that the contracts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from spinbench.errors import BrokenPluginError

Precision = Literal["float32", "float64"]
PROVIDED: dict[Precision, str] = {"float32": "f32", "float64": "f64"}
"""What a backend provides for a precision."""
CAPABILITIES = frozenset({"arrays", "compiled", "loop", "grad", "jax", *PROVIDED.values(), "gpu"})
"""What a backend may provide, and a method require."""
LogZKind = Literal["estimate", "lower", "upper", "exact"]
Tier = Literal["native", "generic", "unsupported", "unavailable", "broken"]

MethodKind = Literal["sampler", "draws", "iteration", "direct"]
"""How a run of a method goes; `Method.kind` says what each stands for."""
RANDOM_KINDS: tuple[MethodKind, ...] = ("sampler", "draws")
"""The kinds whose answers have Monte Carlo errors."""
ModelForm = Literal["pairwise", "any", "categorical", "either"]
"""Which form of a model a method gets; `Method.model_form` says what each stands for."""

Reduction = Literal["sum", "logsumexp", "last"]
"""How a statistic is combined over the steps of a batch: summed, summed in the log domain, or its value after
the last step (a thinned draw)."""

Array = Any
"""An array of some backend."""
State = Any
"""What a chain carries from step to step; a pytree of arrays, opaque to the harness."""
Tables = Any
"""What `Method.plan` prepared for a model: a NamedTuple of NumPy arrays (nested tuples allowed)."""
Key = Any
"""A functional random key of some backend."""

if TYPE_CHECKING:
    import typing_extensions

    # The defaults let a plain `Method` stand for a method of any tables; Python's own TypeVar has defaults from 3.13
    # on.
    TablesT = typing_extensions.TypeVar("TablesT", default=Any)
    StateT = typing_extensions.TypeVar("StateT", default=Any)
else:
    TablesT, StateT = TypeVar("TablesT"), TypeVar("StateT")

Index = int | Array
"""An integer, which may be traced: the number of a loop's round, a row."""


class Namespace(Protocol):
    """The array namespace of a backend: the functions, constants and dtypes of the Python array API standard."""

    def __getattr__(self, name: str, /) -> Any: ...


def check_reductions(reductions: Mapping[str, str]) -> None:
    """Check that all reductions are known: an unknown one would be computed as another one.

    Raises:
        BrokenPluginError: one is not.
    """
    allowed = get_args(Reduction)
    for name, reduction in reductions.items():
        if reduction not in allowed:
            raise BrokenPluginError(
                f"the method's reduction of {name!r} is {reduction!r}; {', '.join(map(repr, allowed))} are known"
            )
