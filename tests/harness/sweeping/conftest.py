"""Sweeps in tests, of which several run on a machine at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from spinbench.sweeping import preflight


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """All models are built before anything is measured; a busy machine would leave some to their cells."""
    for limit in ("EACH", "ALL", "COMPOSING"):
        monkeypatch.setattr(preflight, limit, 300.0)


@pytest.fixture(autouse=True)
def own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Sweeps write where one stands."""
    monkeypatch.chdir(tmp_path)
