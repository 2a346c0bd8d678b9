"""`spinbench history`: which commits changed accuracy or cost, as a table with pictures of the series in characters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.foundation.remarks import format_count
from spinbench.history import axes, recorder
from spinbench.history.changepoints import changepoints
from spinbench.history.commits import newest_commits, runs_by_commit
from spinbench.history.regression_test import formatting

# Default number of the newest recorded commits that are examined.
MAX_COMMITS = 60
BARS = "▁▂▃▄▅▆▇█"
MISSING = "·"
# Printed before the first commit after the change.
CHANGE_MARK = "|"
# Largest number of commits in a bar chart, around the change.
MAX_BARS = 30
MAX_TITLE_LENGTH = 40
_HEADER = ("", "history", "change", "95 % interval", "commit", "p", "series")


@dataclass(frozen=True)
class Commit:
    """A commit of the history.

    Attributes:
        name: full hash; title: the first line of its message.
        skipped: commits between it and the one before it of which something is known, and which may be meant as well.
    """

    name: str
    title: str
    skipped: int

    def describe(self) -> str:
        """Hash and title, and how many commits before it may be meant as well."""
        title = self.title
        if len(title) > MAX_TITLE_LENGTH:
            title = f"{title[: MAX_TITLE_LENGTH - 1]}…"
        also = f" (or one of {self.skipped} before it)" if self.skipped else ""
        return f"{self.name[:8]} {title}{also}"


@dataclass(frozen=True)
class LocatedStep:
    """A step, and how many cells of a group have a step of their own there."""

    step: changepoints.Step
    commit: Commit
    cells: int = 0

    @property
    def is_worse(self) -> bool:
        """Whether it is."""
        return self.step.ratio > 1


@dataclass(frozen=True)
class StepReport:
    """What was found in a history.

    Attributes:
        machine: whose.
        commits: hashes of those that were looked at, oldest first.
        series: number of cells' series, of all metrics, that could be judged.
        steps: the most certain ones first.
    """

    machine: str
    commits: tuple[str, ...]
    series: int
    steps: tuple[LocatedStep, ...]


def find_steps(
    root: Path,
    *,
    since: str | None = None,
    worse: bool = False,
    machine: str | None = None,
    last: int = MAX_COMMITS,
    commits: Sequence[str] | None = None,
) -> StepReport:
    """The commits at which a method's accuracy or cost changed.

    Args:
        root: the checkout, or a folder inside it.
        since: only commits that are no ancestors of this one.
        worse: only what got worse.
        machine: whose history; by default this machine's.
        last: how many recorded commits are looked at, up to the current one.
        commits: full hashes of those that are looked at instead, in this order.

    Raises:
        HistoryError: there are no two commits with records, `last` allows no two, or `since` names none.
    """
    if last < 2:
        raise HistoryError(f"the last {last} commits were asked for; a change takes two or more")
    history = recorder.History.open(root, machine)
    old: set[str] = set()
    if since is not None:
        old = set(history.checkout.ancestors(history.checkout.resolve(since)))
    if commits is None:
        commits = newest_commits(history, "HEAD", last)
        positions: Sequence[int] = _branch_positions(history, commits)
    else:
        positions = range(len(commits))
    if len(commits) < 2:
        raise HistoryError(
            f"the history of {history.machine} knows {format_count(len(commits), 'commit')} of the current "
            "branch; `spinbench sweep` on clean checkouts adds more"
        )
    runs = runs_by_commit(history, commits)
    series, steps = 0, []
    for metric in axes.metrics():
        if metric.judged != "no":
            judged_series, metric_steps = changepoints.find_steps(metric, runs)
            series += len(judged_series.places)
            steps += [
                folded
                for folded in _fold_cells_into_groups(metric_steps)
                if commits[folded[0].at] not in old and (folded[0].ratio > 1 or not worse)
            ]
    ordered = sorted(steps, key=lambda folded: (folded[0].p, folded[0].at))
    located = tuple(
        LocatedStep(step, _build_commit(history, commits, positions, step), cells) for step, cells in ordered
    )
    return StepReport(history.machine, tuple(commits), series, located)


def format_lines(report: StepReport) -> list[str]:
    """A table, and a sentence of what was looked at."""
    if not report.steps:
        return [format_summary(report)]
    return [*formatting.align_columns([_HEADER, *map(_format_row, report.steps)]), format_summary(report)]


def format_summary(report: StepReport) -> str:
    """One sentence."""
    worse = sum(located.is_worse for located in report.steps)
    changes = "no change beyond noise"
    if report.steps:
        changes = f"{worse} worse, {len(report.steps) - worse} better"
    if not report.series:
        changes = "no cell was measured at two of them, so that nothing can be said"
    span = f"{len(report.commits)} commits, {report.commits[0][:8]} to {report.commits[-1][:8]}"
    return f"on {report.machine}: {report.series} series over {span}: {changes}"


def format_series(located: LocatedStep) -> str:
    """Metric and cell, or group."""
    cells = ""
    if located.cells:
        cells = f" (in {format_count(located.cells, 'cell')} by itself)"
    return f"{located.step.metric.title}: {formatting.format_place(located.step.place)}{cells}"


def sparkline(values: Sequence[float], at: int) -> str:
    """A series in characters, those around a change where it is long."""
    # Centred on the change, except near an end of the series.
    first = min(max(at - MAX_BARS // 2, 0), max(len(values) - MAX_BARS, 0))
    window = values[first : first + MAX_BARS]
    finite = [value for value in window if math.isfinite(value)]
    low, high = min(finite, default=0.0), max(finite, default=0.0)
    bars = [_bar_character(value, low, high) for value in window]
    return "".join([*bars[: at - first], CHANGE_MARK, *bars[at - first :]])


def _fold_cells_into_groups(steps: Sequence[changepoints.Step]) -> Iterable[tuple[changepoints.Step, int]]:
    """Groups with the number of their cells that have the same step; cells that have one of their own."""
    groups = {(step.place.group, step.at, step.ratio > 1): step for step in steps if step.level == "group"}
    counts = dict.fromkeys(groups, 0)
    for step in steps:
        key = step.place.group, step.at, step.ratio > 1
        if step.level == "cell" and key in groups:
            counts[key] += 1
        elif step.level == "cell":
            yield step, 0
    yield from ((step, counts[key]) for key, step in groups.items())


def _branch_positions(history: recorder.History, names: Sequence[str]) -> list[int]:
    """Of commits among all of the current branch."""
    order = {name: turn for turn, name in enumerate(reversed(history.checkout.line("HEAD")))}
    return [order[name] for name in names]


def _build_commit(
    history: recorder.History, names: Sequence[str], places: Sequence[int], step: changepoints.Step
) -> Commit:
    previous = step.at - 1
    # A metric without a value at the previous commit is compared with its last value.
    if step.metric.judged == "cost":
        previous = max((at for at in range(step.at) if math.isfinite(step.values[at])), default=previous)
    return Commit(names[step.at], history.checkout.subject(names[step.at]), places[step.at] - places[previous] - 1)


def _bar_character(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return MISSING
    share = (value - low) / ((high - low) or 1.0)
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def _format_row(located: LocatedStep) -> tuple[str, ...]:
    step = located.step
    return (
        "worse" if located.is_worse else "better",
        sparkline(step.values, step.at),
        f"x{step.ratio:.2f}",
        f"{step.low:.2f} … {step.high:.2f}",
        located.commit.describe(),
        f"{step.p:.1g}",
        format_series(located),
    )
