"""`spinbench check` while it runs, and work that is ended when it takes too long."""

from __future__ import annotations

import ctypes
import faulthandler
import math
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest import SkipTest

import pytest

from spinbench.testing import Check, checks, command
from spinbench.testing.check import CheckError, run_with_deadline


def fail() -> None:
    raise CheckError("it is 3 in place of 4")


def fail_alike() -> None:
    raise CheckError("it is 5 in place of 6")


def crash() -> None:
    faulthandler.disable()  # pytest's
    ctypes.string_at(0)


def wait() -> None:
    time.sleep(60)


def burn() -> None:
    while True:
        pass


def interrupt() -> None:
    time.sleep(1.0)
    os.kill(os.getppid(), signal.SIGINT)
    time.sleep(60)


def change_folder() -> None:
    os.chdir(os.sep)


def run_planned(monkeypatch: pytest.MonkeyPatch, *bodies: Callable[[], None], **options: Any) -> int:
    """`spinbench check` of these checks, one after another."""
    planned = [Check("toy.numpy", f"{body.__name__} {number}", body) for number, body in enumerate(bodies)]
    monkeypatch.setattr(command.suite, "checks", lambda *names, **settings: planned)
    return command.main("numpy", "toy", **options)


def test_reasons_are_printed_at_once_and_an_interrupt_keeps_what_ran(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_planned(monkeypatch, fail, interrupt, fail) == 130
    output = capsys.readouterr().out
    assert "toy.numpy: fail 0 failed, 1 of 3: it is 3 in place of 4" in output
    assert "interrupted after 1 of 3" in output


def test_a_crash_costs_one_check(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert run_planned(monkeypatch, *[crash] * 7, list) == 1
    output = " ".join(capsys.readouterr().out.split())
    assert "toy.numpy: crash 0 failed, 1 of 8: its process crashed with SIGSEGV" in output
    assert "1 passed, 0 skipped, 7 failed" in output


@pytest.mark.parametrize(
    ("body", "stall", "reason"),
    [(burn, 60.0, "it takes more than 2 CPU s"), (wait, 3.0, "nothing was computed for 3 s")],
)
def test_what_does_not_end_costs_one_check(
    body: Callable[[], None], stall: float, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "STALL_SECONDS", stall)
    monkeypatch.setattr(command, "TICK", 0.1)
    subject = [Check("toy.numpy", "first", body), Check("toy.numpy", "second", list)]
    outcomes = list(command.run_isolated(subject, command.run_check, max_seconds=math.inf, check_seconds=2.0))
    assert [outcome.result for outcome in outcomes] == ["failed", "passed"]
    assert reason in outcomes[0].reason


def test_equal_failures_share_a_row(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert run_planned(monkeypatch, fail, fail_alike) == 1
    table = capsys.readouterr().out.rpartition("subject")[2]
    assert table.count("in place of") == 1
    assert "fail 0; fail_alike 1" in " ".join(table.split())


def test_only_some_run_and_the_first_failure_ends_them(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run_planned(monkeypatch, fail, fail_alike, fail, stop_at_first=True) == 1
    assert "0 passed, 0 skipped, 1 failed" in capsys.readouterr().out
    assert run_planned(monkeypatch, fail, fail_alike, only="alike") == 1
    assert "0 passed, 0 skipped, 1 failed" in capsys.readouterr().out
    assert run_planned(monkeypatch, fail, only="nothing") == 2
    assert "--only 'nothing' was given, which no check has in its name" in capsys.readouterr().err


def test_a_check_that_leaves_the_working_directory_fails() -> None:
    folder = os.getcwd()
    with pytest.raises(CheckError, match="the working directory is not what it was before"):
        Check("toy.numpy", "folder", change_folder)()
    assert os.getcwd() == folder


@pytest.mark.parametrize(
    ("change", "quantity"),
    [
        (lambda: signal.signal(signal.SIGINT, signal.SIG_IGN), "what happens on Ctrl-C"),
        (lambda: warnings.simplefilter("ignore"), "whether warnings are shown"),
        (lambda: os.environ.update(OMP_NUM_THREADS="7"), "the number of threads in the environment"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_a_check_that_changes_its_process_fails(
    change: Callable[[], object], quantity: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    handler = signal.getsignal(signal.SIGINT)
    with warnings.catch_warnings(), pytest.raises(CheckError, match=f"{quantity} is not what it was before"):
        Check("toy.numpy", "change", change)()
    signal.signal(signal.SIGINT, handler)


def test_a_device_that_is_not_here_is_skipped_with_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main("numpy", "mf", device="gpu") == 1
    said = capsys.readouterr().out
    assert "numpy" in said
    assert "skipped" in said


def test_a_backend_without_a_gpu_is_left_out() -> None:
    assert not [check for check in checks(method="mf", device="gpu") if "numba" in check.subject]
    assert [check for check in checks(method="mf", device="gpu") if "jax" in check.subject]


def test_a_device_of_no_backend_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(method="mf", device="tpu") == 2
    assert "device=tpu was given, which no backend provides; cpu and gpu are known" in capsys.readouterr().err


def use_cpu(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


class Burning:
    """Takes its time while Python destroys it, and drops what is raised meanwhile."""

    def __del__(self) -> None:
        use_cpu(0.05)


def destroyed() -> None:
    while True:
        Burning()
        use_cpu(0.05)


def deaf() -> None:
    for _ in range(2):
        with suppress(Exception):
            use_cpu(0.1)
    use_cpu(5)


@pytest.mark.parametrize("work", [destroyed, deaf])
def test_it_ends_also_where_python_drops_what_is_raised(work: object, capfd: pytest.CaptureFixture[str]) -> None:
    hook, since = sys.unraisablehook, time.process_time()
    with pytest.raises(SkipTest, match=r"a loop takes more than 0\.02 CPU s"):
        run_with_deadline(0.02, "a loop", work)  # type: ignore[arg-type]
    assert time.process_time() - since < 2
    assert capfd.readouterr() == ("", "")
    assert sys.unraisablehook is hook
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    use_cpu(0.05)  # nothing is ended any more


def test_what_takes_less_returns() -> None:
    assert run_with_deadline(5.0, "nothing", lambda: 3) == 3
