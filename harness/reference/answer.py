"""The result type of the exact solvers."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from spinbench.errors import UnsupportedError
from spinbench.reference.network import FloatArray, split


def left_open(flat: FloatArray, cardinalities: Sequence[int]) -> dict[str, float]:
    """{"open_marginals": how many variables' marginals are out of reach}, {} where none is: a result's diagnostics."""
    # The usual case: no marginal is left open.
    if not np.isnan(flat).any():
        return {}
    starts = np.cumsum([0, *cardinalities])[:-1]
    # Not the first states alone: of an impossible state 0 is known in any case.
    return {"open_marginals": float(np.logical_or.reduceat(np.isnan(flat), starts).sum())}


@dataclass(frozen=True)
class Cost:
    """What an exact answer was predicted to take.

    Attributes:
        bytes: memory at its peak.
        seconds: wall-clock time of the answer, without reading and compilation; NaN of a solver that cannot predict it.
        log2_entries: log2 of the entries of all cliques, of all slices together; None: no elimination.
        slices: in which elimination goes.
        order: variables of the model as they are eliminated; those that fall away before come first.
    """

    bytes: int
    seconds: float
    log2_entries: float | None = None
    slices: int = 1
    order: tuple[int, ...] | None = None

    @property
    def order_digest(self) -> str:
        """Of the order, for records; empty: there is none."""
        if self.order is None:
            return ""
        return hashlib.sha256(np.array(self.order, dtype="<i8").tobytes()).hexdigest()[:12]


@dataclass(frozen=True, eq=False)
class ExactAnswer:
    """log Z and marginals without approximation.

    Attributes:
        log_z: natural logarithm of Z, the model's log_constant included.
        flat: float64, the probabilities of all variables of the model, one after another; NaN of variables that sum out
            of the model, where their own are out of reach; None if they were not asked for.
        cardinalities: (N,) the states of each.
        method: the solver that gave it.
        width: its induced width, or the number of variables summed jointly; None for a closed form.
        seconds: wall-clock time of the computation, also where the answer then comes from the cache.
        compile_seconds: what loading and compiling code took beside that.
        backend: where it was computed.
        cached: whether it was read from the cache.
        cost: what it was predicted to take; None where the cache does not say.
    """

    log_z: float
    flat: FloatArray | None
    cardinalities: tuple[int, ...]
    method: str
    width: int | None
    seconds: float
    compile_seconds: float = 0.0
    backend: str = "numpy"
    cached: bool = False
    cost: Cost | None = None

    def __repr__(self) -> str:
        return f"ExactAnswer(log_z={self.log_z!r}, {len(self.marginals)} marginals, method={self.method!r})"

    @property
    def diagnostics(self) -> dict[str, float]:
        """Width, log2_entries, memory_gib, predicted_seconds, slices, as far as they are known, and `left_open`."""
        figures: dict[str, float | None] = {"width": self.width}
        if self.cost is not None:
            figures |= {
                "log2_entries": self.cost.log2_entries,
                "memory_gib": self.cost.bytes / 2**30,
                "predicted_seconds": self.cost.seconds,
                "slices": self.cost.slices,
            }
        if self.flat is not None:
            figures |= left_open(self.flat, self.cardinalities)
        return {
            name: float(figure) for name, figure in figures.items() if figure is not None and not math.isnan(figure)
        }

    @cached_property
    def marginals(self) -> tuple[FloatArray, ...]:
        """For each variable its probabilities (K_v,), views of `flat`; empty if they were not asked for."""
        if self.flat is None:
            return ()
        return tuple(split(self.flat, self.cardinalities))

    @property
    def probabilities(self) -> FloatArray:
        """(N,) p(s_i = 1) of a binary model.

        Raises:
            UnsupportedError: marginals were not computed, or a variable is not binary.
        """
        if self.flat is None:
            raise UnsupportedError("this exact answer holds log Z alone; ask for it with marginals=True")
        if any(k != 2 for k in self.cardinalities):
            v = next(v for v, k in enumerate(self.cardinalities) if k != 2)
            raise UnsupportedError(
                f"variable {v} has {self.cardinalities[v]} states; p(s = 1) of all variables is there for binary "
                "models only, use .marginals"
            )
        return np.array(self.flat[1::2])
