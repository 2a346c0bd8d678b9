"""`spinbench check` while it runs."""

from __future__ import annotations

import pytest

from spinbench.testing import Check, checks, command
from spinbench.testing.check import CheckError


def test_failures_are_told_at_once_and_an_interrupt_keeps_what_ran(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def fail() -> None:
        raise CheckError("so it is")

    def interrupt() -> None:
        told.append(capsys.readouterr().out)
        raise KeyboardInterrupt

    planned = [Check("toy.numpy", f"check {number}", body) for number, body in enumerate([fail, interrupt, fail])]
    monkeypatch.setattr(command, "checks", lambda *names, **settings: planned)
    assert command.main("numpy", "toy") == 130
    assert "toy.numpy: check 0 failed, 1 of 3" in told[0]
    said = capsys.readouterr().out
    assert "so it is" in said
    assert "interrupted after 1 of 3" in said


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
