"""Commits in a row: what each made of the one before it, what all say together, and how far the last has come."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.history.changepoints import report
from spinbench.history.changepoints.report import StepReport
from spinbench.history.gate import GateReport, compare_commits
from spinbench.history.recorder import History
from spinbench.history.regression_test import formatting
from spinbench.history.regression_test.judge import Finding
from spinbench.reporting import drawing

PANELS: Mapping[str, str] = {"step_cpu_seconds": "CPU seconds of a step", "marginal_rmse": "RMSE of the marginals"}
"""Metrics that are drawn."""


@dataclass(frozen=True)
class Row:
    """Commits in the order in which they are judged.

    Attributes:
        steps: each commit against the one before it.
        spans: each commit but the first against the first.
        found: the steps of the row, of which neighbours alone may not be certain.
        silent: sentences about pairs that have nothing in common.
    """

    steps: tuple[GateReport, ...]
    spans: tuple[GateReport, ...]
    found: StepReport
    silent: tuple[str, ...]

    @property
    def red(self) -> bool:
        """Whether a commit made anything worse."""
        return any(step.judgement.red for step in self.steps) or any(one.is_worse for one in self.found.steps)


def judged(root: Path, commits: Sequence[str]) -> Row:
    """Ask the gate of a history about neighbours, and about the first.

    Args:
        root: the checkout.
        commits: full hashes that have results, two or more.
    """
    history = History.open(root)
    silent: list[str] = []

    def ask(pairs: Sequence[tuple[str, str]]) -> Iterator[GateReport]:
        for pair in pairs:
            try:
                yield compare_commits(history, *pair)
            except HistoryError as error:
                silent.append(str(error))

    steps = tuple(ask(list(itertools.pairwise(commits))))
    told = tuple(silent)
    first = (step for step in steps[:1] if (step.base, step.head) == (commits[0], commits[1]))
    spans = (*first, *ask([(commits[0], other) for other in commits[2:]]))
    return Row(steps, spans, report.find_steps(root, commits=commits), told)


def lines(row: Row) -> list[str]:
    """A line a commit, with what changed and what cannot be compared; what the gate knew, of the last; all steps."""
    found = []
    for step in row.steps:
        judgement = step.judgement
        changed = {one.verdict for one in judgement.findings} | {one.verdict for one in judgement.failures}
        said = [word for word in ("worse", "better", "fails", "mended") if word in changed]
        found.append(f"{step.head[:8]} {step.titles[1]}: {', '.join(said) or 'no change'}")
        found += [f"    {line}" for line in (*formatting.format_changes(judgement), *step.left_out)]
    known = formatting.format_remarks(row.steps[-1].judgement) if row.steps else []
    return [*found, *row.silent, *known, "all commits together:", *report.format_lines(row.found)]


def draw(first: str, spans: Sequence[GateReport], path: Path) -> None:
    """Draw ratios to the first commit, with their 95 % intervals where the gate tested them.

    Args:
        first: full hash.
        spans: later commits, each compared with the first.
        path: of the picture.

    Raises:
        SpinbenchError: it cannot be written.
    """
    commits = [first, *(span.head for span in spans)]
    with drawing.style():
        figure = drawing.new_figure(1.6 + 0.9 * max(len(commits), 4), 5.6)
        for panel, (metric, title) in zip(figure.subplots(len(PANELS)), PANELS.items(), strict=True):
            groups = _groups(spans, metric)
            for number, (group, found) in enumerate(sorted(groups.items())):
                ratios = [1.0, *(one.ratio if one is not None and one.ratio else math.nan for one in found)]
                panel.errorbar(
                    range(len(commits)),
                    ratios,
                    yerr=list(zip((0.0, 0.0), *map(_width, found), strict=True)),
                    label=group,
                    color=drawing.COLOURS[number % len(drawing.COLOURS)],
                    marker=drawing.MARKERS[number % len(drawing.MARKERS)],
                    linestyle=drawing.LINES[number // len(drawing.COLOURS) % len(drawing.LINES)],
                    capsize=2,
                )
            if groups:
                panel.legend(fontsize="small", ncols=2)
            panel.set_yscale("log")
            panel.axhline(1.0, color=drawing.MUTED, linewidth=0.7)
            panel.set_ylabel(f"{title},\nratio to {first[:8]}")
            panel.set_xticks(range(len(commits)), [commit[:8] for commit in commits], rotation=30)
        drawing.save(figure, path)


def _groups(spans: Sequence[GateReport], metric: str) -> dict[str, list[Finding | None]]:
    """Of each method on each backend, what was found at each commit."""
    at = [
        {one.place.group: one for one in span.judgement.findings if (one.metric.name, one.level) == (metric, "group")}
        for span in spans
    ]
    return {group: [found.get(group) for found in at] for group in {name for found in at for name in found}}


def _width(found: Finding | None) -> tuple[float, float]:
    if found is None or found.ratio is None or found.low is None or found.high is None:
        return 0.0, 0.0
    return found.ratio - found.low, found.high - found.ratio
