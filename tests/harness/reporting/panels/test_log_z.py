"""The picture of log Z in its bracket."""

from __future__ import annotations

import pytest
from matplotlib.transforms import Bbox
from small_records import BOUNDED, RECORDS, typed

from spinbench.reporting import leaderboard, panels
from spinbench.reporting.drawing import Looks


def test_the_bracket_and_each_answer_are_drawn() -> None:
    board = [row for row in leaderboard.rows(typed(BOUNDED)) if row.model == "wide"]
    figure = panels.draw_log_z(dict(enumerate(board)), Looks.of(board))
    assert figure is not None
    (axes,) = figure.axes
    (band,) = axes.patches
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((8.5, 9.25))
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert sorted(labels) == ["bp on numpy", "gibbs on numpy", "mf on numpy", "trw on numpy", "weak on numpy"]
    points = {
        (labels[round(line.get_ydata()[0])], round(float(line.get_xdata()[0]), 6), line.get_marker())
        for line in axes.lines
        if line.get_marker() not in ("None", "")
    }
    assert {("mf on numpy", 8.5, ">"), ("trw on numpy", 9.25, "<"), ("gibbs on numpy", 9.0, "o")} <= points
    bars = {tuple(line.get_xdata()) for line in axes.lines if line.get_marker() in ("None", "")}
    assert (8.8, 9.2) in {(round(a, 6), round(b, 6)) for a, b in bars}, "two standard errors each way"


def test_an_answer_far_away_stands_at_the_margin_with_its_number() -> None:
    far = [
        dict(one)
        for one in BOUNDED
        if one["axes"]["method"] in ("mf", "gibbs", "trw") and one["axes"]["model"] == "wide"
    ]
    far[0] = {**far[0], "result": {**far[0]["result"], "log_z": -1e30, "status": "not converged"}}
    far.append(BOUNDED[1])
    board = leaderboard.rows(typed(far))
    figure = panels.draw_log_z(dict(enumerate(board)), Looks.of(board))
    assert figure is not None
    (axes,) = figure.axes
    assert axes.get_xlim()[0] > 0
    assert "-1e+30" in {text.get_text() for text in axes.texts}


def test_no_answer_hides_the_number_of_another() -> None:
    (low,) = [one for one in BOUNDED if one["axes"]["method"] == "mf" and one["axes"]["model"] == "wide"]
    away = {**low, "config": {**low["config"], "seed": 1}, "result": {**low["result"], "log_z": -1e30}}
    board = [row for row in leaderboard.rows(typed([*BOUNDED, away])) if row.model == "wide"]
    figure = panels.draw_log_z(dict(enumerate(board)), Looks.of(board))
    assert figure is not None
    (axes,) = figure.axes
    (number,) = [text for text in axes.texts if text.get_text() == "-1e+30"]
    figure.canvas.draw()
    place = number.get_window_extent()
    for line in axes.lines:
        if line.get_marker() not in ("None", ""):
            (centre,) = axes.transData.transform(line.get_xydata())
            radius = 3 / 72 * figure.dpi
            assert not place.overlaps(Bbox([centre - radius, centre + radius])), "a marker hides the number"


def test_without_a_bound_there_is_no_picture() -> None:
    board = [row for row in leaderboard.rows(typed(RECORDS)) if row.model == "grid"]
    assert panels.draw_log_z(dict(enumerate(board)), Looks.of(board)) is None
