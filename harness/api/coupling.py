"""Couplings: pairs of chains that meet, whose meeting times say how long a sampler takes to forget its starts."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from spinbench.models import Model


class Pairs(Protocol):
    """P pairs of chains on their way. Attributes: met: (P,) sweeps of the chain ahead after which both were the same
    for the first time; -1: not yet."""

    @property
    def met(self) -> npt.NDArray[np.int64]: ...


PairsT = TypeVar("PairsT", bound=Pairs)


class Coupling(ABC, Generic[PairsT]):
    """Pairs of a method's chains that share their random numbers: a class in `spinbench.couplings`, for
    `spinbench.mixing`.

    Class attributes:
        name: the method's, and that of the entry point.
        backends: for which it tells, the first by default.
    """

    name: ClassVar[str]
    backends: ClassVar[tuple[str, ...]]

    @abstractmethod
    def __init__(self, model: Model, scan: str) -> None:
        """What is coupled: a model without 1-of-K groups, and "chromatic" or "raster", the order of a sweep."""

    @abstractmethod
    def start(self, seed: Sequence[int], x: np.ndarray, y: np.ndarray) -> PairsT:
        """Pairs at initial states (N, P) of the chains ahead and of those behind; P may be 0."""

    @abstractmethod
    def advance(self, pairs: PairsT, lag: int, first: int, last: int) -> None:
        """Make sweeps number first … last of the chains ahead, from 1 on; sweep s of theirs is sweep s - lag of those
        behind. Writes to the pairs; those that have met need not move."""
