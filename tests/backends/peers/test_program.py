"""Programs of others, by a small one that the test writes: it enumerates the states of a UAI file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import InvalidResultError, SpinbenchError, UnsupportedError
from spinbench.models import FactorGraph, generators

PROGRAM = """
import itertools, math, sys, time
mode, model, mar, pr = sys.argv[1:]
if mode == "slow":
    time.sleep(30)
if mode == "failing":
    sys.exit("no memory left")
words = iter(open(model).read().split())
assert next(words) == "MARKOV"
sizes = [int(next(words)) for _ in range(int(next(words)))]
scopes = [[int(next(words)) for _ in range(int(next(words)))] for _ in range(int(next(words)))]
tables = [[float(next(words)) for _ in range(int(next(words)))] for _ in scopes]
sums = [[0.0] * k for k in sizes]
for state in itertools.product(*map(range, sizes)):
    weight = 1.0
    for scope, table in zip(scopes, tables):
        place = 0
        for v in scope:
            place = place * sizes[v] + state[v]
        weight *= table[place]
    for v, k in enumerate(state):
        sums[v][k] += weight
Z = sum(sums[0])
found = " ".join(f"{len(p)} " + " ".join(repr(q / Z) for q in p) for p in sums[: 1 if mode == "short" else None])
open(mar, "w").write(f"MAR\\n{len(sizes)} {found}\\n")
open(pr, "w").write(f"PR\\n{math.log10(Z)!r}\\n")
"""
PLUGIN = """
from spinbench.backends.peers.library import LibraryBackend
from spinbench.backends.peers.program import ProgramAnswer

class Outside(LibraryBackend):
    name = "outside"

class OutsideExact(ProgramAnswer):
    command = ("PYTHON", "FILE", "good", "{model}", "{mar}", "{pr}")
"""
POINTS = {"backends": {"outside": "Outside"}, "kernels": {"exact.outside": "OutsideExact"}}


@pytest.fixture
def kernel(install_plugin: Any, tmp_path: Path) -> Any:
    (tmp_path / "enumerate_states.py").write_text(PROGRAM)
    named = PLUGIN.replace("PYTHON", sys.executable).replace("FILE", str(tmp_path / "enumerate_states.py"))
    install_plugin("outsideplugin", named, POINTS)
    import outsideplugin  # type: ignore[import-not-found]

    return outsideplugin.OutsideExact


def test_a_program_answers_in_the_competitions_files(kernel: Any) -> None:
    tables = [((0, 1), np.arange(6.0).reshape(2, 3)), ((1, 2), np.ones((3, 2)) - np.eye(3, 2)), ((2, 0), np.eye(2))]
    for model in (generators.grid(2, 3, seed=1), FactorGraph.from_log_tables([2, 3, 2], tables, log_constant=0.5)):
        found, exact = spinbench.run(model, "exact", "outside", simplify=False), spinbench.exact(model)
        for mine, other in zip(found.marginals, exact.marginals, strict=True):
            np.testing.assert_allclose(mine, other, atol=1e-9)
        assert found.log_z == pytest.approx(exact.log_z, abs=1e-9)


@pytest.mark.parametrize(
    ("mode", "seconds", "error", "sentence"),
    [
        ("slow", 1.0, SpinbenchError, "outside took longer than the 1 s of its time limit"),
        ("failing", 60.0, SpinbenchError, "outside ended with status 1: no memory left"),
        ("short", 60.0, InvalidResultError, "outside wrote 4 numbers into its MAR file, not 13"),
    ],
)
def test_what_goes_wrong_outside_is_one_sentence(
    kernel: Any, mode: str, seconds: float, error: type[Exception], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "seconds", seconds)
    monkeypatch.setattr(kernel, "command", tuple(mode if part == "good" else part for part in kernel.command))
    with pytest.raises(error) as caught:
        spinbench.run(generators.grid(2, 2), "exact", "outside")
    assert str(caught.value) == sentence


def test_a_program_that_is_not_there_is_named(kernel: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "command", ("no_such_program", "{model}", "{mar}"))
    with pytest.raises(UnsupportedError, match="outside needs the program no_such_program, not found here"):
        spinbench.run(generators.grid(2, 2), "exact", "outside")
