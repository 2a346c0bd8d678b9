"""From timed calls to lines of a table, on the screen, as JSON and as CSV."""

from __future__ import annotations

import csv
import dataclasses
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from comparison import machine
from comparison.answers import Verdict
from comparison.contender import Contender, Race
from comparison.timing import Series
from spinbench.measuring.environment import affinity


@dataclass(frozen=True)
class Line:
    """One contender of one row; every line says where and how it ran.

    Attributes:
        row, library, version, precision, asked, unit: what was measured.
        rate: units a second, in the best turn.
        ratio: rate over that of `reference`; NaN where the reference is missing.
        bar: the ratio that is aimed at; NaN without one.
        clock: "CPU" on one core, where other processes' slices must not count, else "wall".
        seconds, median_seconds: of a call by that clock, in the best and the middle turn.
        wall_seconds, cpu_seconds: the best of each; cpu_per_wall of all turns together.
        first_seconds: CPU time of the first call, compilation included; build_seconds: the model's, before it.
        ess_rate: effective samples a second, from squared errors; NaN for solvers.
        error: from the exact answer.
        affinity: cores; threads: of BLAS and Numba; turns: timed ones; calls: in each of them.
        fault: why the answer is wrong, or "".
    """

    row: str
    library: str
    version: str
    precision: str
    asked: str
    unit: str
    rate: float
    reference: str
    ratio: float
    bar: float
    clock: str
    seconds: float
    median_seconds: float
    wall_seconds: float
    cpu_seconds: float
    cpu_per_wall: float
    first_seconds: float
    build_seconds: float
    ess_rate: float
    error: float
    affinity: str
    threads: str
    turns: int
    calls: int
    fault: str


def lines(
    race: Race, contenders: Sequence[Contender], timed: Sequence[Series], verdicts: Sequence[Verdict]
) -> list[Line]:
    """The lines of a row, for those of its contenders that ran."""
    clock = "CPU" if len(affinity()) == 1 else "wall"
    rates = [c.work / s.seconds(clock) for c, s in zip(contenders, timed, strict=True)]
    named = [r for c, r in zip(contenders, rates, strict=True) if c.library == race.reference]
    against = named[0] if named else math.nan
    return [
        Line(
            row=race.name,
            library=contender.library,
            version=contender.version,
            precision=contender.precision,
            asked=contender.asked,
            unit=race.unit,
            rate=rate,
            reference=race.reference,
            ratio=rate / against,
            bar=math.nan if contender.bar is None else contender.bar,
            clock=clock,
            seconds=series.seconds(clock),
            median_seconds=series.median(clock),
            wall_seconds=min(series.wall),
            cpu_seconds=min(series.cpu),
            cpu_per_wall=series.cpu_per_wall,
            first_seconds=series.first,
            build_seconds=contender.build_seconds,
            ess_rate=math.nan if verdict.ess is None else verdict.ess * contender.share / series.seconds(clock),
            error=verdict.error,
            affinity=machine.affinity(),
            threads=machine.threads(),
            turns=len(series.wall),
            calls=series.repeats,
            fault=verdict.fault,
        )
        for contender, series, verdict, rate in zip(contenders, timed, verdicts, rates, strict=True)
    ]


HEADER = (
    "library", "precision", "asked", "rate /s", "× reference", "aim ×", "ESS /s", "error", "best s", "median s",
    "CPU/wall", "first s", "build s", "cores; BLAS, Numba threads",
)  # fmt: skip


def table(found: Sequence[Line]) -> str:
    """Markdown, a table a row, aligned for the eye."""
    parts = []
    for row in dict.fromkeys(line.row for line in found):
        mine = [line for line in found if line.row == row]
        cells = [HEADER, *(_cells(line) for line in mine)]
        widths = [max(len(cell[k]) for cell in cells) for k in range(len(HEADER))]
        rule = tuple("-" * width for width in widths)
        text = [
            "| " + " | ".join(c.ljust(w) for c, w in zip(cell, widths, strict=True)) + " |"
            for cell in (HEADER, rule, *cells[1:])
        ]
        one = mine[0]
        parts.append("\n".join([f"**{row}** ({one.unit}; reference {one.reference}; {one.clock} time)", "", *text]))
    return "\n\n".join(parts)


def _cells(line: Line) -> tuple[str, ...]:
    return (
        f"{line.library} {line.version}",
        line.precision,
        line.asked,
        _number(line.rate),
        _plain(line.ratio),
        _plain(line.bar),
        _number(line.ess_rate),
        f"WRONG: {line.fault}" if line.fault else f"{line.error:.1e}",
        f"{line.seconds:.3g}",
        f"{line.median_seconds:.3g}",
        f"{line.cpu_per_wall:.2f}",
        f"{line.first_seconds:.2g}",
        f"{line.build_seconds:.2g}",
        f"{line.affinity}; {line.threads}",
    )


def _plain(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3g}"


def _number(value: float) -> str:
    """With a prefix of the thousands: 52.4 M."""
    if math.isnan(value):
        return ""
    for factor, prefix in ((1e9, " G"), (1e6, " M"), (1e3, " k")):
        if value >= factor:
            return f"{value / factor:.3g}{prefix}"
    return f"{value:.3g}"


def save(found: Sequence[Line], missing: Sequence[str], folder: Path) -> list[Path]:
    """comparison.json and comparison.csv in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    written = [folder / "comparison.json", folder / "comparison.csv"]
    values = [dataclasses.asdict(line) for line in found]
    plain = [{k: None if isinstance(v, float) and math.isnan(v) else v for k, v in one.items()} for one in values]
    document = {"machine": machine.description(), "missing": sorted(set(missing)), "lines": plain}
    written[0].write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    with written[1].open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, [f.name for f in dataclasses.fields(Line)])
        writer.writeheader()
        writer.writerows(values)
    return written
