"""Metrics: numbers that rate a result, of which lower or higher values are better."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:
    from spinbench.inference.result import Result
    from spinbench.models import Model


class Measured(NamedTuple):
    """A metric's value and its standard error; None if it is not random."""

    value: float
    standard_error: float | None = None


class Metric(ABC):
    """A number that rates a result; recorded with every cell, shown in leaderboard and report, tracked over commits.

    Its name is that of its entry point. The history and the gate compare logarithms, so that values must be positive
    there; those of which higher ones are better are tracked as their reciprocals.
    """

    title: ClassVar[str]
    """A few words, the heading of its column; empty: it is in records, and in no table."""
    unit: ClassVar[str] = ""
    better: ClassVar[Literal["lower", "higher"]] = "lower"
    families: ClassVar[tuple[str, ...]] = ()
    """Of the benchmarks that track it, such as ("inference", "gate"); empty: it is in records and reports alone."""
    version: ClassVar[str] = "1"
    """Another one starts a new series; for when its meaning changes."""
    floor: ClassVar[float] = 1e-9
    """Tracked values below it count as equal to it."""
    judged: ClassVar[Literal["accuracy", "no"]] = "no"
    """Whether `spinbench gate` refuses a commit that makes it worse where the numbers changed."""
    margin: ClassVar[float] = 0.10
    """If judged: the relative change that passes, however certain it is."""
    alpha: ClassVar[float] = 0.004
    """If judged: the probability that an unchanged program is called worse by this metric in any cell."""
    falls: ClassVar[float] = 0.0
    """If judged: the power of the number of samples with which it falls."""
    timed: ClassVar[bool] = False
    """Whether it depends on how fast the machine was: `spinbench rerun` expects the same number of all others."""

    @abstractmethod
    def measure(self, model: Model, result: Result, reference: Result | None) -> Measured | str:
        """The metric's value for a result, or in a sentence why there is none.

        Args:
            model: as it was run.
            result: what the method found.
            reference: the exact answer, with `pairs` if the result has pairs and they are within reach; None where
                there is none.
        """
