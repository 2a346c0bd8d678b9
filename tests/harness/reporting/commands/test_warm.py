"""`spinbench warm`: what it runs, and what it says."""

from __future__ import annotations

from typing import Any

import pytest

from spinbench import cli
from spinbench.errors import UnsupportedError
from spinbench.inference import runner
from spinbench.reporting.commands import warm


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
