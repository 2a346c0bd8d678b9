"""What asv's site is made of: a copy of the history that holds what its page can carry.

asv draws the first labels of each axis, whether they were measured or not; has a page for each benchmark, measured or
not; takes milliseconds for each series, in whose numbers it looks for steps; and lets the y-axis end at the least and
the greatest number unless the unit is seconds or bytes, so that numbers that stayed the same lie under the frame. So
the copy's list of benchmarks has what was measured, the first labels those of a measured cell, and of the series that
sweeps began the newest. Nothing of asv is changed.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from asv import util
from asv.benchmarks import Benchmarks
from asv.results import iter_results

from spinbench.errors import HistoryError
from spinbench.foundation.checkout import CONFIG, Checkout
from spinbench.history.series import PREFIX

MAX_SERIES = 2000
"""Of those that sweeps began. asv takes some 10 ms a series; its page lists them all."""
SWEPT = f"{PREFIX}."
PATHS = {"benchmark_dir", "results_dir", "html_dir", "env_dir"}
"""Of asv's configuration, relative to its folder."""
SCRIPT = "asv_site.js"
"""Beside this module: gives the y-axis room."""
_BEFORE = "</head>"

Cell = tuple[str, ...]
"""A label of each axis."""
Ages = dict[Cell, list[int]]


class Prepared(NamedTuple):
    """A copy of a history.

    Attributes:
        config: the file of asv's configuration.
        site: folder that asv writes.
        shown, swept: how many series of sweeps the copy names, and how many there are.
    """

    config: Path
    site: Path
    shown: int
    swept: int


def prepare(checkout: Checkout, folder: Path) -> Prepared:
    """Links to a history's results, beside a shorter list of benchmarks, and a configuration that names them.

    Args:
        checkout: of the history.
        folder: an empty one inside it.

    Raises:
        HistoryError: a branch of the configuration has no commits.
    """
    stored = util.load_json(str(checkout.root / CONFIG), js_comments=True)
    site = checkout.root / stored.get("html_dir", "html")
    for name in PATHS & stored.keys():
        stored[name] = str(checkout.root / stored[name])
    stored["repo"] = str(checkout.root)  # whatever address it has, its commits are here
    results, stored["results_dir"] = Path(stored["results_dir"]), str(folder / "results")
    config = folder / "publish.json"  # not by asv's name, by which pages find the checkout
    util.write_json(str(config), stored)
    for path in results.glob("*/*.json"):
        link = folder / "results" / path.relative_to(results)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(path)
    listed = results / "benchmarks.json"
    benchmarks = util.load_json(str(listed), Benchmarks.api_version)
    known = measured(iter_results(str(results)), benchmarks, published(checkout, stored.get("branches") or ["HEAD"]))
    swept = {(name, cell): ages for name in known if name.startswith(SWEPT) for cell, ages in known[name].items()}
    newest = set(sorted(swept, key=lambda series: (min(swept[series]), series))[:MAX_SERIES])
    shown = {name: shortened(name, one, known[name], newest) for name, one in benchmarks.items() if known[name]}
    util.write_json(
        str(folder / "results" / listed.name),
        {name: one for name, one in shown.items() if all(one["params"])},
        Benchmarks.api_version,
    )
    return Prepared(config, site, len(newest), len(swept))


def shortened(name: str, described: Mapping[str, Any], known: Ages, newest: Set[tuple[str, Cell]]) -> dict[str, Any]:
    """A benchmark's description with the labels of the newest series, or first those of a cell with numbers."""
    if name.startswith(SWEPT):
        labels = [label for label in described["params"][0] if (name, (label,)) in newest]
        return {**described, "params": [labels]}
    return {**described, "params": first_measured(described["params"], known)} if described["params"] else {**described}


def published(checkout: Checkout, branches: Sequence[str]) -> dict[str, int]:
    """The commits that asv publishes, those of branches and tagged ones, each with how many newer ones there are."""
    ages: dict[str, int] = {}
    for commits in (*map(checkout.line, branches), checkout.tagged()):
        for age, commit in enumerate(commits):
            ages.setdefault(commit, age)
    return ages


def measured(results: Iterable[Any], benchmarks: Mapping[str, Any], ages: Mapping[str, int]) -> dict[str, Ages]:
    """By benchmark, its combinations of labels with numbers, and the ages of the commits that have one.

    Args:
        results: asv's `Results`, one a commit.
        benchmarks: asv's descriptions by name; values of another version of a benchmark do not count.
        ages: of the commits that count.
    """
    found: dict[str, Ages] = defaultdict(lambda: defaultdict(list))
    for one in results:
        for name in one.get_result_keys(benchmarks) if one.commit_hash in ages else ():
            values = one.get_result_value(name, one.get_result_params(name))
            cells = itertools.product(*one.get_result_params(name))
            for cell, value in zip(cells, values, strict=True):
                if value is not None and math.isfinite(value):
                    found[name][cell].append(ages[one.commit_hash])
    return found


def first_measured(params: list[list[str]], known: Ages) -> list[list[str]]:
    """The labels of each axis, first that of the cell with numbers at the most commits, unless the first cell has some.

    Cells that the axes do not have any more are not shown.

    Args:
        params: labels by axis.
        known: by cell, the ages of the commits that have a number.
    """
    first = tuple(values[0] for values in params)
    cells = sorted(set(known) & set(itertools.product(*params)))
    if known.get(first) or not cells:
        return params
    lead = max(cells, key=lambda cell: len(known[cell]))
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
