"""A clock that only what sleeps moves, for tests of budgets and of what is timed."""

from __future__ import annotations

import pytest

from spinbench.foundation import deadline
from spinbench.inference import schedule
from tests.helpers.clock import Clock


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Clock:
    """A machine on which nothing else runs: in place of `time` where runs are driven, and in the test's module."""
    found = Clock()
    for module in (schedule, deadline, request.module):
        monkeypatch.setattr(module, "time", found, raising=False)
    # Child processes of earlier tests have used the CPU, too.
    monkeypatch.setattr(deadline, "cpu_seconds", found.process_time)
    return found
