"""Faults planted in a correct kernel that show late, rarely or far out: the suite finds each, and names the cause."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from spinbench.api import Array, Key
from spinbench.backends.numpy import NumpyBackend
from spinbench.testing import CheckError, method_checks
from spinbench.testing.backends.randomness import check_uniform_below_one

POINTS = {"methods": {"flawed": "Flawed"}, "kernels": {"flawed.numpy": "FlawedKernel"}}
FOLDER = "the working directory is not what it was before"
SUM = "of a 1-of-K group whose sum is not 1"
ENDS = "a random number that is 0, or is rounded to 1, takes the wrong branch"
FROZEN = "adaptation is not frozen"
FAULTS = [
    ("errors times 1.4", "standard errors, 111 pairs", r"standard errors are about 1\..* times too large"),
    ("errors times 0.7", "standard errors, 111 pairs", r"standard errors are about 1\..* times too small"),
    ("errors of several states times 1.4", "standard errors, 88 variables of several states", "times too large"),
    ("errors of several states times 0.7", "standard errors, 88 variables of several states", "times too small"),
    ("errors of large models times 0.7", "standard errors, 111 pairs", "times too small"),
    ("the last chain is left out", "order of chains", "some chain does not count"),
    ("the first chain counts twice", "order of chains", "or counts twice"),
    ("the last of 16 chains is left out", "order of chains", "some chain does not count"),
    ("an exception late", "late steps", "after 512 steps advance raises IndexError"),
    ("memory leaks late", "late steps", "something of each step is kept"),
    ("no numbers late", "late steps", "after 1152 steps: flawed gave marginals: nan"),
    ("half late", "late steps", r"after 1152 steps: marginals \[0, 1, 2, 3, 4, 5\] are off by"),
    ("plan changes the folder", "plan", FOLDER),
    ("estimate changes the folder", "start and tables stay", FOLDER),
    ("estimate changes the environment", "start and tables stay", "the environment is not what it was before"),
    ("a step changes the folder", "independence of batching", FOLDER),
    ("groups are ignored", "accuracy, three states", SUM),
    ("groups beyond the first are ignored", "accuracy, three states", SUM),
    ("groups of more than three are ignored", "accuracy, one to nine states", SUM),
    ("states in reverse order", "kept states", "they are in reverse order"),
    ("starts of several states in reverse order", "stationarity, three states", "do not begin in the states of their"),
    ("uniforms reach 1", "random numbers at the ends", ENDS),
    ("uniforms are rounded to 1", "random numbers at the ends", ENDS),
    ("uniforms reach 1 in float32", "random numbers at the ends, float32", ENDS),
    ("a pace in an array goes on", "frozen settings", FROZEN),
    ("paces of chains go on", "stationarity, dense", "from exact draws"),
    ("a pace of the kernel goes on", "hidden state", "it keeps state between calls"),
    ("no fields beyond 1500 variables", "accuracy, 4000 variables", "tables may be cut"),
    ("no fields of variables beyond 1500", "accuracy, 4000 variables", "tables may be cut"),
    ("warmer beyond 4096 chains", "stationarity, many chains", "of 65536 chains are off"),
    ("chains beyond 4096 are warmer", "4099 chains", "4096 to 4098 have another law"),
]


@pytest.fixture(autouse=True)
def plugin(install_plugin: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment stays as it is, whatever a fault does."""
    monkeypatch.delenv("FLAWED", raising=False)
    install_plugin("planted_faults", Path(__file__).with_name("planted_faults.py").read_text(), POINTS)
    yield
    os.environ.pop("FLAWED", None)


@pytest.mark.parametrize(("fault", "name", "message"), FAULTS)
def test_planted_faults_are_found(fault: str, name: str, message: str) -> None:
    (check,) = [check for check in method_checks("flawed", "numpy", fault=fault) if check.name == name]
    with pytest.raises(CheckError, match=message):
        check()


@pytest.mark.parametrize("name", sorted({name for _, name, _ in FAULTS}))
def test_without_a_fault_it_passes(name: str) -> None:
    (check,) = [check for check in method_checks("flawed", "numpy") if check.name == name]
    check()


class Rounding(NumpyBackend):
    """Rounds uniform numbers of 53 bits to floats of 24."""

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        return NumpyBackend().uniform(key, shape).astype("float32")


def test_uniform_numbers_of_a_backend_that_are_rounded_to_1_are_found() -> None:
    with pytest.raises(CheckError, match=r"draws one is 1\.0"):
        check_uniform_below_one(Rounding(precision="float32"))
    check_uniform_below_one(NumpyBackend(precision="float32"))
