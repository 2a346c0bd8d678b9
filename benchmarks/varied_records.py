"""Many records, each with numbers of its own, of one cell that is measured."""

from __future__ import annotations

import copy
import json
import random
from typing import Any

from spinbench.measuring.measure import measure_cell
from spinbench.measuring.record_types import parse_record


def make_records() -> list[Any]:
    """5000: 50 models, 20 step sizes, 5 seeds; like one that was measured, but with numbers of their own."""
    cell = {
        "model": {"name": "grid", "rows": 4, "cols": 4},
        "method": {"name": "dhmc", "step_size": 0.1},
        "backend": {"name": "numpy", "device": "cpu", "precision": "float64"},
        "budget": {"samples": 200, "seconds": None, "burn_in": None},
        "chains": 16,
        "seed": 0,
    }
    measured, draw = measure_cell(cell, git={"commit": "b" * 40, "dirty": False, "diff": None}), random.Random(0)
    numbers = json.dumps({name: measured[name] for name in ("result", "metrics", "stages")})
    records = []
    for number in range(5000):
        varied_numbers = json.loads(numbers, parse_float=lambda text: float(text) * (1 + 0.1 * draw.random()))
        record = {**measured, **varied_numbers, "config": copy.deepcopy(measured["config"])}
        record |= {"id": f"{draw.getrandbits(128):032x}", "key": f"{draw.getrandbits(64):016x}"}
        record["config"]["seed"] = number % 5
        record["config"]["method"]["step_size"] = 0.01 * (1 + number // 5 % 20)
        record["axes"] = {**measured["axes"], "model": f"grid(seed={number // 100})"}
        records.append(parse_record(record))
    return records
