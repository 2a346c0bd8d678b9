"""Bounds on log Z, by how certain they are."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Literal

from spinbench.api.types import LogZKind
from spinbench.foundation import deadline

if TYPE_CHECKING:
    from spinbench.inference.binding import BoundMethod
    from spinbench.models import Model

Side = Literal["lower", "upper"]
Grade = Literal["exact", "certified", "probable", "assumed"]
GRADES: tuple[Grade, ...] = ("exact", "certified", "probable", "assumed")
"""From what holds always, to what holds if draws that were given are draws of the model.

A certified bound holds with its rounding taken off; a probable one with a probability of 1 - δ over the numbers that
were drawn, whatever mixes.
"""

CERTAIN: tuple[Grade, ...] = ("exact", "certified")


@dataclass(frozen=True)
class Bound:
    """A lower or upper bound on log Z.

    Attributes:
        value: nats.
        side: "lower" or "upper".
        grade: how certain it is: exact, certified, probable or assumed.
        delta: with which probability, at most, a probable bound is wrong, or an assumed one whose assumption holds; 0
            for the others.
        by: who gave it.
    """

    value: float
    side: Side
    grade: Grade
    delta: float = 0.0
    by: str = ""


def stated(value: float | None, kind: LogZKind, others: Iterable[Bound], by: str) -> tuple[Bound, ...]:
    """All bounds of an answer: those that it names, and log Z itself if its kind is "lower", "upper" or "exact".

    Args:
        value, kind: of log Z.
        others: that the method names beside.
        by: the method, for bounds that do not say by whom they are.
    """
    sides: dict[str, tuple[Side, ...]] = {"exact": ("lower", "upper"), "lower": ("lower",), "upper": ("upper",)}
    grade: Grade = "exact" if kind == "exact" else "certified"
    of_kind = []
    if value is not None:
        of_kind = [Bound(value, side, grade, by=by) for side in sides.get(kind, ())]
    named = [replace(bound, by=bound.by or by) for bound in others]
    return tuple(dict.fromkeys([*of_kind, *named]))


@dataclass(frozen=True)
class Finding:
    """What a source of bounds has found.

    Attributes:
        bounds: on log Z.
        log_z, log_z_se, log_z_error_bound: an estimate with its errors, or None.
        believed: whether the run's verdict on its estimate is "ok".
        by: who; empty: the source.
        look: number of the draws that were looked at: probable bounds of one number, which hold whenever one looks, are
            wrong together with the probability of one.
    """

    bounds: tuple[Bound, ...]
    log_z: float | None = None
    log_z_se: float | None = None
    log_z_error_bound: float | None = None
    believed: bool = False
    by: str = ""
    look: int = 0

    @property
    def exact(self) -> bool:
        """Whether it ends the search."""
        return any(bound.grade == "exact" for bound in self.bounds)


@dataclass(frozen=True)
class BoundRequest(ABC):
    """What a source of bounds is asked.

    Attributes:
        model: whose log Z.
        seconds: that the source should take, of the clock.
        seed: of its random numbers.
        delta: with which probability each of its looks may be wrong, or an assumed bound whose assumption holds.
        max_gib: memory, in GiB.
        clock: tells seconds, of wall-clock or of the CPU, as the budget counts them.
    """

    model: Model
    seconds: float
    seed: int = 0
    delta: float = 1e-3
    max_gib: float = 1.0
    clock: Callable[[], float] = deadline.now

    @abstractmethod
    def run(self, method: str, samples: int | None = None, backend: str | None = None, **options: object) -> Finding:
        """What a run of a registered method says: its bounds, and log Z where it is an estimate.

        Args:
            method: its name.
            samples: of each chain; None: as many as the seconds allow.
            backend: a registered name; None: the first that runs it.
            options: others of `spinbench.run`, and settings of the method.

        Raises:
            SpinbenchError: as of `spinbench.run`; no backend runs it.
        """

    @abstractmethod
    def plan(self, method: str, backend: str | None = None, **settings: object) -> BoundMethod:
        """A registered method for what simplifying leaves of the model, and the engine that runs it; for built-in
        sources.

        Raises:
            UnsupportedError: as of `Method.plan`; all kernels refuse and there is no program.
        """


class BoundSource(ABC):
    """Who bounds log Z for `spinbench.bracket`: a class in `spinbench.bounds`, in a process that ends with its time.

    Class attributes:
        name: that of the entry point.
        share: of the budget; 0: all that is left.
        order: sources are asked from the lowest to the highest. Built-in ones have 10 to 100, the last of which takes
            what is left.
        kept_share: share that those before it leave it, however long they take.
        looks: how many probable bounds it gives of different draws, which may each be wrong; all sources' share delta
            equally.
        assumed: True: it gives bounds of grade "assumed", and is asked with `assumed=True` alone.
    """

    name: ClassVar[str]
    share: ClassVar[float]
    order: ClassVar[float] = 75
    kept_share: ClassVar[float] = 0.0
    looks: ClassVar[int] = 0
    assumed: ClassVar[bool] = False

    @abstractmethod
    def find(self, request: BoundRequest) -> Iterator[Finding]:
        """Each better bound as soon as it is there: the process may be ended before the next.

        Raises:
            SpinbenchError: it gives none of this model; says why.
        """

    def find_quickly(self, request: BoundRequest) -> Iterator[Finding]:
        """Lower bounds that take milliseconds and no compiler, for `spinbench.advise`; by default none."""
        return iter(())

    def load(self, request: BoundRequest) -> None:  # noqa: B027
        """Load, or compile, what `find` runs, which is not counted; by default nothing.

        Args:
            request: of a small model of the same kind, and a hundredth of a second.
        """


class MethodBounds(BoundSource):
    """What a run of the registered method of the same name says."""

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        yield request.run(self.name, delta=request.delta) if self.looks else request.run(self.name)

    def load(self, request: BoundRequest) -> None:
        request.run(self.name, 8, chains=2, simplify=False)


class StepwiseBounds(BoundSource):
    """Of which `find`, asked for a small model and next to no time, runs once what it runs at all, and so loads it."""

    def load(self, request: BoundRequest) -> None:
        for _ in self.find(request):
            pass
