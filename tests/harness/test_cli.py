"""The commands around sweeps: quick, and wrong input is one sentence."""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from spinbench import __version__, cli
from spinbench.cli import build_parser
from spinbench.command_help import COMMANDS, EXIT_STATUSES
from spinbench.inference import registry

# scipy itself is a few lines that load its parts on demand
HEAVY = (
    "jax",
    "numba",
    "asv",
    "hydra",
    "omegaconf",
    "scipy.sparse",
    "scipy.special",
    "scipy.linalg",
    "matplotlib",
    "msgspec",
    "torch",
    "cupy",
    "blackjax",
    "cotengra",
    "dwave",
    "numpyro",
    "openjij",
    "pgmax",
    "pgmpy",
    "pyagrum",
    "pyganak",
    "pygms",
    "thrml",
)


def printed_by(*words: str) -> str:
    """What a command prints; it must not load anything heavy."""
    program = (
        "import sys\n"
        "from spinbench.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        f"print('loaded:', [name for name in {HEAVY} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program, *words], capture_output=True, text=True, check=True)
    text, _, last = done.stdout.rpartition("loaded: ")
    assert last.strip() == "[]"
    return text


def test_list_loads_no_framework_and_tells_once_why_pairs_do_not_run() -> None:
    text = printed_by("list")
    for name in ("block_gibbs", "uai14/Grids_12", "native", "generic"):
        assert name in text
    for reason, names in (
        (" on jax: there is no kernel\n", {"wmb", "wmb_lower"}),
        (" on numba: numba does not provide jax and there is no kernel\n", {"mala", "nuts"}),
    ):
        (line,) = [line for line in text.splitlines() if reason in f"{line}\n"]
        assert names <= set(line.partition(" on ")[0].split(", "))


@pytest.mark.parametrize(("flag", "text"), [("--help", "sweep"), ("--version", f"spinbench {__version__}\n")])
def test_help_and_version_load_nothing(flag: str, text: str) -> None:
    assert text in printed_by(flag)


def test_bracket_answers_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["bracket", "libdai/hoi1", "--budget", "20 s"]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("libdai/hoi1: log Z = 5.53078089, exact (exact)\n  exact, in ")
    assert "best states" in said.err


def test_list_shows_a_broken_plugin_with_its_error(
    install_plugin: Callable[..., Path], capsys: pytest.CaptureFixture[str]
) -> None:
    install_plugin("spinbench_broken", "raise OSError('no licence')", {"backends": {"wonder": "Wonder"}})
    assert cli.main(["list"]) == 0
    shown = capsys.readouterr().out
    assert re.search("wonder.*failed on import: OSError: no licence", shown, re.DOTALL)
    assert f"gibbs on {registry.names('backends')[0]}" not in shown


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["report", "nowhere"], "nowhere holds no records"),
        (["record", "nowhere"], "asv.conf.json"),
        (["gate"], "asv.conf.json"),
        (["bracket", "nowhere"], "no file or model is named 'nowhere'"),
        (["bracket", "libdai/hoi1", "--budget", "10"], "a bracket takes a budget in seconds"),
        (["bracket", "libdai/hoi1", "--gap", "-1"], "gap=-1.0 was given"),
        (["gate", "--output", "gate.txt"], "the suffix has to be .md or .xml"),
        (["gate", "--pairs", "100"], "--pairs takes a budget in seconds of wall-clock, and 100 samples was given"),
        (["exact", ".", "--json"], "--output FILE.csv"),
        (["run", "libdai/hoi1", "--method", "gibs", "--json"], "gibs"),
    ],
)
def test_wrong_input_is_one_sentence(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(words) == 2
    printed, error = capsys.readouterr()
    assert sentence in error
    assert error.startswith("spinbench: ")
    assert (printed, error.count("\n")) == ("", 1)


@pytest.mark.parametrize(("flags", "variable"), [(["--debug"], ""), ([], "1")])
def test_debug_shows_where_an_error_comes_from(
    flags: list[str], variable: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINBENCH_DEBUG", variable)
    assert cli.main(["report", "nowhere", *flags]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_no_history_outside_a_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from spinbench.reporting import summary

    monkeypatch.delenv("SPINBENCH_HISTORY")
    monkeypatch.chdir(tmp_path)
    assert cli.main(["record", "anywhere"]) == 2
    assert "there is no history here" in capsys.readouterr().err
    (line,) = summary.enter_into_history([Path("anywhere")])
    assert line.startswith("not in asv's history: there is no history here")


def test_windows_is_refused_before_anything_else(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.platform", "win32")
    assert cli.main(["sweep", "-m", "experiment=tour"]) == cli.USER_ERROR
    said = capsys.readouterr().err
    assert "runs on Linux and macOS; on Windows, use it within WSL" in said
    assert said.count("\n") == 1


def test_unknown_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["swep"]) == 2
    assert capsys.readouterr().err == "spinbench: no command is named 'swep'; did you mean sweep or show?\n"


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"sweep"}))
def test_each_command_has_a_sentence_and_an_example_that_parses(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main([name, "--help"])
    text = " ".join(capsys.readouterr().out.split())
    sentence, example, failure = COMMANDS[name]
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert f"{sentence} " in text
    assert text.endswith(f"An example: spinbench {name} {example}".rstrip())
    assert not failure or f"The exit status is 1 if {failure}. " in text
    assert build_parser().parse_args([name, *shlex.split(example)]).command == name


@pytest.mark.parametrize("name", sorted({*COMMANDS} - {"sweep"}))
def test_each_option_has_a_sentence(name: str) -> None:
    (commands,) = (action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction))
    for action in commands.choices[name]._actions:
        if not isinstance(action, argparse._HelpAction | argparse._SubParsersAction):
            assert re.fullmatch(r"[A-Z].*[^.]\.", action.help or ""), action.dest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("run grid --bugdet 1s", "no option of spinbench run is named '--bugdet'; did you mean --budget or "),
        ("check --methd=gibbs", "no option of spinbench check is named '--methd'; did you mean --method"),
        ("--hlep", "no option is named '--hlep'; did you mean --help or -h?"),
        ("list all", "spinbench list has no use for 'all'; spinbench list --help says what it takes"),
        ("run gird", "no file or model is named 'gird'; did you mean grid?"),
        ("run grid --seed 1.5", "spinbench run: argument --seed: invalid int value: '1.5'; spinbench run --help says"),
        ("run grid --budget -3s", "spinbench run: argument --budget: expected one argument; "),
        ("peers insta pgmax", "no action of spinbench peers is named 'insta'; did you mean install?"),
        ("check --tier nativ", "no --tier of spinbench check is named 'nativ'; did you mean native?"),
        ("run", "spinbench run: the following arguments are required: MODEL; "),
        ("run my.ui", "no file is named 'my.ui'; spinbench list shows the models"),
    ],
)
def test_a_misspelt_option_or_model_gets_a_suggestion(
    words: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(words.split()) == 2
    assert capsys.readouterr().err.startswith(f"spinbench: {message}")


@pytest.mark.parametrize("words", [["--help"], []])
def test_exit_statuses_are_in_the_help(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        cli.main(words)
    text = capsys.readouterr().out
    assert all(f"  {status:<5} {meaning}\n" in text for status, meaning in EXIT_STATUSES.items())


@pytest.mark.parametrize("words", [["exact"], ["bracket"], ["advise"], ["mixing"], ["audit", "draws.npy"]])
def test_a_budget_without_a_unit_is_a_number_of_samples(
    words: list[str], capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    np.save("draws.npy", np.zeros((20, 16), dtype=np.int8))
    assert cli.main([*words, "libdai/hoi1", "--budget", "5"]) == 2
    error = capsys.readouterr().err
    assert "in seconds" in error
    assert "5 samples" in error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_is_a_sentence() -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "spinbench", "list"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (cli.USER_ERROR, "spinbench: [Errno 28] No space left on device\n")
