"""A library that is asked to do a row's work."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from comparison.answers import Answer, Judge


class MissingPeerError(Exception):
    """A library that is not installed here, or does not run with what is; the message says which and why."""


@dataclass(frozen=True, eq=False)
class Contender:
    """What one library does for a row.

    Attributes:
        library: its name; spinbench with the backend.
        distribution: whose version stands in the table.
        precision: of its arithmetic.
        asked: what it was asked to do, in a few words.
        work: units of the row (updates, samples, solutions) in one call.
        prepare: from the number of the turn to what one `call` gets; not timed.
        call: what is timed, several times in a turn if it is short; waits until everything is computed.
        answer: from what `call` returned to something to be judged.
        build_seconds: CPU time of building and planning the model, before anything was timed.
        own_seconds: seconds of a call that the library itself counts as work; None: all of them.
        check: answers in place of those of the timed calls, where these are too few draws to be judged.
        share: the draws of a timed call per draw of an answer of `check`; NaN where they are of another model.
        compiles: whether the first call compiles, and so is no measurement however slow it is.
        bar: the ratio to the reference that is aimed at; None without one.
    """

    library: str
    distribution: str
    precision: str
    asked: str
    work: float
    prepare: Callable[[int], Any]
    call: Callable[[Any], Any]
    answer: Callable[[Any], Answer]
    build_seconds: float = 0.0
    own_seconds: Callable[[Any], float] | None = None
    check: Callable[[], Sequence[Answer]] | None = None
    share: float = 1.0
    compiles: bool = False
    bar: float | None = None

    @property
    def ours(self) -> bool:
        """Whether this is spinbench."""
        return self.distribution == "spinbench"

    @property
    def version(self) -> str:
        """Of the installed distribution."""
        return importlib.metadata.version(self.distribution)


@dataclass(frozen=True)
class Race:
    """A row of the comparison.

    Attributes:
        name: what work it is.
        unit: what is counted, in the plural: "updates", "samples", "solutions".
        reference: the library that ratios are relative to.
        judge: of all contenders' answers.
        contenders: in the order in which they take turns.
        missing: sentences about peers that are not here.
    """

    name: str
    unit: str
    reference: str
    judge: Judge
    contenders: Sequence[Contender]
    missing: Sequence[str] = ()


def counted(number: int, what: str) -> str:
    """ "1 chain", "100 chains"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def need(module: str, distribution: str | None = None) -> None:
    """Raises MissingPeerError unless `module` is installed; imports nothing but parent packages."""
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise MissingPeerError(f"{distribution or module} is not installed")


def present(*makers: Callable[[], Contender]) -> tuple[list[Contender], list[str]]:
    """The contenders that are here, and sentences about those that are not."""
    here, missing = [], []
    for make in makers:
        try:
            here.append(make())
        except MissingPeerError as error:
            missing.append(str(error))
    return here, missing
