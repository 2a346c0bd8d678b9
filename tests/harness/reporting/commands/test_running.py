"""`spinbench run` and `advise`, `peers` without a network, `warm`, and what shells complete with `completion`."""

from __future__ import annotations

import csv
import io
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.console import Console

import spinbench
from spinbench import cli
from spinbench.errors import UnsupportedError
from spinbench.inference import registry, runner
from spinbench.inference.advising.advice import Entry
from spinbench.inference.advising.race import Race
from spinbench.measuring.records import read_records
from spinbench.reporting import listing
from spinbench.reporting.commands import advising, model_io, warm

METHOD = '''
from __future__ import annotations

from dataclasses import dataclass

from spinbench.methods.gibbs.gibbs import Gibbs


@dataclass(frozen=True)
class Mine(Gibbs):
    """Gibbs sampling under another name."""

    name = "mine"
'''

PLAIN = '''
from spinbench.api import Method


class Plain(Method):
    """Nothing that runs."""

    name = summary = "plain"
'''


FILES = {
    "divides.py": "1 / 0",
    "empty.py": "x = 1",
    "plain.py": PLAIN,
    "two.py": f"{METHOD}\nclass Other(Mine):\n    name = 'other'\n",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    factors = [((0, 1), rng.uniform(1, 3, size=(2, 3))), ((1, 2), rng.uniform(1, 3, size=(3, 2)))]
    spinbench.save(spinbench.FactorGraph.from_tables((2, 3, 2), factors, name="chain"), tmp_path / "chain.uai")
    return tmp_path / "chain.uai"


def run(*words: object) -> int:
    return cli.main(["run", *map(str, words)])


QUICK = ("--backend", "numpy", "--budget", 2000)


def test_an_answer_is_printed_with_its_verdict(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = spinbench.exact(spinbench.load(path), cache=False)
    assert run(path, "--backend", "numpy", "--budget", 400, "--chains", 8, "--set", "scan=random") == 0
    shown = capsys.readouterr().out
    result = spinbench.run(spinbench.load(path), "gibbs", "numpy", 400, chains=8, scan="random")
    assert shown.startswith("chain: ok\n")
    assert f"log Z = {result.log_z:.8g} ± {result.log_z_se:.2g} (estimate)" in shown
    assert "400 samples x 8 chains" in shown
    assert abs(result.log_z - exact.log_z) < 6 * result.log_z_se
    lines = [line.split() for line in shown.splitlines() if line.strip()[:1].isdigit()]
    assert [line[:2] for line in lines] == [[str(v), str(k)] for v, size in enumerate((2, 3, 2)) for k in range(size)]


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--backend", "numpy", "--budget", 4, "--chains", 1), 1, "chain: marginals "),
        ((*QUICK, "--until", "log_z_se<0.1"), 0, "log_z_se<0.1 was reached: "),
        ((*QUICK, "--until", "se<1e-6"), 1, "se<1e-06 was not reached: "),
    ],
    ids=["what is doubted", "a tolerance that is reached", "one that is not"],
)
def test_verdicts_and_tolerances_are_an_exit_status(
    path: Path, words: tuple[object, ...], status: int, sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(path, *words) == status
    assert sentence in capsys.readouterr().out


def test_evidence_beside_a_model_is_named_where_it_is_not_read(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    beside = path.with_name("chain.uai.evid")
    beside.write_text("1 0 1")
    assert run(path, *QUICK) == run(path, *QUICK, "--evidence", beside) == 0
    assert capsys.readouterr().err.count(f"{beside} is there and is not read") == 1


def numbers_of(path: Path) -> list[float]:
    """Of a .MAR file, behind its heading."""
    head, *numbers = path.read_text().split()
    assert head == "MAR"
    return [float(number) for number in numbers]


def flat(marginals: Any) -> list[float]:
    """As a .MAR file has them."""
    return [float(len(marginals)), *(x for p in marginals for x in (float(len(p)), *p))]


def test_answers_are_written_as_the_suffix_says(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    exact = spinbench.exact(spinbench.load(path), cache=False)
    mar, pr, table = (tmp_path / name for name in ("chain.uai.MAR", "chain.uai.PR", "chain.csv"))
    assert run(path, "--method", "exact", "--output", mar, "--output", pr, "--output", table) == 0
    assert capsys.readouterr().out.count("\nwritten: ") == 3
    assert numbers_of(mar) == flat([p.tolist() for p in exact.marginals])
    word, value = pr.read_text().split()
    assert (word, float(value) * np.log(10)) == ("PR", pytest.approx(exact.log_z, rel=1e-15))
    with table.open(newline="") as file:
        written = [float(row["marginal"]) for row in csv.DictReader(file)]
    assert written == np.concatenate(exact.marginals).tolist()
    (tmp_path / "chain.evid").write_text("1 1 2\n")
    assert run(path, "--evidence", tmp_path / "chain.evid", "--method", "exact", "--output", mar) == 0
    exact = spinbench.exact(spinbench.load(path, evidence={1: 2}), cache=False)
    assert numbers_of(mar)[:8] == [3.0, 2.0, *exact.marginals[0].tolist(), 3.0, 0.0, 0.0, 1.0], "what is observed, too"


def test_binary_marginals_have_both_states(tmp_path: Path) -> None:
    model = spinbench.PairwiseModel.from_spins(np.array([0.3, 0.0]), np.array([[0, 1]]), np.array([0.5]), name="pair")
    exact = spinbench.exact(model, cache=False)
    exact.save(tmp_path / "pair.MAR")
    assert numbers_of(tmp_path / "pair.MAR") == pytest.approx(flat([[1 - p, p] for p in exact.marginals]), abs=1e-15)


@pytest.mark.parametrize(("method", "said"), [("gibbs", "of 8 annealings ended in"), ("exact", "(exact)")])
def test_the_heaviest_state_is_printed_and_written(
    path: Path, tmp_path: Path, method: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = (path, "--target", "map", "--backend", "numpy", "--budget", 100, "--chains", 8, "--method", method)
    best = spinbench.exact(spinbench.load(path), cache=False)
    state = " ".join(map(str, best.best_state))
    assert run(*words) == run(*words, "--output", tmp_path / "chain.MPE") == 0
    shown = capsys.readouterr().out
    pieces = (f"heaviest state: log weight {best.best_log_weight:.8g}", said, f"states {state}")
    assert [piece for piece in pieces if piece not in shown] == []
    assert (tmp_path / "chain.MPE").read_text() == f"MPE\n3 {state}\n"


@pytest.mark.parametrize("name", ["my_method.py", "numpy.py"])
def test_a_method_from_a_file(path: Path, tmp_path: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / name).write_text(METHOD)
    assert run(path, "--method", tmp_path / name, "--backend", "numpy", "--budget", 400, "--set", "scan=raster") == 0
    assert "by mine on numpy" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--output", "x.txt"], "--output x.txt was given; the suffix has to be .MAR or .PR or .MPE or .csv"),
        (["--set", "scan"], "--set scan was given; NAME=VALUE is needed"),
        (["--set", "scan=raster", "--set", "scan=random"], "--set scan=random was given, and scan before; once"),
        (["--set", "scan=snake"], "snake"),
        (["--method", "gibs"], "gibs"),
        (["--backend", "nump"], "nump"),
        (["--budget", "soon"], "budget 'soon' is not understood"),
        (["--chains", "0"], "chains=0 was given"),
        (["--until", "soon"], "until='soon' was given; 'se<0.01' or 'log_z_se<0.1', say, is needed"),
        (["--precision", "float16"], "float16"),
        (["--method", "nowhere.py"], "method 'nowhere.py' was given; there is no such file"),
        (["--method", "mf", "--output", "no/folder.csv"], "there is no such folder"),
        (["--method", "divides.py"], "ZeroDivisionError: division by zero"),
        (["--method", "empty.py"], "defines none; one method is needed"),
        (["--method", "plain.py"], "Plain was given, which is no dataclass"),
        (["--method", "two.py"], "defines Mine, Other; one method is needed"),
    ],
)
def test_mistakes_are_one_sentence(
    path: Path,
    words: list[str],
    sentence: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        Path(name).write_text(text)
    assert run(path, "--backend", "numpy", "--budget", 10, *words) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert sentence in said
    assert said.count("\n") == 1


class Pip:
    """In place of `subprocess.run`: what was asked, and which modules are here from then on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, brings: tuple[str, ...] = (), status: int = 0) -> None:
        self.asked: list[list[str]] = []
        self._here: set[str] = set()
        self._brings, self._status = brings, status
        monkeypatch.setattr(subprocess, "run", self._run)
        lacking = lambda cls: [name for name in (*cls.requires, *cls.programs) if name not in self._here]  # noqa: E731
        monkeypatch.setattr(registry, "missing", lacking)

    def _run(self, command: list[str], *, check: bool) -> Any:
        self.asked.append(command)
        self._here |= set(self._brings)
        return SimpleNamespace(returncode=self._status)


def test_they_are_listed_with_what_they_need(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["peers"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in listing.peer_names())
    assert "spinbench peers install NAME" in shown
    assert "gibbs, exact" not in shown.partition("other libraries")[0], "no table of our own backends"


def test_packages_are_installed_alone_as_the_extra_has_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = Pip(monkeypatch, brings=("dwave.samplers", "dimod", "pyganak", "pgmax", "jax"))
    assert cli.main(["peers", "install", "dwave", "ganak", "pgmax"]) == 0
    begin = [sys.executable, "-P", "-m", "pip", "install"]
    assert pip.asked == [[*begin, "dwave-samplers>=1.8"], [*begin, "pyganak"], [*begin, "--no-deps", "pgmax"]]
    printed = capsys.readouterr().out
    assert f"running {sys.executable} -P -m pip install 'dwave-samplers>=1.8'" in printed
    assert "dwave: here\nganak: here\npgmax: here\n" in printed
    assert cli.main(["peers", "install", "dwave"]) == 0
    assert len(pip.asked) == 3, "it is here"


def test_every_package_is_one_of_the_extra() -> None:
    """`peers install` and `pip install 'spinbench[peers]'` install the same."""
    steps = {name: listing._install_step(listing._peer_class(name)) for name in listing.peer_names()}
    sentences = {"merlin", "libdai", "toulbar2"}
    assert {name for name, step in steps.items() if not step.startswith("pip install ")} == sentences
    assert {name for name, step in steps.items() if "spinbench" in step} == {"libdai"}, "whose source is ours"


@pytest.mark.parametrize("name", ["merlin", "libdai", "toulbar2"])
def test_the_steps_of_programs_are_told(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pip = Pip(monkeypatch)
    assert cli.main(["peers", "install", name]) == 1
    assert pip.asked == []
    assert f"; {registry.backend_class(name).install}" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ([], "peers install needs names: blackjax, "),
        (["dwav"], "no peer is named 'dwav'; did you mean dwave?"),
        (["thrml"], "pip ended with status 1"),
    ],
)
def test_what_is_no_peer_and_pip_that_fails(
    words: list[str], sentence: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Pip(monkeypatch, status=1)
    assert cli.main(["peers", "install", *words]) == 2
    assert sentence in capsys.readouterr().err


def test_each_method_runs_on_each_kind_of_model(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[tuple[str, str, int]] = []

    def run(model: Any, method: str, backend: str, samples: int, *, chains: int, precision: str) -> None:
        ran.append((method, model.content_hash, chains))
        if method == "mf":
            raise UnsupportedError("no such models")

    monkeypatch.setattr(runner, "run", run)
    assert cli.main(["warm", "--backend", "numpy", "--method", "gibbs", "--method", "mf"]) == 0
    assert "2 methods on numpy: " in capsys.readouterr().out
    assert len(ran) == len(set(ran)) == 2 * len(warm.MODELS) * len(warm.CHAINS)


def test_its_models_are_run_by_gibbs(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warm", "--backend", "numpy", "--method", "gibbs"]) == 0
    assert "1 methods on numpy: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--method", "gibs"], "did you mean gibbs"),
        (["--backend", "nump"], "no backend is named 'nump'"),
        (["--backend", "jax", "--method", "wmb", "--method", "gibbs"], "wmb has no kernel for jax"),
    ],
)
def test_what_is_refused(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["warm", *words]) == 2
    assert sentence in capsys.readouterr().err


ASK = {
    "bash": """source {script}; cd {folder}; COMP_WORDS=({words}); COMP_CWORD=$(({count} - 1)); COMP_LINE={line};
        COMP_POINT=${{#COMP_LINE}}; _spinbench; printf "%s\\n" "${{COMPREPLY[@]}}\"""",
    "fish": """source {script}; cd {folder}; complete -C {line} | cut -f 1""",
}


# What comes of each line in all shells.
LINES = {
    "re": "record report rerun",
    "run --un": "--until",
    "run --method gib": "gibbs",
    "run m.uai --backend num": "numba numpy numpyro",
    "init new --method gib": "",
    "run my": "my.uai",
}
AMONG = {"sweep --re": "--resume", "peers install dw": "dwave"}
JAX = " ".join(f"jax,{name}" for name in registry.names("backends"))
SETTINGS = "n c1 c2 kind scale seed rows cols coupling field"
OF = {
    "bash": {  # its words end at =, and its last word is what is completed
        "sweep -m experiment = to": "tour",
        "sweep method = gib": "gibbs",
        "sweep size =": "full smoke",
        "sweep method = gibbs model = uai14/G": "uai14/Grids_12",
        "sweep model = file model.path = my": "my.uai",
        "sweep method = gibbs,p": "gibbs,pt",
        "sweep -m method = gibbs,pt,zan": "gibbs,pt,zanella",
        "sweep backend = jax,": JAX,
        "sweep model = file model.path = a.uai,my": "a.uai,my.uai",
        "sweep model = grid model.r": "model.rows=",
        "sweep model = ring,torus model.": " ".join(f"model.{name}=" for name in SETTINGS.split()),
        "sweep method.sc": "method.scan=",  # gibbs is the default
        "sweep method = dhmc method.sc": "",
        "sweep budget.sa": "budget.samples=",
        "sweep nosuch.x": "",
    },
    "fish": {
        "sweep -m experiment=to": "experiment=tour",
        "sweep method=gib": "method=gibbs",
        "sweep method=gibbs model=uai14/G": "model=uai14/Grids_12",
    },
}


def completed(script: Path, shell: str, words: list[str]) -> list[str]:
    """What a shell makes of a line whose last word has been begun."""
    line = shlex.quote(" ".join(words))
    asked = ASK[shell].format(script=script, folder=script.parent, words=shlex.join(words), count=len(words), line=line)
    done = subprocess.run([shell, "-c", asked], capture_output=True, text=True, check=True)
    return sorted(done.stdout.split())


@pytest.mark.parametrize("shell", ["bash", "fish"])
def test_a_shell_completes_commands_options_names_and_files(
    tmp_path: Path, shell: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    assert cli.main(["completion", shell]) == 0
    (tmp_path / "script").write_text(capsys.readouterr().out)
    (tmp_path / "my.uai").touch()

    def tab(*words: str) -> list[str]:
        return completed(tmp_path / "script", shell, ["spinbench", *words])

    for line, expected in {**LINES, **OF[shell]}.items():
        assert tab(*line.split()) == sorted(expected.split()), line
    for line, one in AMONG.items():
        assert one in tab(*line.split()), line


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_script_names_commands_and_methods(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", shell]) == 0
    script = capsys.readouterr().out
    named = ("bracket", "--until", "experiment=tour", "model=grid")
    everything = (*named, *registry.names("methods"), *registry.names("backends"))
    assert [name for name in everything if name not in script] == []
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_a_shell_that_is_not_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["completion", "cmd"]) == 2
    message = "spinbench: no shell of spinbench completion is named 'cmd'; known: bash, zsh, fish\n"
    assert capsys.readouterr().err == message


@pytest.fixture
def triple(tmp_path: Path) -> Path:
    model = spinbench.FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")
    spinbench.save(model, tmp_path / "a triple.uai")
    return tmp_path / "a triple.uai"


def test_an_exact_answer(triple: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", str(triple), "--budget", "20s"]) == 0
    shown = capsys.readouterr().out
    pieces = ("resolved: the answer is exact", f"log Z = {np.log(36):.8g} (exact)", "spinbench.exact(model)")
    assert [piece for piece in pieces if piece not in shown] == []


def test_a_race_is_a_table_and_alone_it_is_unresolved(
    triple: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    monkeypatch.chdir(triple.parent)
    words = ["advise", str(triple), "--budget", "2s", "--cpu", "--candidates", "gibbs.numpy,block_gibbs.numpy"]
    assert cli.main([*words, "--records", "kept"]) == 1
    shown = capsys.readouterr().out
    assert shown.startswith("unresolved: ")
    assert "gibbs.numpy" in shown.split("\n")[0]
    pieces = (
        "to try next: a budget of 8 s",
        "block_gibbs takes pairwise models",
        f"again: spinbench sweep model=file 'model.path='\"'\"'{triple}",
        "burn_in=",
        "2 records: kept not in asv's history: there is no history here",
    )
    assert [piece for piece in pieces if piece not in " ".join(shown.split())] == []
    kept = {record.axes.method: record for record in read_records(Path("kept"))}
    assert {method: record.status for method, record in kept.items()} == {"gibbs": "ok", "block_gibbs": "skipped"}
    assert "takes pairwise models" in str(kept["block_gibbs"].error)
    assert kept["gibbs"]["race"]["fate"] == "won"


def test_budgets_of_the_cpu_are_said_and_recorded(
    triple: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SPINBENCH_HISTORY", raising=False)
    monkeypatch.chdir(triple.parent)
    words = ["advise", str(triple), "--budget", "1s", "--cpu", "--candidates", "gibbs.numpy"]
    assert cli.main([*words, "--records", "kept"]) == 1
    assert " of 1 s of the CPU" in capsys.readouterr().out
    (record,) = read_records(Path("kept"))
    assert record["config"]["budget"]["cpu"] is True
    assert cli.main(["run", str(triple), "--method", "gibbs", "--backend", "numpy", "--budget", "0.1s", "--cpu"]) < 2
    assert cli.main(["bracket", str(triple), "--budget", "2s", "--cpu"]) == 0
    assert "exact" in capsys.readouterr().out
    assert cli.main(["run", str(triple), "--budget", "100", "--cpu"]) == 2
    assert "budget '100 cpu' is not understood" in capsys.readouterr().err


def test_an_interruption_leaves_the_best_answer_so_far(
    triple: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(self: Race, now: str) -> None:
        if self.views():
            raise KeyboardInterrupt

    monkeypatch.setattr(Race, "_tell", interrupt)
    assert cli.main(["advise", str(triple), "--budget", "1min", "--candidates", "gibbs.numpy,pt.numpy"]) == 130
    shown = " ".join(capsys.readouterr().out.split())
    assert "; interrupted (" in shown
    assert "in Python: spinbench.run(model, " in shown


def test_what_happens_is_told_with_the_best_answer_so_far(triple: Path) -> None:
    told: list[str] = []
    spinbench.advise(
        spinbench.load(triple),
        "2 s cpu",
        "log_z",
        ["gibbs.numpy", "pt.numpy"],
        watch=lambda entrants, now: told.append(now),
    )
    assert re.search(r"; best so far: log Z = 3\.\d+ ± [\d.e-]+ \((gibbs|pt)\.numpy", told[-1])


def test_a_shipped_model_keeps_its_name(triple: Path) -> None:
    assert model_io.open_model("uai14/CSP_12", None)[1] == {"model": "uai14/CSP_12"}
    model, source = model_io.open_model(str(triple), None)
    assert (model.num_variables, source) == (3, {"model": "file", "model.path": str(triple)})


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nothing.uai"], "nothing.uai"),
        (["uai14/CSP_12", "--budget", "soon"], "budget 'soon' is not understood"),
        (["uai14/CSP_12", "--target", "modes"], "marginals and log_z are allowed"),
        (["uai14/CSP_12", "--candidates", "gibs"], "did you mean gibbs"),
        (["uai14/CSP_12", "--records", __file__], f"the folder {__file__} cannot be written"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["advise", *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


LATE = "the budget was over before its turn"


def entry(name: str, runs: int, seconds: float, status: str, error: float | None, fate: str) -> Entry:
    return Entry(name, "", runs, seconds, 0, status, error, error, fate, "", "", {}, 0, None, None, False)


RACE = [
    entry("wmb.numba", 1, 2.94, "marginals too short, log Z unresolved", 3.7e30, "fell behind"),
    entry("blocks(size=4096).numba", 2, 2.78, "ok", 0.122, "won"),
    entry("pt.numba", 0, 1.2, "", None, "not ready after 1.2 s"),
    entry("smc.numba", 0, 0.0, "", None, LATE),
    entry("swendsen_wang.numba", 0, 0.0, "", None, LATE),
]


def test_numbers_and_names_stay_whole_in_80_columns_and_who_had_no_turn_is_named_once() -> None:
    output = io.StringIO()
    Console(file=output, width=80).print(advising._race_table(RACE))
    lines = output.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    words = [" ".join(line.split()) for line in lines]
    assert "blocks(size=4096).numba 2 2.78 0.122 0.122 won" in words
    for beginning in ("wmb.numba 1 2.94 3.7e+30 3.7e+30 ", "pt.numba 0 1.20 "):
        assert any(line.startswith(beginning) for line in words)
    assert "smc" not in output.getvalue()
    assert advising._describe_idle_candidates(RACE) == [f"smc.numba, swendsen_wang.numba: {LATE}"]
