"""The leaderboard, its ranks and tables, and reports of other libraries and of hard models, from handmade records."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from small_records import make, typed, whole

from spinbench.measuring import trust
from spinbench.reporting import experiments, export, leaderboard, page_content, summary
from spinbench.reporting.leaderboard import Row, format_number, format_with_error


def record(
    method: str = "gibbs",
    backend: str = "numpy",
    rmse: float = 0.01,
    error: float | None = 0.001,
    *,
    settings: dict[str, Any] | None = None,
    status: str = "ok",
    seed: int = 0,
    **result: Any,
) -> dict[str, Any]:
    """A record with these parts of a result; two settings are two protocols."""
    made = make(method, backend, rmse, model="m", status=status, seed=seed, error="it broke")
    made["config"]["method"] |= settings or {}
    made["protocol"] = str(settings)
    if status == "ok":
        metric = {"value": rmse} if error is None else {"value": rmse, "standard_error": error}
        made["metrics"] = {"marginal_rmse": metric, "log_z_error": {"value": 0.5}, "seconds_per_ess": {"value": 0.001}}
        points = [{"seconds": t, "samples": 100 * t, "marginal_rmse": rmse / t**0.5} for t in (0.1, 0.4, 0.6, 0.8, 1.0)]
        made["result"] |= {"seconds": {"run": 2.0, "compile": 0.1}, "trajectory": points, **result}
    return made


def rows(*records: dict[str, Any]) -> list[Row]:
    return leaderboard.rows(typed(records))


def places(*records: dict[str, Any]) -> list[str]:
    return [leaderboard.rank_label(row) for row in rows(*records)]


def printed(tables: list[Table], width: int = 140) -> str:
    output = Console(width=width, file=io.StringIO())
    output.print(*tables)
    return output.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_rows_go_from_accurate_to_failed() -> None:
    failed, skipped = record("gibbs", "jax", status="failed"), record("exact", "jax", status="skipped")
    board = rows(record("dhmc", rmse=0.2), failed, record("gibbs", rmse=0.1), skipped)
    assert [(row.method, row.backend, row.status, row.rmse) for row in board] == [
        ("gibbs", "numpy", "ok", 0.1),
        ("dhmc", "numpy", "ok", 0.2),
        ("gibbs", "jax", "failed", None),
    ]
    assert board[0].ess_per_second == pytest.approx(1000)


def test_rows_that_nobody_vouches_for_come_last() -> None:
    lucky = record("dhmc", rmse=1e-4)
    lucky["result"]["status"] = "marginals not mixed"
    board = rows(lucky, record("gibbs"))
    assert [(row.method, row.doubted, leaderboard.rank_label(row)) for row in board] == [
        ("gibbs", False, "1"),
        ("dhmc", True, "–"),
    ]
    assert page_content.rows_on_front(board) == {0}


def test_whose_kernel_ran_and_why_others_did_not() -> None:
    records = [
        record("gibbs", tier="native", kernel="spinbench 0.1.0"),
        record("mine", tier="native", kernel="mine-fast 2.0", notes=[]),
        record("gibbs", "numpy(kernel=fast)", tier="native", kernel="fast 1.0"),
        record("dhmc", "jax", notes=["kernel dhmc.jax of fast 1.0 refused: no", "b"]),
        record("dhmc", "jax", seed=1, notes=["b"]),
        record("bp", "jax", status="failed"),
    ]
    assert {(row.method, row.backend): row.tier for row in rows(*records)} == {
        ("gibbs", "numpy"): "native",
        ("mine", "numpy"): "native (mine-fast)",
        ("gibbs", "numpy(kernel=fast)"): "native",
        ("dhmc", "jax"): "generic",
        ("bp", "jax"): "",
    }
    notes = ["dhmc on jax ran generic: b", "dhmc on jax ran generic: kernel dhmc.jax of fast 1.0 refused: no"]
    assert leaderboard.collect_remarks(typed(records)) == notes


POOLED = math.sqrt((0.09 + 0.16) / 2)


@pytest.mark.parametrize(
    ("pairs", "rmse", "error"),
    [
        (((0.3, 0.01), (0.4, 0.02)), POOLED, (0.16 - 0.09) / 2 / (2 * POOLED)),
        (((0.3, 0.1), (0.3001, 0.1)), 0.3, 0.1 / math.sqrt(2)),
        (((0.01, 0.001), (0.01, None)), 0.01, None),
    ],
    ids=["they scatter more than each says of itself", "they scatter less", "one does not say"],
)
def test_seeds_are_pooled_by_the_mean_square(pairs: Any, rmse: float, error: float | None) -> None:
    (row,) = rows(*(record(rmse=value, error=own, seed=seed) for seed, (value, own) in enumerate(pairs)))
    assert row.replicates == 2
    assert row.rmse == pytest.approx(rmse, rel=1e-3)
    assert row.rmse_se == (None if error is None else pytest.approx(error, rel=1e-3))


def test_error_of_replicates_covers_the_truth() -> None:
    """Runs that draw more or fewer samples in their seconds, and say too little of their errors."""
    rng = np.random.default_rng(0)
    truth, inside = 0.1 * math.sqrt(1 + 0.3**2), 0
    for _ in range(400):
        drawn = 0.1 * (1 + 0.3 * rng.standard_normal(5))
        (row,) = rows(*(record(rmse=one, error=0.001, seed=i) for i, one in enumerate(drawn)))
        inside += abs((row.rmse or 0.0) - truth) <= row.rmse_margin
    assert 0.95 * 400 - inside <= 4 * math.sqrt(400 * 0.95 * 0.05)


def seeds_of(name: str, rmse: float, seeds: int) -> list[dict[str, Any]]:
    """Replicates that scatter by a thousandth, and say less of it."""
    return [record(name, rmse=rmse + 0.001 * (-1) ** i, error=0.0001, seed=i) for i in range(seeds)]


ERRORS = {"a": (0.010, 0.001), "b": (0.011, 0.001), "c": (0.015, 0.001), "d": (0.016, 0.02), "e": (0.030, 0.001)}


@pytest.mark.parametrize(
    ("records", "methods", "expected"),
    [
        ([record(name, "numpy", *one) for name, one in ERRORS.items()], "abdce", ["1=", "1=", "1=", "3", "4"]),
        ([*seeds_of("a", 0.010, 2), *seeds_of("b", 0.013, 2)], "ab", ["1=", "1="]),
        ([*seeds_of("a", 0.010, 6), *seeds_of("b", 0.013, 6)], "ab", ["1", "2"]),
        (
            [record(one, "numpy", x, None) for one, x in zip("abc", (1e-16, 3e-16, 0.1), strict=True)],
            "abc",
            ["1=", "1=", "3"],
        ),
    ],
    ids=["within noise; little is known of d", "two seeds know little of it", "six do", "rounding is no difference"],
)
def test_rows_within_noise_share_a_rank(records: list[dict[str, Any]], methods: str, expected: list[str]) -> None:
    board = rows(*records)
    assert "".join(row.method for row in board) == methods
    assert [leaderboard.rank_label(row) for row in board] == expected
    said = "=: within noise (95 %) of others of this rank" in printed(summary.leaderboard_tables(board))
    assert said == ("1=" in expected)


def test_noise_that_grows_with_the_error_does_not_hide_an_error_far_smaller() -> None:
    """Two seeds: t = 12.7, so that 0.0011 and 0.0019 are any error from 0.00005 to 0.05, and not 4e-16."""
    seeds = [record("gibbs", rmse=error, seed=seed) for seed, error in enumerate((0.0011, 0.0019))]
    board = rows(*seeds, record("exact", rmse=4e-16, error=None), record("bp", rmse=6e-4, error=None))
    assert [(row.method, row.rank) for row in board] == [("exact", 1), ("bp", 2), ("gibbs", 2)]


@pytest.mark.parametrize("modes", [1, 4, 100])
def test_equals_of_one_seed_each_share_a_rank(modes: int) -> None:
    """Errors of 100 variables that move together in so many groups, each of which takes all errors for independent."""
    rng, apart, runs = np.random.default_rng(modes), 0, 300
    samples = np.round(np.geomspace(10, 10_000, 12)).astype(int)

    def run(name: str) -> dict[str, Any]:
        steps = rng.normal(size=(modes, len(samples))) * np.sqrt(np.diff(samples, prepend=0))
        errors = np.sqrt(((np.cumsum(steps, axis=1) / samples) ** 2).mean(axis=0)).tolist()
        path = zip(samples.tolist(), errors, strict=True)
        points = [{"seconds": 1e-3 * n, "samples": n, "marginal_rmse": error} for n, error in path]
        return record(name, rmse=errors[-1], error=errors[-1] / math.sqrt(200), trajectory=points)

    for _ in range(runs):
        apart += [row.rank for row in rows(run("gibbs"), run("dhmc"))] != [1, 1]
    assert apart <= 0.05 * runs + 3 * math.sqrt(0.05 * 0.95 * runs)


def test_one_seed_tells_what_is_far_better() -> None:
    waves = {50: 0.9, 100: 1.2, 200: 1.0, 400: 0.85, 800: 1.0}

    def run(name: str, share: float, known: int, over: float = 1.0) -> dict[str, Any]:
        path = [{"seconds": n, "samples": n, "marginal_rmse": share * wave / n**0.5} for n, wave in waves.items()]
        return record(name, rmse=float(path[-1]["marginal_rmse"]) / over, trajectory=path[-known:])

    assert places(run("a", 1.0, 5), run("b", 4.0, 5)) == ["1", "2"]
    assert places(run("a", 1.0, 2), run("b", 4.0, 2)) == ["1", "2"], "two points tell nothing of their scatter"
    assert places(run("a", 1.0, 2), run("b", 4.0, 2, over=2)) == ["1=", "1="]


@pytest.mark.parametrize(
    ("changes", "status", "seconds"),
    [
        ({"compilation": "warm"}, "ok, warm", 0.1),
        ({"compilation": "cached"}, "ok, cached", 0.1),
        ({"compilation": "fresh", "seconds": {"run": 2.0, "compile": 5.0}}, "ok", 5.0),
        ({"r_hat_max": 1.234}, "ok, R-hat 1.23", 0.1),
        ({"r_hat_max": 5e7}, "ok, R-hat > 100", 0.1),
        ({"r_hat_max": None}, "ok", 0.1),
        ({"status": "not converged"}, "not converged", 0.1),
        ({"status": "marginals not mixed, log Z unresolved"}, "log Z unresolved, marginals not mixed", 0.1),
    ],
)
def test_status_holds_what_qualifies_the_figures(changes: dict[str, Any], status: str, seconds: float) -> None:
    base, warm = record(), record(seed=1, compilation="warm")
    base["result"] |= changes
    (row,) = rows(base)
    assert (row.status, row.compile_seconds) == (status, seconds)
    if seconds > 1:
        assert rows(base, warm)[0].compile_seconds == seconds, "they are of those who compiled"


def test_other_settings_are_other_rows_named_by_the_difference() -> None:
    board = rows(*(record(settings={"steps": steps, "same": 1}) for steps in (5, 9)))
    assert {row.variant for row in board} == {"steps=5", "steps=9"}


def test_reasons_are_told_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    records = [record(), *(record("dhmc", status="failed", seed=seed) for seed in range(2))]
    summary.print_report(typed(records), tmp_path / "file")
    shown = capsys.readouterr().out
    assert shown.count("failed: dhmc on numpy, m: it broke") == 1
    assert "cannot be written" in shown, "the picture"


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("–", (None,)),
        ("–", (math.nan,)),
        ("0", (0.0,)),
        ("0.0123", (0.0123456,)),
        ("12.3", (12.345,)),
        ("123 457", (123456.7,)),
        ("1.5e-9", (1.5e-9,)),
        ("∞", (math.inf,)),
        ("-∞", (-math.inf,)),
        ("0.01234 ± 0.00056", (0.012341, 0.00056)),
        ("1234 ± 56", (1234.5, 56.0)),
        ("1.00e-9 ± 2.0e-10", (1e-9, 2e-10)),
        ("2.26e-4 ± 9.2e-5", (2.26e-4, 9.2e-5)),
        ("0.0100", (0.01, None)),
        ("0.0100 ± ∞", (0.01, math.inf)),
        ("0.0100", (0.01, math.nan)),
    ],
)
def test_numbers_are_written_short(text: str, numbers: Any) -> None:
    assert (format_number if len(numbers) == 1 else format_with_error)(*numbers) == text


def test_table_shows_every_figure() -> None:
    text = printed(summary.leaderboard_tables(rows(record(), record("dhmc", status="failed"))))
    pieces = ("model m", "1 % RMSE", "0.0100 ± 0.0010", "0.500", "1 000", "0.100", "2.00", "generic", "failed")
    assert [piece for piece in pieces if piece not in text] == []
    assert "1 % RMSE" not in printed(summary.leaderboard_tables(rows(record(rmse=0.5)))), "where it is not reached"


@pytest.mark.parametrize(
    ("doubt", "reached"), [("log Z unresolved", True), ("marginals not mixed", False), ("contradicted", False)]
)
def test_no_seed_reaches_the_target_by_luck(doubt: str, reached: bool) -> None:
    """The median of three, of which one came there, and the others do not vouch for it."""
    (alone,) = rows(record(rmse=0.005))
    (row,) = rows(record(rmse=0.005), record(status="failed", seed=1), record(rmse=0.005, seed=2, log_z=None))
    assert row.time_to_error == alone.time_to_error is not None
    doubted = [record(rmse=0.005, seed=seed) for seed in (1, 2)]
    for one in doubted:
        one["result"]["status"] = doubt
    (row,) = rows(record(rmse=0.005), *doubted)
    assert (row.time_to_error is not None) == reached


@pytest.mark.parametrize(
    ("levels", "label"),
    [
        ([{"marginals": "exact", "log_z": "exact"}] * 2, "exact"),
        ([{"marginals": "converged", "log_z": "doubtful"}, {"marginals": "exact"}], "converged, log Z doubtful"),
        ([{"log_z": "bounded"}, {"log_z": "certified"}], "bounded"),
        ([{"log_z": "bounded"}, {"log_z": "of another version"}], "of another version"),
        ([{}, None], ""),
    ],
)
def test_a_row_rests_on_the_weakest_level_of_its_seeds(levels: list[dict[str, str] | None], label: str) -> None:
    (row,) = rows(*(record(seed=seed, levels=level) for seed, level in enumerate(levels)))
    assert row.level == label
    assert [line["log_z_level"] for line in export.leaderboard_table([row])] == [row.log_z_level]
    headings = [column.header for table in summary.leaderboard_tables([row], None) for column in table.columns]
    assert ("level" in headings) == bool(label)


def test_a_narrow_terminal_has_fewer_columns_and_no_shortened_figure() -> None:
    board = rows(record(rmse=0.00123, error=0.00045), record("block_gibbs", status="failed"))
    (whole,), (narrow,) = summary.leaderboard_tables(board, 140), summary.leaderboard_tables(board, 74)
    dropped = [column.header for column in whole.columns if column.header not in {one.header for one in narrow.columns}]
    assert dropped == ["ESS/s", "compile\nseconds", "tier"]
    assert whole.caption is None
    text = printed([narrow], 74)
    assert "…" not in text
    pieces = ("block_gibbs", "0.00123 ± 0.00045", "failed", "no room for tier, compile seconds, ESS/s;")
    assert [piece for piece in pieces if piece not in text] == []


def library_record(backend: str, cpu: float, *, seed: int = 0, method: str = "gibbs") -> Any:
    return {
        "status": "ok",
        "axes": {"model": "grid", "method": method, "backend": backend},
        "config": {"method": {"name": method}, "backend": {"name": backend}, "chains": 100, "seed": seed},
        "metrics": {"marginal_rmse": {"value": 0.002}, "seconds_per_ess": {"value": 0.001}},
        "result": {
            "tier": "native",
            "status": "ok",
            "samples": 50 if method == "gibbs" else 1,
            "chains": 100,
            "r_hat_max": 1.01 if method == "gibbs" else None,
            "laps": {"count": 20, "mean_cpu": cpu},
            "seconds": {"plan": 0.25, "compile": 0.75, "run": 0.5, "total": 2.5},
            "notes": [],
        },
        "environment": {"versions": {"spinbench": "0.1", "thrml": "0.1.4"}},
    }


def print_libraries(records: list[Any]) -> str:
    console = Console(width=200, file=io.StringIO())
    for part in experiments.report_libraries(typed(records), Path()):
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_kernel_and_whole_call_stand_side_by_side_over_the_fastest_library() -> None:
    runs = [library_record("thrml", 0.02), library_record("dwave", 0.01)]
    runs += [library_record("numba", cpu, seed=seed) for seed, cpu in enumerate((0.001, 0.002, 0.003))]
    lines = [" ".join(line.split()) for line in print_libraries(runs).splitlines()]
    assert "gibbs, grid, 100 chains (samples)" in lines
    rows = [line for line in lines if line.startswith(("numba", "dwave", "thrml"))]
    assert rows == [
        "numba 50 000 5.00 2 000 1.00 0.500 1 000 0.00200 1.01 ok",
        "dwave 10 000 1.00 2 000 1.00 0.500 1 000 0.00200 1.01 ok",
        "thrml 5 000 0.500 2 000 1.00 0.500 1 000 0.00200 1.01 ok",
    ]
    assert lines[-1] == "versions: spinbench 0.1, thrml 0.1.4"


def test_solutions_are_counted_whole_and_what_was_not_timed_is_left_open() -> None:
    alone = library_record("numba", 0.25, method="exact")
    assert (experiments.kernel_rate(whole(alone)), experiments.samples_per_second(whole(alone))) == (4.0, 0.4)
    assert "exact, grid (solutions)" in print_libraries([alone])
    assert " ".join(print_libraries([alone]).splitlines()[-3].split()).startswith("numba 4.00 – 0.400")
    alone["result"]["laps"] = None
    assert experiments.kernel_rate(whole(alone)) is None
    assert "numba" in print_libraries([alone])
    failed = library_record("dwave", 0.01) | {"status": "failed", "result": None}
    assert "dwave" not in print_libraries([alone, failed]).partition("versions")[0]


def run_record(
    method: str, rmse: float, off: float, status: str = "ok", seed: int = 0, **claims: float | None
) -> dict[str, Any]:
    return {
        "status": "ok",
        "axes": {"model": "uai14/Grids_12", "method": method, "backend": "numba"},
        "config": {"model": {"name": "m"}, "method": {"name": method}, "seed": seed, "budget": {"seconds": 1}},
        "metrics": {"marginal_rmse": {"value": rmse}, "log_z_error": {"value": off}},
        "result": {"status": status, "marginals_claim": 0.01, "log_z_se": 0.1, **claims},
        "reference": {"log_z": 1.0},
    }


def print_best_methods(records: list[dict[str, Any]]) -> str:
    console = Console(width=200, file=io.StringIO())
    for part in experiments.report_best_methods(typed(records), Path()):
        console.print(part)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


RUNS = [
    *(
        run_record("pt", rmse, off, seed=seed)
        for seed, (rmse, off) in enumerate([(0.02, 0.01), (0.004, 0.02), (0.008, 0.9)])
    ),
    *(run_record("gibbs", 0.001, 5.0, "marginals not mixed", seed=seed) for seed in range(3)),
]


RMSE, LOG_Z = trust.marginal_rmse_or_inf, trust.log_z_error_or_inf
DOUBTED = [RUNS[1], *(run_record("pt", 0.0, 0.0, "log Z unresolved", seed=seed) for seed in (5, 0))]


@pytest.mark.parametrize(
    ("runs", "error", "best"),
    [
        (RUNS, RMSE, ("pt", 0.008, 0.004, 0.02)),
        (RUNS, LOG_Z, ("pt", 0.02, 0.01, 0.9)),
        (RUNS[3:], RMSE, None),
        (DOUBTED, RMSE, ("pt", 0.0, 0.0, 0.004)),
        (DOUBTED, LOG_Z, None),
        ([{**RUNS[0], "status": "failed"}], RMSE, None),
    ],
    ids=["RMSE", "log Z", "none is vouched for", "of the other", "a seed without a verdict is far off", "it failed"],
)
def test_the_best_is_that_of_the_least_median_among_those_vouched_for(runs: Any, error: Any, best: Any) -> None:
    assert experiments.best_method(typed(runs), error) == best


def test_each_line_names_the_best_methods_and_their_errors() -> None:
    text = print_best_methods(RUNS)
    assert "uai14/Grids_12 1 pt 0.00800 (0.00400–0.0200) pt 0.0200 (0.0100–0.900)" in text
    assert (
        "vouched for: marginals: 3 runs, 0 of them outside their error bounds, 0 outside twice these; log Z: " in text
    )
    assert "log Z: 6 runs, 4 of them outside their error bounds, 4 outside twice these" in text


@pytest.mark.parametrize(
    ("claims", "line"),
    [
        ([("pt", None), ("smc", None)], "unresolved"),
        ([("pt", 3.0), ("smc", None)], "pt alone claims one"),
        ([("pt", 3.0), ("smc", 3.2)], "pt and smc agree"),
        ([("pt", 3.0), ("smc", 3.2), ("wmb", 4.0)], "pt and wmb disagree"),
    ],
)
def test_without_an_exact_answer_methods_bear_each_other_out(claims: list[tuple[str, float | None]], line: str) -> None:
    runs = [
        run_record(method, math.inf, math.inf, "log Z unresolved" if log_z is None else "ok", log_z=log_z)
        for method, log_z in claims
    ]
    text = print_best_methods([{**run, "reference": {"reason": "too wide"}, "metrics": {}} for run in runs])
    assert f"no exact answer {line}" in text


def test_rounding_is_no_error() -> None:
    exact = run_record("wmb", 1e-12, 1e-12, marginals_claim=1e-16, log_z_se=1e-16)
    assert (
        "1 runs, 0 of them outside their error bounds, 0 outside twice these; log Z: 1 runs, 0"
        in print_best_methods([exact])
    )
