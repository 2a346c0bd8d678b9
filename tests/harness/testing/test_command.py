"""`spinbench check` while it runs."""

from __future__ import annotations

import pytest

from spinbench.testing import Check, command
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
