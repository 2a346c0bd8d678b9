"""The experiment from the command line, and its table from records made by hand."""

from __future__ import annotations

import io
import json
import math
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from small_records import typed

from spinbench import cli
from spinbench.measuring import records
from spinbench.papers.relaxation.crf import table
from spinbench.reporting import variants
from spinbench.sweeping import composition


def record(message: int, rmse: float, log_z: float, *, seed: int = 0, corpus: str | None = None, **method: Any) -> Any:
    return {
        "status": "ok",
        "config": {
            "model": {"name": "skip_chain", "message": message, "corpus": corpus},
            "method": {"name": "gibbs", **method},
            "backend": {"name": "numba"},
            "budget": {"samples": 10},
            "chains": 1,
            "seed": seed,
        },
        "metrics": {
            "marginal_rmse": {"value": rmse},
            "log_z_error": {"value": abs(log_z)},
            "run_seconds": {"value": 2.0},
        },
        "reference": {"log_z": 5.0},
        "result": {"log_z_estimates": {"bridge": [5.0 + log_z, 0.1]}},
    }


def print_report(runs: list[Any]) -> str:
    console = Console(width=140, file=io.StringIO(), record=True)
    for part in table.report(typed(runs), Path()):
        console.print(part)
    return console.export_text()


def test_averages_are_over_messages() -> None:
    """Squares: message 0 has 1 and 9 by two seeds, mean 5; message 1 has 4; message 2 has 9."""
    runs = [record(0, 0.1, 1), record(0, 0.1, -3, seed=1), record(1, 0.2, 2), record(2, 0.3, 3)]
    average = variants.rms_over_models(typed(runs), partial(variants.estimator_log_z_error, "bridge"))
    assert average is not None
    assert average.value == pytest.approx(math.sqrt(6))
    spread = math.sqrt(((5 - 6) ** 2 + (4 - 6) ** 2 + (9 - 6) ** 2) / 2)
    assert average.error == pytest.approx(spread / math.sqrt(3) / (2 * math.sqrt(6)))
    assert (average.median, average.models) == (pytest.approx(2.5), 3)
    assert variants.rms_over_models(typed(runs), partial(variants.estimator_log_z_error, "chib")) is None
    single = variants.rms_over_models(typed(runs[:2]), variants.metric_value("marginal_rmse"))
    assert single is not None
    assert (single.value, single.error) == (pytest.approx(0.1), None)


def test_variants_are_named_by_what_differs() -> None:
    runs = [record(k, 0.1, 1, sample=sample) for sample in ("update", "sweep") for k in (0, 1)]
    assert {label: len(group) for label, group in variants.group_by_variant(typed(runs)).items()} == {
        "gibbs sample=update": 2,
        "gibbs sample=sweep": 2,
    }
    assert list(variants.group_by_variant(typed(runs[:2]))) == ["gibbs"]


def test_table_says_where_the_announcements_are_from() -> None:
    output = print_report([record(k, 0.1 * (k + 1), k + 1) for k in range(3)])
    assert "Table 1: skip-chain CRF on SYNTHETIC announcements" in output
    (line,) = [line for line in output.splitlines() if line.strip().startswith("gibbs")]
    assert " ".join(line.split()) == "gibbs 3 0.216 ± 0.054 2.16 ± 0.54 2.00 – 2.16 ± 0.54 2.00"
    assert "announcements in my/folder" in print_report([record(0, 0.1, 1, corpus="my/folder")])
    failed = {**record(0, 0.1, 1), "status": "failed"}
    assert "no table" in print_report([failed])


def test_experiment_in_full_is_that_of_the_paper() -> None:
    plan = composition.plan(["experiment=dhmc_table1"], multirun=False)
    assert plan.cells == 5 * 75
    config = plan.config
    assert (config.model.messages, config.model.tests) == (485, 75)
    assert (config.budget.samples, config.chains, config.backend.name) == (10000, 1, "numba")
    assert composition.plan(["experiment=dhmc_table1", "size=smoke", "seed=0,1"], multirun=False).cells == 20


@pytest.mark.slow
def test_smoke_experiment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    assert cli.main(["sweep", "experiment=dhmc_table1", "size=smoke", "sweep_dir=out"]) == 0
    output = capsys.readouterr().out
    assert "10 cells into out" in output
    stored = records.read_records(Path("out"))
    assert len(stored) == 10
    assert all(entry["axes"]["model"].endswith("corpus=synthetic)") for entry in stored)
    assert all(entry["reference"]["method"] != "auto" for entry in stored)
    errors = {
        label: variants.rms_over_models(typed(group), variants.metric_value("marginal_rmse"))
        for label, group in variants.group_by_variant(typed(stored)).items()
    }
    assert set(errors) == {
        "gibbs sample=update",
        "gibbs sample=sweep",
        "dhmc",
        "block_gibbs diagonal=minshift slack=0.1",
        "block_gibbs diagonal=sdp slack=0.02",
    }
    values = {label: average.value for label, average in errors.items() if average is not None}
    assert len(values) == 5
    update = values.pop("gibbs sample=update")
    assert values["gibbs sample=sweep"] < update / 3  # a sweep is about 200 updates: an error about 14 times smaller
    assert max(values.values()) < 0.3
    for label in errors:
        assert label in output
    assert "SYNTHETIC" in output
    assert json.loads(Path("out/sweep.json").read_text())["report"] == "table1"
    assert cli.main(["report", "out"]) == 0
    again = capsys.readouterr().out
    assert (
        again.strip().splitlines()[0].rstrip()
        == "Table 1: skip-chain CRF on SYNTHETIC announcements (written by spinbench)"
    )
    assert all(label in again for label in errors)
