"""`spinbench history`: which commits changed accuracy or cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.commits import chain, recorded
from spinbench.history.recorder import History
from spinbench.history.steps import segments
from spinbench.history.steps.segments import Step

MOST_COMMITS = 60
"""Newest recorded ones that are looked at, unless more are asked for."""


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
    names = recorded(history, "HEAD", last) if commits is None else commits
    if len(names) < 2:
        raise HistoryError(
            f"the history of {history.machine} knows {len(names)} commit{'s' * (len(names) != 1)} of the current "
            "branch; `spinbench sweep` on clean checkouts adds more"
        )
    runs = chain(history, names)
    series, found = 0, []
    for metric in axes.metrics():
        if metric.judged != "no":
            course, own = segments.steps(metric, runs)
            series += len(course.places)
            found += [one for one in _folded(own) if names[one[0].at] not in old and (one[0].ratio > 1 or not worse)]
    places = range(len(names)) if commits is not None else _places(history, names)
    ordered = sorted(found, key=lambda one: (one[0].p, one[0].at))
    told = tuple(Found(step, _commit(history, names, places, step), cells) for step, cells in ordered)
    return Steps(history.machine, tuple(names), series, told)


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
