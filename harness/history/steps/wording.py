"""Steps for people: a line each, with a picture of the series in characters."""

from __future__ import annotations

import math
from collections.abc import Sequence

from spinbench.history.judging import wording
from spinbench.history.steps.report import Commit, Found, Steps

BARS = "▁▂▃▄▅▆▇█"
MISSING = "·"
MARK = "|"
"""Before the first commit after the change."""
WIDTH = 30
"""Commits in a picture: those around the change."""
LONGEST = 40
_HEADER = ("", "history", "change", "95 % interval", "commit", "p", "series")


def lines(found: Steps) -> list[str]:
    """A table, and a sentence of what was looked at."""
    rows = [_row(one) for one in found.found]
    return [*wording.aligned([_HEADER, *rows] if rows else []), summary(found)]


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
    cells = f" (in {one.cells} cell{'s' * (one.cells > 1)} by itself)" if one.cells else ""
    return f"{one.step.metric.title}: {wording.cell(one.step.place)}{cells}"


def sparkline(values: Sequence[float], at: int) -> str:
    """A series in characters, those around a change where it is long."""
    first = min(max(at - WIDTH // 2, 0), max(len(values) - WIDTH, 0))
    shown = values[first : first + WIDTH]
    known = [value for value in shown if math.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=0.0)
    bars = [_bar(value, low, high) for value in shown]
    return "".join([*bars[: at - first], MARK, *bars[at - first :]])


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
