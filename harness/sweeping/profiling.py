"""Where the wall time of a sweep went (`spinbench sweep --profile`)."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from spinbench.foundation.remarks import format_count
from spinbench.measuring import record_types, records, stages
from spinbench.reporting.progress_display import new_table

# Stages that run once for all cells.
SWEEP = {
    "before": "the first cell: names, folder, state of the code",
    "report": "at the end, with its pictures",
    "history": "records into asv's",
}


class Clock:
    """Of a sweep, beside the clocks of its cells.

    Args:
        earlier: ids of the records that were there before.
        before: seconds that went by before the first cell.

    Attributes:
        earlier: as given.
        stages: "before", "report" and "history".
    """

    def __init__(self, earlier: Set[str], before: float) -> None:
        self.earlier = earlier
        self.stages = stages.Stages()
        self.stages.add("before", before)
        self._processor = time.process_time()

    def show(self, output: Console, folder: Path, wall: float) -> None:
        """Print where the time went; `wall` seconds in all."""
        try:
            cell_records = [record for record in records.read_records(folder) if record.id not in self.earlier]
        except records.RecordError:
            cell_records = []
        output.print()
        output.print(table(cell_records, self.stages.seconds, wall))
        output.print(sentence(cell_records, self.stages.seconds), soft_wrap=True)
        used = time.process_time() - self._processor
        output.print(
            f"processor time of the sweep's own process, which other programs do not lengthen: {used:.2f} s, "
            f"{used / max(len(cell_records), 1):.3f} s a cell",
            soft_wrap=True,
        )


def totals(cell_records: Sequence[record_types.Record]) -> dict[str, float]:
    """Seconds of each stage, summed over cells; records of older versions have none."""
    return {name: sum((record.stages or {}).get(name, 0.0) for record in cell_records) for name in stages.STAGES}


def harness_seconds_per_cell(cell_records: Sequence[record_types.Record], once: Mapping[str, float]) -> float:
    """Seconds a cell that the harness adds beside process start and imports."""
    seconds = totals(cell_records)
    return (sum(seconds[name] for name in stages.OVERHEAD) + sum(once.values())) / max(len(cell_records), 1)


def sentence(cell_records: Sequence[record_types.Record], once: Mapping[str, float]) -> str:
    """The overhead in words."""
    each = harness_seconds_per_cell(cell_records, {})
    return (
        f"harness overhead beside process start and imports: {each:.3f} s a cell ({', '.join(stages.OVERHEAD)}), "
        f"{harness_seconds_per_cell(cell_records, once):.3f} s with what is done once ({', '.join(SWEEP)})"
    )


def table(cell_records: Sequence[record_types.Record], once: Mapping[str, float], wall: float) -> Table:
    """Stages with their seconds a cell, in all, and as a share of the wall time."""
    cells = len(cell_records)
    title, numbers = (
        f"where {wall:.1f} s went: {format_count(cells, 'cell')} measured",
        ("s a cell", "s in all", "share"),
    )
    columns = ("stage", "of", *numbers)
    every = [(name, stages.STAGES[name], seconds) for name, seconds in totals(cell_records).items()]
    every += [(name, SWEEP[name], once.get(name, 0.0)) for name in SWEEP]
    rows = [
        (name, description, f"{seconds / max(cells, 1):.4f}", f"{seconds:.2f}", f"{seconds / max(wall, 1e-9):.1%}")
        for name, description, seconds in every
    ]
    style: dict[str, Any] = {"title_style": "bold", "padding": (0, 0)}
    return new_table(title, columns, rows, number_columns=numbers, unfolded_columns=("stage",), **style)
