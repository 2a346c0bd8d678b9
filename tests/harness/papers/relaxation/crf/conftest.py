"""Weights, exact answers and history of these tests stay in the run's temporary folder."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _own_surroundings(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "spinbench-cache"))
    monkeypatch.setenv("SPINBENCH_ROOT", str(tmp_path))
