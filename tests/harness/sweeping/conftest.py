"""Sweeps in tests, of which several run on a machine at a time."""

from __future__ import annotations

import pytest

from spinbench.sweeping import preflight


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """All models are built before anything is measured; a busy machine would leave some to their cells."""
    for limit in ("EACH", "ALL", "COMPOSING"):
        monkeypatch.setattr(preflight, limit, 300.0)
