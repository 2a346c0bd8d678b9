"""`spinbench peers` without a network, and what `spinbench warm` runs and says."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from spinbench import cli
from spinbench.errors import UnsupportedError
from spinbench.inference import registry, runner
from spinbench.reporting.commands import listing, warm


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
