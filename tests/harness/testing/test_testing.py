"""The conformance suite finds faults: every check has a plugin that it fails, and a correct plugin passes them all."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import SkipTest

import numpy as np
import pytest

from spinbench.api import Backend
from spinbench.errors import InvalidResultError, SpinbenchError, UnknownNameError
from spinbench.inference import kernels, registry
from spinbench.testing import Check, NumpyBackend, backend_checks, checks, method_checks
from spinbench.testing.command import main, run_check
from spinbench.testing.laws.cases import law
from spinbench.testing.laws.large_models import find_solved_model
from spinbench.testing.variants import small_numbers

SOURCE = Path(__file__).with_name("faulty_plugin.py").read_text()
BACKENDS = {
    name.lower(): name
    for name in (
        "Eager",
        "Anywhere",
        "Narrow",
        "Single",
        "Loopy",
        "Mutating",
        "Folding",
        "Forgetful",
        "Coarse",
        "Shifted",
        "Flagless",
        "Driverless",
        "Sharing",
        "Counting",
        "Steep",
        "Wide",
        "Shuffled",
        "Late",
        "Inline",
        "Once",
        "Floating",
        "Tiled",
        "Onesided",
        "Overflowing",
        "Cyclic",
        "Clipped",
        "Decimal",
        "Tame",
        "Floored",
        "Mirrored",
        "Short",
        "Inexact",
        "Blind",
        "Blinking",
        "Mild",
        "Sideways",
    )
}
POINTS = {
    "methods": {"toy": "Toy", "cut": "Cut", "weighted": "Weighted", "halving": "Halving"},
    "kernels": {"cut.numpy": "CutKernel", "weighted.numpy": "WeightedKernel"},
    "backends": BACKENDS,
}

# Checks that do not apply: these methods refuse variables of several states and dense tables of 80,000, report whole
# numbers, no looks, no diagnostics and no states; and numbers of a program's steps are the backend's.
OF_WHAT_IT_LACKS = {
    "standard errors, log Z",
    *("calibration, three states", "calibration, log Z", "last digits", "R-hat", "effective sample sizes"),
    *("random numbers in time", "accuracy, 80000 variables", "kept states"),
    *("accuracy, 88 variables of several states", "R-hat, three states", "effective sample sizes, float32"),
    *("standard errors, 88 variables of several states", "stationarity, three states"),
}
# Checks that do not apply to kernels whose statistics are no rows of variables, or of two states alone.
OF_KERNELS = {
    *("random keys", "random numbers of variables", "17 chains, three states"),
    *("random numbers at the ends", "random numbers at the ends, float32"),
}
# Checks that do not apply to methods that enumerate all states.
OF_LARGE_MODELS = {
    *(f"accuracy, {name}" for name in ("80 variables, dense", "101 variables", "1001 variables")),
    *("accuracy, 101 variables, float32", "accuracy, odd sizes", "accuracy, 4000 variables"),
    "standard errors, 111 pairs",
}


@pytest.fixture(autouse=True)
def plugin(install_plugin: Any) -> None:
    install_plugin("faultyplugin", SOURCE, POINTS)


def named(found: list[Check], name: str) -> Check:
    (check,) = [check for check in found if check.name == name]
    return check


def run_all(found: list[Check]) -> Iterator[str]:
    """Runs them; names of those that were skipped."""
    for check in found:
        try:
            check()
        except SkipTest:
            yield check.name


def test_a_correct_program_passes() -> None:
    found = method_checks("toy", "numpy", chains=512)
    assert len(found) > 15
    assert set(run_all(found)) <= OF_WHAT_IT_LACKS


@pytest.mark.parametrize("method", ["cut", "weighted"])
def test_a_correct_kernel_passes(method: str) -> None:
    assert set(run_all(method_checks(method, "numpy", chains=512))) <= OF_WHAT_IT_LACKS | OF_LARGE_MODELS | OF_KERNELS


def test_a_correct_iteration_passes() -> None:
    found = method_checks("halving", "numpy")
    assert not any(check.name.startswith(("stationarity", "calibration")) for check in found)
    assert set(run_all(found)) <= OF_WHAT_IT_LACKS


@pytest.mark.parametrize(
    ("method", "fault", "check", "message"),
    [
        ("toy", "wrong target", "accuracy, dense", "marginals .* are off by"),
        ("toy", "wrong target", "stationarity, dense", "from exact draws, marginals"),
        ("toy", "wrong log Z", "accuracy, sparse", "log Z is off by"),
        ("toy", "ignores groups", "accuracy, three states", "1-of-K group whose sum is not 1"),
        ("toy", "rambles", "accuracy, three states", "one sentence is needed"),
        ("toy", "writes to the model", "plan", "plan changes the model"),
        ("toy", "reports NaN", "statistics", "statistic s holds"),
        ("toy", "wrong shape", "estimates", "ess has shape"),
        (
            "toy",
            "both states",
            "accuracy, one variable",
            r"marginals have shape \(1, 2\); \(1,\) is needed, p\(s = 1\)",
        ),
        ("toy", "both states", "stationarity, dense", r"marginals of shape \(6, 2\); \(6,\) is needed"),
        ("toy", "depends on earlier calls", "determinism", "the same seed gives different s"),
        ("cut", "keeps marginals alone", "stationarity, dense", "the joint law of states has G = "),
        ("halving", "draws", "determinism", "yet m depends on the seed"),
        ("halving", "draws", "accuracy, zero couplings", "marginals .* are off by"),
        ("halving", "ends early", "end of iterations", "marginals moves by .* after finished"),
        ("halving", "says so at once", "end of iterations", "after one step, and no doubt says"),
        ("halving", "never ends", "end of iterations", "and no doubt says 'not converged'"),
        ("cut", "chains first", "statistics", "2048 chains come last"),
    ],
)
def test_faults_of_methods_are_found(method: str, fault: str, check: str, message: str) -> None:
    """Those of kernels and of errors are in test_planted_bugs.py."""
    faulty = named(method_checks(method, "numpy", fault=fault), check)
    try:
        with pytest.raises((AssertionError, InvalidResultError), match=message):
            faulty()
    finally:
        for shared in (law, find_solved_model):
            shared.cache_clear()  # one fault is to write into these models


@pytest.mark.parametrize(
    ("backend", "check", "message"),
    [
        ("eager", "declaration", r"importing its module imports \['wave'\]"),
        ("anywhere", "construction", "device=no-such-device is accepted"),
        ("narrow", "namespace (float64)", "xp lacks logaddexp"),
        ("single", "transfer (float64)", "floats come back as float32"),
        ("single", "arithmetic (float64)", "has dtype float32; float64 is needed"),
        ("single", "normal (float64)", "normal gives float32"),
        ("loopy", "loops (float64)", "call the body .* times in Python"),
        ("mutating", "updates (float64)", r"update \(integer"),
        ("folding", "keys (float32)", "a key folded with 0 and with 1 gives the same numbers"),
        ("folding", "independence (float64)", "correlated"),
        ("forgetful", "keys (float32)", "a key folded with 0 and with 128 gives the same numbers"),
        ("coarse", "uniform (float64)", "distinct values"),
        ("shifted", "normal (float32)", "moment 2 is off"),
        ("flagless", "namespace (float64)", "isnan gives float64; bool is expected"),
        ("driverless", "construction", "device=gpu, which is in provides, raises RuntimeError: no driver"),
        ("sharing", "arrays given up (float64)", "what stays gives"),
        ("steep", "gradients (float64)", "grad gives .* where differences give"),
        ("wide", "namespace (float32)", "full of float32 gives float64"),
        ("wide", "constructors (float32)", "full gives float64; float32 was asked for"),
        ("shuffled", "rows (float64)", "take of a table gives"),
        ("once", "open loops (float64)", "doubling 1 while it is below 0.5 takes 1 steps, not 0"),
        ("late", "loops (float64)", "a loop from 3 to 5 that writes down its indices gives"),
        ("counting", "updates (float64)", r"update \(negative\) gives"),
        ("inline", "updates (float64)", r"update \(argument of one axis\) gives"),
        ("floating", "keys (float64)", "seed 9007199254740992 and seed 9007199254740993 give the same numbers"),
        ("tiled", "namespace (float64)", r"matmul of \(70, 1100\) gives"),
        ("onesided", "namespace (float64)", r"searchsorted \(right\) gives"),
        ("overflowing", "namespace (float64)", r"logaddexp \(of large ones\) gives"),
        ("blind", "namespace (float64)", r"max \(with NaN\) gives"),
        ("blinking", "namespace (float64)", r"maximum \(with NaN\) gives"),
        ("mild", "namespace (float64)", r"exp \(of large ones\) gives"),
        ("sideways", "namespace (float64)", r"sum \(along the last axis\) gives"),
        ("cyclic", "uniform (float64)", "have values of their own"),
        ("clipped", "normal (float64)", "draws of one key: moment 2 is off"),
        ("tame", "normal (float64)", "of 2.20 draws 0 are below -4"),
        ("floored", "uniform (float64)", "of 2.20 draws 0 are below 1.15e-05"),
        ("mirrored", "independence (float64)", "numbers from the first and from the last are correlated"),
        ("short", "loops (float64)", "5000 steps of c = c/2"),
        ("inexact", "transfer (float64)", "comes back as"),
        ("decimal", "keys (float64)", "seed 1 and seed 1000001 give the same numbers"),
    ],
)
def test_faults_of_backends_are_found(backend: str, check: str, message: str) -> None:
    with pytest.raises(AssertionError, match=message):
        named(backend_checks(backend), check)()


def test_modules_of_the_same_name_here_are_not_the_backend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`spinbench init NAME` makes a folder NAME, beside which a stranger may call the suite."""
    here = tmp_path / "here"
    here.mkdir()
    (here / f"{registry.backend_class('shifted').__module__}.py").write_text("")
    monkeypatch.chdir(here)
    named(backend_checks("shifted"), "declaration")()


def test_numbers_without_axes_are_converted_on_the_host() -> None:
    """PyTorch's asarray raises where it has to convert one."""

    class Torchlike(NumpyBackend):
        def __init__(self) -> None:
            super().__init__(precision="float32")
            self.xp = SimpleNamespace(asarray=self._asarray)

        @staticmethod
        def _asarray(array: Any, dtype: Any = None, copy: bool | None = None) -> Any:
            assert array.dtype == dtype
            return np.asarray(array, dtype=dtype, copy=copy)

    copied = Backend.to_device(Torchlike(), np.asarray(0.5))
    assert copied.dtype == np.float32
    assert copied == 0.5


def test_pairs_that_do_not_run_are_refused_with_a_reason() -> None:
    (refusal,) = method_checks("cut", "jax")
    assert refusal.name == "refusal"
    refusal()


def test_what_is_missing_is_skipped_and_what_is_broken_fails(
    install_plugin: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "second").mkdir()
    source = SOURCE + "\n\nclass Absent(NumpyBackend):\n    name = 'absent'\n    requires = ('no_such_module',)\n"
    install_plugin("absentplugin", source, {"backends": {"absent": "Absent", "gone": "Gone"}})
    for check in (*backend_checks("absent"), *method_checks("toy", "absent")):
        with pytest.raises(SkipTest, match="no_such_module"):
            check()
    assert main("absent", "toy") == 1
    assert "nothing was checked" in capsys.readouterr().out
    for check in (*backend_checks("gone"), *method_checks("toy", "gone")):
        with pytest.raises(SpinbenchError, match="absentplugin"):
            check()


def test_selection() -> None:
    subjects = {check.subject for check in checks(backend="numpy", method="toy")}
    assert subjects == {"numpy", "toy.numpy"}
    assert {check.subject for check in checks(method="toy")} == {f"toy.{b}" for b in kernels.own_backends()}
    assert {"numpy", "toy.numpy", "gibbs.numpy"} <= {check.subject for check in checks(backend="numpy")}
    with pytest.raises(UnknownNameError, match="no backend is named 'nunpy'; did you mean numpy"):
        checks(backend="nunpy")
    with pytest.raises(UnknownNameError, match="no setting of method toy is named 'falt'"):
        method_checks("toy", "numpy", falt="")


@pytest.mark.parametrize(
    ("asked", "check", "text", "error"),
    [("NumPy", "plan", "np.reshape", "ValueError"), ("spinbench", "accuracy, dense", "(errors[0])", "TypeError")],
)
def test_errors_of_frameworks_are_reported_with_the_line_of_the_plugin(
    asked: str, check: str, text: str, error: str
) -> None:
    line = next(n for n, found in enumerate(SOURCE.splitlines(), start=1) if text in found)
    result, reason = run_check(named(method_checks("toy", "numpy", fault=f"asks {asked} for too much"), check))
    assert result == "failed"
    assert reason.startswith(f"{error}: ")
    assert reason.endswith(f" (faultyplugin, line {line})")


def test_the_command_reports_and_has_a_status(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(backend="numba", method="cut", only="refusal") == 0
    assert "cut.numba" in capsys.readouterr().out
    assert main(backend="narrow", method="cut") == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "failed" in said
    assert "xp lacks" in said
    assert main(backend="nowhere") == 2
    assert capsys.readouterr().err.startswith("spinbench: no backend is named 'nowhere'")


def test_shares_are_checked_at_a_half_too() -> None:
    shares = {name for name, value in small_numbers(registry.make_method("dhmc", {})) if value == 0.5}
    assert shares >= {"jitter", "step_size"}
