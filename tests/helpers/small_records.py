"""Records made by hand, for tests of reports."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from spinbench.measuring import records
from spinbench.measuring.record_types import Record

# What every good record has.
RESULT: dict[str, Any] = {
    "tier": "generic",
    "status": "ok",
    "compilation": "none",
    "seconds": {"run": 0.5, "compile": 0.0},
    "r_hat_max": None,
    "log_z_kind": None,
    "trajectory": [],
}

# What every checkpoint has, beside its seconds.
CHECKPOINT = {"samples": 1, "marginal_rmse": None, "log_z": None, "log_z_error": None}

HOSTILE = "<img src=x onerror=alert(1)>&\"'</script><script>alert(2)</script>$x^"


def make(
    method: str = "gibbs",
    backend: str = "numpy",
    rmse: float = 0.01,
    *,
    model: str = "grid",
    settings: dict[str, Any] | None = None,
    seed: int = 0,
    status: str = "ok",
    error: str | None = None,
    kind: str = "estimate",
    log_z: float | None = None,
    exact: float | None = 1.0,
) -> dict[str, Any]:
    key = f"{abs(hash((method, backend, model, str(settings), seed))):016x}"[:16]
    trajectory = [
        {
            "seconds": t,
            "samples": int(100 * t),
            "marginal_rmse": rmse / t**0.5,
            "log_z": 1.0 + 0.1 / t,
            "log_z_error": None if exact is None else 0.1 / t,
        }
        for t in (0.01, 0.1, 1.0)
    ]
    return {
        "schema": 1,
        "id": key,
        "key": key,
        "family": "inference",
        "axes": {"model": model, "method": method, "backend": backend},
        "config": {
            "model": {"name": "grid", **(settings or {})},
            "method": {"name": method},
            "backend": {"name": backend},
            "budget": {"samples": 100, "seconds": None, "burn_in": None},
            "chains": 2,
            "seed": seed,
        },
        "protocol": "0",
        "git": {"commit": "a" * 40, "dirty": False, "diff": None},
        "status": status,
        "error": error,
        "traceback": None,
        "metrics": {"marginal_rmse": {"value": rmse, "standard_error": rmse / 10}, "log_z_error": {"value": 0.1}}
        if status == "ok"
        else {},
        "result": None
        if status != "ok"
        else {
            "tier": "generic",
            "status": "ok",
            "r_hat_max": 1.0,
            "compilation": "none",
            "log_z": log_z,
            "log_z_se": 0.1 if kind == "estimate" else None,
            "log_z_kind": kind,
            "log_z_estimates": {"direct": [1.0, 0.1]},
            "seconds": {"run": 1.0, "compile": 0.0},
            "trajectory": trajectory,
        },
        "reference": {"log_z": exact} if status == "ok" else None,
        "environment": {"python": "3.11", "hostname": "box", "cpu": "a processor", "versions": {"numpy": "2"}},
        "started_at": 1_700_000_000,
        "duration": 1.0,
    }


RECORDS = [
    *(make(rmse=0.002 * (1 + seed), seed=seed) for seed in range(3)),
    make("dhmc", rmse=0.05),
    make("gibbs", "jax", 0.001, model="torus"),
    make("exact", rmse=1e-16, kind="exact"),
    make("bad", "jax", status="failed", error="it broke"),
    make("exact", "jax", status="skipped", error="no kernel"),
]

BOUNDED = [
    make("mf", kind="lower", log_z=8.5, model="wide", exact=None),
    make("weak", kind="lower", log_z=8.0, model="wide", exact=None),
    make("trw", kind="upper", log_z=9.25, model="wide", exact=None),
    make("gibbs", log_z=9.0, model="wide", exact=None),
    *(make("bp", log_z=log_z, seed=seed, model="wide", exact=None) for seed, log_z in enumerate((9.1, 12.0))),
    make("mf", kind="lower", log_z=1.5, model="known"),
    make("gibbs", log_z=30.0, model="known"),
]


def typed(contents: Iterable[Any]) -> list[Record]:
    """Records as they are read, of contents that may lack what a test is not about."""
    return [whole(content) for content in contents]


def whole(content: Any) -> Record:
    """The same of one."""
    if isinstance(content, Record):
        return content
    found = {**make(), "metrics": {}, **records.plain(content)}
    found["config"] = {**make()["config"], **found["config"]}
    found["result"] = {**RESULT, **(found["result"] or {})} if found["status"] == "ok" else None
    if found["result"] is not None:
        found["result"]["trajectory"] = [{**CHECKPOINT, **point} for point in found["result"]["trajectory"]]
    record = msgspec.convert(found, Record)  # names that lead out are tested as texts, too
    msgspec.structs.force_setattr(record, "content", found)
    return record
