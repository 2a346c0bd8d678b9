"""The report of other libraries, from records made by hand."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console
from small_records import typed, whole

from spinbench.reporting import experiments


def record(backend: str, cpu: float, *, seed: int = 0, method: str = "gibbs") -> Any:
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


def printed(records: list[Any]) -> str:
    console = Console(width=200, file=io.StringIO())
    for part in experiments.report_libraries(typed(records), Path()):
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_kernel_and_whole_call_stand_side_by_side_over_the_fastest_library() -> None:
    runs = [record("thrml", 0.02), record("dwave", 0.01)]
    runs += [record("numba", cpu, seed=seed) for seed, cpu in enumerate((0.001, 0.002, 0.003))]
    lines = [" ".join(line.split()) for line in printed(runs).splitlines()]
    assert "gibbs, grid, 100 chains (samples)" in lines
    rows = [line for line in lines if line.startswith(("numba", "dwave", "thrml"))]
    assert rows == [
        "numba 50 000 5.00 2 000 1.00 0.500 1 000 0.00200 1.01 ok",
        "dwave 10 000 1.00 2 000 1.00 0.500 1 000 0.00200 1.01 ok",
        "thrml 5 000 0.500 2 000 1.00 0.500 1 000 0.00200 1.01 ok",
    ]
    assert lines[-1] == "versions: spinbench 0.1, thrml 0.1.4"


def test_solutions_are_counted_whole_and_what_was_not_timed_is_left_open() -> None:
    alone = record("numba", 0.25, method="exact")
    assert (experiments.kernel_rate(whole(alone)), experiments.samples_per_second(whole(alone))) == (4.0, 0.4)
    assert "exact, grid (solutions)" in printed([alone])
    assert " ".join(printed([alone]).splitlines()[-3].split()).startswith("numba 4.00 – 0.400")
    alone["result"]["laps"] = None
    assert experiments.kernel_rate(whole(alone)) is None
    assert "numba" in printed([alone])
    failed = record("dwave", 0.01) | {"status": "failed", "result": None}
    assert "dwave" not in printed([alone, failed]).partition("versions")[0]
