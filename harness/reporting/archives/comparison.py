"""One's own results among those of an archive."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import msgspec

from spinbench.foundation.remarks import format_count
from spinbench.measuring.archive import ArchiveError
from spinbench.measuring.record_types import Record
from spinbench.reporting.profiles.boards import Board, solver_names
from spinbench.reporting.profiles.profile import profile

# Machines whose ratio of speeds lies within these are alike.
ALIKE = (0.8, 1.25)


@dataclass(frozen=True)
class Place:
    """A solver's place on a board of an archive.

    Attributes:
        solver: METHOD.BACKEND with its settings.
        board: what is compared, after which budget.
        rank: mean rank over the models.
        low, high: its 95 % interval.
        place: by mean rank, from 1.
        solvers: number of solvers on the board, this one included.
        models: number of models.
    """

    solver: str
    board: str
    rank: float
    low: float
    high: float
    place: int
    solvers: int
    models: int

    def __str__(self) -> str:
        return (
            f"{self.solver}: place {self.place} of {self.solvers} in {self.board}, mean rank {self.rank:.1f} "
            f"({self.low:.1f}–{self.high:.1f}) over {format_count(self.models, 'model')}"
        )


@dataclass(frozen=True)
class Comparison:
    """One's own results on an archive's board.

    Attributes:
        places: of each own solver on each board.
        remarks: on machines, models and cells that were left out.
    """

    places: tuple[Place, ...]
    remarks: tuple[str, ...]


def compare(archive: Sequence[Record], submitted: Sequence[Record]) -> Comparison:
    """Place one's own solvers on the board of an archive, over the models that both have run.

    Models are the same if their files are, whatever they are called. Budgets are taken as they are: those in CPU
    seconds of a faster machine are worth more, by the ratio that the remarks name.

    Raises:
        ArchiveError: no model or no budget is common, or no own solver is new to the archive.
    """
    labels = {_model_key(record): record.axes.model for record in archive}
    known = set(solver_names(archive))
    theirs = [record for record in submitted if _model_key(record) in labels]
    if not theirs:
        raise ArchiveError("none of the models is in the archive; models are told by the contents of their files")
    named = zip(theirs, solver_names(theirs), strict=True)
    new = [_relabel(record, labels[_model_key(record)]) for record, solver in named if solver not in known]
    if not new:
        raise ArchiveError("all of the solvers are in the archive already; spinbench archive check measures them again")
    models = {record.axes.model for record in new}
    solvers = set(solver_names(new))
    boards = profile([*(record for record in archive if record.axes.model in models), *new]).boards
    places = [
        _place(board, i)
        for board in boards
        if not board.budget or not {*board.solvers} <= solvers
        for i, solver in enumerate(board.solvers)
        if solver in solvers
    ]
    if not places:
        raise ArchiveError("no budget is common to the archive and these records")
    return Comparison(tuple(places), tuple(_remarks(archive, submitted, new)))


def _place(board: Board, i: int) -> Place:
    """Of the board's solver number i."""
    ranks = board.ranks
    title = " after ".join(filter(None, (board.quantity.name, board.budget)))
    low, mean, high = (float(ranks_of_all[i]) for ranks_of_all in (ranks.low, ranks.mean, ranks.high))
    return Place(board.solvers[i], title, mean, low, high, i + 1, len(board.solvers), len(board.models))


def _model_key(record: Record) -> object:
    """Equal for equal models: the contents of its files, or its label."""
    if record.files:
        settings = {key: value for key, value in record.config["model"].items() if key not in record.files}
        return (*sorted(map(str, record.files.items())), str(sorted(settings.items())))
    return record.axes.model


def _relabel(record: Record, model: str) -> Record:
    return msgspec.structs.replace(record, axes=msgspec.structs.replace(record.axes, model=model))


def _remarks(archive: Sequence[Record], submitted: Sequence[Record], new: Sequence[Record]) -> Iterator[str]:
    if len(new) < len(submitted):
        yield f"{len(new)} of {len(submitted)} records count: models or solvers of the others are not new to the board"
    here, there = (_loop_seconds(records) for records in (new, archive))
    if here is None or there is None:
        yield "how fast the machines are is not known: records lack the yardstick, a fixed loop"
        return
    ratio = there / here
    alike = "alike" if ALIKE[0] <= ratio <= ALIKE[1] else "NOT alike, so that budgets in seconds are not the same work"
    yield f"this machine runs a fixed loop {ratio:.2f} times as fast as the archive's: {alike}; nothing was rescaled"


def _loop_seconds(records: Iterable[Record]) -> float | None:
    loads = [record.result_or_none.load for record in records if record.result_or_none is not None]
    seconds = [second for load in loads if load is not None for second in load.yardstick or ()]
    return statistics.median(seconds) if seconds else None
