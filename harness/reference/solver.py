"""The contract of the exact solvers: an estimate of the cost first, then log Z, marginals and samples."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import ClassVar

import numpy as np

from spinbench.reference.network import FloatArray, IntArray, Scope
from spinbench.reference.problem import Problem


class ZeroWeightError(Exception):
    """No state has positive weight."""


class PrecisionError(Exception):
    """Float64 does not hold what the solver needs; the message completes "no exact answer: …"."""


class GaveUpError(PrecisionError):
    """The time or the memory that a solver was allowed was not enough; the message is told beside those of others."""


class Solver(ABC):
    """One way to an exact answer for one problem. Making one is cheap and takes no large memory.

    Attributes:
        name: as in `solve(method=…)`.
        detail: what a refusal says beside the name.
        backend: where it computes.
        can_sample: whether `sample` is there.
        width: the induced width, or the number of variables that are summed jointly; None for a closed form.
        complete: False where width and memory are lower limits, the search for better ones being given up.
        seconds: a rough guess of the time for log Z and marginals, by which "auto" chooses.
        predictable: whether `predict_seconds` says what `solve` takes, and is shown.
        risk: by which it multiplies them, of a solver that may have to leave its answer to a slower one.
        is_named: whether the caller asked for it, so that it takes all of the time that it may, though hope be little.
        most_seconds: what `solve` may take, for those that cannot predict it.
        most_bytes: what `solve` may take, for those that see only on the way how much they need.
    """

    name: ClassVar[str]
    detail: ClassVar[str] = ""
    backend: ClassVar[str] = "numpy"
    can_sample: ClassVar[bool] = True
    predictable: ClassVar[bool] = True
    width: int | None
    complete: bool = True
    seconds: float
    risk: ClassVar[float] = 1.0
    is_named: bool = False
    most_bytes: float = math.inf
    most_seconds: float = math.inf

    @classmethod
    @abstractmethod
    def build(cls, problem: Problem) -> Solver:
        """The solver for this problem.

        Raises:
            NotApplicableError: the problem is of another kind.
        """

    @classmethod
    def passed_by(cls, problem: Problem) -> bool:
        """Whether "auto" leaves this solver out, since another one has the answer before this one is loaded.

        Raises:
            NotApplicableError: the problem is of another kind.
        """
        return False

    def predict_seconds(self, *, marginals: bool) -> float:
        """Of `solve`; `seconds` unless the solver knows better."""
        return self.seconds

    def slice(self, max_bytes: int, *, marginals: bool) -> Solver | None:
        """The same a slice at a time, in so much memory; None where that cannot be."""
        return None

    @abstractmethod
    def memory(self, *, marginals: bool) -> int:
        """Peak bytes of `solve`; `sample` takes no more than with marginals, its result apart."""

    @abstractmethod
    def solve(self, *, marginals: bool) -> tuple[float, FloatArray | None]:
        """log Z, and the marginals of all variables of the problem, one after another.

        Raises:
            ZeroWeightError: Z = 0; `sample` too.
            PrecisionError: float64 does not do; `sample` too.
        """

    def interrupt(self) -> None:
        """Lets `solve`, which another thread is at, end soon and raise, where compiled code looks whether it is to."""
        return None

    def fallbacks(self) -> Iterator[Solver]:
        """Who else can treat the problem in this way, where `solve` raises PrecisionError."""
        return iter(())

    def sample(self, count: int, rng: np.random.Generator) -> IntArray:
        """Independent draws, (count, n)."""
        raise NotImplementedError(f"{self.name} gives no samples")

    def joint_tables(self) -> dict[Scope, FloatArray]:
        """Probabilities over the scope of each of the network's tables; raises as `solve`."""
        raise NotImplementedError(f"{self.name} gives no joint tables")


def binary_marginals(ones: FloatArray) -> FloatArray:
    """(2n,) 1 - p and p of each p(s_i = 1), shape (n,)."""
    both = np.empty((ones.size, 2))
    both[:, 1] = ones
    np.subtract(1.0, ones, out=both[:, 0])
    return both.ravel()


def draw(log_weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """Indices drawn in proportion to exp(log_weights), a flat array; shape (count,)."""
    peak = log_weights.max()
    if peak == -np.inf:
        raise ZeroWeightError
    cumulative = np.cumsum(np.exp(log_weights - peak))
    at = np.searchsorted(cumulative, rng.random(count) * cumulative[-1], side="right")
    # Rounding must not select an entry of weight zero beyond the last positive one.
    last = int(np.flatnonzero(np.diff(cumulative, prepend=0.0))[-1])
    return np.asarray(np.minimum(at, last), dtype=np.int64)


def draw_states(weights: FloatArray, count: int, rng: np.random.Generator) -> IntArray:
    """(count,) states, each in proportion to its column of weights (states, count), or to the one that there is."""
    cumulative = np.cumsum(weights, axis=0)
    # u stays below the last sum: rounding must not select a state of weight zero.
    below = np.nextafter(cumulative[-1], 0.0)
    u = np.minimum(rng.random(count) * cumulative[-1], below)
    return np.asarray((u >= cumulative[:-1]).sum(axis=0))
