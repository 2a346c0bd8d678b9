"""Did a commit make anything less accurate or slower, beyond noise? asv's own comparison always exits with 0."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from spinbench.errors import HistoryError
from spinbench.history import axes
from spinbench.history.axes import Cell, Metric
from spinbench.history.journal import Replicates
from spinbench.history.recorder import History
from spinbench.history.significance import Comparison, compare, holm

ALPHA = 0.01
"""Probability that an unchanged program is called worse at all."""

Verdict = Literal["worse", "fails", "better", "mended", "same"]


@dataclass(frozen=True)
class Change:
    """One metric of one cell at two commits.

    Attributes:
        family, metric, cell: which.
        verdict: "worse" or "better" beyond noise and the metric's threshold, "fails" or "mended" where only one
            commit has a value and the other failed, else "same".
        comparison: None where one commit failed.
        p: probability of such a change by noise, corrected for the number of comparisons.
        base, head: the values.
    """

    family: str
    metric: Metric
    cell: Cell
    verdict: Verdict
    comparison: Comparison | None
    p: float
    base: Replicates
    head: Replicates

    @property
    def regression(self) -> bool:
        """Whether the gate is shut by it."""
        return self.verdict in ("worse", "fails")


@dataclass(frozen=True)
class GateReport:
    """Two commits compared.

    Attributes:
        base, head: full hashes; titles: the first lines of their messages.
        changes: of all cells that both commits have, worst first.
        left_out: sentences about what could not be compared.
    """

    machine: str
    base: str
    head: str
    titles: tuple[str, str]
    changes: tuple[Change, ...]
    left_out: tuple[str, ...]

    @property
    def regressions(self) -> tuple[Change, ...]:
        """What got worse."""
        return tuple(change for change in self.changes if change.regression)

    @property
    def exit_status(self) -> int:
        """1 with a regression, else 0."""
        return 1 if self.regressions else 0

    def table(self) -> str:
        """Changes beyond noise as aligned text; empty without any."""
        rows = [_row(change) for change in self.changes if change.verdict != "same"]
        return _aligned([_HEADER, *rows]) if rows else ""

    def __str__(self) -> str:
        """The report for people."""
        count = Counter(change.verdict for change in self.changes)
        summary = (
            f"{len(self.changes)} comparisons on {self.machine}: {len(self.regressions)} worse, "
            f"{count['better'] + count['mended']} better, {count['same']} within noise"
        )
        return "\n".join(
            [
                f"base {self.base[:8]} {self.titles[0]}",
                f"head {self.head[:8]} {self.titles[1]}",
                *([self.table()] if self.table() else []),
                *self.left_out,
                summary,
            ]
        )


def gate(
    root: Path,
    base: str | None = None,
    head: str | None = None,
    *,
    machine: str | None = None,
    alpha: float = ALPHA,
) -> GateReport:
    """Compare what the history knows of two commits.

    Args:
        root: the checkout, or a folder inside it.
        base: a commit; by default the newest recorded one before `head`.
        head: a commit; by default the newest recorded one of the current branch.
        machine: whose history; by default this machine's.
        alpha: probability of a false alarm, over all comparisons.

    Raises:
        HistoryError: there is no history, a commit has no results, or the commits have nothing in common.
    """
    if not 0 < alpha < 1:
        raise HistoryError(f"alpha={alpha} was given; a probability between 0 and 1 is needed")
    history = History.open(root, machine)
    first, second = _choose(history, base, head)
    before, after = history.measured(first), history.measured(second)
    pairs: list[tuple[tuple[str, Metric, Cell], Replicates, Replicates]] = []
    missing = foreign = unreached = 0
    for (name, tracked, cell), old in sorted(before.items()):
        new = after.get((name, tracked, cell))
        metric = next(one for one in axes.family(name).metrics if one.name == tracked)
        if new is None:
            missing += 1
        elif None not in (old.settings, new.settings) and old.settings != new.settings:
            foreign += 1
        elif metric.optional and any(one.ran and not one.values for one in (old, new)):
            unreached += 1
        elif old.values or new.values:
            pairs.append(((name, metric, cell), old, new))
    left_out = []
    if missing:
        left_out.append(f"{missing} values of {first[:8]} have no counterpart at {second[:8]}")
    if foreign:
        left_out.append(f"{foreign} values were measured with other settings at {second[:8]} than at {first[:8]}")
    if unreached:
        left_out.append(f"{unreached} optional values were not reached at one of the commits, or at both")
    if not pairs:
        why = "; ".join(left_out) or "neither has a value"
        raise HistoryError(f"there is nothing to compare between {first[:8]} and {second[:8]}: {why}")
    changes = _judge(pairs, alpha)
    return GateReport(
        machine=history.machine,
        base=first,
        head=second,
        titles=(history.checkout.subject(first), history.checkout.subject(second)),
        changes=tuple(sorted(changes, key=lambda change: (_ORDER.index(change.verdict), change.p))),
        left_out=tuple(left_out),
    )


_ORDER: Sequence[Verdict] = ("fails", "worse", "better", "mended", "same")


def _choose(history: History, base: str | None, head: str | None) -> tuple[str, str]:
    """The hashes to compare."""
    recorded = history.commits()
    where = f"in the history of {history.machine}"
    hint = "run `spinbench sweep` on a clean checkout of it"

    def given(name: str) -> str:
        commit = history.checkout.resolve(name)
        if commit not in recorded:
            raise HistoryError(f"commit {name} has no results {where}; {hint}")
        return commit

    def newest(commits: Sequence[str], missing: Callable[[], str]) -> str:
        found = next((commit for commit in commits if commit in recorded), None)
        if found is None:
            raise HistoryError(missing())
        return found

    if head is None:
        ancestors = history.checkout.ancestors("HEAD")
        second = newest(ancestors, lambda: f"no commit of the current branch has results {where}; {hint}")
    else:
        second = given(head)
    if base is None:
        older = history.checkout.ancestors(second)[1:]
        first = newest(older, lambda: f"no commit before {second[:8]} has results {where}; {hint}")
    else:
        first = given(base)
    if first == second:
        raise HistoryError(f"base and head are both {first[:8]}; give two commits")
    return first, second


def _judge(pairs: Sequence[tuple[tuple[str, Metric, Cell], Replicates, Replicates]], alpha: float) -> list[Change]:
    places: dict[tuple[str, Metric], list[int]] = defaultdict(list)
    for i, ((name, metric, _), old, new) in enumerate(pairs):
        if old.values and new.values:
            places[name, metric].append(i)
    comparisons: list[Comparison | None] = [None] * len(pairs)
    for (_, metric), members in places.items():
        for i, compared in zip(members, compare(metric, [pairs[i][1:] for i in members]), strict=True):
            comparisons[i] = compared
    measured = [one for one in comparisons if one is not None]
    worse = iter(holm([one.worse for one in measured]))
    better = iter(holm([one.better for one in measured]))
    changes = []
    for ((name, metric, cell), old, new), one in zip(pairs, comparisons, strict=True):
        verdict: Verdict
        if one is None:
            verdict, p = ("fails" if old.values else "mended"), 0.0
        else:
            p_worse, p_better = next(worse), next(better)
            p = min(p_worse, p_better)
            verdict = "same"
            if p_worse < alpha and one.ratio > 1 + metric.threshold:
                verdict = "worse"
            elif p_better < alpha and one.ratio < 1 / (1 + metric.threshold):
                verdict = "better"
        changes.append(Change(name, metric, cell, verdict, one, p, old, new))
    return changes


_HEADER = ("", "benchmark", "cell", "base", "head", "ratio", "p", "evidence")


def _row(change: Change) -> tuple[str, ...]:
    one = change.comparison
    return (
        change.verdict,
        f"{change.family}: {change.metric.title} [{change.metric.unit}]",
        " ".join(change.cell),
        "failed" if not change.base.values else f"{one.base if one else change.base.values[0]:.3g}",
        "failed" if not change.head.values else f"{one.head if one else change.head.values[0]:.3g}",
        f"{one.ratio:.2f}" if one else "",
        f"{change.p:.1g}" if one else "",
        one.evidence if one else change.head.failed or change.base.failed,
    )


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ("  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows)
    return "\n".join(lines)
