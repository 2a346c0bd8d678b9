"""What tests of sweeps share: small cells of the method `faulty`, the command, and the records that it leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from spinbench import cli

CELL = ("method=faulty", "backend=numpy", "model=grid", "model.rows=2", "model.cols=2", "model.c2=0")
QUICK = (*CELL, "budget=samples", "budget.samples=50", "chains=2")


def sweep(*overrides: str) -> int:
    """The exit status of `spinbench sweep`, run in this process."""
    return cli.main(["sweep", *overrides])


def stored(folder: str | Path) -> list[dict[str, Any]]:
    """The records in a sweep's folder."""
    return [json.loads(path.read_text()) for path in sorted(Path(folder).glob("records/record-*.json"))]
