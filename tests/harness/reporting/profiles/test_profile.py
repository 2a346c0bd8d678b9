"""Solvers across models, from records made by hand."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from profile_records import record
from rich.console import Console
from small_records import typed, whole

import spinbench
from spinbench import cli
from spinbench.errors import SpinbenchError
from spinbench.measuring import records as stored
from spinbench.reporting import page, summary
from spinbench.reporting.profiles import boards, rendering
from spinbench.reporting.profiles.boards import LOG_Z, RMSE, SECONDS
from spinbench.reporting.profiles.profile import model_class, profile

FIELD = [
    *(record(f"grid{i}", "gibbs", 0.02, kind="grids") for i in range(3)),
    *(record(f"grid{i}", "wmb", 0.01, kind="grids", off=0.1, reached=0.4) for i in range(3)),
    record("glass", "gibbs", 0.5, kind="glasses", verdict="marginals not mixed", reached=0.9),
    record("glass", "wmb", None, kind="glasses", status="skipped"),
    *(record(name, "exact", 0.0, off=0.0) for name in ("grid0", "grid1", "grid2", "glass")),
]


@pytest.mark.parametrize("given", [3, None, ["a"], [{"schema": 1}]])
def test_what_is_no_record_is_refused(given: Any) -> None:
    with pytest.raises(SpinbenchError, match="the folder of a sweep is needed, or a list of its records"):
        profile(given)


def test_boards_hold_what_is_vouched_for_alone() -> None:
    found = profile(typed(FIELD))
    first, second, third = found.boards
    assert [one.quantity for one in found.boards] == [RMSE, LOG_Z, SECONDS]
    assert (first.budget, first.solvers, first.models) == ("1 s", ("wmb.numpy", "gibbs.numpy"), second.models)
    assert first.models == ("glass", "grid0", "grid1", "grid2")
    assert first.classes == ("glasses", "grids", "grids", "grids")
    assert first.values.tolist() == [[math.inf, math.inf], *[[0.01, 0.02]] * 3]
    assert first.wins() == {"glasses": [], "grids": [("wmb.numpy", 3)]}
    assert second.values[0].tolist() == [math.inf, 0.5], "a doubt of marginals is none of log Z"
    assert first.counts == (Counter({"ok": 3, "refused": 1}), Counter({"ok": 3, "doubted": 1}))
    assert third.values[1:].tolist() == [[0.4, math.inf]] * 3, "0.02 is above one per cent"
    assert (found.models, found.unanswered) == (4, ())
    assert found.counts == Counter({"ok": 6, "doubted": 1, "refused": 1})
    claimed = [{**one, "result": {**one["result"], "marginals_claim": 0.004}} for one in FIELD[:6]]
    assert "marginals: 6 runs, 3 of them outside their error bounds" in profile(typed(claimed)).truth


@pytest.mark.parametrize(
    ("seeds", "value"),
    [
        ([(0.1, "ok"), (0.3, "ok"), (0.2, "ok")], 0.2),
        ([(0.1, "marginals too short"), (0.1, "marginals too short"), (0.1, "ok")], math.inf),
    ],
    ids=["vouched for", "doubted"],
)
def test_seeds_count_by_their_median_with_failures_as_infinite(seeds: list[tuple[float, str]], value: float) -> None:
    runs = [record("m", "gibbs", error, seed=seed, verdict=verdict) for seed, (error, verdict) in enumerate(seeds)]
    assert profile(typed(runs)).boards[0].values.tolist() == [[value]]


def test_each_budget_has_its_boards_and_the_seconds_are_the_least_of_all() -> None:
    found = profile(typed([record("m", "mf", 0.001, seconds=10.0, reached=3.0), record("m", "mf", 0.001, reached=0.5)]))
    assert [(one.quantity.short, one.budget) for one in found.boards] == [
        *(("RMSE", "1 s"), ("log Z", "1 s"), ("RMSE", "10 s"), ("log Z", "10 s"), ("to 1 %", "")),
    ]
    assert found.boards[-1].values.tolist() == [[pytest.approx(0.5, rel=0.4)]]
    assert [one.budget for one in found.last] == ["10 s", "10 s", ""]


def test_what_was_not_run_and_has_no_answer_is_told() -> None:
    unknown = [record("linkage", name, None, off=None) for name in ("gibbs", "wmb")]
    why = {"marginal_rmse": {"failed": "no exact answer"}, "log_z_error": {"failed": "no exact answer"}}
    unknown[1] = {**unknown[1], "metrics": {**unknown[1]["metrics"], **why}}
    found = profile(typed([*FIELD[:5], *unknown]))
    assert found.unanswered == ("linkage",)
    assert "linkage" not in found.boards[0].models
    assert found.boards[0].solvers == ("wmb.numpy", "gibbs.numpy")
    assert [count["not run"] for count in found.boards[0].counts] == [1, 0]
    text = " ".join(rendering.summary_sentences(found))
    assert re.search("1 were not run.*No exact answer, so nothing to compare, on linkage\\.", text)
    only = profile(typed(unknown))
    assert (only.boards, only.models) == ((), 1)


def test_solvers_without_the_quantity_are_not_on_the_board() -> None:
    bound = record("grid0", "gauged", None, off=2.0)
    first, second, _ = profile(typed([FIELD[0], bound])).boards
    assert first.solvers == ("gibbs.numpy",)
    assert set(second.solvers) == {"gibbs.numpy", "gauged.numpy"}


def test_settings_tell_variants_apart() -> None:
    found = profile(typed([record("m", "pt", 0.1, settings={"rungs": n, "sweeps": 1}) for n in (4, 8)]))
    assert set(found.boards[0].solvers) == {"pt.numpy rungs=4", "pt.numpy rungs=8"}


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ({"name": "uai14/DBN_11"}, "uai14"),
        ({"name": "file", "path": "data/mine/a.uai"}, "mine"),
        ({"name": "grid"}, "grid"),
    ],
)
def test_the_class_of_a_model_without_one(spec: dict[str, Any], name: str) -> None:
    plain = {"config": {"model": spec}, "axes": {"model": "m", "method": "gibbs", "backend": "numpy"}}
    assert [model_class(whole(one)) for one in (plain, {**plain, "class": "mine"})] == [name, "mine"]


def many(models: int = 12) -> list[dict[str, Any]]:
    return [record(f"m{i}", name, 0.01 + 0.001 * i, off=0.1) for i in range(models) for name in ("gibbs", "wmb")]


def test_a_sweep_over_many_models_ends_with_one_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    records = [*many(), *(record(f"m{i}", "bp", None, status="failed") for i in range(12))]
    for i, one in enumerate(records):
        one["error"] = None if one["status"] == "ok" else f"reason {i}"
    summary.print_report(typed(records), tmp_path)
    text = capsys.readouterr().out
    counts = "12 models, 36 cells: 24 vouched for; 12 failed. All others count as not solved,"
    assert [piece for piece in (counts, "4 more reasons", "--model NAME") if piece not in text] == []
    assert len(text.splitlines()) < 60
    assert "model m3" not in text
    assert (tmp_path / summary.PROFILES_PICTURE).read_bytes().startswith(b"\x89PNG")
    summary.print_report(typed(records[:4]), tmp_path)
    assert "model m1" in capsys.readouterr().out


def test_tables_of_single_models_on_demand(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(stored, "read_records", lambda folder: typed(many()))
    assert cli.main(["report", ".", "--model", "m3", "--model", "m1*"]) == 0
    text = capsys.readouterr().out
    assert [line.split()[1] for line in text.splitlines() if line.startswith("model ")] == ["m1", "m10", "m11", "m3"]
    assert cli.main(["report", ".", "--model", "M3"]) == 2
    assert "no model is called M3 here; there are m0, m1, " in capsys.readouterr().err


def test_all_solvers_are_shown_on_demand() -> None:
    records = [
        record(f"m{i}", f"method{j:02}", 0.001 * (1 + j), off=0.1 + j, reached=0.05 * (1 + j))
        for i, j in itertools.product(range(3), range(12))
    ]

    texts = []
    for every in (False, True):
        console = Console(width=140, file=io.StringIO())
        console.print(*rendering.render_profile(spinbench.profile(typed(records)), all_solvers=every))
        texts.append(console.file.getvalue())  # type: ignore[attr-defined]
    # On three boards, in what it adds on two of them, and in PAR2.
    assert [text.count("method11.numpy") for text in texts] == [0, 6]
    assert ["spinbench profile FOLDER --all" in text for text in texts] == [True, False]


def test_the_markdown_page_keeps_the_prose_around_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(stored, "read_records", lambda folder: typed(FIELD))
    path = tmp_path / "board.md"
    assert cli.main(["profile", ".", "--page", str(path)]) == 0
    assert "board.md" in capsys.readouterr().out
    assert (tmp_path / "board.png").exists()
    first = path.read_text()
    assert "| wmb.numpy | 1.1 | 1.0–1.4 | 3 | 75 % | 75 % |  | 1 |" in first
    assert "processor: Some processor" in first
    monkeypatch.setattr(page.rendering, "save_profiles", lambda found, *paths: list(paths))
    path.write_text(first.replace("# Methods across models", "# Mine").replace("wmb.numpy", "old") + "More prose.\n")
    page.write_profile(profile(typed(FIELD)), typed(FIELD), path)
    assert path.read_text() == first.replace("# Methods across models", "# Mine") + "More prose.\n"
    path.write_text("# Prose alone\n")
    with pytest.raises(SpinbenchError, match="lacks the marks"):
        page.write_profile(profile(typed(FIELD)), typed(FIELD), path)


def test_the_report_has_a_section_across_models(tmp_path: Path) -> None:
    text = page.write_report(typed(many(5)), tmp_path / "many").page.read_text()
    assert text.count('class="board"') == 3
    assert '<h2 id="across">' in text
    assert "RMSE of the marginals after 1 s, 5 models" in text
    assert '<h2 id="across">' not in page.write_report(typed(FIELD), tmp_path / "few").page.read_text()


INF = np.inf
RATIOS = [[1, 2, 4], [1, 1, INF], [INF, INF, INF], [1, 1, 50]]


def test_ratios_profiles_and_places_that_can_be_followed_by_hand() -> None:
    """Equals share their places, and those that solve nothing the last; below the floor all are equal."""
    values = np.array([[0.1, 0.2, 0.4], [0.3, 0.3, INF], [INF, INF, INF], [1e-9, 1e-16, 0.05]])
    ratio = boards.performance_ratios(values, 1e-3)
    np.testing.assert_allclose(ratio, RATIOS)
    shares = [[0.75, 0.5, 0.0], [0.75, 0.75, 0.0], [0.75, 0.75, 0.0], [0.75, 0.75, 0.25], [0.75, 0.75, 0.5]]
    np.testing.assert_allclose(boards.performance_profiles(ratio, np.array([1.0, 2.0, 3.9, 4.0, 1e9])), shares)
    np.testing.assert_allclose(boards.rank_solvers(ratio), [[1, 2, 3], [1.5, 1.5, 3], [2, 2, 2], [1.5, 1.5, 3]])


def test_the_interval_of_a_mean_rank_is_that_of_the_mean_over_models() -> None:
    found = boards.mean_over_models(np.array([[1.0, 2.0], [2.0, 1.0]] * 50))
    np.testing.assert_allclose(found.mean, [1.5, 1.5])
    half = 1.96 * 0.5 / np.sqrt(100)
    np.testing.assert_allclose([found.low, found.high], [[1.5 - half] * 2, [1.5 + half] * 2], atol=0.015)
    same = boards.mean_over_models(np.array([[1.0, 2.0]] * 7))
    np.testing.assert_array_equal(same.low, same.high)
