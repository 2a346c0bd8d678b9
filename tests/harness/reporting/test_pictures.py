"""Curves, fronts, heat maps, brackets and the looks of pictures, from records made by hand."""

from __future__ import annotations

import io
import itertools
import math
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from rich.console import Console
from small_records import BOUNDED, RECORDS, make, typed

from spinbench.errors import SpinbenchError
from spinbench.foundation import defaults
from spinbench.reporting import (
    accuracy_plots,
    brackets,
    curves,
    leaderboard,
    model_plots,
    page_content,
    plotting,
    settings_plots,
    summary,
)
from spinbench.reporting.plotting import PlotStyles


def with_errors(*errors: float, **how: Any) -> dict[str, Any]:
    """A record with these errors of the marginals and, signed, of log Z at its checkpoints."""
    record = make(**how)
    for point, error in zip(record["result"]["trajectory"], errors, strict=True):
        point |= {"marginal_rmse": abs(error), "log_z": 1.0 + error, "log_z_error": abs(error)}
    return record


def curve_of(*records: dict[str, Any]) -> curves.ErrorCurve:
    found = curves.error_curve(typed(records))
    assert found is not None
    return found


def test_curve_of_seeds_is_the_median_in_its_band() -> None:
    found = curve_of(*(make(rmse=rmse, seed=seed) for seed, rmse in enumerate((0.01, 0.02, 0.04))))
    assert found.seeds == 3
    for values, scale in ((found.low, 0.01), (found.middle, 0.02), (found.high, 0.04)):
        assert values == pytest.approx(scale * found.seconds**-0.5)
    assert curves.error_curve(typed([make(kind="exact"), make(status="failed")])) is None


def test_neither_dips_nor_crossings_of_the_truth_are_corners_of_the_front() -> None:
    lucky = with_errors(0.6, 0.001, 0.3)
    assert [error for _, error in curve_of(lucky).corners()] == [0.6, 0.3, 0.3]
    assert page_content.rows_on_front(leaderboard.rows(typed([lucky, make("dhmc", rmse=0.05)]))) == {1}
    (crossing,) = typed([with_errors(0.8, 0.3, -0.001)])
    assert [error for _, error in curves.error_points(crossing, "log_z_error")] == [0.8, 0.3, 0.3]


def test_front_has_the_points_that_nothing_beats() -> None:
    assert curves.pareto_front([(2.0, 0.5), (1.0, 0.9), (3.0, 0.6), (4.0, 0.1), (1.0, 0.95)]) == [1, 0, 3]
    assert curves.pareto_front([]) == []


def test_heat_maps_are_over_settings_that_vary_together() -> None:
    records = [
        make(
            method,
            rmse=0.01 * c1 * c2,
            model=f"grid({c1},{c2})",
            settings={"c1": c1, "c2": c2, "seed": 10 * c1 + c2},  # a graph of its own for each pair
        )
        for method, c1, c2 in itertools.product(("gibbs", "dhmc"), (1.0, 2.0), (0.5, 1.0, 3.0))
    ]
    alone = make("block_gibbs", settings={"c1": 1.0, "c2": 0.5})
    (found,) = settings_plots.find_heat_maps(leaderboard.rows(typed([*records, alone])))
    assert (found.x, found.y, found.xs, found.ys) == ("model.c1", "model.c2", (1.0, 2.0), (0.5, 1.0, 3.0))
    assert found.columns == ("dhmc on numpy", "gibbs on numpy")
    expected = 0.01 * np.array([[0.5, 1.0], [1.0, 2.0], [3.0, 6.0]])
    np.testing.assert_allclose(found.errors["RMSE of the marginals"], [expected, expected])
    printed = {text.get_text() for panel in settings_plots.draw_heat_map(found).axes for text in panel.texts}
    assert {"0.0100", "0.0600", "0.100"} <= printed
    diagonal = [make(model=f"grid({n})", settings={"rows": n, "cols": n}) for n in (10, 20, 40)]
    for others in (RECORDS, diagonal):
        assert settings_plots.find_heat_maps(leaderboard.rows(typed(others))) == []


def sizes(method: str, *steps: float, chains: int = 2, **how: Any) -> list[dict[str, Any]]:
    """Records that differ in the method's step."""
    found = []
    for step in steps:
        record = make(method, rmse=0.01 / step, settings={"rows": 3}, **how)
        record["config"] |= {"method": {"name": method, "step": step}, "chains": chains}
        found.append(record | {"protocol": f"{step} {chains}"})
    return found


STEPS = (0.1, 0.2, 0.4)


def test_a_setting_with_three_values_has_a_curve_for_each_method() -> None:
    records = [*sizes("dhmc", 0.5, 0.1, 0.2), *sizes("nuts", *STEPS), *sizes("mala", 0.1, 0.2)]
    board = leaderboard.rows(typed(records))
    (over,) = settings_plots.find_curves(board)
    assert over.setting == "method.step"
    assert [(curve.name, tuple(curve.rows)) for curve in over.curves] == [
        ("dhmc on numpy", (0.1, 0.2, 0.5)),
        ("nuts on numpy", STEPS),
    ]
    axes = settings_plots.draw_curves(over, PlotStyles.from_rows(board)).axes[0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines if not line.get_label().startswith("_")}
    assert drawn["dhmc on numpy"] == pytest.approx([0.1, 0.05, 0.02])
    assert drawn["nuts on numpy"] == pytest.approx([0.1, 0.05, 0.025])
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "method.step")


@pytest.mark.parametrize(
    ("records", "names"),
    [
        (sizes("dhmc", 0.1, 0.2), []),
        (sizes("dhmc", *STEPS) + sizes("dhmc", *STEPS, backend="numba"), ["dhmc on numba", "dhmc on numpy"]),
        (sizes("dhmc", *STEPS) + sizes("dhmc", *STEPS, chains=8), []),
    ],
    ids=["two values are no curve", "what else differs", "a heat map shows it"],
)
def test_curves_over_a_setting(records: list[dict[str, Any]], names: list[str]) -> None:
    found = settings_plots.find_curves(leaderboard.rows(typed(records)))
    assert [curve.name for over in found for curve in over.curves] == names


def log_z_of(records: list[dict[str, Any]], model: str = "wide") -> tuple[Figure, Any]:
    """The picture of the answers for one model, and its axes."""
    board = [row for row in leaderboard.rows(typed(records)) if row.model == model]
    figure = model_plots.draw_log_z_bracket(dict(enumerate(board)), PlotStyles.from_rows(board))
    assert figure is not None
    (axes,) = figure.axes
    return figure, axes


def test_the_bracket_and_each_answer_are_drawn() -> None:
    _, axes = log_z_of(BOUNDED)
    (band,) = axes.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((8.5, 9.25))
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert sorted(labels) == [f"{name} on numpy" for name in ("bp", "gibbs", "mf", "trw", "weak")]
    marked = [line for line in axes.lines if line.get_marker() not in ("None", "")]
    points = {(labels[round(y)], round(x, 6), line.get_marker()) for line in marked for x, y in line.get_xydata()}
    assert {("mf on numpy", 8.5, ">"), ("trw on numpy", 9.25, "<"), ("gibbs on numpy", 9.0, "o")} <= points
    bars = {tuple(np.round(line.get_xdata(), 6)) for line in axes.lines if line not in marked}
    assert (8.8, 9.2) in bars, "two standard errors each way"


@pytest.mark.parametrize("changes", [{}, {"status": "not converged"}], ids=["vouched for", "doubted"])
def test_an_answer_far_away_stands_at_the_margin_with_its_number_in_nobodys_way(changes: dict[str, Any]) -> None:
    (low,) = [one for one in BOUNDED if one["axes"] == {"model": "wide", "method": "mf", "backend": "numpy"}]
    away = {**low, "config": {**low["config"], "seed": 1}, "result": {**low["result"], "log_z": -1e30, **changes}}
    figure, axes = log_z_of([*BOUNDED, away])
    assert axes.get_xlim()[0] > 0
    (number,) = [text for text in axes.texts if text.get_text() == "-1e+30"]
    figure.canvas.draw()
    place = number.get_window_extent()
    for line in axes.lines:
        if line.get_marker() not in ("None", ""):
            (centre,) = axes.transData.transform(line.get_xydata())
            radius = 3 / 72 * figure.dpi
            assert not place.overlaps(Bbox([centre - radius, centre + radius])), "a marker hides the number"


def test_many_models_take_several_pictures_and_none_without_errors(tmp_path: Path) -> None:
    paths = accuracy_plots.draw_accuracy_over_time(typed([make(model=f"m{i}") for i in range(13)]), tmp_path / "p.png")
    assert [path.name for path in paths if path.stat().st_size] == ["p.png", "p-2.png"]
    without = make()
    without["result"]["trajectory"] = [{"seconds": 1.0, "marginal_rmse": None}]
    assert accuracy_plots.draw_accuracy_over_time(typed([without]), tmp_path / "none.png") == []
    (tmp_path / "file").touch()
    with pytest.raises(SpinbenchError, match="cannot be written"):
        accuracy_plots.draw_accuracy_over_time(typed([make()]), tmp_path / "file" / "p.png")


def looks_of(methods: list[str], backends: tuple[str, ...] = ("numba",)) -> PlotStyles:
    rows: Any = [SimpleNamespace(method=name, backend=one) for name in methods for one in backends]
    return PlotStyles.from_rows(rows)


@pytest.mark.parametrize(("group", "known"), [("methods", defaults.METHOD_ORDER), ("backends", defaults.BACKEND_ORDER)])
def test_what_spinbench_has_has_a_place(group: str, known: tuple[str, ...]) -> None:
    points = entry_points(group=f"spinbench.{group}")
    assert set(known) == {point.name for point in points if point.value.startswith("spinbench.")}
    assert len(set(known)) == len(known) <= min(len(plotting.METHOD_STYLES), len(plotting.BACKEND_STYLES) + 30)


def test_no_two_look_alike() -> None:
    count = len(plotting.METHOD_STYLES)
    names = [*defaults.METHOD_ORDER, *(f"plugin{i}" for i in range(count - len(defaults.METHOD_ORDER)))]
    found = looks_of(names)
    assert len({(found.colours[name], found.fills[name]) for name in names}) == count
    assert set(looks_of([*names, "one_more"]).colours) == {*names, "one_more"}
    count = len(plotting.BACKEND_STYLES)
    names = [*defaults.BACKEND_ORDER, *(f"plugin{i}" for i in range(count - len(defaults.BACKEND_ORDER)))]
    assert len(set(looks_of(["gibbs"], tuple(names)).lines.values())) == count


MACHADO = {  # Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# From linear RGB, over the white of daylight.
XYZ = ((0.4124 / 0.9505, 0.3576 / 0.9505, 0.1805 / 0.9505), (0.2126, 0.7152, 0.0722), (0.01775, 0.10947, 0.87328))


@pytest.mark.parametrize("sight", MACHADO)
def test_the_colour_blind_tell_the_colours_apart(sight: str) -> None:
    """By the distance in CIELAB of what they see; two greys are just told apart at about 2."""
    channels = np.array([[int(one[i : i + 2], 16) / 255 for i in (1, 3, 5)] for one in plotting.COLOURS])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    x, y, z = np.array(XYZ) @ np.clip(np.array(MACHADO[sight]) @ linear.T, 0, 1)
    f, g, h = (np.where(c > 0.008856, np.cbrt(c), 7.787 * c + 16 / 116) for c in (x, y, z))
    lab = np.transpose([116 * g - 16, 500 * (f - g), 200 * (g - h)])
    assert min(math.dist(p, q) for p, q in itertools.combinations(lab, 2)) > 8


def test_vector_pictures_say_what_they_show(tmp_path: Path) -> None:
    figure = plotting.new_figure(2, 2)
    panel = figure.add_subplot()
    plotting.save_figure(figure, tmp_path / "plain.svg")
    panel.set_title('x < "y"')
    plotting.save_figure(figure, tmp_path / "titled.svg")
    for name, label in (("plain", "plain"), ("titled", 'x < "y"')):
        root = ElementTree.parse(tmp_path / f"{name}.svg").getroot()
        assert (root.get("role"), root.get("aria-label")) == ("img", label)


def record(
    method: str, log_z: float | None, kind: str = "estimate", se: float | None = None, seed: int = 0, **how: Any
) -> dict[str, Any]:
    """A record of a model whose log Z is not known, unless it is given as `exact`."""
    found = make(method, model="m", seed=seed, kind=kind, log_z=log_z, **{"exact": None, **how})
    if found["result"] is not None:
        found["result"] |= {"log_z_se": se, "r_hat_max": None, "trajectory": []}
        found["reference"]["reason"] = None if "exact" in how else "it is too wide"
    return found | {"protocol": method, "metrics": {}}


BOUNDS = [
    record("mf", 9.0, "lower"),
    record("g_mf", 10.0, "lower"),
    record("trw", 12.0, "upper"),
    record("other", 13.0, "upper"),
]


def drawn(log_z: float, *bounds: tuple[float, str, str, float]) -> Any:
    """A record of a method that brackets its estimate."""
    found = record("wmb", log_z, se=0.01)
    keys = ("value", "side", "grade", "delta")
    found["result"]["bounds"] = [{**dict(zip(keys, bound, strict=True)), "by": "wmb"} for bound in bounds]
    return found


BRACKETED = drawn(
    11.0, (11.5, "upper", "certified", 0.0), (10.9, "lower", "probable", 5e-4), (11.1, "upper", "probable", 5e-4)
)


def statuses(*records: Any) -> dict[str, str]:
    return {row.method: row.status for row in leaderboard.rows(typed(records))}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        ([*BOUNDS, record("gibbs", 11.25)], "log Z in [10 (g_mf), 12 (trw)], 2 nats wide"),
        ([*BOUNDS, record("gibbs", 11.25)], " 11.25 "),  # the values stand in place of errors that are not known
        ([record("mf", 9.0, "lower")], "log Z in [9 (mf), no upper bound]"),
        (BOUNDS[2:], "log Z in [no lower bound, 12 (trw)]"),
        (
            [record("g_mf", 10.0, "lower"), record("trw", 9.0, "upper")],
            "contradictory bounds on log Z: 10 (g_mf) > 9 (trw)",
        ),
        (
            [*BOUNDS, BRACKETED],
            "log Z in [10 (g_mf), 11.5 (wmb)], 1.5 nats wide; with probability 0.999 in [10.9 (wmb), 11.1 (wmb)]",
        ),
    ],
    ids=["of the best bounds", "values", "no upper", "no lower", "crossing", "with their grades"],
)
def test_the_leaderboard_shows_the_bracket(records: list[Any], expected: str) -> None:
    console = Console(width=160, file=io.StringIO(), markup=False)
    console.print(*summary.leaderboard_tables(leaderboard.rows(typed(records))))
    assert expected in " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


def test_bracket_is_of_the_best_bounds() -> None:
    failed = record("failed", 99.0, "lower", status="failed")
    assert brackets.log_z_bracket(typed([*BOUNDS, record("gibbs", 11.0, se=0.1), failed])) == brackets.LogZBracket(
        None, 10.0, 12.0, "g_mf", "trw"
    )
    assert brackets.log_z_bracket(typed([record("gibbs", 11.0)])).sentence() is None
    assert brackets.log_z_bracket(typed([record("mf", 9.0, "lower", exact=10.0)])).sentence() is None
    found = brackets.log_z_bracket(typed([*BOUNDS, BRACKETED, BRACKETED]))
    assert (found.lower, found.upper, found.upper_method) == (10.0, 11.5, "wmb")
    assert (found.probable, found.probable_methods) == ((10.9, 11.1), ("wmb", "wmb"))
    assert found.delta == pytest.approx(2e-3)


ALONE: list[Any] = []


@pytest.mark.parametrize(
    ("others", "answer", "flag"),
    [
        (BOUNDS, record("gibbs", 10.0 - 5e-9), None),
        (BOUNDS, record("gibbs", 10.0 - 5e-8), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 12.1), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 12.1, se=0.03), None),
        (BOUNDS, record("gibbs", 12.1, se=0.02), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 9.5, se=0.2), None),
        (BOUNDS, record("gibbs", 9.5, se=0.1), brackets.OUTSIDE),
        (BOUNDS, record("gibbs", 9.5, se=0.0), brackets.OUTSIDE),
        ([*BOUNDS, BRACKETED], record("gibbs", 11.0, se=0.01), None),
        ([*BOUNDS, BRACKETED], record("gibbs", 10.5, se=0.01), brackets.UNLIKELY),
        ([*BOUNDS, BRACKETED], record("gibbs", 11.8, se=0.01), brackets.OUTSIDE),
        (ALONE, record("mf", 100.0 + 5e-8, "lower", exact=100.0), None),
        (ALONE, record("mf", 100.0 + 2e-7, "lower", exact=100.0), brackets.VIOLATED),
        (ALONE, record("trw", 100.0 - 5e-8, "upper", exact=100.0), None),
        (ALONE, record("trw", 100.0 - 2e-7, "upper", exact=100.0), brackets.VIOLATED),
        (ALONE, record("gibbs", 120.0, exact=100.0), None),
        (ALONE, record("exact", 100.00009, "exact", exact=100.0), None),
        (ALONE, record("exact", 100.0002, "exact", exact=100.0), brackets.WRONG),
        (ALONE, record("exact", 99.9, "exact", exact=100.0), brackets.WRONG),
    ],
)
def test_what_contradicts_the_bracket_is_flagged(others: list[Any], answer: Any, flag: str | None) -> None:
    """Estimates beyond four standard errors; bounds and answers beyond rounding. No flag is wrong about the others."""
    board = {row.method: row for row in leaderboard.rows(typed([*others, answer]))}
    row = board.pop(answer["axes"]["method"])
    assert [one for one in brackets.FLAGS if one in row.status.split(", ")] == ([] if flag is None else [flag])
    assert leaderboard.is_disqualified(row) == (flag in brackets.DISQUALIFYING)
    assert not any(one in other.status for other in board.values() for one in brackets.FLAGS)


def test_any_seed_outside_flags_its_row() -> None:
    board = leaderboard.rows(typed([*BOUNDS, record("gibbs", 11.0), record("gibbs", 15.0, seed=1)]))
    (row,) = (row for row in board if row.method == "gibbs")
    assert (row.status, row.log_z) == ("ok, outside the bracket, no exact answer", 13.0)


def test_an_exact_record_is_an_exact_answer() -> None:
    """Where the reference gave up but the method itself, with other limits, did not."""
    found = statuses(record("exact", 5.0, "exact"), record("mf", 5.1, "lower"), record("gibbs", 7.0))
    assert brackets.VIOLATED in found["mf"]
    assert found["gibbs"] == found["exact"] == "ok, no exact answer"


def test_bounds_that_cross_are_both_violated() -> None:
    found = statuses(record("g_mf", 10.0, "lower"), record("trw", 9.0, "upper"))
    assert all(brackets.VIOLATED in status for status in found.values())


def test_settings_of_ones_own_and_of_the_working_directory_change_no_picture() -> None:
    """`text.usetex` of a stranger's matplotlibrc would run LaTeX."""
    with matplotlib.rc_context({"text.usetex": True, "axes.facecolor": "black"}):
        with plotting.plot_style():
            assert not matplotlib.rcParams["text.usetex"]
            assert matplotlib.rcParams["axes.facecolor"] == "white"
            assert matplotlib.rcParams["svg.hashsalt"] == "spinbench"
        assert matplotlib.rcParams["text.usetex"]
