"""The report of hard models, from records made by hand."""

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


def record(
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


def printed(records: list[dict[str, Any]]) -> str:
    console = Console(width=200, file=io.StringIO())
    for part in experiments.report_aims(typed(records), Path()):
        console.print(part)
    return " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]


RUNS = [
    *(
        record("pt", rmse, off, seed=seed)
        for seed, (rmse, off) in enumerate([(0.02, 0.01), (0.004, 0.02), (0.008, 0.9)])
    ),
    *(record("gibbs", 0.001, 5.0, "marginals not mixed", seed=seed) for seed in range(3)),
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
        [RUNS[1], record("pt", 0.0, 0.0, "log Z unresolved", seed=5), record("pt", 0.0, 0.0, "log Z unresolved")]
    )
    assert experiments.best_method(doubted, trust.marginal_rmse_or_inf) == experiments.BestMethod("pt", 0.0, 0.0, 0.004)
    assert experiments.best_method(doubted, trust.log_z_error_or_inf) is None
    assert math.isinf(trust.marginal_rmse_or_inf(whole({**RUNS[0], "status": "failed"})))


def test_each_line_says_whether_the_aim_was_reached() -> None:
    text = printed(RUNS)
    assert "uai14/Grids_12 1 pt 0.00800 (0.00400–0.0200) ≤ 0.0100, reached pt 0.0200 (0.0100–0.900) ≤ 0.100" in text
    assert "not reached" in printed([record("pt", 0.5, 0.5)])
    assert (
        "vouched for: marginals: 3 runs, 0 of them outside their error bounds, 0 outside twice these; log Z: " in text
    )
    assert "log Z: 6 runs, 4 of them outside their error bounds, 4 outside twice these" in text


@pytest.mark.parametrize(
    ("claims", "line"),
    [
        ([("pt", None), ("smc", None)], "unresolved, reached"),
        ([("pt", 3.0), ("smc", None)], "pt alone claims one, not reached"),
        ([("pt", 3.0), ("smc", 3.2)], "pt and smc agree, reached"),
        ([("pt", 3.0), ("smc", 3.2), ("wmb", 4.0)], "pt and wmb disagree, not reached"),
    ],
)
def test_without_an_exact_answer_methods_bear_each_other_out(claims: list[tuple[str, float | None]], line: str) -> None:
    runs = [
        record(method, math.inf, math.inf, "log Z unresolved" if log_z is None else "ok", log_z=log_z)
        for method, log_z in claims
    ]
    text = printed([{**run, "reference": {"reason": "too wide"}, "metrics": {}} for run in runs])
    assert f"no exact answer – {line}" in text


def test_rounding_is_no_error() -> None:
    exact = record("wmb", 1e-12, 1e-12, marginals_claim=1e-16, log_z_se=1e-16)
    assert "1 runs, 0 of them outside their error bounds, 0 outside twice these; log Z: 1 runs, 0" in printed([exact])
