"""A judgement in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spinbench.history.judging.evidence import Place
from spinbench.history.judging.findings import ALL, Detectable, Finding
from spinbench.history.judging.judgement import Judgement, worst

LEVELS = {"all": "all cells together", "group": "group", "cell": "cell"}
_HEADER = ("", "benchmark", "cell", "base", "head", "ratio", "95 % interval", "p")


def lines(found: Judgement) -> list[str]:
    """What changed as an aligned table, what is known of the rest, and what was not judged."""
    return [*changes(found), *remarks(found)]


def changes(found: Judgement) -> list[str]:
    """An aligned table of what is worse, better, fails or is mended; nothing where nothing is."""
    rows = [_row(one) for one in worst(found.findings) if one.verdict in ("worse", "better")]
    rows += [(one.verdict, "", cell(one.place), "", "", "", "", one.error) for one in found.failures]
    return aligned([_HEADER, *rows] if rows else [])


def remarks(found: Judgement) -> list[str]:
    """What would have been found at each level, how many numbers are identical, and what was not judged."""
    levels = [_level(found.findings, one) for one in found.detectable]
    same = [f"numbers identical in {found.identical} of {found.common} runs"] if found.common else []
    return [*levels, *same, *found.notes]


def summary(found: Judgement) -> str:
    """How many of what."""
    said = Counter(one.verdict for one in found.findings) + Counter(one.verdict for one in found.failures)
    tests = sum(one.p is not None for one in found.findings)
    return (
        f"{tests} tests: {said['worse']} worse, {said['better']} better, "
        f"{said['not worse than 10 %']} not worse than 10 %, the others undecided; "
        f"{said['fails']} cells fail that worked, {said['mended']} work that failed"
    )


def cell(place: Place) -> str:
    """ "grid gibbs numpy", "gibbs × numpy" for a group."""
    if place.model != ALL:
        return " ".join(part for part in place if part)
    return LEVELS["all"] if place.method == ALL else place.group


def _row(one: Finding) -> tuple[str, ...]:
    values = [f"{value:.3g}" if value is not None else "" for value in (one.base, one.head)]
    return (
        one.verdict,
        f"{one.metric.title} [{one.metric.unit}]",
        cell(one.place),
        *values,
        f"x{one.ratio:.2f}",
        f"{one.low:.2f} … {one.high:.2f}",
        f"{one.p:.1g}",
    )


def _level(findings: Sequence[Finding], size: Detectable) -> str:
    said = Counter(
        one.verdict
        for one in findings
        if (one.metric.name, one.level) == (size.metric.name, size.level) and one.p is not None
    )
    name = LEVELS[size.level] if size.units == 1 else f"{size.units} {LEVELS[size.level]}s"
    parts = [f"{count} {verdict}" if size.units > 1 else verdict for verdict, count in said.most_common()]
    return f"{size.metric.title}, {name}: {', '.join(parts)}; changes from x{size.ratio:.2f} are found"


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
