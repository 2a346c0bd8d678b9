"""The leaderboard and the picture, from records made by hand."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from small_records import typed

from spinbench.errors import SpinbenchError
from spinbench.reporting import content, drawing, figures, leaderboard, summary
from spinbench.reporting.leaderboard import short, with_error


def record(
    method: str = "gibbs",
    backend: str = "numpy",
    rmse: float = 0.01,
    error: float | None = 0.001,
    *,
    status: str = "ok",
    seed: int = 0,
    settings: dict[str, Any] | None = None,
    **result: Any,
) -> dict[str, Any]:
    config = {"model": {"name": "m"}, "method": {"name": method, **(settings or {})}, "seed": seed, "chains": 2}
    metric = {"value": rmse} if error is None else {"value": rmse, "standard_error": error}
    return {
        "status": status,
        "axes": {"model": "m", "method": method, "backend": backend},
        "config": config,
        "protocol": str(settings),
        "error": None if status == "ok" else "it broke",
        "metrics": {"marginal_rmse": metric, "log_z_error": {"value": 0.5}, "seconds_per_ess": {"value": 0.001}},
        "reference": {"log_z": 1.0},
        "result": None
        if status != "ok"
        else {
            "tier": "generic",
            "status": "ok",
            "r_hat_max": 1.0,
            "compilation": "none",
            "log_z_kind": "estimate",
            "seconds": {"run": 2.0, "compile": 0.1},
            "trajectory": [
                {"seconds": t, "samples": 100 * t, "marginal_rmse": rmse / t**0.5} for t in (0.1, 0.4, 0.6, 0.8, 1.0)
            ],
            **result,
        },
    }


def test_rows_go_from_accurate_to_failed() -> None:
    board = leaderboard.rows(
        typed(
            [
                record("dhmc", rmse=0.2),
                record("gibbs", "jax", status="failed"),
                record("gibbs", rmse=0.1),
                record("exact", "jax", status="skipped"),
            ]
        )
    )
    assert [(row.method, row.backend, row.status) for row in board] == [
        ("gibbs", "numpy", "ok"),
        ("dhmc", "numpy", "ok"),
        ("gibbs", "jax", "failed"),
    ]
    assert board[0].ess_per_second == pytest.approx(1000)
    assert board[2].rmse is None


def test_whose_kernel_ran_and_why_others_did_not() -> None:
    records = [
        record("gibbs", tier="native", kernel="spinbench 0.1.0"),
        record("mine", tier="native", kernel="mine-fast 2.0", notes=[]),
        record("gibbs", "numpy(kernel=fast)", tier="native", kernel="fast 1.0"),
        record("dhmc", "jax", notes=["kernel dhmc.jax of fast 1.0 refused: no", "b"]),
        record("dhmc", "jax", seed=1, notes=["b"]),
        record("bp", "jax", status="failed"),
    ]
    board = {(row.method, row.backend): row.tier for row in leaderboard.rows(typed(records))}
    assert board == {
        ("gibbs", "numpy"): "native",
        ("mine", "numpy"): "native (mine-fast)",
        ("gibbs", "numpy(kernel=fast)"): "native",
        ("dhmc", "jax"): "generic",
        ("bp", "jax"): "",
    }
    assert leaderboard.notes(typed(records)) == [
        "dhmc on jax ran generic: b",
        "dhmc on jax ran generic: kernel dhmc.jax of fast 1.0 refused: no",
    ]


def test_seeds_are_pooled_by_the_mean_square() -> None:
    (row,) = leaderboard.rows(typed([record(rmse=0.3, error=0.01), record(rmse=0.4, error=0.02, seed=1)]))
    pooled = math.sqrt((0.09 + 0.16) / 2)
    assert row.replicates == 2
    assert row.rmse == pytest.approx(pooled)
    assert row.rmse_se == pytest.approx((0.16 - 0.09) / 2 / (2 * pooled))  # they scatter more than each says of itself
    (row,) = leaderboard.rows(typed([record(rmse=0.3, error=0.1), record(rmse=0.3001, error=0.1, seed=1)]))
    assert row.rmse_se == pytest.approx(0.1 / math.sqrt(2), rel=1e-3)
    (row,) = leaderboard.rows(typed([record(), record(error=None, seed=1)]))
    assert row.rmse_se is None


def test_error_of_replicates_covers_the_truth() -> None:
    """Runs that draw more or fewer samples in their seconds, and say too little of their errors."""
    rng = np.random.default_rng(0)
    truth, inside = 0.1 * math.sqrt(1 + 0.3**2), 0
    for _ in range(400):
        drawn = 0.1 * (1 + 0.3 * rng.standard_normal(5))
        (row,) = leaderboard.rows(typed([record(rmse=one, error=0.001, seed=i) for i, one in enumerate(drawn)]))
        assert row.rmse is not None
        inside += abs(row.rmse - truth) <= row.rmse_margin
    assert 0.95 * 400 - inside <= 4 * math.sqrt(400 * 0.95 * 0.05)


def test_rows_within_noise_share_a_rank() -> None:
    errors = {"a": (0.010, 0.001), "b": (0.011, 0.001), "c": (0.015, 0.001), "d": (0.016, 0.02), "e": (0.030, 0.001)}
    board = leaderboard.rows(typed([record(name, rmse=rmse, error=error) for name, (rmse, error) in errors.items()]))
    assert [leaderboard.place(row) for row in board] == ["1=", "1=", "1=", "3", "4"]
    assert [row.method for row in board] == ["a", "b", "d", "c", "e"]  # little is known of d
    output = Console(record=True, width=140, file=open("/dev/null", "w"))  # noqa: SIM115
    output.print(*summary.board_tables(board))
    assert "=: within noise (95 %) of others of this rank" in output.export_text()


@pytest.mark.parametrize(("modes", "most"), [(1, 0.05), (4, 0.05), (100, 0.05)])
def test_equals_of_one_seed_each_share_a_rank(modes: int, most: float) -> None:
    """Errors of 100 variables that move together in so many groups, each of which takes all errors for independent."""
    rng, apart, runs = np.random.default_rng(modes), 0, 300
    samples = np.round(np.geomspace(10, 10_000, 12)).astype(int)

    def run(name: str) -> dict[str, Any]:
        steps = rng.normal(size=(modes, len(samples))) * np.sqrt(np.diff(samples, prepend=0))
        walks = np.cumsum(steps, axis=1) / samples
        errors = np.sqrt((walks**2).mean(axis=0))
        points = [
            {"seconds": 1e-3 * n, "samples": int(n), "marginal_rmse": float(error)}
            for n, error in zip(samples, errors, strict=True)
        ]
        return record(name, rmse=points[-1]["marginal_rmse"], error=errors[-1] / np.sqrt(200), trajectory=points)

    for _ in range(runs):
        apart += [row.rank for row in leaderboard.rows(typed([run("gibbs"), run("dhmc")]))] != [1, 1]
    assert apart <= most * runs


def test_one_seed_tells_what_is_far_better() -> None:
    waves = {50: 0.9, 100: 1.2, 200: 1.0, 400: 0.85, 800: 1.0}
    paths = [
        [{"seconds": n, "samples": n, "marginal_rmse": share * wave / n**0.5} for n, wave in waves.items()]
        for share in (1.0, 4.0)
    ]
    found = [record(name, rmse=p[-1]["marginal_rmse"], trajectory=p) for name, p in zip("ab", paths, strict=True)]
    assert [row.rank for row in leaderboard.rows(typed(found))] == [1, 2]
    for one, path in zip(found, paths, strict=True):
        one["result"]["trajectory"] = path[-2:]  # which tell nothing of their scatter
    assert [row.rank for row in leaderboard.rows(typed(found))] == [1, 2]
    found[1]["metrics"]["marginal_rmse"]["value"] /= 2
    assert [row.rank for row in leaderboard.rows(typed(found))] == [1, 1]


def test_two_seeds_know_little_of_their_scatter() -> None:
    def places(seeds: int) -> list[str]:
        better = [record("a", rmse=0.010 + 0.001 * (-1) ** i, error=0.0001, seed=i) for i in range(seeds)]
        other = [record("b", rmse=0.013 + 0.001 * (-1) ** i, error=0.0001, seed=i) for i in range(seeds)]
        return [leaderboard.place(row) for row in leaderboard.rows(typed([*better, *other]))]

    assert places(2) == ["1=", "1="]
    assert places(6) == ["1", "2"]


def test_rows_without_noise_differ_by_more_than_rounding() -> None:
    board = leaderboard.rows(
        typed([record(name, rmse=rmse, error=None) for name, rmse in (("exact", 1e-16), ("tree", 3e-16), ("mf", 0.1))])
    )
    assert [leaderboard.place(row) for row in board] == ["1=", "1=", "3"]


def test_compile_seconds_are_of_those_who_compiled() -> None:
    warm = record(seed=1)
    warm["result"] |= {"compilation": "warm", "seconds": {"run": 2.0, "compile": 0.1}}
    fresh = record(compilation="fresh", seconds={"run": 2.0, "compile": 5.0})
    assert leaderboard.rows(typed([fresh, warm]))[0].compile_seconds == 5.0
    assert leaderboard.rows(typed([warm]))[0].compile_seconds == 0.1


def test_other_settings_are_other_rows_named_by_the_difference() -> None:
    board = leaderboard.rows(
        typed([record(settings={"steps": 5, "same": 1}), record(settings={"steps": 9, "same": 1})])
    )
    assert {row.variant for row in board} == {"steps=5", "steps=9"}


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"compilation": "warm"}, "ok, warm"),
        ({"compilation": "cached"}, "ok, cached"),
        ({"r_hat_max": 1.234}, "ok, R-hat 1.23"),
        ({"r_hat_max": 5e7}, "ok, R-hat > 100"),
        ({"r_hat_max": None}, "ok"),
        ({"status": "not converged"}, "not converged"),
        ({"status": "marginals not mixed, log Z unresolved"}, "log Z unresolved, marginals not mixed"),
    ],
)
def test_status_holds_what_qualifies_the_figures(changes: dict[str, Any], status: str) -> None:
    base = record()
    base["result"] |= changes
    assert leaderboard.rows(typed([base]))[0].status == status


def test_reasons_are_told_once() -> None:
    lines = summary.reasons_of(
        typed([record(), record("dhmc", status="failed"), record("dhmc", status="failed", seed=1)])
    )
    assert lines == ["failed: dhmc on numpy, m: it broke"]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0.0, "0"),
        (0.0123456, "0.0123"),
        (12.345, "12.3"),
        (123456.7, "123 457"),
        (1.5e-9, "1.5e-9"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (math.nan, "–"),
    ],
)
def test_short_numbers(value: float | None, text: str) -> None:
    assert short(value) == text


def test_numbers_with_errors() -> None:
    assert with_error(0.012341, 0.00056) == "0.01234 ± 0.00056"
    assert with_error(1234.5, 56.0) == "1234 ± 56"
    assert with_error(1e-9, 2e-10) == "1.00e-9 ± 2.0e-10"
    assert with_error(2.26e-4, 9.2e-5) == "2.26e-4 ± 9.2e-5"
    assert with_error(0.01, None) == "0.0100"
    assert with_error(0.01, math.inf) == "0.0100 ± ∞"
    assert with_error(0.01, math.nan) == "0.0100"


def test_table_shows_every_figure() -> None:
    output = Console(record=True, width=140, file=open("/dev/null", "w"))  # noqa: SIM115
    for table in summary.board_tables(leaderboard.rows(typed([record(), record("dhmc", status="failed")]))):
        output.print(table)
    text = output.export_text()
    for piece in ("model m", "1 % RMSE", "0.0100 ± 0.0010", "0.500", "1 000", "0.100", "2.00", "generic", "failed"):
        assert piece in text


def test_table_has_the_seconds_to_the_target_where_one_is_reached() -> None:
    def columns(rmse: float) -> list[str]:
        (table,) = summary.board_tables(leaderboard.rows(typed([record(rmse=rmse)])))
        return [str(column.header) for column in table.columns]

    assert "seconds to\n1 % RMSE" in columns(0.005)
    assert "seconds to\n1 % RMSE" not in columns(0.5)


def test_no_seed_reaches_the_target_by_luck() -> None:
    """The median of three, of which one came there, one failed, and one is the case."""

    def seconds(**changes: Any) -> float | None:
        seeds = [record(rmse=0.005), record(status="failed", seed=1), record(rmse=0.005, seed=2, **changes)]
        (row,) = leaderboard.rows(typed(seeds))
        return row.time_to_error

    (alone,) = leaderboard.rows(typed([record(rmse=0.005)]))
    assert seconds() == alone.time_to_error is not None
    assert seconds(log_z=None) == alone.time_to_error
    seeds = [record(rmse=0.005), record(rmse=0.005, seed=1), record(rmse=0.005, seed=2)]
    for doubt, reached in (("log Z unresolved", True), ("marginals not mixed", False), ("contradicted", False)):
        for one in seeds[1:]:
            one["result"]["status"] = doubt
        (row,) = leaderboard.rows(typed(seeds))
        assert (row.time_to_error is not None) == reached


def test_a_narrow_terminal_has_fewer_columns_and_no_shortened_figure() -> None:
    board = leaderboard.rows(typed([record(rmse=0.00123, error=0.00045), record("block_gibbs", status="failed")]))
    (whole,), (narrow,) = summary.board_tables(board, 140), summary.board_tables(board, 74)
    assert [str(column.header) for column in narrow.columns] == [
        str(column.header) for column in whole.columns if column.header not in ("tier", "compile\nseconds", "ESS/s")
    ]
    assert whole.caption is None
    output = Console(record=True, width=74, file=open("/dev/null", "w"))  # noqa: SIM115
    output.print(narrow)
    text = output.export_text()
    assert "…" not in text
    for piece in ("block_gibbs", "0.00123 ± 0.00045", "failed", "no room for tier, compile seconds, ESS/s;"):
        assert piece in text


def test_picture_has_a_panel_a_model_and_an_entry_a_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    figure: list[Figure] = []
    original = Figure.savefig

    def keep(self: Figure, *args: Any, **kwargs: Any) -> None:
        figure.append(self)
        original(self, *args, **kwargs)

    monkeypatch.setattr(Figure, "savefig", keep)
    other = record("dhmc", "jax")
    other["axes"] = {**other["axes"], "model": "n"}
    exact = record("exact", rmse=0.0, error=None, log_z_kind="exact")
    path = tmp_path / "a" / "p.png"
    assert figures.accuracy_over_time(typed([record(), record(backend="jax"), other, exact]), path)
    assert path.read_bytes().startswith(b"\x89PNG")
    panels = [panel for panel in figure[0].axes if panel.get_visible()]
    assert [panel.get_title() for panel in panels] == ["m", "n"]
    assert all(panel.get_xscale() == panel.get_yscale() == "log" for panel in panels)
    assert [len(panel.lines) for panel in panels] == [5, 3]  # with the front and the target
    assert all(panel.get_ylim()[1] >= 9.99 * panel.get_ylim()[0] for panel in panels)
    _, jax, numpy, front, _ = panels[0].lines
    assert front.get_color() == drawing.HIGHLIGHT
    assert numpy.get_color() == jax.get_color() != panels[1].lines[0].get_color()
    assert numpy.get_marker() != jax.get_marker()
    assert numpy.get_linestyle() != jax.get_linestyle()
    labels = {text.get_text() for text in figure[0].legends[0].get_texts()}
    assert labels == {"gibbs", "dhmc", "exact (time taken)", "numpy", "jax", "Pareto front"}


def test_no_picture_without_errors_and_a_sentence_where_it_cannot_be_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    without = record()
    without["result"]["trajectory"] = [{"seconds": 1.0, "marginal_rmse": None}]
    assert not figures.accuracy_over_time(typed([without]), tmp_path / "p.png")
    assert not (tmp_path / "p.png").exists()
    (tmp_path / "file").touch()
    with pytest.raises(SpinbenchError, match="cannot be written"):
        figures.accuracy_over_time(typed([record()]), tmp_path / "file" / "p.png")
    summary.show(typed([record(), record("dhmc", status="failed")]), tmp_path / "file")
    shown = capsys.readouterr().out
    assert "failed: dhmc on numpy, m: it broke" in shown
    assert "cannot be written" in shown


def test_rows_that_nobody_vouches_for_come_last() -> None:
    lucky, sound = record("dhmc"), record("gibbs")
    lucky["result"]["status"] = "marginals not mixed"
    lucky["metrics"]["marginal_rmse"]["value"] = sound["metrics"]["marginal_rmse"]["value"] / 100
    board = leaderboard.rows(typed([lucky, sound]))
    assert [(row.method, row.doubted) for row in board] == [("gibbs", False), ("dhmc", True)]
    assert [leaderboard.place(row) for row in board] == ["1", "–"]
    assert content.on_front(board) == {0}
