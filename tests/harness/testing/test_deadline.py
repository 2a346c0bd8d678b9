"""Work that is ended when it takes too long."""

from __future__ import annotations

import signal
import sys
import time
from contextlib import suppress
from unittest import SkipTest

import pytest

from spinbench.testing.check import run_with_deadline


def burn(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


class Burning:
    """Takes its time while Python destroys it, and drops what is raised meanwhile."""

    def __del__(self) -> None:
        burn(0.05)


def destroyed() -> None:
    while True:
        Burning()
        burn(0.05)


def deaf() -> None:
    for _ in range(2):
        with suppress(Exception):
            burn(0.1)
    burn(5)


@pytest.mark.parametrize("work", [destroyed, deaf])
def test_it_ends_also_where_python_drops_what_is_raised(work: object, capfd: pytest.CaptureFixture[str]) -> None:
    hook, since = sys.unraisablehook, time.process_time()
    with pytest.raises(SkipTest, match=r"a loop takes more than 0\.02 CPU s"):
        run_with_deadline(0.02, "a loop", work)  # type: ignore[arg-type]
    assert time.process_time() - since < 2
    assert capfd.readouterr() == ("", "")
    assert sys.unraisablehook is hook
    assert signal.getitimer(signal.ITIMER_VIRTUAL)[0] == 0
    burn(0.05)  # nothing is ended any more


def test_what_takes_less_returns() -> None:
    assert run_with_deadline(5.0, "nothing", lambda: 3) == 3
