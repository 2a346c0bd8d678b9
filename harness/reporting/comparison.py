"""`spinbench report --compare A B`: two sweeps or two commits side by side, on a terminal and as a page."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from spinbench.errors import SpinbenchError
from spinbench.history import axes, journal
from spinbench.history.regression_test import formatting, judge, measurements
from spinbench.measuring import environment, records
from spinbench.reporting import leaderboard, page, progress_display

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rich.table import Table

    from spinbench.history.recorder import History
    from spinbench.history.regression_test.judge import Judgement
    from spinbench.measuring.record_types import Record

PAGE = "compare.html"
VERDICT_STYLES = {
    **dict.fromkeys(("worse", "fails", "weaker"), "red"),
    **dict.fromkeys(("better", "mended", "stronger"), "green"),
}


def compare_records(a: Sequence[Record], b: Sequence[Record]) -> Judgement:
    """Compare B with A.

    Raises:
        SpinbenchError: they have no cell in common.
    """
    pairs, exclusions = _match_cells(a, b)
    if not pairs:
        raise SpinbenchError("A and B have no cell in common: no model, method and backend that both measured")
    metrics = axes.metrics()
    old, new = (
        measurements.group_runs([(place, record) for place, pair in pairs.items() for record in pair[side]], metrics)
        for side in (0, 1)
    )
    return judge.judge(measurements.Sides(old, new, exclusions=tuple(exclusions)))


def _match_cells(
    a: Sequence[Record], b: Sequence[Record]
) -> tuple[dict[measurements.Place, tuple[list[Record], list[Record]]], list[str]]:
    """Cells of both sides by (model, method, backend, differing settings).

    Settings are equal where both sides have them; a cell with one setting on each side is matched with differing ones.
    """
    sides = (_group_by_cell(a), _group_by_cell(b))
    pairs: dict[measurements.Place, tuple[list[Record], list[Record]]] = {}
    unmatched = {("A", "B"): 0, ("B", "A"): 0}
    for place in sorted(set(sides[0]) | set(sides[1])):
        left, right = (dict(side.get(place, {})) for side in sides)
        both = sorted(left.keys() & right.keys())
        for protocol in both:
            name = {1: ""}.get(len(both), f"settings {protocol[:6]}")
            pairs[measurements.Place(*place, name)] = left.pop(protocol), right.pop(protocol)
        if not both and len(left) == len(right) == 1:
            (_, old), (_, new) = left.popitem(), right.popitem()
            changed = journal.config_differences(_settings_without_seed(new[0]), _settings_without_seed(old[0]))
            pairs[measurements.Place(*place, ", ".join(changed).replace("(the series has", "(A has"))] = old, new
        unmatched["A", "B"] += len(left)
        unmatched["B", "A"] += len(right)
    exclusions = [
        f"cells of {name} without a counterpart in {other}: {count}"
        for (name, other), count in unmatched.items()
        if count
    ]
    return pairs, exclusions


def _group_by_cell(records: Iterable[Record]) -> dict[tuple[str, str, str], dict[str, list[Record]]]:
    records_by_cell: dict[tuple[str, str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record.status != "skipped":
            cell = record.axes
            records_by_cell[cell.model, cell.method, cell.backend][record.protocol].append(record)
    return records_by_cell


def _settings_without_seed(record: Record) -> dict[str, object]:
    return {key: value for key, value in record.config.items() if key not in ("seed", "model")}


def compare_sweeps_or_commits(first: str, second: str) -> Judgement:
    """Compare two sweeps' folders, or two commits as `spinbench gate` does, with what the history says of noise.

    Raises:
        SpinbenchError: as `load`, or they have nothing in common.
    """
    checkout = environment.history_root()
    if checkout is None or Path(first).is_dir() or Path(second).is_dir():
        return compare_records(load_records(first), load_records(second))
    from spinbench.history import commits

    history, base = _resolve_commit(checkout, first)
    sides = commits.collect_sides(history, base, _resolve_commit(checkout, second)[1])
    if not sides.common:
        raise SpinbenchError(f"{first} and {second} have no cell in common: {'; '.join(sides.exclusions)}")
    return judge.judge(sides)


def load_records(name: str) -> list[Record]:
    """The records of a sweep's folder, or those that the history has of a commit.

    Raises:
        SpinbenchError: neither a folder with records nor a commit with any.
    """
    if Path(name).is_dir():
        return records.latest_per_cell(records.read_records(Path(name)))
    checkout = environment.history_root()
    if checkout is None:
        raise SpinbenchError(f"{name} is no folder, and {environment.NO_HISTORY}")
    from spinbench.history import journal

    history, commit = _resolve_commit(checkout, name)
    return journal.group_into_sittings(history.journal.read_entries(commit))[-1]


def _resolve_commit(checkout: Path, name: str) -> tuple[History, str]:
    """The history, and the full hash of a commit with records in it."""
    from spinbench.history.recorder import History

    try:
        history = History.open(checkout)
        commit = history.checkout.resolve(name)
    except SpinbenchError as error:
        raise SpinbenchError(f"{name} is no folder, and no commit can be looked up by that name: {error}") from error
    if not history.journal.read_entries(commit):
        raise SpinbenchError(f"commit {name} has no records in the history of {history.machine}; give sweeps' folders")
    return history, commit


def differences_table(judgement: Judgement) -> Table:
    """The differences beyond noise, for a terminal."""
    numbers = ("A", "B", "B / A", "95 % interval", "p")
    texts = ("", "metric", "model", "method", "backend", "settings of B")
    board = progress_display.new_table(None, (*texts, *numbers), number_columns=numbers, show_edge=False)
    for finding in judgement.significant:
        board.add_row(
            Text(finding.verdict, style=VERDICT_STYLES[finding.verdict]),
            *map(Text, (finding.metric.title, *finding.place)),
            leaderboard.format_number(finding.base),
            leaderboard.format_number(finding.head),
            leaderboard.format_number(finding.ratio),
            f"{leaderboard.format_number(finding.low)} … {leaderboard.format_number(finding.high)}",
            f"{finding.p:.1g}",
        )
    for change in judgement.changes:
        verdict = Text(change.verdict, style=VERDICT_STYLES[change.verdict])
        board.add_row(verdict, *map(Text, (change.error or change.title, *change.place, change.base, change.head)))
    return board


def summary_sentences(judgement: Judgement) -> list[str]:
    """What would have been found, what was not compared, and how many of what."""
    return [
        *formatting.format_remarks(judgement),
        *judgement.exclusions,
        f"B against A: {formatting.format_summary(judgement)}",
    ]


def write_comparison_page(judgement: Judgement, names: tuple[str, str], folder: Path) -> Path:
    """The page with all comparisons.

    Raises:
        SpinbenchError: the folder cannot be written.
    """
    places = [finding.place for finding in judgement.findings]
    choices = {axis: sorted({getattr(place, axis) for place in places}) for axis in ("model", "method", "backend")}
    context = {
        "names": names,
        "found": judgement,
        "sentences": summary_sentences(judgement),
        "choices": {**choices, "metric": sorted({finding.metric.title for finding in judgement.findings})},
        "settings": any(place.settings for place in places),
    }
    return page.write_page(folder / PAGE, "compare.html", context)
