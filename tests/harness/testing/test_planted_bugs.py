"""Bugs planted in correct kernels and backends: the suite finds each, and says what is wrong."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest

from spinbench.api import Array, Key
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import SpinbenchError
from spinbench.testing import Check, CheckError, checks, method_checks
from spinbench.testing.backends.arrays import check_transfer
from spinbench.testing.backends.randomness import check_distribution, check_uniform_below_one
from spinbench.testing.command import main

PLUGINS = {
    "planted_kernel": {"methods": {"planted": "Planted"}, "kernels": {"planted.numpy": "PlantedKernel"}},
    "planted_forms": {"methods": {"formed": "Formed"}, "kernels": {"formed.numpy": "FormedKernel"}},
    "planted_programs": {
        "methods": {"placed": "Placed", "rekeyed": "Rekeyed", "tempered": "Tempered", "unburnt": "Unburnt"}
    },
    "planted_indices": {"methods": {"sparse": "Sparse"}, "kernels": {"sparse.numpy": "SparseKernel"}},
    "planted_states": {"methods": {"kept": "Kept"}, "kernels": {"kept.numpy": "KeptKernel"}},
    "planted_faults": {
        "methods": {"flawed": "Flawed", "weighed": "Weighed", "averaged": "Averaged", "grouped": "Grouped"},
        "kernels": {"flawed.numpy": "FlawedKernel"},
    },
}
BUGS = [
    # chains
    ("chains beyond 16 stand still", "17 chains", "of 17 chains, 16 stand still"),
    ("chains beyond 16 stand still", "100 chains", "of 100 chains, 96 to 99 stand still"),
    ("one chain stands still", "1 chain", "of 1 chains, 0 stand still"),
    ("the last of three stands still", "3 chains", "of 3 chains, 2 stand still"),
    ("the last chain is warmer", "5 chains", "of 5 chains, 4 have another law"),
    ("numbers shared by chains", "independence of chains", "of 2048 chains that start alike, 1 differ"),
    ("numbers shared by chains at one variable", "accuracy, dense", "marginals .* are off by"),
    ("numbers shared by chains at one variable", "independence of chains", "all chains share some random numbers"),
    ("numbers shared by neighbours", "independence of chains", "neighbouring chains are correlated"),
    ("chains beyond 4096 stand still", "4099 chains", "of 4099 chains, 4096 to 4098 stand still"),
    ("mirrored chains", "independence of chains", r"chains c and c \+ 1024 are correlated"),
    ("numbers shared by chains 300 apart", "independence of chains", r"chains c and c \+ 300 are correlated"),
    ("chains of the next seed", "independence of chains", r"chain c \+ 1 and chain c of the next seed are correlated"),
    # sizes
    ("variables beyond 64 stand still", "accuracy, 101 variables", "of 101 variables, 64 to 100 stand still"),
    ("variables beyond 64 without a field", "accuracy, 80 variables, dense", "of 80 variables, marginals .* are wrong"),
    (
        "couplings beyond 8 neighbours count twice",
        "accuracy, eleven neighbours",
        "a law in which couplings count twice",
    ),
    ("neighbours beyond 8 are forgotten", "accuracy, eleven neighbours", "marginals .* are off by"),
    ("neighbours beyond 255 are forgotten", "accuracy, 1001 variables", "of 1001 variables, marginals .* are wrong"),
    # seeds
    ("ignores the seed", "determinism", "two seeds give the same statistics"),
    ("seed of 32 bits", "seeds", "seeds 0 and 4294967296 give the same draws"),
    ("seed of half", "seeds", "seeds 0 and 1 give the same draws"),
    ("seed of six digits", "seeds", "seeds 1 and 1000001 give the same draws"),
    # random numbers
    ("numbers repeat after 1000 steps", "random numbers in time", "after 1000 steps .* the random numbers repeat"),
    ("chains end after 1000 steps", "random numbers in time", r"of 17 chains, \[0, 1, .* stand still after 10"),
    ("numbers shared by variables 64 apart", "random numbers of variables", "correlated in one step .* share random"),
    (
        "numbers of the next variable a step later",
        "random numbers of variables",
        "though nothing couples them .* they share random",
    ),
    # burn-in
    ("burn-in does nothing", "burn-in", "burn-in does not move them"),
    ("burn-in of every tenth step", "burn-in", "burn-in does not move them"),
    ("burn-in ends where it began", "burn-in", "burn-in does not move them"),
    # state between calls
    ("numbers of the call", "hidden state", "it keeps state between calls"),
    ("one generator", "hidden state", "it keeps state between calls"),
    ("keeps its state", "hidden state", "it keeps state between calls"),
    ("looks count as steps", "hidden state", "after a look the chains give other draws"),
    ("numbers of the batch", "independence of batching", "in several batches give different p"),
    ("forgets the last step", "independence of batching", "in several batches give different p"),
    ("forgets what 64 leave over", "independence of batching", "509 steps at once and in several batches"),
    ("salted seed", "another process", "other numbers in another process"),
    ("forgets what was observed", "accuracy, evidence", "1-of-K group whose sum is not 1"),
    # precision
    ("float32 in float64", "last digits", "float32 is computed in float64"),
    ("float64 in float32", "last digits", "float64 is computed in float32"),
    # errors
    ("no errors", "accuracy, dense", "without standard errors"),
    ("errors a third too small", "calibration, dense", "times too small"),
    ("errors 30 times too large", "calibration, sparse", "times too large"),
    ("errors 30 times too large on large models", "accuracy, 101 variables", "times too large"),
    ("no errors of one chain", "calibration, dense", "standard errors of one chain are too small"),
    ("no number of one sample", "1 chain", "one step of 1 chains"),
    ("doubts everything", "accuracy, zero couplings", "marginals of independent variables are doubted"),
    ("effective samples times 10", "calibration, dense", "effective sample sizes are .* too large"),
    ("effective samples of one chain are its steps", "R-hat", "effective sample size of one chain, half of its steps"),
    ("effective samples a hundredth", "effective sample sizes", "times too small"),
    ("R-hat is 1", "R-hat", "R-hat of 16 chains, half of them in one mode and half in another, is 1"),
    ("R-hat of one chain is 1", "R-hat", "R-hat of one chain that is in one mode in its first half"),
    # bounds
    ("lower bound above on large models", "accuracy, 101 variables", "the lower bound on log Z is .* too high"),
    ("certified bound above", "accuracy, dense", "the certified lower bound on log Z is .* too high"),
    ("probable bound above", "calibration, dense", "64 of 64 probable lower bounds on log Z are wrong"),
    ("lower bound above", "accuracy, dense", "the lower bound on log Z is .* too high"),
    ("upper bound ignores couplings", "accuracy, sparse", "the upper bound on log Z is .* too low"),
    ("upper bound of two states", "accuracy, three states", "the upper bound on log Z is .* too low"),
    # several states
    ("no errors of several states", "accuracy, three states", "without standard errors"),
    ("errors of several states 30 times too large", "calibration, three states", "times too large"),
    ("errors of several states halved", "calibration, three states", "times too small"),
    ("uniform several states", "accuracy, three states", "the same for all states of a variable of more than two"),
    ("uniform several states, wide", "calibration, three states", "times too large"),
    ("states in another order", "accuracy, one to nine states", "each variable's states in reverse order"),
    ("the first state twice", "accuracy, one to nine states", "a law in which state 0 counts twice"),
    ("states beyond 8 never happen", "accuracy, one to nine states", "states from 8 on never happen"),
    (
        "the first state twice beyond 128",
        "accuracy, 88 variables of several states",
        "of 506 variables' states, marginals .* are wrong",
    ),
    ("the first state twice in float32", "accuracy, three states, float32", "state 0 counts twice"),
    ("the first state twice backwards", "order=backward", "state 0 counts twice"),
    # joint laws
    ("pairs are products", "accuracy, dense", "pairs .* are off by"),
    ("pairs backwards", "accuracy, dense", "pairs in another order than the edges"),
    ("keeps plans by their size", "plan", "plan gives the tables of .* for other fields, too"),
    ("draws of any law", "accuracy, dense", "draws have another law"),
    # settings
    ("forgets a variable backwards", "order=backward", r"variables \[0\] stand still"),
    ("second sweeps are warmer", "sweeps=2", "from exact draws"),
    ("sweeps modulo 128", "sweeps up to 301", "sweeps=259 gives what sweeps=3 does: it is taken modulo 256"),
    ("a hundred sweeps at most", "sweeps up to 301", "sweeps counts at 40 and no more at 300"),
    ("returns are warmer", "returns=1", "with order=backward: after 8 steps from exact draws"),
    # laws
    ("all at once", "accuracy, dense", "a law in which all variables are drawn at once"),
    ("couplings of the other sign", "accuracy, dense", "a law in which couplings have the other sign"),
    ("no fields", "accuracy, sparse", "a law in which fields do not count"),
    ("one field is lost", "accuracy, sparse", "a law in which the field of variable 3 does not count"),
    ("one coupling is lost", "accuracy, sparse", "a law in which the coupling of variables 0 and 1 does not count"),
    ("warmer", "accuracy, dense", r"a law in which the inverse temperature is about 0\.7"),
    ("warmer by a fiftieth", "stationarity, many chains", "marginals .* of 65536 chains are off by"),
    ("reports zeros", "accuracy, sparse", r"they are p\(s = 0\) in place of p\(s = 1\)"),
    ("what is rare never happens", "accuracy, sparse", "marginals .* are off by"),
    ("fields cut at 8", "accuracy, zero couplings", r"marginals \[4, 5\] are off by"),
    ("couplings cut at 8", "accuracy, strong couplings", "marginals .* are off by"),
    # arrays of others, and adaptation
    ("one buffer", "statistics", "overwritten by the batches that follow"),
    ("takes the memory as it lies", "start and tables stay", "Fortran order"),
    ("writes into the start", "start and tables stay", "the start that was given is written into"),
    ("writes into the tables", "start and tables stay", "the tables of plan are written into"),
    ("adapts after the end", "frozen settings", "adaptation is not frozen"),
]


# Bugs of one form of a kernel alone.
FORMS = [
    ("chains beyond 16 stand still in float32", "17 chains, float32", "of 17 chains, 16 stand still"),
    ("chains beyond 16 stand still of several states", "17 chains, three states", "of 17 chains, 16 stand still"),
    ("chains beyond 16 stand still backwards", "order=backward", "of 17 chains, 16 stand still"),
    ("the last two of 4n + 2 chains stand still", "6 chains", "of 6 chains, 4 to 5 stand still"),
    ("variables beyond 64 stand still backwards", "order=backward", "of 101 variables, 64 to 100 stand still"),
    ("no fields beyond 64 in float32", "accuracy, 101 variables, float32", "of 101 variables, marginals .* are wrong"),
    ("one generator backwards", "order=backward", "it keeps state between calls"),
    ("sums overflow after 256 steps", "independence of batching", "509 steps at once and in several batches"),
    ("errors of few chains a tenth backwards", "order=backward", "standard errors of 8 chains are too small"),
    ("a wrong estimator of log Z beside", "accuracy, dense", "log Z of estimator start is off by"),
    ("log Z without an error", "accuracy, dense", "an estimate of log Z without a standard error"),
    ("log Z without an error", "accuracy, three states", "an estimate of log Z without a standard error"),
    (
        "errors forget how long batches are",
        "calibration, dense",
        "standard errors of 32 chains in 8 batches of 8 steps are too small",
    ),
    ("errors of few chains a tenth", "calibration, dense", "standard errors of 8 chains are too small"),
    ("forgets what was observed of two states", "accuracy, evidence of two states", "marginals .* are off by"),
    ("six states alike", "accuracy, one to nine states", "marginals .* are off by"),
    ("no field of the last of 4n + 3 variables", "accuracy, odd sizes", "of 15 variables, marginals .* are wrong"),
    ("half of the couplings of 16 neighbours", "accuracy, odd sizes", "where one variable has 16 neighbours"),
    ("no fields at pace auto", "pace=auto", "are off by"),
    ("no fields at pace None", "pace=None", "are off by"),
    ("forgets the last step backwards", "order=backward", "in several batches give different p"),
    ("burn-in does nothing backwards", "order=backward", "burn-in does not move them"),
    ("no fields where mirrored backwards", "settings in pairs", "with order=backward, mirrored=True, .* are off by"),
    ("no doubts", "R-hat", "marginals of 16 chains, half of them in one mode and half in another, are not doubted"),
    ("no doubts", "R-hat, three states", "are not doubted"),
    ("R-hat of several states is 1", "R-hat, three states", "R-hat of 16 chains, half of them in one mode .* is 1;"),
    ("R-hat of large models is unknown", "accuracy, 101 variables", "R-hat of some of 101 variables is NaN"),
    ("draws of which each variable is right", "accuracy, dense", "variables . and . are not related as there"),
    (
        "numbers shared by four chains in float32",
        "calibration, dense, float32",
        "standard errors are about .* too small",
    ),
    ("the last of 8n + 7 chains stands still", "7 chains", "of 7 chains, 6 stand still"),
    ("what 4n chains leave over shares numbers", "7 chains", "of 7 chains from one start, 0 and 4, 1 and 5, 2 and 6"),
    ("seed of 53 bits", "seeds", f"seeds {2**53} and {2**53 + 1} give the same draws"),
    ("certified bound above on large models", "accuracy, 101 variables", "the certified lower bound on log Z is"),
]

DRAWN_TWICE = r"uniform \(planted_programs, line \d+\) and uniform .* draw from the same key"
KEYS = [("one key", "random keys", DRAWN_TWICE), ("one key down", "way=down", DRAWN_TWICE)]
INDICES = [
    ("products of indices in 32 bits", "a product of indices may overflow"),
    ("indices in 16 bits", "a product of indices may overflow"),
    ("variables beyond 2^16 stand still", "68000 to 71999 stand still"),
]
STATES = [
    ("one array for all", "overwritten by those of later steps: hand over a copy"),
    ("one array for few", "overwritten by those of later steps: hand over a copy"),
    ("a step for each look", "chains whose states were asked for give other draws"),
    ("from 1 on", r"states of variables \[0, 1, 2, 3, 4, 5\] are none of theirs"),
    ("in reverse order on large models", "of 101 variables, states of .* have other probabilities"),
    ("in reverse order", "states of variable 0 that are kept have probabilities that are off"),
    ("of the start", "stand still from one step to the next, and chains move"),
    ("of one chain", "states that are kept are the same in all chains"),
    ("each variable's of another chain", "the joint law of states that are kept"),
    ("of every tenth step", "stand still from one step to the next, and chains move"),
]


FOLDER = "the working directory is not what it was before"
SUM = "of a 1-of-K group whose sum is not 1"
ENDS = "a random number that is 0, or is rounded to 1, takes the wrong branch"
FROZEN = "adaptation is not frozen"
# Bugs that show late, rarely or far out.
LATE = [
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
    ("chains stand still late", "late steps", "after 1920 steps all chains stand still"),
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
    ("weak couplings beyond 1500 variables", "accuracy, 4000 variables", "tables may be cut"),
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
# Of methods that are built in but for a bug.
BUILT_IN = [
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
SHOWING_LATE = [*(("flawed", *row) for row in LATE), *BUILT_IN]


@pytest.fixture(autouse=True)
def plugins(install_plugin: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment stays as it is, whatever a bug does."""
    monkeypatch.delenv("FLAWED", raising=False)
    for name, points in PLUGINS.items():
        install_plugin(name, Path(__file__).with_name(f"{name}.py").read_text(), points)
    yield
    os.environ.pop("FLAWED", None)


# What is checked of methods that others are like but for this.
ONLY = {
    "rekeyed": ("random keys", "way=down"),
    "sparse": ("accuracy, 80000 variables",),
    "kept": ("kept states",),
}


# Eight CPU seconds after which a kernel that goes from variable to variable in Python is skipped.
TOO_LARGE = "standard errors, 88 variables of several states"


@pytest.mark.parametrize("method", ["planted", "formed", "placed", "tempered", *ONLY])
def test_without_a_bug_it_passes(method: str) -> None:
    """Also states that are given up and reported, and chains that ask to be burnt in."""
    for check in method_checks(method, "numpy", chains=512):
        if check.name in ONLY.get(method, (check.name,)) and check.name != TOO_LARGE:
            with suppress(SkipTest):
                check()


@pytest.mark.parametrize(("method", "name"), sorted({(method, name) for method, _, name, _ in SHOWING_LATE}))
def test_checks_that_find_late_bugs_pass_without_one(method: str, name: str) -> None:
    find(method, name)()


def find(method: str, name: str, chains: int = 2048, **settings: Any) -> Check:
    """A check of a method on NumPy."""
    (check,) = [check for check in method_checks(method, "numpy", chains=chains, **settings) if check.name == name]
    return check


@pytest.mark.parametrize(
    ("method", "bug", "name", "message"),
    [
        *(("planted", *row) for row in BUGS),
        *(("formed", *row) for row in FORMS),
        *(("rekeyed", *row) for row in KEYS),
        *(("sparse", bug, "accuracy, 80000 variables", message) for bug, message in INDICES),
        *(("kept", bug, "kept states", message) for bug, message in STATES),
        *SHOWING_LATE,
        ("unburnt", "", "stationarity, strong couplings", "from exact draws"),
    ],
)
def test_planted_bugs_are_found(method: str, bug: str, name: str, message: str) -> None:
    check = find(method, name, **({"bug": bug} if bug else {}))
    with pytest.raises(AssertionError, match=message):
        check()


@pytest.mark.parametrize("bug", ["", *(bug for bug, _ in INDICES)])
def test_overflowing_indices_do_not_show_on_smaller_models(bug: str) -> None:
    find("sparse", "accuracy, 1001 variables", bug=bug)()


def test_fewer_chains_find_bugs_too() -> None:
    check = find("planted", "calibration, dense", chains=256, bug="errors a third too small")
    with pytest.raises(AssertionError, match="times too small"):
        check()
    with pytest.raises(SpinbenchError, match="chains=100 was given; a multiple of 64 is needed"):
        method_checks("planted", "numpy", chains=100)
    with pytest.raises(SpinbenchError, match="the setting bug was given without a method"):
        checks(bug="one buffer")


@pytest.mark.parametrize("case", ["dense", "sparse", "three states"])
def test_fewer_chains_are_no_alarm(case: str) -> None:
    """Claims of log Z are infinite, and those of marginals wide, where a replica has fewer than 8 chains."""
    find("block_gibbs", f"calibration, {case}", chains=64)()


@pytest.mark.parametrize(
    ("method", "chains", "given", "refusal"),
    [
        ("placed", 0, "", "chains=0 was given; a multiple of 64 is needed"),
        ("placed", 64, "order=1", "no setting of method placed is named 'order'"),
        ("planted", 64, "bug", "NAME=VALUE is needed"),
    ],
)
def test_the_command_refuses(
    method: str, chains: int, given: str, refusal: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main("numpy", method, chains=chains, setting_texts=given.split()) == 2
    assert refusal in capsys.readouterr().err


def test_the_command_takes_settings_and_chains(capsys: pytest.CaptureFixture[str]) -> None:
    given = ["bug=lower bound above", "order=backward"]
    assert main("numpy", "planted", chains=128, setting_texts=given, seconds=1.0) == 1
    assert "order=forward" in " ".join(capsys.readouterr().out.split())


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
