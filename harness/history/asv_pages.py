"""The pages of single benchmarks on asv's site: there is something on them when they are opened.

asv draws the first labels of each axis, whether they were measured or not; has a page for each benchmark, measured or
not; and lets the y-axis end at the least and the greatest number unless the unit is seconds or bytes, so that numbers
that stayed the same, as those of accuracy do, lie under the frame.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import Any

from asv.benchmarks import Benchmarks
from asv.commands import publish
from asv.publishing import OutputPublisher

from spinbench.errors import HistoryError

SCRIPT = "asv_pages.js"
"""Beside this module: gives the y-axis room."""
_BEFORE = "</head>"

Combination = tuple[str, ...]


class MeasuredBenchmarks(Benchmarks):  # type: ignore[misc]
    """Those that some published commit has numbers of; the first label of each axis is that of a cell with numbers."""

    @classmethod
    def load(cls, conf: Any) -> Any:
        """asv's classmethod, for publishing: the stored descriptions stay as they are."""
        found = Benchmarks.load(conf)
        shown = published(conf)
        results = (one for one in publish.iter_results(conf.results_dir) if one.commit_hash in shown)
        known = measured(results, found)
        for name in list(found):
            if not known[name]:
                del found[name]
            elif found[name]["params"]:
                found[name] = {**found[name], "params": led(found[name]["params"], known[name])}
        return found


class Pages(OutputPublisher):  # type: ignore[misc]
    """Puts the script on asv's page."""

    name = "pages"
    button_label = "Pages"
    description = "Room around the graphs of single benchmarks"
    order = 4

    @classmethod
    def publish(cls, conf: Any, repo: Any, benchmarks: Any, graphs: Any, revisions: Any) -> None:
        """Called by asv after it wrote its own pages."""
        add_script(Path(conf.html_dir))


def install() -> None:
    """Let asv publish what was measured."""
    publish.Benchmarks = MeasuredBenchmarks


def published(conf: Any) -> set[str]:
    """Hashes of the commits that asv publishes: those of the branches in its configuration, and tagged ones."""
    repo = publish.get_repo(conf)
    branches = (repo.get_branch_commits(branch) for branch in conf.branches)
    return {*itertools.chain.from_iterable(branches), *repo.get_tags().values()}


def measured(results: Iterable[Any], benchmarks: Any) -> dict[str, Counter[Combination]]:
    """By benchmark, its combinations of labels with numbers, and at how many commits each has one.

    Args:
        results: asv's `Results`, one a commit.
        benchmarks: asv's descriptions by name; values of another version of a benchmark do not count.
    """
    found: dict[str, Counter[Combination]] = defaultdict(Counter)
    for one in results:
        for name in one.get_result_keys(benchmarks):
            values = one.get_result_value(name, one.get_result_params(name))
            combinations = itertools.product(*one.get_result_params(name))
            found[name].update(
                labels
                for labels, value in zip(combinations, values, strict=True)
                if value is not None and math.isfinite(value)
            )
    return found


def led(params: list[list[str]], known: Counter[Combination]) -> list[list[str]]:
    """The labels of each axis, first that of the cell with numbers at the most commits, unless the first cell has some.

    Args:
        params: labels by axis.
        known: how many commits have a number of a cell; not empty.
    """
    first = tuple(values[0] for values in params)
    lead = first if known[first] else max(sorted(known), key=lambda one: known[one])
    return [[own, *(value for value in values if value != own)] for own, values in zip(lead, params, strict=True)]


def add_script(site: Path) -> None:
    """Put the script beside a site's index and load it there.

    Raises:
        HistoryError: the index has another form than asv's.
    """
    index = site / "index.html"
    whole = index.read_text(encoding="utf-8")
    if whole.count(_BEFORE) != 1:
        raise HistoryError(f"asv's page has no place for {SCRIPT}; pin asv<0.7")
    (site / SCRIPT).write_text(resources.files(__package__).joinpath(SCRIPT).read_text("utf-8"), encoding="utf-8")
    index.write_text(whole.replace(_BEFORE, f'<script src="{SCRIPT}"></script>\n  {_BEFORE}'), encoding="utf-8")
