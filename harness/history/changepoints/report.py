"""`spinbench history`: which commits changed accuracy or cost, as a table with pictures of the series in characters."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.foundation.remarks import format_count
from spinbench.history import axes
from spinbench.history.changepoints import changepoints
from spinbench.history.changepoints.changepoints import Step
from spinbench.history.commits import newest_commits, runs_by_commit
from spinbench.history.recorder import History
from spinbench.history.regression_test import formatting

MOST_COMMITS = 60
"""Newest recorded ones that are looked at, unless more are asked for."""
BARS = "▁▂▃▄▅▆▇█"
MISSING = "·"
MARK = "|"
"""Before the first commit after the change."""
WIDTH = 30
"""Commits in a picture: those around the change."""
LONGEST = 40
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


@dataclass(frozen=True)
class Found:
    """A step, and how many cells of a group have a step of their own there."""

    step: Step
    commit: Commit
    cells: int = 0

    @property
    def worse(self) -> bool:
        """Whether it is."""
        return self.step.ratio > 1


@dataclass(frozen=True)
class Steps:
    """What was found in a history.

    Attributes:
        machine: whose.
        commits: hashes of those that were looked at, oldest first.
        series: number of cells' series, of all metrics, that could be judged.
        found: the most certain ones first.
    """

    machine: str
    commits: tuple[str, ...]
    series: int
    found: tuple[Found, ...]


def steps(
    root: Path,
    *,
    since: str | None = None,
    worse: bool = False,
    machine: str | None = None,
    last: int = MOST_COMMITS,
    commits: Sequence[str] | None = None,
) -> Steps:
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
    history = History.open(root, machine)
    old = set() if since is None else set(history.checkout.ancestors(history.checkout.resolve(since)))
    names = newest_commits(history, "HEAD", last) if commits is None else commits
    if len(names) < 2:
        raise HistoryError(
            f"the history of {history.machine} knows {format_count(len(names), 'commit')} of the current "
            "branch; `spinbench sweep` on clean checkouts adds more"
        )
    runs = runs_by_commit(history, names)
    series, found = 0, []
    for metric in axes.metrics():
        if metric.judged != "no":
            judged_series, own = changepoints.steps(metric, runs)
            series += len(judged_series.places)
            found += [one for one in _folded(own) if names[one[0].at] not in old and (one[0].ratio > 1 or not worse)]
    places = range(len(names)) if commits is not None else _places(history, names)
    ordered = sorted(found, key=lambda one: (one[0].p, one[0].at))
    told = tuple(Found(step, _commit(history, names, places, step), cells) for step, cells in ordered)
    return Steps(history.machine, tuple(names), series, told)


def lines(found: Steps) -> list[str]:
    """A table, and a sentence of what was looked at."""
    rows = [_row(one) for one in found.found]
    return [*formatting.aligned([_HEADER, *rows] if rows else []), summary(found)]


def summary(found: Steps) -> str:
    """One sentence."""
    worse = sum(one.worse for one in found.found)
    said = f"{worse} worse, {len(found.found) - worse} better" if found.found else "no change beyond noise"
    said = said if found.series else "no cell was measured at two of them, so that nothing can be said"
    span = f"{len(found.commits)} commits, {found.commits[0][:8]} to {found.commits[-1][:8]}"
    return f"on {found.machine}: {found.series} series over {span}: {said}"


def commit(one: Commit) -> str:
    """Hash and title, and how many commits before it may be meant as well."""
    title = one.title if len(one.title) <= LONGEST else f"{one.title[: LONGEST - 1]}…"
    also = f" (or one of {one.skipped} before it)" if one.skipped else ""
    return f"{one.name[:8]} {title}{also}"


def series(one: Found) -> str:
    """Metric and cell, or group."""
    cells = f" (in {format_count(one.cells, 'cell')} by itself)" if one.cells else ""
    return f"{one.step.metric.title}: {formatting.cell(one.step.place)}{cells}"


def sparkline(values: Sequence[float], at: int) -> str:
    """A series in characters, those around a change where it is long."""
    first = min(max(at - WIDTH // 2, 0), max(len(values) - WIDTH, 0))
    shown = values[first : first + WIDTH]
    known = [value for value in shown if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    bars = [_bar(value, low, high) for value in shown]
    return "".join([*bars[: at - first], MARK, *bars[at - first :]])


def _folded(found: Sequence[Step]) -> Iterable[tuple[Step, int]]:
    """Groups with the number of their cells that have the same step; cells that have one of their own."""
    groups = {(one.place.group, one.at, one.ratio > 1): one for one in found if one.level == "group"}
    counts = dict.fromkeys(groups, 0)
    for one in found:
        key = one.place.group, one.at, one.ratio > 1
        if one.level == "cell" and key in groups:
            counts[key] += 1
        elif one.level == "cell":
            yield one, 0
    yield from ((one, counts[key]) for key, one in groups.items())


def _places(history: History, names: Sequence[str]) -> list[int]:
    """Of commits among all of the current branch."""
    order = {name: turn for turn, name in enumerate(reversed(history.checkout.line("HEAD")))}
    return [order[name] for name in names]


def _commit(history: History, names: Sequence[str], places: Sequence[int], step: Step) -> Commit:
    known = step.at - 1
    if step.metric.judged == "cost":  # what else has no value at a commit is what it was before it
        known = max((at for at in range(step.at) if math.isfinite(step.values[at])), default=known)
    return Commit(names[step.at], history.checkout.subject(names[step.at]), places[step.at] - places[known] - 1)


def _bar(value: float, low: float, high: float) -> str:
    if not math.isfinite(value):
        return MISSING
    share = (value - low) / (high - low) if high > low else 0.0
    return BARS[min(int(share * len(BARS)), len(BARS) - 1)]


def _row(one: Found) -> tuple[str, ...]:
    step = one.step
    return (
        "worse" if one.worse else "better",
        sparkline(step.values, step.at),
        f"x{step.ratio:.2f}",
        f"{step.low:.2f} … {step.high:.2f}",
        commit(one.commit),
        f"{step.p:.1g}",
        series(one),
    )
