"""The report of `experiment=gpu`: what an update is, and the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from small_sweeps import sweep

from spinbench.measuring import records
from spinbench.reporting import devices

SMOKE = ("experiment=gpu", "size=smoke", "backend=jax,pgmax")


def test_the_smoke_size_runs_on_a_cpu_and_leaves_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert (
        sweep(*SMOKE, "method=peers/gibbs,bp", "model=grid", "chains=8", "budget.seconds=0.05", f"sweep_dir={tmp_path}")
        == 0
    )
    page = (tmp_path / "devices.md").read_text(encoding="utf-8")
    assert page.startswith("# Updates a nanosecond\n\n```text\n")
    for part in ("gibbs, grid, 8 chains (updates)", "kernel, /ns", "- processor: ", "jaxlib"):
        assert part in page
    said = capsys.readouterr().out
    assert "page: " in said
    assert "gibbs, grid, 8 chains (updates)" in said
    (gibbs,) = (one for one in records.read_records(tmp_path) if one.axes.method == "gibbs" and one.status == "ok")
    result = gibbs.result
    assert result.variables == 100
    assert devices.updates_per_step(gibbs) == 800
    kernel, call = devices.kernel_rate(gibbs), devices.call_rate(gibbs)
    assert kernel is not None
    assert call == pytest.approx(800 * float(result.samples or 0) / float(result.timing.total or 0) / 1e9)
    assert kernel > call


FACTORS: list[tuple[str, dict[str, Any], dict[str, float] | None, int]] = [
    ("gibbs", {}, {}, 1),
    ("pt", {"rungs": 0, "sweeps": 2}, {"rungs": 24.0}, 48),
    ("smc", {"temperatures": 0, "particles": 0, "moves": 1}, {"temperatures": 10.0, "particles": 8.0}, 80),
    ("dhmc", {"leapfrog_steps": 5}, None, 5),
]


def test_updates_of_a_step(tmp_path: Path) -> None:
    quick = ("budget=samples", "budget.samples=20", "chains=2", f"sweep_dir={tmp_path}")
    assert sweep("method=gibbs", "backend=numpy", "model=grid", *quick) == 0
    (record,) = records.read_records(tmp_path)
    replace = msgspec.structs.replace
    for method, settings, diagnostics, factor in FACTORS:
        config = {**record.config, "method": {"name": method, **settings}}
        result = replace(record.result, diagnostics=diagnostics)
        assert devices.updates_per_step(replace(record, config=config, result_or_none=result)) == 200 * factor
    earlier = replace(record, result_or_none=replace(record.result, variables=None))
    assert devices.kernel_rate(earlier) is None
    assert devices.call_rate(earlier) is None
