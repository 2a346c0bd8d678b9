"""Names of types that the contracts share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar, get_args

from spinbench.errors import BrokenPluginError

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    PerVariable = npt.NDArray[np.float64] | list[npt.NDArray[np.float64]]
    """(N,) a number of each variable of a binary model; else (K_v,) numbers of each variable's states."""
    Pairs = npt.NDArray[np.float64] | list[npt.NDArray[np.float64]] | None
    """(E,) joint probabilities of a pairwise model's edges; else a flat table of each factor. None: there are none."""
    PairsWithErrors = tuple[Pairs, Pairs]
    """Joint probabilities and their standard errors."""
    States = npt.NDArray[np.signedinteger]
    """(variable, chain) states 0 … K - 1, int8 or, where that is too short, int32."""
    Draws = tuple[np.ndarray, np.ndarray | None]
    """(N, S) integer states and their log weights (S,); None: all weigh the same."""

Precision = Literal["float32", "float64"]
LogZKind = Literal["estimate", "lower", "upper", "exact"]
Tier = Literal["native", "generic", "unsupported", "unavailable", "broken"]

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

    # Their defaults, which Python has from 3.13 on, let a plain `Method` stand for one of any tables.
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
    """All are known: an unknown one would be computed as some other.

    Raises:
        BrokenPluginError: one is not.
    """
    allowed = get_args(Reduction)
    for name, reduction in reductions.items():
        if reduction not in allowed:
            raise BrokenPluginError(
                f"the method's reduction of {name!r} is {reduction!r}; {', '.join(map(repr, allowed))} are known"
            )
