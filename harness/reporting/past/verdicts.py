"""Commits in a row: what each made of the one before it, what all say together, and how far the last has come."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from spinbench.errors import HistoryError
from spinbench.history import gate, recorder
from spinbench.history.changepoints import report
from spinbench.history.regression_test import formatting
from spinbench.reporting import plotting

# Metrics that are drawn, with titles.
METRIC_TITLES: Mapping[str, str] = {
    "step_cpu_seconds": "CPU seconds of a step",
    "marginal_rmse": "RMSE of the marginals",
}
# In the order in which a commit's line counts them.
VERDICTS = ("worse", "better", "fails", "mended", "weaker", "stronger")


@dataclass(frozen=True)
class CommitSeries:
    """Commits in the order in which they are judged.

    Attributes:
        steps: each commit against the one before it.
        spans: each commit but the first against the first.
        series_steps: the steps of the row, of which neighbours alone may not be certain.
        incomparable: sentences about pairs that have nothing in common.
    """

    steps: tuple[gate.GateReport, ...]
    spans: tuple[gate.GateReport, ...]
    series_steps: report.StepReport
    incomparable: tuple[str, ...]

    @property
    def red(self) -> bool:
        """Whether a commit made anything worse."""
        return any(step.judgement.red for step in self.steps) or any(
            change.is_worse for change in self.series_steps.steps
        )


def judge_commits(root: Path, commits: Sequence[str]) -> CommitSeries:
    """Ask the gate of a history about neighbours, and about the first.

    Args:
        root: the checkout.
        commits: full hashes that have results, two or more.
    """
    history = recorder.History.open(root)
    incomparable: list[str] = []

    def ask(pairs: Sequence[tuple[str, str]]) -> Iterator[gate.GateReport]:
        for pair in pairs:
            try:
                yield gate.compare_commits(history, *pair)
            except HistoryError as error:
                incomparable.append(str(error))

    steps = tuple(ask(list(itertools.pairwise(commits))))
    incomparable_steps = tuple(incomparable)
    first = (step for step in steps[:1] if (step.base, step.head) == (commits[0], commits[1]))
    spans = (*first, *ask([(commits[0], other) for other in commits[2:]]))
    return CommitSeries(steps, spans, report.find_steps(root, commits=commits), incomparable_steps)


def describe_series(row: CommitSeries) -> list[str]:
    """A line a commit, with what changed and what cannot be compared; what the gate knew, of the last; all steps."""
    output = []
    for step in row.steps:
        judgement = step.judgement
        changed: set[str] = {finding.verdict for finding in judgement.findings}
        changed |= {change.verdict for change in judgement.changes}
        verdicts = [verdict for verdict in VERDICTS if verdict in changed]
        output.append(f"{step.head[:8]} {step.titles[1]}: {', '.join(verdicts) or 'no change'}")
        output += [f"    {line}" for line in (*formatting.format_changes(judgement), *judgement.exclusions)]
    remarks = []
    if row.steps:
        remarks = formatting.format_remarks(row.steps[-1].judgement)
    return [*output, *row.incomparable, *remarks, "all commits together:", *report.format_lines(row.series_steps)]


def draw_ratios(first: str, spans: Sequence[gate.GateReport], path: Path) -> None:
    """Draw ratios to the first commit, with their 95 % intervals where the gate tested them.

    Args:
        first: full hash.
        spans: later commits, each compared with the first.
        path: of the picture.

    Raises:
        SpinbenchError: it cannot be written.
    """
    commits = [first, *(span.head for span in spans)]
    with plotting.plot_style():
        figure = plotting.new_figure(1.6 + 0.9 * max(len(commits), 4), 5.6)
        for panel, (metric, title) in zip(figure.subplots(len(METRIC_TITLES)), METRIC_TITLES.items(), strict=True):
            groups = _ratios_by_solver(spans, metric)
            for number, (group, ratios) in enumerate(sorted(groups.items())):
                ratio, low, high = np.array([(1.0, 1.0, 1.0), *ratios]).T
                panel.errorbar(
                    range(len(commits)),
                    ratio,
                    yerr=(ratio - low, high - ratio),
                    label=group,
                    color=plotting.COLOURS[number % len(plotting.COLOURS)],
                    marker=plotting.MARKERS[number % len(plotting.MARKERS)],
                    linestyle=plotting.LINE_STYLES[number // len(plotting.COLOURS) % len(plotting.LINE_STYLES)],
                    capsize=2,
                )
            if groups:
                panel.legend(fontsize="small", ncols=2)
            panel.set_yscale("log")
            panel.axhline(1.0, color=plotting.MUTED, linewidth=0.7)
            panel.set_ylabel(f"{title},\nratio to {first[:8]}")
            panel.set_xticks(range(len(commits)), [commit[:8] for commit in commits], rotation=30)
        plotting.save_figure(figure, path)


def _ratios_by_solver(spans: Sequence[gate.GateReport], metric: str) -> dict[str, list[Any]]:
    """By method and backend: ratio and its interval after each of the later commits; NaN of what was not compared."""
    ratios_by_commit = [
        {
            finding.place.group: (finding.ratio, finding.low, finding.high)
            for finding in span.judgement.findings
            if (finding.metric.name, finding.level) == (metric, "group")
        }
        for span in spans
    ]
    groups = {name for ratios in ratios_by_commit for name in ratios}
    return {group: [ratios.get(group, (math.nan,) * 3) for ratios in ratios_by_commit] for group in groups}
