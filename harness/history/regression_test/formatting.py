"""A judgement in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from spinbench.foundation.remarks import format_count
from spinbench.history.regression_test import effects, measurements
from spinbench.history.regression_test.judge import Finding, Judgement, Tested

LEVELS = {"all": "all cells together", "group": "group", "cell": "cell"}
_HEADER = ("", "benchmark", "cell", "base", "head", "ratio", "95 % interval", "p")


def format_changes(judgement: Judgement) -> list[str]:
    """An aligned table of what is worse, better, fails, is mended or rests on other evidence, if anything is."""
    return align_columns(change_rows(judgement))


def change_rows(judgement: Judgement) -> list[tuple[str, ...]]:
    """The table's rows, its head first; none where nothing changed."""
    rows = [_format_finding(finding) for finding in judgement.significant]
    rows += [
        (change.verdict, change.title, format_place(change.place), change.base, change.head, "", "", change.error)
        for change in judgement.changes
    ]
    if not rows:
        return []
    return [_HEADER, *rows]


def format_remarks(judgement: Judgement) -> list[str]:
    """What would have been found at each level, how many numbers are identical, and what was not judged."""
    levels = [_format_level(tested) for tested in judgement.tested]
    same = []
    if judgement.common:
        same = [f"numbers identical in {judgement.identical} of {judgement.common} runs"]
    return [*levels, *same, *judgement.notes]


def format_summary(judgement: Judgement) -> str:
    """How many of what."""
    counts = Counter[str](finding.verdict for finding in judgement.findings)
    counts.update(change.verdict for change in judgement.changes)
    tests = [finding for finding in judgement.findings if finding.p is not None]
    undecided = sum(finding.verdict == "undecided" for finding in tests)
    return (
        f"{format_count(len(tests), 'test')}: {counts['worse']} worse, {counts['better']} better, "
        f"{counts['not worse than 10 %']} not worse than 10 %, {undecided} undecided; "
        f"{counts['fails']} cells fail that worked, {counts['mended']} work that failed; "
        f"{counts['weaker']} numbers rest on weaker evidence, {counts['stronger']} on stronger"
    )


def format_verdict(judgement: Judgement) -> str:
    """PASS, FAIL or UNDECIDED, how many tests say so, and the worst of them: what fails, else what may be worst."""
    verdict = judgement.verdict
    if failures := [change for change in judgement.changes if change.verdict == "fails"]:
        error = " ".join(failures[0].error.split())
        return f"{verdict}: {format_place(failures[0].place)} fails, and worked: {error}"
    tested = [finding for finding in judgement.findings if finding.p is not None]
    whose = {"FAIL": judgement.worse, "UNDECIDED": [each for each in tested if each.verdict == "undecided"]}
    shown = whose.get(verdict, tested)
    if not shown:
        return f"{verdict}: no number differs"
    # The worst failure has the largest ratio, since failures are certain; the worst undecided case has the largest
    # upper end of its interval.
    worst = max(shown, key=lambda finding: (finding.ratio if verdict == "FAIL" else finding.high) or 0.0)
    counts = {"FAIL": "worse", "UNDECIDED": "undecided", "PASS": "not worse than 10 %"}
    return f"{verdict}: {len(shown)} of {len(tested)} tests {counts[verdict]}; {describe_finding(worst)}"


def describe_finding(finding: Finding) -> str:
    """A tested number in one line."""
    return (
        f"{format_place(finding.place)}, {finding.metric.title}: x{finding.ratio:.2f} "
        f"({finding.low:.2f} … {finding.high:.2f}, p {finding.p:.1g}), changes from x{finding.detectable:.2f} are found"
    )


def format_place(place: measurements.Place) -> str:
    """ "grid gibbs numpy", "gibbs × numpy" for a group."""
    if place.model != effects.ALL:
        return " ".join(part for part in place if part)
    return LEVELS["all"] if place.method == effects.ALL else place.group


def _format_finding(finding: Finding) -> tuple[str, ...]:
    values = [f"{value:.3g}" if value is not None else "" for value in (finding.base, finding.head)]
    return (
        finding.verdict,
        f"{finding.metric.title} [{finding.metric.unit}]",
        format_place(finding.place),
        *values,
        f"x{finding.ratio:.2f}",
        f"{finding.low:.2f} … {finding.high:.2f}",
        f"{finding.p:.1g}",
    )


def _format_level(tested: Tested) -> str:
    units = sum(tested.verdicts.values())
    if units == 1:
        (verdicts,), name = tested.verdicts, LEVELS[tested.level]
    else:
        counts = Counter(tested.verdicts).most_common()
        verdicts, name = ", ".join(f"{n} {verdict}" for verdict, n in counts), f"{units} {LEVELS[tested.level]}s"
    return f"{tested.metric.title}, {name}: {verdicts}; changes from x{tested.detectable:.2f} are found"


def align_columns(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
