"""Graphs of asv's site for the series that only sweeps measure: arrays, since there may be tens of thousands.

asv's own class takes each number for itself, several times, and looks for steps without knowing any errors, which takes
milliseconds a series. Here a series is a column, its steps are left to the page of changes beyond noise, and what is
written has as many digits as a picture shows. The benchmarks that `asv run` measures keep asv's class.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from asv import graph as asv_graph
from asv import results as asv_results
from asv.commands import publish
from asv.graph import Graph, GraphSet
from asv.plugins import regressions
from numpy.typing import NDArray

from spinbench.history.series import PREFIX

DIGITS = 3
"""Significant ones of a published number. Result files have six."""
SPARE = 2
"""More of them tell which number of so many digits, or of fewer, is the nearest."""
ROUNDING = 0.005
"""Of a drawn number, relative: a tenth of the least margin. Within it the shortest text is written."""
LEAST, MOST = 1e-300, 1.79e308
"""Of a drawn number: what is smaller is 0, and what is greater would be an infinity in as few digits."""
RECENT = 10
"""Commits whose scatter asv's list gives beside the newest number."""

FloatArray = NDArray[np.float64]


class SweptGraph(Graph):  # type: ignore[misc]
    """The series of a benchmark over commits; all that asv asks of a graph is answered from `table`."""

    def add_data_point(self, revision: int, value: Any, weight: Any = None) -> None:
        """One number for each series at a commit, None where there is none; weights play no part."""
        self.scalar_series = False
        row = np.array(value, dtype=np.float64)
        self.n_series = len(row)
        self.data_points.setdefault(revision, []).append(row)

    @functools.cached_property
    def table(self) -> tuple[list[int], FloatArray]:
        """Revisions in order, and (revisions, series), NaN where there is none; asked for when all points are in.

        Without the commits before the first and after the last number; of several at a commit the mean.
        """
        rows = [(revision, _mean(found)) for revision, found in sorted(self.data_points.items())]
        known = [turn for turn, (_, row) in enumerate(rows) if not np.isnan(row).all()]
        rows = rows[known[0] : known[-1] + 1] if known else []
        values = np.array([row for _, row in rows], dtype=np.float64).reshape(len(rows), self.n_series)
        return [revision for revision, _ in rows], values

    def save(self, html_dir: str) -> None:
        """Write what the page draws."""
        revisions, values = self.table
        lines = [f"[{revision},[{text}]]" for revision, text in zip(revisions, _texts(values), strict=True)]
        path = Path(html_dir, f"{self.path}.json")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"[{','.join(lines)}]", encoding="utf-8")

    def detect_steps(self, pool: Any = None) -> None:
        """One piece a series, with its newest number and the scatter of recent ones; a step would be a guess here."""
        revisions, values = self.table
        self._steps = [_piece(revisions, column) for column in values.T]


def install() -> None:
    """Let asv use them where it publishes."""
    make = GraphSet.__init__

    def start(self: Any) -> None:
        make(self)
        self.made = {}

    GraphSet.__init__, GraphSet.get_graph = start, _get_graph
    asv_graph.make_summary_graph = functools.partial(_summary, asv_graph.make_summary_graph)
    asv_results._compatible_results, asv_results.Results.get_result_value = _compatible, _values
    publish.iter_results = regressions.iter_results = _once(asv_results.iter_results)


def _get_graph(self: Any, benchmark_name: str, params: dict[str, Any]) -> Any:
    """asv's method, but for the class, and for a graph's path, which is made up once."""
    key = (benchmark_name, *params.items())
    if key not in self.made:
        kind = SweptGraph if benchmark_name.startswith(f"{PREFIX}.") else Graph
        graph = kind(benchmark_name, params)
        self.made[key] = self._graphs.setdefault(graph.path, graph)
        if self.made[key] is graph:
            self._groups.setdefault(benchmark_name, []).append(graph)
    return self.made[key]


def _compatible(result: Any, own: Sequence[Sequence[str]], wanted: Sequence[Sequence[str]]) -> list[Any]:
    """asv's function: the values of the combinations that are wanted, None where there is none."""
    if result is None:
        return [None] * math.prod(map(len, wanted))
    if own == wanted:
        return list(result)
    known = dict(zip(itertools.product(*own), result, strict=False))
    return list(map(known.get, itertools.product(*wanted)))


def _values(self: Any, name: str, wanted: Sequence[Sequence[str]]) -> list[Any]:
    """asv's method, but for combinations that a commit has not: they were not run, NaN, and did not fail, None."""
    result, own = self._results[name], self._benchmark_params[name]
    if result is None or own == wanted:
        return _compatible(result, own, wanted)
    known = dict(zip(itertools.product(*own), result, strict=False))
    return [known.get(one, math.nan) for one in itertools.product(*wanted)]


def _once(usual: Callable[[str], Iterator[Any]]) -> Callable[[str], Iterator[Any]]:
    """asv's function that reads all result files: publishing asks three times, and they are read once."""
    kept: dict[Any, list[Any]] = {}

    def read(folder: str) -> Iterator[Any]:
        state = tuple(sorted((str(path), path.stat().st_mtime_ns) for path in Path(folder).rglob("*.json")))
        if state not in kept:
            kept.clear()
            kept[state] = list(_sharing(usual(folder)))
        return iter(kept[state])

    return read


def _sharing(results: Iterator[Any]) -> Iterator[Any]:
    """Results of commits with the same labels hold them once in memory."""
    seen: dict[str, Any] = {}
    for one in results:
        for name, params in one._benchmark_params.items():
            if seen.get(name) != params:
                seen[name] = params
            one._benchmark_params[name] = seen[name]
        yield one


def _summary(usual: Callable[[Any], Any], graphs: Sequence[Any]) -> Any:
    """A benchmark's graph in the grid of all, as asv's: the geometric mean of its series, small gaps filled."""
    if not all(isinstance(one, SweptGraph) for one in graphs):
        return usual(graphs)
    found = Graph(graphs[0].benchmark_name, {"summary": ""})
    for revision, value in asv_graph.resample_data(_means(graphs)):
        found.add_data_point(revision, value)
    return found


def _means(graphs: Sequence[SweptGraph]) -> list[tuple[int, float | None]]:
    revisions = sorted({revision for one in graphs for revision in one.table[0]})
    values = np.concatenate([_placed(revisions, *one.table) for one in graphs], axis=1)
    missing = np.isnan(values)
    for turn in np.flatnonzero(missing.any(axis=0)):
        values[:, turn] = asv_graph._fill_missing_data(values[:, turn].tolist())
    with np.errstate(divide="ignore"):
        means = np.exp(_mean(np.log(np.abs(values)).T))
    means = np.where(np.nansum(values, axis=1) < 0, -means, means)
    shown = zip(revisions, means.tolist(), missing.all(axis=1), strict=True)
    return [(revision, None if nothing else _short(mean)) for revision, mean, nothing in shown]


def _placed(revisions: Sequence[int], own: Sequence[int], values: FloatArray) -> FloatArray:
    """(revisions, series) with gaps where a graph has no number."""
    placed = np.full((len(revisions), values.shape[1]), np.nan)
    placed[np.searchsorted(revisions, own)] = values
    return placed


def _mean(rows: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """Over the first axis, of what there is; NaN where there is nothing."""
    if len(rows) == 1:
        return rows[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found: FloatArray = np.nanmean(rows, axis=0)
    return found


def _texts(values: FloatArray) -> Iterator[str]:
    """Of each row, as short as JSON can be."""
    known = np.isfinite(values)
    values = np.where(np.abs(values) < LEAST, 0.0, np.clip(values, -MOST, MOST))
    with np.errstate(divide="ignore", invalid="ignore"):
        powers = np.floor(np.log10(np.abs(values)))
    powers = np.where(np.isfinite(powers), powers, 0.0) - (DIGITS + SPARE - 1)
    digits = np.rint(np.where(known, np.abs(values), 0.0) / 10.0**powers).astype(int)
    texts = np.full(values.shape, "null", dtype=object)
    for power in np.unique(powers[known]).astype(int).tolist():
        own = known & (powers == power)
        texts[own] = _shortest(power)[digits[own]]
    negative = known & (values < 0)
    texts[negative] = [f"-{text}" for text in texts[negative]]
    yield from map(",".join, texts.tolist())


@functools.cache
def _shortest(power: int) -> NDArray[np.object_]:
    """Of 0 to 10 ** (DIGITS + SPARE), each times a power of ten: 0.0012345 is 123e-5, 8.77 is 8.8, and 2.04 stays."""
    numbers, places = _round_numbers()
    return np.array([_text(digits, power) for digits in numbers.tolist()], dtype=object)[places]


@functools.cache
def _round_numbers() -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Numbers of few digits, and for 0 to 10 ** (DIGITS + SPARE) the place of the one with the fewest that is near."""
    exact = np.arange(10 ** (DIGITS + SPARE) + 1)
    found = exact
    for unit in 10 ** np.arange(SPARE, DIGITS + SPARE):
        rounder = unit * np.rint(exact / unit).astype(int)
        near = np.abs(rounder - exact) + 0.5 <= ROUNDING * exact  # half of a unit is lost in `exact`
        found = np.where(near | (unit == 10**SPARE), rounder, found)
    return np.unique(found, return_inverse=True)


def _text(digits: int, power: int) -> str:
    number = Decimal(digits).scaleb(power).normalize()
    whole = "".join(map(str, number.as_tuple().digits))
    return min(f"{number:f}", f"{whole}e{number.as_tuple().exponent}", key=len)


def _piece(revisions: Sequence[int], column: FloatArray) -> list[tuple[Any, ...]]:
    known = np.flatnonzero(~np.isnan(column))
    if not len(known):
        return []
    recent = column[known[-RECENT:]]
    told = (recent[-1], column[known].min(), np.abs(recent - np.median(recent)).mean())
    return [(revisions[known[0]], revisions[known[-1]] + 1, *map(_short, told))]


def _short(value: float) -> float:
    return float(f"{value:.{DIGITS}g}")
