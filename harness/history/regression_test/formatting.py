"""A judgement in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from spinbench.history.regression_test.effects import ALL
from spinbench.history.regression_test.judge import Finding, Judgement, Tested, worst
from spinbench.history.regression_test.measurements import Place

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
    levels = [_level(one) for one in found.tested]
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


def _level(one: Tested) -> str:
    units = sum(one.verdicts.values())
    if units == 1:
        (said,), name = one.verdicts, LEVELS[one.level]
    else:
        said, name = _list_verdicts(one.verdicts), f"{units} {LEVELS[one.level]}s"
    return f"{one.metric.title}, {name}: {said}; changes from x{one.detectable:.2f} are found"


def _list_verdicts(verdicts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in Counter(verdicts).most_common())


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))] if rows else []
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]
