"""Records of runs on a model, made by hand, for what compares solvers over models."""

from __future__ import annotations

import itertools
from typing import Any

ids = itertools.count()


def record(
    model: str,
    method: str,
    rmse: float | None,
    *,
    off: float | None = 0.5,
    verdict: str = "ok",
    status: str = "ok",
    seed: int = 0,
    seconds: float = 1.0,
    reached: float = 0.2,
    kind: str | None = None,
    settings: dict[str, Any] | None = None,
) -> dict[str, Any]:
    known = {"marginal_rmse": rmse, "log_z_error": off}
    points = [(reached / 2, 0.5), (reached, rmse), (seconds, rmse)]
    result = {
        "status": verdict,
        "tier": "generic",
        "compilation": "none",
        "log_z_kind": "estimate",
        "r_hat_max": None,
        "seconds": {"run": seconds, "compile": 0.0},
        "trajectory": [{"seconds": t, "samples": 1, "marginal_rmse": error} for t, error in points],
    }
    return {
        "schema": 1,
        "id": str(next(ids)),
        "key": "k",
        "status": status,
        "error": None if status == "ok" else "no",
        "class": kind,
        "protocol": f"{method}{seconds}{settings}",
        "axes": {"model": model, "method": method, "backend": "numpy"},
        "config": {
            "model": {"name": model},
            "method": {"name": method, **(settings or {})},
            "backend": {"name": "numpy"},
            "budget": {"seconds": seconds, "samples": None, "burn_in": None},
            "chains": 2,
            "seed": seed,
        },
        "git": {"commit": "a" * 40, "dirty": False},
        "reference": {"log_z": 1.0, "seconds": 0.1},
        "metrics": {name: {"value": value} for name, value in known.items() if value is not None and status == "ok"},
        "result": result if status == "ok" else None,
        "environment": {"cpu": "Some processor", "versions": {"numpy": "2"}},
        "oversubscribed": None,
        "started_at": 1_700_000_000,
        "duration": 1.0,
    }
