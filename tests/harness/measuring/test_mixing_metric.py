"""A sweep that asks for it has a column that says after how many sweeps chains mix, where that is resolved."""

from __future__ import annotations

from typing import Any

import pytest

import spinbench
from spinbench.measuring.in_process import measure_here
from spinbench.measuring.measure import measure_cell, record_header
from spinbench.models import specs
from spinbench.reporting import leaderboard, summary
from tests.helpers.small_records import typed, whole

TITLE = "sweeps to TV < 0.01"


GIT = {"commit": None, "dirty": None, "diff": None}


def cell(method: str, model: dict[str, Any], **settings: Any) -> dict[str, Any]:
    return {
        "model": model,
        "method": {"name": method, **settings},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"samples": 40, "seconds": None, "burn_in": None},
        "chains": 4,
        "seed": 3,
    }


def here(asked: dict[str, Any], mixing: float) -> dict[str, Any]:
    """The record of a cell that is measured in this process."""
    told = measure_here({**asked, "mixing": mixing})
    return {**record_header(asked, GIT, {}, {}), **told, "started_at": 0, "duration": 1.0}


RING = {"name": "ring", "n": 6, "c1": 0.1, "c2": 0.1}
STUCK = {"name": "torus", "rows": 8, "cols": 8, "coupling": 3.0}


def test_it_is_the_number_that_mixing_gives_and_a_column() -> None:
    asked = cell("gibbs", RING, scan="raster")
    found = [measure_cell({**asked, "mixing": 20.0}, git=GIT), here(cell("bp", RING), 20.0)]
    alone = spinbench.mixing(specs.build(RING), budget="20 s", seed=3, scan="raster", backend="numpy")
    assert found[0]["metrics"]["mixing"]["value"] == alone.sweeps
    assert found[0]["stages"]["mixing"] > 0
    assert "mixing" not in found[0]["config"]
    assert "mixing" not in found[1]["metrics"]
    board = leaderboard.rows(typed(found))
    assert TITLE in leaderboard.metric_titles(board)
    (table,) = summary.leaderboard_tables(board)
    cells = {str(column.header): list(column.cells) for column in table.columns}
    assert sorted(map(str, cells[summary.wrap_heading(TITLE)])) == sorted(
        [leaderboard.format_number(alone.sweeps), "–"]
    )


@pytest.mark.parametrize(
    ("model", "settings", "sentence"),
    [(STUCK, {}, "not resolved: "), (RING, {"scan": "random"}, "chromatic or raster is needed")],
)
def test_where_it_is_not_resolved_a_sentence_stands_below(
    model: dict[str, Any], settings: dict[str, Any], sentence: str
) -> None:
    found = here(cell("gibbs", model, **settings), 0.2)
    assert found["status"] == "ok"
    assert sentence in found["metrics"]["mixing"]["failed"]
    (note,) = leaderboard.collect_remarks([whole(found)])
    assert note.startswith("gibbs on numpy: ")
    assert sentence in note
    assert TITLE not in leaderboard.metric_titles(leaderboard.rows([whole(found)]))
