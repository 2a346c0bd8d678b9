"""Faults planted in a correct kernel that show late, rarely or far out: the suite finds each, and names the cause."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from spinbench.api import Array, Key
from spinbench.backends.numpy import NumpyBackend
from spinbench.testing import CheckError, method_checks
from spinbench.testing.backends.arrays import check_transfer
from spinbench.testing.backends.randomness import check_distribution, check_uniform_below_one

POINTS = {
    "methods": {"flawed": "Flawed", "weighed": "Weighed", "averaged": "Averaged", "grouped": "Grouped"},
    "kernels": {"flawed.numpy": "FlawedKernel"},
}
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
    ("paces of chains go on", "late steps", "a number of each chain that goes on to change: does it adapt after"),
    ("burn-in is warmer", "burn-in", "burn-in does not move them, or to another law"),
    ("a pace of the kernel goes on", "hidden state", "it keeps state between calls"),
    ("no fields beyond 1500 variables", "accuracy, 4000 variables", "tables may be cut"),
    ("no fields of variables beyond 1500", "accuracy, 4000 variables", "tables may be cut"),
    ("warmer beyond 4096 chains", "stationarity, many chains", "of 65536 chains are off"),
    ("chains beyond 4096 are warmer", "4099 chains", "4096 to 4098 have another law"),
    ("chains beyond 4096 stand still", "stationarity, many chains", "some from 4096 on stand still"),
    ("numbers shared by chains 4096 apart", "stationarity, many chains", r"chains c and c \+ 4096 are correlated"),
    (
        "the first start in reverse order",
        "stationarity, three states",
        r"variables \[0, 2\] have states of another law",
    ),
]
# Of methods that are built in but for a fault.
OTHER_FAULTS = [
    ("weighed", "errors of log Z times 0.7", "standard errors, log Z", r"about 1\.. times too small"),
    ("weighed", "errors of log Z times 1.4", "standard errors, log Z", r"about 1\.. times too large"),
    ("weighed", "a bound of two errors", "calibration, dense", "the certified upper bound on log Z is .* too low"),
    ("averaged", "no constant", "constant of the model", "the model's log_constant is not counted once"),
    ("grouped", "groups are ignored", "accuracy, three states", "too high; .* as 1-of-K groups: does it obey them"),
    (
        "averaged",
        "soft zeros",
        "accuracy, zeros as they are",
        "no weight have probabilities .* are hard zeros made soft",
    ),
    ("averaged", "float32 in float64", "last digits", "float64 is computed in float32"),
]


@pytest.fixture(autouse=True)
def plugin(install_plugin: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment stays as it is, whatever a fault does."""
    monkeypatch.delenv("FLAWED", raising=False)
    install_plugin("planted_faults", Path(__file__).with_name("planted_faults.py").read_text(), POINTS)
    yield
    os.environ.pop("FLAWED", None)


ALL_FAULTS = [*(("flawed", *row) for row in FAULTS), *OTHER_FAULTS]


@pytest.mark.parametrize(("method", "fault", "name", "message"), ALL_FAULTS)
def test_planted_faults_are_found(method: str, fault: str, name: str, message: str) -> None:
    (check,) = [check for check in method_checks(method, "numpy", fault=fault) if check.name == name]
    with pytest.raises(CheckError, match=message):
        check()


@pytest.mark.parametrize(("method", "name"), sorted({(method, name) for method, _, name, _ in ALL_FAULTS}))
def test_without_a_fault_it_passes(method: str, name: str) -> None:
    (check,) = [check for check in method_checks(method, "numpy") if check.name == name]
    check()


class Single(NumpyBackend):
    """Draws floats of 24 bits, or moves such, whatever the precision."""

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        return super().uniform(key, shape).astype("float32").astype(self.real)

    def to_device(self, array: np.ndarray) -> Array:
        return super().to_device(array.astype("float32") if array.dtype.kind == "f" else array)


def test_floats_of_24_bits_in_double_precision_are_found() -> None:
    with pytest.raises(CheckError, match=r"numbers of uniform in float64 are those of float32"):
        check_distribution(Single(), "uniform")
    with pytest.raises(CheckError, match=r"\[0\.33333.*\] comes back as \[0\.33333"):
        check_transfer(Single())


class Rounding(NumpyBackend):
    """Rounds uniform numbers of 53 bits to floats of 24."""

    def uniform(self, key: Key, shape: tuple[int, ...]) -> Array:
        return NumpyBackend().uniform(key, shape).astype("float32")


def test_uniform_numbers_of_a_backend_that_are_rounded_to_1_are_found() -> None:
    with pytest.raises(CheckError, match=r"draws one is 1\.0"):
        check_uniform_below_one(Rounding(precision="float32"))
    check_uniform_below_one(NumpyBackend(precision="float32"))
