"""Curves over one setting, from records made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from small_records import make, typed

from spinbench.reporting import leaderboard, over_settings, page
from spinbench.reporting.drawing import Looks


def sizes(method: str, *steps: float, **how: Any) -> list[dict[str, Any]]:
    found = []
    for step in steps:
        record = make(method, rmse=0.01 / step, settings={"rows": 3}, **how)
        record["config"]["method"]["step"] = step
        record["key"] = record["id"] = f"{method}{step}{how}"
        record["protocol"] = str(step)
        found.append(record)
    return found


def test_a_setting_with_three_values_has_a_curve_for_each_method() -> None:
    records = [*sizes("dhmc", 0.5, 0.1, 0.2), *sizes("nuts", 0.1, 0.2, 0.4), *sizes("mala", 0.1, 0.2)]
    board = leaderboard.rows(typed(records))
    (over,) = over_settings.find_curves(board)
    assert over.setting == "method.step"
    assert [curve.name for curve in over.curves] == ["dhmc on numpy", "nuts on numpy"]
    assert tuple(over.curves[0].rows) == (0.1, 0.2, 0.5)
    assert [row.rmse for row in over.curves[0].rows.values()] == pytest.approx([0.1, 0.05, 0.02])
    axes = over_settings.draw_curves(over, Looks.of(board)).axes[0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in axes.lines if not line.get_label().startswith("_")}
    assert drawn == {
        "dhmc on numpy": pytest.approx([0.1, 0.05, 0.02]),
        "nuts on numpy": pytest.approx([0.1, 0.05, 0.025]),
    }
    assert (axes.get_xscale(), axes.get_xlabel()) == ("log", "method.step")
    assert over_settings.find_curves(leaderboard.rows(typed(sizes("dhmc", 0.1, 0.2)))) == [], "two values are no curve"


def test_what_else_differs_makes_curves_of_its_own() -> None:
    """A backend is told, and so is what more than the setting varies; settings that a heat map shows are left to it."""
    steps = (0.1, 0.2, 0.4)
    board = leaderboard.rows(typed([*sizes("dhmc", *steps), *sizes("dhmc", *steps, backend="numba")]))
    (over,) = over_settings.find_curves(board)
    assert [curve.name for curve in over.curves] == ["dhmc on numba", "dhmc on numpy"]
    both = []
    for chains in (2, 8):
        for record in sizes("dhmc", *steps):
            record["config"]["chains"] = chains
            record["protocol"] += str(chains)
            both.append(record)
    assert over_settings.find_curves(leaderboard.rows(typed(both))) == []


def test_curves_that_are_not_drawn_are_named(tmp_path: Path) -> None:
    names = [f"m{i:02}" for i in range(over_settings.MAX_CURVES + 1)]
    records = [record for name in names for record in sizes(name, 0.1, 0.2, 0.4)]
    text = page.write(typed(records), tmp_path).page.read_text()
    assert "Over one setting" in text
    assert f"not drawn: {names[-1]} on numpy" in text
    assert (tmp_path / "over-method-step.pdf").stat().st_size
