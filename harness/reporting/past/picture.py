"""Cost and error of each method on each backend over commits, against the first of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from spinbench.history.gate import GateReport
from spinbench.history.regression_test.judge import Finding
from spinbench.reporting import drawing

PANELS: Mapping[str, str] = {"step_cpu_seconds": "CPU seconds of a step", "marginal_rmse": "RMSE of the marginals"}
"""Metrics that are drawn."""


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
        for place, (metric, title) in enumerate(PANELS.items(), start=1):
            axes = figure.add_subplot(len(PANELS), 1, place)
            groups = _groups(spans, metric)
            for number, (group, found) in enumerate(sorted(groups.items())):
                ratios = [1.0, *(one.ratio if one is not None and one.ratio else float("nan") for one in found)]
                widths = [(0.0, 0.0), *(_width(one) for one in found)]
                axes.errorbar(
                    range(len(commits)),
                    ratios,
                    yerr=list(zip(*widths, strict=True)),
                    label=group,
                    color=drawing.COLOURS[number % len(drawing.COLOURS)],
                    marker=drawing.MARKERS[number % len(drawing.MARKERS)],
                    linestyle=drawing.LINES[number // len(drawing.COLOURS) % len(drawing.LINES)],
                    capsize=2,
                )
            axes.set_yscale("log")
            axes.axhline(1.0, color=drawing.MUTED, linewidth=0.7)
            axes.set_ylabel(f"{title},\nratio to {first[:8]}")
            axes.set_xticks(range(len(commits)), [commit[:8] for commit in commits], rotation=30)
            if groups:
                axes.legend(fontsize="small", ncols=2)
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
