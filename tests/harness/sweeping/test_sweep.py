"""`spinbench sweep` as users run it: what goes wrong costs a cell and not the sweep, and nothing is lost."""

from __future__ import annotations

import contextlib
import importlib
import itertools
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import hydra
import pytest
from omegaconf import OmegaConf
from small_sweeps import QUICK, stored, sweep

import spinbench
from spinbench import cli
from spinbench.measuring import environment, records
from spinbench.measuring.stages import STAGES
from spinbench.models import generators
from spinbench.sweeping import job, sweepers

NEW = sys.version_info >= (3, 14)


@contextlib.contextmanager
def started(*overrides: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "spinbench", "sweep", *overrides],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def wait_for_records(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while len(stored(folder)) < count:
        assert time.monotonic() < deadline, "no record was written"
        time.sleep(0.02)


THEIR_SWEEPER = """
from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

class Theirs(BasicSweeper):
    pass
"""
THEIR_CHOICE = """# @package hydra.sweeper
_target_: hydra_plugins.theirs.Theirs
max_batch_size: 1
params: {seed: '0,1'}
"""


@pytest.mark.usefixtures("faulty")
class TestSweep:
    def test_faults_cost_their_cells_alone_and_are_measured_again(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Raising, refusing, exiting and being killed, with a good cell before them, while the clock steps back."""
        clock, hours = time.time, itertools.count()
        monkeypatch.setattr(time, "time", lambda: clock() - 3600 * next(hours))
        assert sweep("-m", *QUICK, "method.how=well,raise,refuse,exit,kill,memory", "sweep_dir=out", "--profile") == 1
        shown = capsys.readouterr().out
        found = {entry["config"]["method"]["how"]: entry for entry in stored("out")}
        statuses = {how: entry["status"] for how, entry in found.items()}
        failed = dict.fromkeys(("raise", "exit", "kill", "memory"), "failed")
        assert statuses == {"well": "ok", "refuse": "skipped", **failed}
        for line in (
            "6 cells into out",
            "failed: RuntimeError: asked to fail",
            "skipped: faulty refuses this model",
            "its process ended with exit status 3 before it gave an answer",
            "its process was killed by SIGKILL",
            "] faulty on numpy, grid(rows=2,cols=2,c2=0), method.how=exit: failed: its process",
            "spinbench sweep --resume out",
            "not in asv's history: ",
            f"picture of accuracy against wall-clock: {Path('out/accuracy.png')}",
            *STAGES,
            "where ",
            "6 cells measured",
            "harness overhead beside process start and imports: ",
        ):
            assert line in shown
        assert Path("out/accuracy.png").stat().st_size > 1000
        stages = found["well"]["stages"]
        assert set(stages) <= set(STAGES)
        inside = sum(seconds for name, seconds in stages.items() if name not in ("compose", "lookup", "record"))
        assert inside == pytest.approx(found["well"]["duration"], rel=1e-6)
        assert not {path.name for path in Path().iterdir()} & {"outputs", "multirun"}

        (damaged,) = [path for path in Path("out/records").iterdir() if found["raise"]["id"] in path.read_text()]
        damaged.write_text('{"schema": 1, "id"')
        assert sweep("-m", *QUICK, "method.how=well,raise", "sweep_dir=out") == 1
        after = {entry["config"]["method"]["how"]: entry["id"] for entry in stored("out")}
        same = {how for how in found if after[how] == found[how]["id"]}
        assert same == {*found} - {"raise"}, "and no other is measured again"
        shown = capsys.readouterr().out
        assert "[1/2] faulty on numpy, grid(rows=2,cols=2,c2=0), method.how=well: measured before" in shown
        # what failed earlier and is not measured again does not count
        assert sweep("-m", *QUICK, "method.how=well", "seed=1", "sweep_dir=out") == 0

    def test_a_setting_that_the_method_refuses_costs_no_cell(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Which would fail, and be told of after hours. Hydra reads nan as a number."""
        assert sweep("-m", *QUICK, "method.how=well,nan", "sweep_dir=out") == 2
        assert capsys.readouterr().err == "spinbench: method faulty: how=nan was given; a text is needed\n"
        assert not Path("out").exists()

    def test_single_cell_goes_to_multirun_by_default(self) -> None:
        assert sweep(*QUICK) == 0
        (folder,) = Path("multirun").iterdir()
        (entry,) = stored(folder)
        assert (entry["axes"]["method"], entry["git"]["commit"]) == ("faulty", None)
        assert entry["config"]["budget"] == {"samples": 50, "seconds": None, "burn_in": None}
        assert not Path("outputs").exists()

    def test_killed_sweep_leaves_whole_records_and_resumes(self) -> None:
        with started("-m", *QUICK, "method.how=well,slow", "seed=0,1", "sweep_dir=out") as process:
            wait_for_records(Path("out"), 1)
            process.kill()
        kept = stored("out")
        assert 1 <= len(kept) < 4
        assert sweep("--resume", "out") == 0
        entries = stored("out")
        assert len(entries) == 4
        assert {entry["id"] for entry in kept} <= {entry["id"] for entry in entries}
        assert not list(Path("out/records").glob("*.tmp"))

    def test_interrupted_sweep_concludes_with_what_it_has(self) -> None:
        with started(*QUICK, "method.how=well,hang", "sweep_dir=out") as process:
            wait_for_records(Path("out"), 1)
            process.send_signal(signal.SIGTERM)
            shown, _ = process.communicate(timeout=60)
        assert (process.returncode, len(stored("out"))) == (130, 1)
        assert "model grid(rows=2" in shown
        assert "interrupted; go on with: spinbench sweep --resume out" in shown
        assert "Traceback" not in shown

    def test_no_cell_begins_after_an_interrupt_that_a_library_dropped(self) -> None:
        job.enter(job.State())
        interrupted = threading.Event()
        job.watch_interrupts(interrupted)
        interrupted.set()
        with pytest.raises(KeyboardInterrupt):
            job.run(OmegaConf.create({}))
        job.leave()

    def test_time_limit(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert sweep(*QUICK, "method.how=hang,well", "time_limit=2", "sweep_dir=out") == 1
        assert sorted(entry["status"] for entry in stored("out")) == ["failed", "ok"]
        assert "there was no answer within 2 s, so its process was killed" in capsys.readouterr().out

    def test_nothing_but_refusals_is_an_error(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert sweep(*QUICK, "method.how=refuse", "sweep_dir=out") == 2
        assert "nothing could be measured: faulty refuses this model" in capsys.readouterr().err

    def test_disk_that_fills_up_ends_the_sweep_which_goes_on_later(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        original, calls = records.write_record, itertools.count(1)

        def write(folder: Path, record: records.Content) -> Path:
            if next(calls) == 2:
                raise records.RecordError(f"{folder} cannot be written: No space left on device")
            return original(folder, record)

        monkeypatch.setattr(records, "write_record", write)
        assert sweep(*QUICK, "seed=0,1,2", "sweep_dir=out") == 2
        captured = capsys.readouterr()
        assert "No space left on device" in captured.err
        assert captured.err.count("\n") == 1
        assert "model grid(rows=2" in captured.out
        (kept,) = stored("out")
        assert sweep("--resume", "out") == 0
        found = stored("out")
        assert sorted(entry["config"]["seed"] for entry in found) == [0, 1, 2]
        assert kept["id"] in {entry["id"] for entry in found}

    def test_sweepers_of_others_run(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for folder in ("hydra/sweeper", "hydra_plugins"):
            (tmp_path / folder).mkdir(parents=True)
        (tmp_path / "hydra" / "sweeper" / "theirs.yaml").write_text(THEIR_CHOICE)
        (tmp_path / "hydra_plugins" / "theirs.py").write_text(THEIR_SWEEPER)
        monkeypatch.syspath_prepend(str(tmp_path))
        theirs = importlib.import_module("hydra_plugins.theirs").Theirs
        with sweepers.install({"hydra_plugins.theirs.Theirs": theirs}):
            assert sweep("-m", "--config-dir", str(tmp_path), "hydra/sweeper=theirs", *QUICK, "sweep_dir=out") == 0
        assert [entry["status"] for entry in stored("out")] == ["ok", "ok"]

    def test_state_of_the_code_is_the_same_in_all_records(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Also in a hook of another repository, which the environment names."""
        for name in ("code", "foreign"):
            _git_checkout(tmp_path / name)
        monkeypatch.setenv("SPINBENCH_HISTORY", str(tmp_path / "code"))
        here = environment.code_state()
        assert here == {
            **environment.git_state(tmp_path / "code"),
            "spinbench": environment.spinbench_state(),
            "elsewhere": None,
        }
        monkeypatch.setenv("GIT_DIR", str(tmp_path / "foreign" / ".git"))
        monkeypatch.setenv("GIT_WORK_TREE", str(tmp_path / "foreign"))
        assert sweep(*QUICK, "seed=0,1", "sweep_dir=out") == 0
        assert [entry["git"] for entry in stored("out")] == [here, here]
        assert (here["dirty"], environment.code_state()) == (False, here)
        assert "not in asv's history: there is no asv.conf.json in" in capsys.readouterr().out


def test_what_several_models_share_is_given_once_and_a_broken_plugin_costs_its_cells(
    install_plugin: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = install_plugin("spinbench_broken", "raise OSError('no licence')", {"methods": {"broken": "Broken"}})
    monkeypatch.setenv("PYTHONPATH", str(folder))
    cell = ("backend=numpy", "budget=samples", "budget.samples=20", "chains=2", "sweep_dir=out")
    assert sweep("-m", "model=ring,grid", "model.seed=3", "method=broken,gibbs", *cell) == 1
    found = sorted((entry["status"], entry["config"]["model"]["seed"]) for entry in stored("out"))
    assert found == [("failed", 3), ("failed", 3), ("ok", 3), ("ok", 3)]
    assert "method 'broken' (spinbench_broken:Broken, from spinbench_broken 1.0) failed on import" in (
        capsys.readouterr().out
    )


def test_a_plugin_s_report_and_metrics_that_go_wrong(
    install_plugin: Callable[..., Path], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    source = (
        "from spinbench.api import Metric\nclass Mine(Metric):\n    title = 'mine'\n"
        "    def measure(self, *_): raise ValueError('no')\n"
        "def report(records, folder): return [f'{len(records)} of mine into {folder.name}']\n"
    )
    points = {"metrics": {"pair_rmse": "Mine", "mine": "Mine"}, "reports": {"mine": "report", "none": "nothing"}}
    monkeypatch.setenv("PYTHONPATH", str(install_plugin("spinbench_again", source, points)))
    small = ("method=exact", "backend=numpy", "model=boltzmann/neural15")
    assert sweep(*small, "sweep_dir=out", "report=mine") == 0
    shown = " ".join(capsys.readouterr().out.split())
    for line in (
        "1 of mine into out",
        "a metric was left out: ",
        "has the name of spinbench's own, which stays; rename it",
        "spinbench_again 1.0) failed: ValueError: no (1 of 1 cells)",
    ):
        assert line in shown
    assert sweep(*small, "sweep_dir=other", "report=none") == 2
    assert "report 'none' (spinbench_again:nothing, from spinbench_again 1.0) failed on import" in (
        capsys.readouterr().err
    )
    assert not Path("other").exists()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        (["report=tabel1"], "no report is named 'tabel1'; did you mean table1"),
        (["method=gibs"], "no method is named 'gibs'; did you mean gibbs"),
        (["-m", "backend=numpy,nunba"], "no backend is named 'nunba'; did you mean numba"),
        (["model=uai14/grids_12"], "did you mean uai14/Grids_12"),
        (["budget=samples", "budget.samples=0"], "a budget of samples=0 was given; a whole number, 1 or more"),
        (
            ["budget=10"],
            "budget=10 was given; budget is one of gate, long, samples, smoke, standard; its values are set as",
        ),
        (["time_limit=0"], "time_limit=0 was given; a positive number of seconds"),
        (["mixing=-1"], "mixing=-1 was given; a positive number of seconds"),
        (["time_limit=abc"], "time_limit=abc was given; a positive number of seconds"),
        (["model=good.uai"], "a file is read with model=file model.path=good.uai"),
        (
            ["--method=gibbs"],
            "--method=gibbs is no flag of spinbench sweep; settings are given without dashes, as method=",
        ),
        (["--resmue", "x"], "no option of spinbench sweep is named '--resmue'; did you mean --resume"),
        (["--frobnicate"], "--frobnicate is no flag of spinbench sweep"),
        (["budget.samples=5"], "a budget takes either samples or seconds"),
        (["model=file"], "model.path was not given; add model.path=VALUE"),
        (["chains=0"], "chains=0 was given; an integer, 1 or more, is needed"),
        (["seed=-1"], "seed=-1 was given"),
        (["seed=9223372036854775808"], "records and their tables hold integers below 2^63"),
        (["sweep_dir=file/out"], "cannot be written"),
        (["-m", "method=glob(zz*)"], "method=glob(zz*) was given, and nothing has such a name"),
        (["-m", "method=gibbs", "method.scan=raster,snake"], "gibbs: scan='snake' was given"),
        (["-m", "model=grid", "model.rows=2,abc"], "model 'grid': rows = 'abc' was given; an integer is needed"),
        (["-m", "model=grid", "model.rows=4,-1"], "model 'grid': rows = -1 and cols = 10; both must be 1 or more"),
        (["model=grid", "model.kind=snake"], "model 'grid': kind = 'snake' was given; standard or frustrated or"),
        (["model=grid", "model.nosuch=3"], "no setting of model grid is named 'nosuch'; known: rows, cols"),
        (["model=grid", "+model.nosuch=3"], "model 'grid' has no parameter 'nosuch'; its parameters are rows, cols"),
        (["-m", "model=grid,ring", "++model.rows=3"], "model 'ring' has no parameter 'rows'"),
        (["method=pt", "method.houdayer=1"], "no setting of method pt is named 'houdayer' any more; more sweeps"),
        (["+foo=1"], "no setting or group is named 'foo'; known: model, method"),
        (["++foo.bar=1"], "no setting or group is named 'foo'"),
        (["+budget.foo=1"], "no setting in budget is named 'foo'; known: samples, seconds, burn_in"),
        (["+backend.foo=1"], "no setting of backend numba is named 'foo'; known: name, precision, device"),
        (["-m", "chains=16,0"], "chains=0 was given"),
        (["-m", "budget.burn_in=5,a"], "burn_in=a was given; a whole number of samples"),
        (["hydra.sweep.subdir=${hydra.job.num}"], "the cells of a sweep share its folder, sweep_dir=FOLDER"),
        (["class=5"], "class=5 was given; a text, in quotes where it could be a number or a list, or null is needed"),
        (
            ["-m", "launcher=joblib", "launcher.jobs=abc", "seed=0,1"],
            "launcher.jobs=abc was given; an integer is needed",
        ),
        (["backend.precision=float31"], "backend.precision=float31 was given; float32 and float64 are allowed"),
        (["model=grid", "model.rows=null"], "model 'grid': rows = None was given; an integer is needed"),
        (["own_cache=maybe"], "own_cache=maybe was given; true or false is needed"),
        (["family=nope"], "no benchmark family is named 'nope'; known: gate, inference"),
        (["left_out=[{methd: [pt]}]"], "left_out: no setting or group is named 'methd'; did you mean method"),
        (["left_out=[{model.rws: [3]}]", "model=grid"], "left_out: no setting of model grid is named 'rws'"),
        (["left_out=[{method: [gibs]}]"], "left_out={method: [gibs]} was given, and there is no method of that name"),
        (["left_out=null"], "left_out=null was given; a list of entries {NAME: [VALUE, …], …} is needed"),
        (["sweep_dir=[1]"], "sweep_dir=[1] was given; a text"),
        (["report=[a]"], "report=[a] was given; a text"),
        (["git.commit=abc"], "is the state of the code, which sweeps fill in"),
        (["~chains"], "~chains was given; a setting is not deleted but set, chains=VALUE"),
        (["~method.scan"], "~method.scan was given; a setting is not deleted but set, method.scan=VALUE"),
        (["=3"], "the override '=3' cannot be read; write NAME=VALUE"),
        (["backend.device=tpu"], "backend.device=tpu was given; cpu and gpu are allowed"),
        (["backend.kernel=nope"], "no distribution with kernels is named 'nope'; known: spinbench"),
        (["hydra.sweeper=3"], "hydra.sweeper=3 was given; which one it is, is said as hydra/sweeper=NAME"),
        (["chains=range(1,3,0)"], "chains=range(1,3,0) was given, whose values cannot be made"),
        (["chains=" + 5000 * "9"], "was given, whose values cannot be made"),
        # from Python 3.14 on a name that is too long is one that is not there
        (
            ["method=" + 5000 * "a"],
            "no method is named" if NEW else "a name cannot be used: [Errno 36] File name too long",
        ),
        (["model=file", "model.path=" + 5000 * "a"], "there is no such file" if NEW else "(File name too long)"),
        (["mixing=1e400"], "mixing=inf was given; a positive number of seconds"),
        (["model=file", "model.path=a.uai", "model.evidence=[3]"], "model.evidence=[3] was given; the path of a file"),
        (["budget=smoke", "budget.seconds=1e308"], "a positive number is needed, 1e+09 at most"),
        (["model@=grid"], "the override 'model@=grid' cannot be read; write NAME=VALUE"),
        (["model=grid", "model.rows='${foo}'"], "model.rows refers to ${foo}, but there is no foo; ${NAME} refers to"),
        (["chains='${foo:3}'"], "chains refers to ${foo:…}, but there is no function foo"),
        (["chains='${'"], "chains='${' was given, which cannot be used: chains holds what cannot be read"),
        (["budget=[1]"], "budget=[1] was given; budget is one of gate, long"),
        (["hydra.sweeper.params.seed=3"], "hydra.sweeper.params.seed=3 was given, which cannot be used"),
        (["left_out.x=3"], "left_out.x=3 was given, which cannot be used"),
        (["launcher.jobs=2"], "launcher.jobs was given without launcher=NAME, which chooses whose setting it is"),
        (["seed.x=3"], "seed.x was given, but seed is a value, 0, and has no settings"),
        (["+chains=3"], "+chains=VALUE was given, but chains is there already; chains=VALUE sets it"),
        (["--config-path", "/tmp"], "--config-path would replace spinbench's own configurations"),
        (["--config-dir", "nowhere"], "--config-dir nowhere was given; the folder of config groups is needed"),
        (["--resume", "nowhere"], "nowhere is not the folder of a sweep"),
        (["--resume", "nowhere", "method=gibbs"], "nowhere is not the folder of a sweep"),
        (["--resume"], "--resume needs the folder"),
        (["--resume="], "--resume needs the folder"),
        (["--resume", "model=grid"], "--resume needs the folder"),
    ],
)
def test_wrong_arguments_are_one_sentence_and_measure_nothing(
    overrides: list[str], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("file").touch()
    assert sweep(*overrides) == 2
    captured = capsys.readouterr()
    assert sentence in captured.err
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert not Path("multirun").exists()


def test_all_that_is_wrong_is_said_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    wrong = ["model.rows=2,abc", "model.nosuch=3", "method.scan=snake", "seeds=1", "+foo=1", "chains=0", "backend=nump"]
    assert sweep("-m", "model=grid", "method=gibbs", *wrong) == 2
    told = capsys.readouterr().err
    assert told.startswith("spinbench: 7 settings are wrong: (1) ")
    for name in ("rows = 'abc'", "'nosuch'", "scan='snake'", "'seeds'", "'foo'", "chains=0", "'nump'"):
        assert told.count(name) == 1
    assert not Path("multirun").exists()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("defaults: [{override /metod: gibbs}]", "'metod'" if hydra.__version__ < "1.4" else "for 'metod' exists"),
        ("method: {sacn: raster}", "no setting of method gibbs is named 'sacn'; did you mean scan?"),
        ("defaults: [{override /method: gibs}]", "no method is named 'gibs'; did you mean gibbs"),
        ("method: {scan: snake}", "gibbs: scan='snake' was given"),
    ],
)
def test_what_is_wrong_in_an_experiment_is_said(
    text: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment" / "own.yaml").write_text(f"# @package _global_\n{text}\n")
    assert sweep("--config-dir", str(tmp_path), "experiment=own", "model=grid") == 2
    assert sentence in capsys.readouterr().err
    assert not Path("multirun").exists()


def test_files_are_looked_for_before_anything_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    spinbench.save(generators.grid(2, 2), "a b.uai")
    cell = ["method=exact", "backend=numpy", "model=file", "sweep_dir=out"]
    assert sweep("-m", *cell, "model.path='a b.uai',no.uai", "model.evidence=no.evid") == 2
    told = capsys.readouterr().err
    assert "2 settings are wrong: (1) no.uai: there is no such file; (2) no.evid: there is no such file" in told
    assert not Path("out").exists()
    assert sweep("-m", *cell, "model.path='a b.uai',libdai/hoi1", "model.evidence=null") == 0
    assert len(stored("out")) == 2


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (["model.path=a${seed}.uai", "seed=1,3"], 0, "2 cells into"),
        (
            ["model.path=a${seed}.uai", "model.evidence=${model.path}.evid", "seed=1"],
            2,
            "a1.uai.evid: there is no such file",
        ),
        (["model.path=a${seed}.uai", "seed=2"], 2, "a2.uai: there is no such file"),
        (["model.path=a1.uai,a${nope}.uai"], 2, "there is no nope"),
        ([r"model.path=\${seed}.uai"], 2, "${seed}.uai: the name of a sweep's file holds no '${'; rename it"),
    ],
)
def test_names_of_files_refer_to_settings(
    words: list[str],
    status: int,
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a1.uai", "a3.uai", "${seed}.uai"):
        (tmp_path / name).write_text("MARKOV\n1\n2\n1\n1 0\n2\n1 3\n")
    given = ["model=file", "method=exact", "backend=numpy", "hydra.sweep.dir=out", *words]
    assert cli.main(["sweep", "-m", *given]) == status
    assert sentence in "".join(capsys.readouterr())


def test_hydra_shows_the_configuration(capsys: pytest.CaptureFixture[str]) -> None:
    assert sweep("method=dhmc", "--cfg", "job") == 0
    assert "leapfrog_steps: 5" in capsys.readouterr().out
    assert sweep("-m", "method=dhmc,gibbs", "--cfg", "job") == 0
    shown = capsys.readouterr()
    assert "leapfrog_steps: 5" in shown.out
    assert shown.err == "the first of 2 cells:\n"
    with pytest.raises(SystemExit, match=r"^0$"):
        sweep("--hydra-help")
    assert "hydra/launcher: " in capsys.readouterr().out


def test_groups_of_ones_own_and_hydras_names_for_folders(tmp_path: Path) -> None:
    """What is appended is measured where it has a place, as settings that one's own configuration does not name."""
    own = tmp_path / "it's own, here"
    for group, text in (("model/tiny", "name: grid\nrows: 2\n"), ("mine/few", "# @package _global_\nchains: 4\n")):
        (own / group).parent.mkdir(parents=True)
        (own / f"{group}.yaml").write_text(text)
    words = ["method=exact", "backend=numpy", "model=tiny", "+model.cols=2", "+mine=few", "+backend.simplify=false"]
    for flags, key in (([], "hydra.run.dir"), (["-m"], "hydra.sweep.dir")):
        assert sweep("--config-dir", str(own), *flags, *words, "++chains=3", f"{key}={key}") == 0
        (entry,) = stored(key)
        assert (entry["status"], entry["config"]["chains"]) == ("ok", 3)
        assert entry["config"]["model"] == {"name": "grid", "rows": 2, "cols": 2}
    assert not Path("multirun").exists()


def _git_checkout(folder: Path) -> None:
    folder.mkdir()
    (folder / "file").write_text(folder.name)
    for command in (
        ["init", "-q"],
        ["add", "file"],
        ["-c", "user.name=n", "-c", "user.email=e@example.org", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", "-C", str(folder), *command], check=True)
