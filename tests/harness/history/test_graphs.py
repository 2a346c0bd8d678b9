"""Graphs of swept series on asv's site: what asv itself would draw, in three digits, without its search for steps."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from asv import graph as asv_graph
from asv import results as asv_results
from asv import step_detect
from asv.commands import publish
from asv.graph import GraphSet
from asv.plugins import regressions

from spinbench.history import asv_graphs

SWEPT = "swept.grid.track_log_z_error"
LABELS = {"machine": "testbox", "branch": "main"}
NAN = math.nan
POINTS: list[tuple[int, list[float | None]]] = [
    (3, [None, NAN, NAN]),
    (4, [0.00123456, 2.0, 0.0]),
    (5, [0.0123456, None, 5e-12]),
    (6, [0.123456, 9.99999, 123456.0]),
    (7, [NAN, None, None]),
    (8, [1.0, 3.0, 0.5]),
    (9, [NAN, None, None]),
]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """asv as the plugin leaves it; put back afterwards."""
    for where, names in {
        GraphSet: ("__init__", "get_graph"),
        asv_graph: ("make_summary_graph",),
        asv_results: ("_compatible_results",),
        asv_results.Results: ("get_result_value",),
        publish: ("iter_results",),
        regressions: ("iter_results",),
    }.items():
        for name in names:
            monkeypatch.setattr(where, name, getattr(where, name))
    asv_graphs.install()


def published(folder: Path) -> tuple[Any, Any, Any]:
    """What asv writes of the points: the graph and the summary; and the set of graphs."""
    graphs = GraphSet()
    for revision, values in POINTS:
        graphs.get_graph(SWEPT, dict(LABELS)).add_data_point(revision, values, [None] * len(values))
    graphs.save(str(folder))
    (summary,) = graphs.get_summary_graphs()
    summary.save(str(folder))
    drawn, grid = (json.loads((folder / f"{one.path}.json").read_text()) for one in (*dict(graphs).values(), summary))
    return drawn, grid, graphs


def close(one: Any, other: Any) -> bool:
    if isinstance(one, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, int | float):
        return math.isclose(one, other, rel_tol=5.1e-3, abs_tol=0.0)
    return type(one) is type(other) and bool(one == other)


def test_files_hold_what_asvs_own_class_writes(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    usual_graph, usual_grid, _ = published(tmp_path / "usual")
    request.getfixturevalue("installed")
    drawn, grid, graphs = published(tmp_path / "swept")
    assert isinstance(next(iter(dict(graphs).values())), asv_graphs.SweptGraph)
    assert [revision for revision, _ in drawn] == [4, 5, 6, 7, 8]
    assert close([[r, [None if v is None else float(v) for v in row]] for r, row in usual_graph],
                 [[r, [None if v is None else float(v) for v in row]] for r, row in drawn])  # fmt: skip
    assert close([[r, v if v is None else float(v)] for r, v in usual_grid], grid)


def test_no_steps_are_sought_and_the_list_has_the_newest_numbers(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any) -> Any:
        raise AssertionError("asv looks for steps")

    monkeypatch.setattr(step_detect, "detect_steps", refuse)
    _, _, graphs = published(tmp_path)
    graphs.detect_steps()
    (graph,) = dict(graphs).values()
    assert [pieces[0][:4] for pieces in graph.get_steps()] == [
        (4, 9, 1.0, 0.00123),
        (4, 9, 3.0, 2.0),
        (4, 9, 0.5, 0.0),
    ]
    assert graph.get_steps()[0][0][4] == 0.277  # of .00123456, .0123456, .123456, 1 from their median
    own = graphs.get_graph("inference.track_log_z_error", dict(LABELS))
    own.add_data_point(1, [1.0], [None])
    with pytest.raises(AssertionError, match="looks for steps"):
        own.detect_steps()


def test_result_files_are_read_once_and_again_when_they_change(
    installed: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = []

    class One:
        _benchmark_params = {"b": [["1"]]}  # noqa: RUF012

    def usual(folder: str) -> Any:
        read.append(folder)
        yield One()

    once = asv_graphs._once(usual)
    (tmp_path / "a.json").write_text("{}")
    assert len([*once(str(tmp_path)), *once(str(tmp_path))]) == 2
    assert len(read) == 1
    (tmp_path / "b.json").write_text("{}")
    list(once(str(tmp_path)))
    assert len(read) == 2


def test_values_are_found_by_their_labels_when_an_axis_has_grown(installed: None) -> None:
    assert asv_results._compatible_results([1.0, 2.0], [["a", "b"]], [["b", "c", "a"]]) == [2.0, None, 1.0]
    assert asv_results._compatible_results(None, [["a"]], [["a", "b"]]) == [None, None]
    assert asv_results._compatible_results([1.0], [["a"]], [["a"]]) == [1.0]


def test_numbers_are_as_short_as_they_can_be() -> None:
    """Of eight metrics of 5,000 cells at 300 commits twelve million: a character each is a tenth of the site."""
    rows = np.array([[0.001234, 1.0, 1234.0, 0.0, NAN], [99.96, -0.05, 1.5e-12, 9.996e9, 3e5]])
    texts = list(asv_graphs._texts(rows))
    assert texts == ["123e-5,1,1230,0,null", "100,-0.05,15e-13,1e10,3e5"]
    assert next(asv_graphs._texts(np.array([[5e-324, 1e-315, -1.797e308, 1e300]]))) == "0,0,-179e306,1e300"
    # within half a per cent the shortest: 8.77 needs no third digit, and 2.04 does
    assert next(asv_graphs._texts(np.array([[8.77, 2.04, 8.75, 0.301, 1.005]]))) == "8.8,2.04,8.75,0.3,1"
    drawn = 10 ** np.random.default_rng(0).uniform(-9, 9, (1, 5000))
    read = [float(text) for text in next(asv_graphs._texts(drawn)).split(",")]
    assert np.abs(np.array(read) / drawn[0] - 1).max() <= 0.0051
    assert [[math.nan if x is None else x for x in json.loads(f"[{text}]")] for text in texts] == [
        pytest.approx(row, rel=5.1e-3, nan_ok=True) for row in rows.tolist()
    ]


def test_labels_that_came_later_did_not_fail_before(installed: None) -> None:
    """asv show and asv compare say "n/a" of them, and "failed" of what failed."""
    results = asv_results.Results({"machine": "testbox"}, {}, "c" * 40, 0, "3.11", "spinbench-py3.11", {})
    results._results[SWEPT], results._benchmark_params[SWEPT] = [1.0, None], [["'a'", "'b'"]]
    value, failed, absent = results.get_result_value(SWEPT, [["'a'", "'b'", "'a v2'"]])
    assert (value, failed, math.isnan(absent)) == (1.0, None, True)
    assert results.get_result_value(SWEPT, [["'a'", "'b'"]]) == [1.0, None]
    results._results[SWEPT] = None
    assert results.get_result_value(SWEPT, [["'a'", "'c'"]]) == [None, None]
