"""The reports of other libraries and of hard models, from records made by hand."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from small_records import typed, whole

from spinbench.measuring import trust
from spinbench.reporting import experiments


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


def test_the_best_is_that_of_the_least_median_among_those_vouched_for() -> None:
    assert experiments.best_method(typed(RUNS), trust.marginal_rmse_or_inf) == experiments.BestMethod(
        "pt", 0.008, 0.004, 0.02
    )
    assert experiments.best_method(typed(RUNS), trust.log_z_error_or_inf) == experiments.BestMethod(
        "pt", 0.02, 0.01, 0.9
    )
    assert experiments.best_method(typed(RUNS[3:]), trust.marginal_rmse_or_inf) is None


def test_a_seed_without_a_verdict_counts_as_far_off() -> None:
    doubted = typed(
        [
            RUNS[1],
            run_record("pt", 0.0, 0.0, "log Z unresolved", seed=5),
            run_record("pt", 0.0, 0.0, "log Z unresolved"),
        ]
    )
    assert experiments.best_method(doubted, trust.marginal_rmse_or_inf) == experiments.BestMethod("pt", 0.0, 0.0, 0.004)
    assert experiments.best_method(doubted, trust.log_z_error_or_inf) is None
    assert math.isinf(trust.marginal_rmse_or_inf(whole({**RUNS[0], "status": "failed"})))


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
