"""One cell: the figures, and that whatever goes wrong in a cell costs that cell alone."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.inference import kernels
from spinbench.measuring import isolation, process_state, provenance, records
from spinbench.measuring.in_process import measure_here
from spinbench.measuring.isolation import WorkerPool
from spinbench.measuring.measure import extract_cell, measure_cell
from spinbench.metrics import registry

GIT = {"commit": "0" * 40, "dirty": False, "diff": None}


def cell(how: str = "well", **changes: Any) -> dict[str, Any]:
    config = {
        "model": {"name": "grid", "rows": 2, "cols": 3, "c2": 0.0},
        "method": {"name": "faulty", "how": how},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"samples": 200, "seconds": None, "burn_in": None},
        "chains": 4,
        "seed": 0,
    }
    return {**config, **changes}


@pytest.fixture
def pool(faulty: Path) -> Iterator[WorkerPool]:
    with contextlib.closing(WorkerPool()) as found:
        yield found


def test_a_budget_of_wall_clock_is_recorded_as_ever() -> None:
    """Whatever the setting `cpu` says that does not ask for the CPU's: series go on."""
    plain_cell = extract_cell(cell())
    for cpu in (None, False):
        assert extract_cell(cell(budget={**cell()["budget"], "cpu": cpu})) == plain_cell
    assert extract_cell(cell(budget={**cell()["budget"], "cpu": True})) != plain_cell


@pytest.mark.usefixtures("faulty")
class TestFigures:
    def test_errors_are_those_of_the_estimate(self) -> None:
        answer = measure_here(cell())
        metrics, result = answer["metrics"], answer["result"]
        model = spinbench.models.specs.build(cell()["model"])
        run = spinbench.run(model, "faulty", "numpy", 200, chains=4, seed=0)
        d = run.marginals - 1 / (1 + np.exp(-model.biases))
        rmse = np.sqrt(np.mean(d**2))
        spread = np.sqrt(np.sum(d**2 * run.marginals_se**2)) / (len(d) * rmse)
        assert answer["status"] == "ok"
        assert metrics["marginal_rmse"] == pytest.approx({"value": rmse, "standard_error": spread})
        assert result["marginal_rmse_se"] == pytest.approx(spread)
        assert answer["reference"]["log_z"] == pytest.approx(np.logaddexp(0, model.biases).sum())
        assert metrics["seconds_per_ess"]["value"] == pytest.approx(result["seconds"]["run"] / result["ess_median"])
        assert metrics["log_z_error"] == {"failed": "faulty gives no log Z"}
        assert metrics["time_to_error"] == {"failed": "an RMSE of 0.01 was not reached"}
        assert result["trajectory"][-1]["marginal_rmse"] == pytest.approx(rmse)
        assert result["trajectory"][-1]["samples"] == 200

    def test_cost_of_a_step_and_of_an_effective_sample(self) -> None:
        answer = measure_here(cell())
        result, metrics = answer["result"], answer["metrics"]
        laps, load = result["laps"], result["load"]
        decile, quartile, median = laps["cpu"]
        assert (laps["count"], sorted(laps["cpu"])) == (200, [decile, quartile, median])
        scatter = pytest.approx(np.log(median / decile))
        assert metrics["step_seconds"] == {"value": decile, "scatter": scatter}
        assert metrics["step_cpu_seconds"] == {"value": laps["mean_cpu"], "scatter": scatter}
        assert metrics["samples_per_ess"]["value"] == pytest.approx(200 * 4 / result["ess_median"])
        assert 0 < load["cpu_seconds"] < 10 * load["wall_seconds"]
        before, after = load["yardstick"]
        assert min(decile, before, after) > 0
        if sys.platform == "linux":
            assert 2**20 < result["memory"]["before_bytes"] <= result["memory"]["peak_bytes"] < 2**36

    def test_equal_numbers_have_equal_fingerprints(self) -> None:
        first, again, other = (measure_here(cell(seed=seed))["result"] for seed in (0, 0, 1))
        for name in ("answer", "numbers"):
            assert first[name] == again[name] != other[name]
        assert first["answer"] != first["numbers"]

    def test_exact_method_has_no_error_and_is_not_timed_with_its_compilation(self) -> None:
        config = cell(method={"name": "exact"}, backend={"name": "numba", "device": "cpu", "precision": "float64"})
        metrics = measure_here(config)["metrics"]
        assert max(metrics[name]["value"] for name in ("marginal_rmse", "log_z_error")) < 1e-12
        assert metrics["run_seconds"]["value"] < 1.0

    def test_model_too_wide_for_an_exact_answer_is_measured_without(self) -> None:
        answer = measure_here(cell(model={"name": "complete", "n": 60}, budget={"samples": 20}))
        assert answer["status"] == "ok"
        assert "memory" in answer["reference"]["reason"]
        assert answer["metrics"]["marginal_rmse"]["failed"] == answer["reference"]["reason"]
        assert answer["metrics"]["run_seconds"]["value"] > 0

    @pytest.mark.parametrize(
        ("config", "status", "sentence"),
        [
            (cell("nan"), "failed", "faulty on numpy gave marginals: nan at variable 0, where 0 to 1 is allowed"),
            (cell("refuse"), "skipped", "faulty refuses this model"),
            (cell("raise"), "failed", "RuntimeError: asked to fail"),
            (cell("memory"), "failed", "out of memory: asked for too much"),
            (cell(backend={"name": "dwave"}), "skipped", "faulty runs on cupy, jax, numba, numpy"),
            (cell(backend={"name": "numpi"}), "failed", "did you mean numpy"),
            (cell(model={"name": "gird"}), "failed", "grid"),
            (cell(model={"name": "file", "path": "/no/such.uai"}), "failed", "/no/such.uai"),
            (cell(budget={"seconds": 1e-9}), "failed", "a budget of 1e-09 s is too short: a sample takes"),
            (cell(method={"name": "faulty", "hwo": 1}), "failed", "did you mean how"),
        ],
    )
    def test_what_cannot_be_measured_is_a_sentence(self, config: dict[str, Any], status: str, sentence: str) -> None:
        answer = measure_here(config)
        assert answer["status"] == status
        assert sentence in answer["error"]
        assert "\n" not in answer["error"]
        assert bool(answer["metrics"]) == (status == "failed")
        assert json.loads(json.dumps(answer, allow_nan=False)) == answer


PARENT = """
import json, os, sys
from spinbench.measuring.isolation import Worker
worker = Worker(min(os.sched_getaffinity(0)), 'cpu')
print(worker._process.pid, flush=True)
worker.measure(json.loads(sys.argv[1]), 600)
"""


class TestWorkers:
    @pytest.mark.parametrize(
        ("how", "sentence"),
        [
            ("exit", "exit status 3"),
            ("segfault", "SIGSEGV"),
            ("kill", "SIGKILL"),
            ("hang", "no answer within 2 s"),
            ("hold", "no answer within 2 s"),
            ("junk", "was no answer"),
            ("raise", "asked to fail"),
            ("shout", "… (1000013 characters)"),
        ],
    )
    def test_a_dead_worker_costs_its_cell_alone(self, pool: WorkerPool, faulty: Path, how: str, sentence: str) -> None:
        since = time.monotonic()
        answer = pool.measure(cell(how), 2.0 if how in ("hang", "hold") else 25.0)
        assert time.monotonic() - since < 30
        assert (answer["status"], set(answer["metrics"])) == ("failed", {*records.METRICS, *registry.metric_names()})
        assert sentence in answer["error"]
        assert len(answer["error"]) < 5000
        if how == "segfault":
            assert "in plan" in answer["traceback"]
        again = pool.measure(cell(), 60.0)
        assert again["status"] == "ok"
        assert not _left_behind(faulty)

    def test_worker_stays_warm_on_one_core_with_one_thread(self, pool: WorkerPool) -> None:
        first, second = pool.measure(cell(), 60.0), pool.measure(cell("chatter", seed=1), 60.0)
        assert (first["status"], second["status"]) == ("ok", "ok")
        environment = second["environment"]
        assert len(environment["affinity"]) == 1
        assert set(environment["threads"].values()) == {"1"}
        assert environment["versions"]["numpy"] == np.__version__
        assert len(pool._workers) == 1

    @pytest.mark.parametrize("how", ["lower limits", "leave", "strict arithmetic"])
    def test_a_worker_that_a_cell_has_changed_measures_no_other(self, pool: WorkerPool, how: str) -> None:
        changed, after = pool.measure(cell(how), 60.0), pool.measure(cell(), 60.0)
        assert (changed["status"], after["status"]) == ("ok", "ok")
        assert "start" in after["stages"]
        assert set(changed) == set(after)

    @pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
    def test_two_pools_never_share_a_core(self) -> None:
        with contextlib.ExitStack() as stack:
            cores = [isolation.CoreLock() for _ in range(2)]
            for core in cores:
                stack.callback(core.release)
            assert cores[0].number != cores[1].number

    @pytest.mark.parametrize("how", ["hang", "hold"])
    def test_worker_ends_with_the_process_that_started_it(self, faulty: Path, how: str) -> None:
        command = [sys.executable, "-c", PARENT, json.dumps(cell(how))]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
            worker = int(parent.stdout.readline())
            time.sleep(1.0)
            parent.kill()
        deadline = time.monotonic() + 20
        while _alive(worker):
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def test_record_of_a_cell(self, pool: WorkerPool) -> None:
        config = {**cell(), "family": "inference", "time_limit": 60}
        record = measure_cell(config, git=GIT, pool=pool)
        other = measure_cell({**config, "seed": 1}, git=GIT, pool=pool)
        expected = {
            "schema": 1,
            "axes": {"model": "grid(rows=2,cols=3,c2=0)", "method": "faulty", "backend": "numpy"},
            "config": cell(),
            "git": GIT,
            "plugins": provenance.foreign_plugins(cell()),
            "key": records.cell_key(cell(), GIT, record["plugins"]),
        }
        assert {name: record[name] for name in expected} == expected
        assert record["plugins"]["methods"]["name"] == "faulty"
        assert record["key"] != other["key"]
        assert record["protocol"] == other["protocol"]
        assert record["duration"] > record["result"]["seconds"]["run"] > 0


def test_a_file_that_changes_while_it_is_measured_gives_no_result(tmp_path: Path) -> None:
    """What was read is not known then, and the series of a file is told by what it held."""
    path = tmp_path / "mine.uai"
    path.write_text("MARKOV 1 2 0")
    model = {"name": "file", "path": str(path), "evidence": None, "beta": None}

    class Slow(WorkerPool):
        def measure(self, *_: Any, **__: Any) -> dict[str, Any]:
            path.write_text("MARKOV 1 3 0")
            return {"status": "ok", "stages": {}, "environment": {}}

    record = measure_cell(cell(model=model), git=GIT, pool=Slow())
    assert (record["status"], record["error"]) == (
        "failed",
        "a file of the model changed while it was measured; measure again",
    )


def test_jax_cell_is_compiled_once_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fresh at first; warm in the same process; cached in the next."""
    for name in kernels.cache_variables():  # the usual folders are those of all tests
        monkeypatch.setenv(name, str(tmp_path / name))
    config = cell(
        method={"name": "block_gibbs"}, backend={"name": "jax", "device": "cpu", "precision": "float64"}, chains=3
    )
    with contextlib.closing(WorkerPool()) as pool:
        first, second = pool.measure(config, 120.0), pool.measure(config, 120.0)
    with contextlib.closing(WorkerPool()) as pool:
        third = pool.measure(config, 120.0)
    assert first["status"] == "ok", first["error"]
    assert [answer["result"]["compilation"] for answer in (first, second, third)] == ["fresh", "warm", "cached"]


@pytest.mark.parametrize(("backend", "kind"), [("numpy", "none"), ("jax", "fresh")])
def test_files_of_another_process_look_fresh_to_what_compiles(
    backend: str, kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As far as files tell; what compiles nothing is not fresh because others compile."""
    monkeypatch.setenv(kernels.cache_variables()[0], str(tmp_path))
    with process_state.detect_compilation(backend, warm=backend == "jax") as found:
        (tmp_path / "of another process").touch()
    assert found["kind"] == kind


def test_only_a_cache_of_its_own_tells_the_seconds_of_a_compilation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files that appear in a shared one may be another process's: there, nothing is tracked."""
    for name in kernels.cache_variables():
        monkeypatch.setenv(name, str(tmp_path / name))
        (tmp_path / name).mkdir()
    config = cell(method={"name": "mf"}, backend={"name": "jax", "device": "cpu", "precision": "float64"}, chains=3)
    with contextlib.closing(WorkerPool()) as pool:
        shared = pool.measure(config, 120.0)
        own = pool.measure(config, 120.0, own_cache=True)
    assert shared["status"] == "ok", shared["error"]
    assert shared["result"]["compilation"] == "fresh"
    assert "compile_seconds" not in shared["metrics"]
    assert own["result"]["compilation"] == "fresh"
    assert own["metrics"]["compile_seconds"]["value"] == own["result"]["seconds"]["compile"] > 0.1


def _left_behind(plugin: Path) -> list[str]:
    """Processes with this test's plugin on their path that are no child of ours any more."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
            mine = str(plugin).encode() in (folder / "environ").read_bytes()
            if mine and state != "Z" and int(parent) != os.getpid():
                found.append(folder.name)
    return found


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
