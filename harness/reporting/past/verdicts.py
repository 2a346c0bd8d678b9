"""Commits in a row: what each made of the one before it, what all say together, and how far the last has come."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from spinbench.errors import HistoryError
from spinbench.history.changepoints import report
from spinbench.history.changepoints.report import Steps
from spinbench.history.gate import GateReport, between
from spinbench.history.recorder import History
from spinbench.history.regression_test import formatting


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
    found: Steps
    silent: tuple[str, ...]

    @property
    def red(self) -> bool:
        """Whether a commit made anything worse."""
        return any(step.judgement.red for step in self.steps) or any(one.worse for one in self.found.found)


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
                yield between(history, *pair)
            except HistoryError as error:
                silent.append(str(error))

    steps = tuple(ask(list(itertools.pairwise(commits))))
    told = tuple(silent)
    first = (step for step in steps[:1] if (step.base, step.head) == (commits[0], commits[1]))
    spans = (*first, *ask([(commits[0], other) for other in commits[2:]]))
    return Row(steps, spans, report.steps(root, commits=commits), told)


def lines(row: Row) -> list[str]:
    """A line a commit, with what changed and what cannot be compared; what the gate knew, of the last; all steps."""
    found = []
    for step in row.steps:
        judgement = step.judgement
        changed = {one.verdict for one in judgement.findings} | {one.verdict for one in judgement.failures}
        said = [word for word in ("worse", "better", "fails", "mended") if word in changed]
        found.append(f"{step.head[:8]} {step.titles[1]}: {', '.join(said) or 'no change'}")
        found += [f"    {line}" for line in (*formatting.changes(judgement), *step.left_out)]
    known = formatting.remarks(row.steps[-1].judgement) if row.steps else []
    return [*found, *row.silent, *known, "all commits together:", *report.lines(row.found)]
