"""Cells side by side: complete records, a core for each, and no more of them than there are cores."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import math
import os
import pickle
import stat
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from small_records import make
from small_sweeps import QUICK, stored, sweep

from spinbench import cli
from spinbench.foundation import platforms
from spinbench.measuring import environment, isolation
from spinbench.measuring.in_process import measure_here
from spinbench.sweeping import composition, launchers, sweepers
from spinbench.sweeping.job import AbortError

MANY = ("-m", *QUICK)
AT_A_TIME = min(2, len(environment.timing_cores()))


def needs(module: str, extra: str) -> pytest.MarkDecorator:
    missing = importlib.util.find_spec("hydra_plugins") is None or importlib.util.find_spec(module) is None
    return pytest.mark.skipif(missing, reason=f"needs pip install 'spinbench[{extra}]'")


joblib = needs("hydra_plugins.hydra_joblib_launcher", "joblib")
submitit = needs("hydra_plugins.hydra_submitit_launcher", "submitit")
ray = needs("hydra_plugins.hydra_ray_launcher", "ray")


def cells(found: list[dict[str, Any]]) -> Counter[tuple[str, int]]:
    return Counter((record["config"]["method"]["how"], record["config"]["seed"]) for record in found)


def no_core_is_held() -> bool:
    held = []
    with contextlib.ExitStack() as stack:
        for _ in environment.timing_cores():
            core = isolation.CoreLock()  # would wait for ever
            stack.callback(core.release)
            held.append(core.number)
    return len(set(held)) == len(held)


@pytest.mark.usefixtures("faulty")
class TestSideBySide:
    @joblib
    def test_joblib(self, capsys: pytest.CaptureFixture[str]) -> None:
        """A failure costs its cell alone; a resumed sweep measures what has no good record."""
        chosen = ("launcher=joblib", f"launcher.jobs={AT_A_TIME}", "method.how=slow,raise", "seed=0,1")
        assert sweep(*MANY, *chosen, "sweep_dir=out", "--profile") == 1
        shown = capsys.readouterr().out
        found = stored("out")
        assert cells(found) == {(how, seed): 1 for how in ("slow", "raise") for seed in range(2)}
        assert {record["status"] for record in found if record["config"]["method"]["how"] == "slow"} == {"ok"}
        used = {tuple(record["environment"]["affinity"]) for record in found}
        assert {len(processors) for processors in used} == {1}
        assert len(used) == AT_A_TIME
        assert "[4/4] faulty on numpy, grid(rows=2,cols=2,c2=0), method.how=" in shown
        assert "model grid(rows=2" in shown
        assert "harness overhead beside process start and imports" in shown
        assert not list(Path("out").rglob("*.tmp"))
        assert no_core_is_held()

        good = {record["id"] for record in found if record["status"] == "ok"}
        assert sweep("--resume", "out") == 1
        again = stored("out")
        assert cells(again) == cells(found)
        assert good == {record["id"] for record in again} & {record["id"] for record in found}
        assert "2 of 4 cells were not measured now" in capsys.readouterr().out

    @joblib
    def test_joblib_with_one_job_gives_all_back(self) -> None:
        """It runs in the sweep's own process then."""
        before = os.sched_getaffinity(0)
        assert sweep(*MANY, "launcher=joblib", "launcher.jobs=1", "seed=0,1", "sweep_dir=out") == 0
        assert cells(stored("out")) == {("well", seed): 1 for seed in range(2)}
        assert os.sched_getaffinity(0) == before
        assert no_core_is_held()

    @submitit
    def test_submitit_on_this_machine(self, capsys: pytest.CaptureFixture[str]) -> None:
        """The cells are dealt out to as many processes as there are jobs."""
        chosen = ("launcher=submitit", f"launcher.jobs={AT_A_TIME}", "method.how=well,raise", "seed=0,1")
        assert sweep(*MANY, *chosen, "sweep_dir=out") == 1
        found = stored("out")
        assert cells(found) == {(how, seed): 1 for how in ("well", "raise") for seed in range(2)}
        assert {len(record["environment"]["affinity"]) for record in found} == {1}
        assert len(list(Path("out/.submitit").rglob("*_submitted.pkl"))) == AT_A_TIME
        assert "model grid(rows=2" in capsys.readouterr().out
        assert no_core_is_held()

    @ray
    def test_ray(self, capsys: pytest.CaptureFixture[str]) -> None:
        chosen = ("launcher=ray", f"launcher.jobs={AT_A_TIME}", "method.how=slow,raise", "seed=0,1")
        assert sweep(*MANY, *chosen, "sweep_dir=out") == 1
        found = stored("out")
        assert cells(found) == {(how, seed): 1 for how in ("slow", "raise") for seed in range(2)}
        assert {len(record["environment"]["affinity"]) for record in found} == {1}
        assert "model grid(rows=2" in capsys.readouterr().out
        assert no_core_is_held()

    @submitit
    def test_slurm(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        """With an `sbatch` that runs the jobs of the array here and now, one after another."""
        Path("bin").mkdir()
        for name, program in (("sbatch", SBATCH), ("srun", SRUN), ("sacct", SACCT)):
            path = Path("bin") / name
            path.write_text(f"#!{sys.executable}\n{program}")
            path.chmod(path.stat().st_mode | stat.S_IXUSR)
        monkeypatch.setenv("PATH", f"{Path('bin').absolute()}{os.pathsep}{os.environ['PATH']}")
        chosen = ("launcher=slurm", "launcher.partition=short", "launcher.account=mine", "launcher.jobs=2")
        assert sweep(*MANY, *chosen, "seed=0,1,2", "sweep_dir=out") == 0, (
            capsys.readouterr(),
            Path("log").read_text(),
        )
        assert cells(stored("out")) == {("well", seed): 1 for seed in range(3)}
        asked = max(Path("out/.submitit").rglob("*submission*.sh")).read_text()
        for line in ("partition=short", "account=mine", "cpus-per-task=1", "mem=4GB", "time=60", "array=0-1%2"):
            assert f"#SBATCH --{line}" in asked

    @joblib
    def test_full_disk_ends_all_of_it_with_a_sentence(
        self, small_disk: Callable[[str], Path], capsys: pytest.CaptureFixture[str]
    ) -> None:
        folder = small_disk("32k")
        chosen = ("launcher=joblib", f"launcher.jobs={AT_A_TIME}", "seed=range(0,20)", f"sweep_dir={folder}")
        assert sweep(*MANY, *chosen) == 2
        captured = capsys.readouterr()
        assert "No space left on device" in captured.err
        assert captured.err.count("spinbench: ") == 1
        assert 1 <= len(stored(folder)) < 20
        assert not list(folder.rglob("*.tmp"))
        assert no_core_is_held()

    @joblib
    def test_processes_end_with_a_sweep_that_is_killed(self) -> None:
        command = [sys.executable, "-m", "spinbench", "sweep", *MANY, "launcher=joblib", "sweep_dir=out"]
        command += [f"launcher.jobs={AT_A_TIME}", "method.how=hang", "seed=0,1,2"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            _wait_until(lambda: len(_workers_below(process.pid)) == AT_A_TIME)
            workers = _workers_below(process.pid)
        finally:
            process.kill()
            process.wait()
        _wait_until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
        assert no_core_is_held()


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        pytest.param(["launcher=joblib", "launcher.jobs=4096"], "means 4096 cells at a time, but", marks=joblib),
        pytest.param(["launcher=joblib", "launcher.jobs=0"], "jobs=0 was given; an integer from 1", marks=joblib),
        pytest.param(["launcher=slurm", "launcher.cells=0"], "cells=0 was given; an integer", marks=submitit),
        pytest.param(["hydra/launcher=submitit_local"], "max_batch_size=null means 512 cells", marks=submitit),
        (["launcher=jolib"], "no launcher is named 'jolib'; did you mean joblib"),
        pytest.param(["launcher=slurm"], "the launcher failed with RuntimeError", marks=submitit),
    ],
)
def test_refused_in_one_sentence(overrides: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep(*MANY, *overrides, "seed=range(0,512)", "sweep_dir=out") == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert not stored("out")


@submitit
@pytest.mark.parametrize(("cells", "jobs"), [(1, 1), (99, 99), (2000, 100), (2160, 108), (30_000, 1000)])
def test_jobs_of_a_cluster(cells: int, jobs: int) -> None:
    """A hundred at a time, more of twenty cells each, unless an array would be too long for the cluster."""
    assert sweepers.count_jobs(composition.plan(["launcher=slurm"], multirun=True).config, cells) == jobs


@submitit
def test_outcomes_of_shares_are_told_apart() -> None:
    """The two jobs here get the cells 0, 2, 4 and 1, 3; what comes of them is in the order of the cells."""
    sweeper = sweepers.ProductSweeper(None)
    sweeper._config = composition.plan(["launcher=submitit", "launcher.jobs=2"], multirun=True).config

    def launch(shares: list[list[str]], initial_job_idx: int) -> list[SimpleNamespace]:
        return [SimpleNamespace(return_value=[json.loads(line) for line in share[1:]]) for share in shares]

    sweeper._launcher = SimpleNamespace(launch=launch)
    cells = [[f"seed={seed}"] for seed in range(5)]
    assert sweeper.launch(cells, 0) == cells


@submitit
def test_configuration_that_a_cluster_s_user_edits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As docs/how-to/slurm.md has it; this machine is no cluster."""
    page = (Path(__file__).parents[3] / "docs" / "how-to" / "slurm.md").read_text(encoding="utf-8")
    Path("launcher").mkdir()
    Path("launcher/cluster.yaml").write_text(page.partition("```yaml\n")[2].partition("```")[0])
    chosen = [f"hydra.searchpath=[file://{tmp_path}]", "launcher=cluster", "seed=0,1"]
    launcher = composition.plan(chosen, multirun=True).config.hydra.launcher
    assert launcher._target_.endswith(".SlurmLauncher")
    assert (launcher.partition, launcher.account, launcher.mem_gb) == ("cpu", "my-project", 4)


@joblib
def test_a_launcher_needs_several_cells(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("launcher=joblib") == 2
    assert "a launcher runs several cells; add -m" in capsys.readouterr().err


def test_launcher_that_is_not_installed() -> None:
    assert "pip install 'spinbench[submitit]'" in str(launchers.not_installed("submitit_slurm"))
    assert launchers.not_installed("basic") is None


class TestOversubscription:
    def test_threads_beyond_the_cores_of_the_process(self, faulty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("OMP_NUM_THREADS", "4096")
        found = measure_here(_cell(samples=50))
        assert found["status"] == "ok"
        assert "OMP_NUM_THREADS=4096 asked for more threads than the" in found["oversubscribed"]

    def test_reports_say_so(self, capsys: pytest.CaptureFixture[str]) -> None:
        Path("out/records").mkdir(parents=True)
        for seed in range(2):
            record = {**make(seed=seed), "oversubscribed": "its process waited"}
            Path(f"out/records/record-{seed}.json").write_text(json.dumps(record))
        assert cli.main(["report", "out"]) == 0
        shown = capsys.readouterr().out
        assert (
            "2 of 2 cells oversubscribed, so that their seconds are too long; one of them: its process waited" in shown
        )
        (row,) = [line for line in shown.splitlines() if line.split()[1:2] == ["gibbs"]]
        assert row.rstrip().endswith("oversubscribed")

    def test_another_program_on_the_same_core(self) -> None:
        if not Path("/proc/thread-self/schedstat").exists():
            pytest.skip("this system does not say how long threads wait for a core")
        with contextlib.closing(isolation.WorkerPool()) as pool:
            busy = subprocess.Popen(
                [sys.executable, "-c", BUSY, str(pool.claim_core())], stdout=subprocess.PIPE, text=True
            )
            try:
                assert busy.stdout is not None
                busy.stdout.readline()
                found = pool.measure(_cell(samples=3000), 120.0)
            finally:
                busy.kill()
                busy.wait()
        assert found["status"] == "ok", found["error"]
        assert "its process waited for its core in" in found["oversubscribed"]

    def test_cores_and_a_container_s_quota(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Of eight logical processors in four cores, with a quota of two and a half processors, the last two cores."""
        monkeypatch.setattr(platforms, "affinity", lambda: set(range(8)))
        monkeypatch.setattr(environment, "_first_sibling", lambda processor: processor % 4)
        monkeypatch.setattr(environment, "_cpu_quota", lambda: math.inf)
        assert environment.timing_cores() == {0: 0, 1: 1, 2: 2, 3: 3}
        monkeypatch.setattr(environment, "_cpu_quota", lambda: 2.5)
        assert environment.timing_cores() == {2: 2, 3: 3}
        monkeypatch.setattr(environment, "_cpu_quota", lambda: 0.5)
        assert environment.timing_cores() == {3: 3}
        monkeypatch.setattr(platforms, "affinity", lambda: {5, 6})
        monkeypatch.setattr(environment, "_cpu_quota", lambda: math.inf)
        assert environment.timing_cores() == {1: 5, 2: 6}


BUSY = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
print("busy", flush=True)
while True:
    pass
"""

SBATCH = """
import os, re, subprocess, sys
script = open(sys.argv[-1]).read()
first, last = map(int, re.search(r"--array=(\\d+)-(\\d+)", script).groups())
command = next(line for line in script.splitlines() if line.startswith("srun"))
for task in range(first, last + 1):
    mine = {"SUBMITIT_EXECUTOR": "slurm", "SLURM_JOB_ID": str(78 + task), "SLURM_ARRAY_JOB_ID": "77",
            "SLURM_ARRAY_TASK_ID": str(task), "SLURM_JOB_NUM_NODES": "1", "SLURM_JOB_NODELIST": "here"}
    mine |= {"SLURM_" + name: value for name, value in (("NTASKS", "1"), ("NNODES", "1"), ("NODEID", "0"),
                                                        ("PROCID", "0"), ("LOCALID", "0"))}
    subprocess.Popen(["sh", "-c", command], env=os.environ | mine, stdout=subprocess.DEVNULL, stderr=open("log", "a"))
print("Submitted batch job 77")
"""
SRUN = """
import os, sys
words = sys.argv[sys.argv.index(next(word for word in sys.argv if "python" in word and not word.endswith("srun"))) :]
os.execvp(words[0], words)
"""
SACCT = """
print("JobID|State|NodeList")
print("77_0|RUNNING|here")
print("77_1|RUNNING|here")
"""


def _cell(samples: int) -> dict[str, Any]:
    return {
        "model": {"name": "grid", "rows": 4, "cols": 4},
        "method": {"name": "gibbs"},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"samples": samples, "seconds": None, "burn_in": None},
        "chains": 4,
        "seed": 0,
    }


def _workers_below(process: int) -> list[int]:
    """Processes that measure, below a sweep's and its launcher's."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = []
    for number in parents:
        with contextlib.suppress(OSError):
            if b"spinbench.measuring.worker" in Path(f"/proc/{number}/cmdline").read_bytes():
                ancestor = number
                while ancestor in parents and ancestor != process:
                    ancestor = parents[ancestor]
                if ancestor == process:
                    found.append(number)
    return found


def _wait_until(condition: Any, seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_errors_reach_the_sweep_whole() -> None:
    """They cross processes as pickles."""
    error = pickle.loads(pickle.dumps(AbortError("no space left")))
    assert isinstance(error, AbortError)
    assert str(error) == "no space left"
