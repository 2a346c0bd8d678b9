"""The peak of a run is its own, not that of what ran before in the process."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from spinbench.measuring import stages

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells")
LARGE = 96 * 2**20


def held(count: int) -> stages.Memory:
    with stages.Memory() as found:
        block = np.ones(count // 8)
        del block
    return found


def test_what_is_taken_and_given_back_counts_once() -> None:
    large, small = held(LARGE), held(80)
    assert LARGE <= large.peak_bytes - large.before_bytes + 2**20 < 2 * LARGE
    assert small.peak_bytes < large.peak_bytes - LARGE // 2


def test_a_peak_that_begins_anew_is_known_where_it_is_counted_roughly(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Pages that one core has given back may still be in the peak, though it has begun anew."""
    status = tmp_path / "status"
    status.write_text("VmHWM:\t1040 kB\nVmRSS:\t1000 kB\n")
    monkeypatch.setattr(stages, "STATUS", status)
    monkeypatch.setattr(stages, "RESET", tmp_path / "reset")
    assert held(80) == stages.Memory(1000 * 1024, 1040 * 1024)


def test_a_peak_that_cannot_begin_anew_is_told_only_where_it_is_the_highest(monkeypatch: pytest.MonkeyPatch) -> None:
    held(80)
    monkeypatch.setattr(stages, "RESET", Path("/proc/self/none/clear_refs"))
    assert [held(size).peak_bytes is None for size in (LARGE, 80)] == [False, True]


def test_elsewhere_nothing_is_known(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(stages, "STATUS", tmp_path / "status")
    monkeypatch.setattr(stages, "RESET", tmp_path / "none" / "reset")
    assert held(80) == stages.Memory(None, None)
