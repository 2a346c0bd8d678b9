"""What a whole call costs beside its kernel: CPU seconds and memory, each row in a process of its own.

    python benchmarks/whole_call.py                    the table
    python benchmarks/whole_call.py "grid 10"          rows whose names contain it

Kernel: CPU seconds of the kept samples; rest: of all else in the call, burn-in included. A row is to reach a most of
rest / kernel (20 ms are allowed beside), of seconds of the call, or of MiB of the process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import spinbench
from spinbench.models import generators

FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
ALLOWED = 0.02
"""Seconds of a call that no ratio counts."""


@dataclass(frozen=True)
class Row:
    """A call that is measured after `before` of the same kind.

    Attributes:
        model: makes it.
        arguments: of the call.
        before: calls that warm up; none: what a new process pays, imports and model included.
        cold: whether the caches of compiled code are empty.
        call: of the model.
        most_rest: times the kernel; most_seconds: of the whole call; most_mib: of the process. Infinite: not asked.
    """

    model: Callable[[], Any]
    arguments: dict[str, Any]
    before: int = 1
    cold: bool = False
    call: Callable[..., Any] = spinbench.run
    most_rest: float = float("inf")
    most_seconds: float = float("inf")
    most_mib: float = float("inf")


def _gibbs(chains: int, sweeps: int, **more: Any) -> dict[str, Any]:
    return {"method": "gibbs", "backend": "numba", "chains": chains, "budget": sweeps, **more}


def _grid(side: int) -> Callable[[], Any]:
    return lambda: generators.grid(side, side, seed=0)


def _dense(n: int) -> Callable[[], Any]:
    return lambda: generators.sherrington_kirkpatrick(n, seed=0)


def _file() -> Path:
    """A `.uai` of 12 MB, which goes when the process ends."""
    FOLDERS.append(tempfile.TemporaryDirectory())
    path = Path(FOLDERS[-1].name) / "grid.uai"
    spinbench.save(generators.grid(300, 300, seed=0), path)
    return path


def _cold(method: str) -> Row:
    arguments = {"method": method, "backend": "numba", "budget": "0.1 s"}
    return Row(_grid(10), arguments, before=0, cold=True, most_seconds=2)


JAX = {"method": "gibbs", "backend": "jax", "budget": 200}
ROWS = {
    "grid 10, 100 chains": Row(_grid(10), _gibbs(100, 4000), most_rest=0.3),
    "grid 10, 1000 chains": Row(_grid(10), _gibbs(1000, 400), most_rest=0.3, most_mib=250),
    "grid 10, 100 000 chains": Row(_grid(10), _gibbs(100_000, 40), most_seconds=3, most_mib=1536),
    "grid 1000, 1 chain": Row(_grid(1000), _gibbs(1, 200), most_rest=0.5),
    "dense 2000": Row(_dense(2000), _gibbs(16, 20), most_rest=1.0),
    "dense 5000, 1 chain": Row(_dense(5000), _gibbs(1, 20), before=0, most_seconds=3),
    "grid 10 on jax, second call": Row(_grid(10), JAX, most_seconds=0.1),
    "grid 10 on jax, new process": Row(_grid(10), JAX, before=0, most_seconds=1),
    "grid 10, exact": Row(_grid(10), {"method": "exact"}, before=3, most_seconds=1.3 * 0.28e-3),
    "cold caches, exact": _cold("exact"),
    "cold caches, dhmc": _cold("dhmc"),
    "cold caches, block_gibbs": _cold("block_gibbs"),
    "cold caches, trw": _cold("trw"),
    "cold caches, gibbs": _cold("gibbs"),
    "reading .uai, 12 MB": Row(_file, {}, call=spinbench.load, most_seconds=0.12),
    "grid 50, bp": Row(_grid(50), {"method": "bp", "backend": "numba", "budget": 100}, before=2),
}


def measure(row: Row) -> dict[str, float]:
    """CPU seconds of one call and of its kernel, and the process's peak in MiB."""
    model = row.model()
    for _ in range(row.before):
        row.call(model, **row.arguments)
    since = time.process_time() if row.before else 0.0
    result = row.call(model, **row.arguments)
    call, laps = time.process_time() - since, getattr(result, "laps", None)
    kernel = laps.mean_cpu * result.samples if laps is not None else 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    return {"call": call, "kernel": kernel, "mib": peak}


def reached(row: Row, found: dict[str, float]) -> str:
    """ "yes", "no", or "" where nothing is asked."""
    rest = found["call"] - found["kernel"]
    limits = [
        (rest - ALLOWED, row.most_rest * found["kernel"]),
        (found["call"], row.most_seconds),
        (found["mib"], row.most_mib),
    ]
    asked = [(value, most) for value, most in limits if most < float("inf")]
    return "" if not asked else "yes" if all(value <= most for value, most in asked) else "no"


def asked(row: Row) -> str:
    """What the row is to reach."""
    limits = (
        (row.most_rest, "rest ≤ {:.2g} × kernel + 20 ms"),
        (row.most_seconds, "≤ {:.2g} s"),
        (row.most_mib, "≤ {:.0f} MiB"),
    )
    return ", ".join(words.format(most) for most, words in limits if most < float("inf"))


def measured(name: str) -> dict[str, float]:
    """`measure` in a process of its own; byte code is kept, as that of an installed package is."""
    with tempfile.TemporaryDirectory() as folder:
        kept = {variable: value for variable, value in os.environ.items() if variable != "PYTHONDONTWRITEBYTECODE"}
        environment = {**kept, **({"SPINBENCH_CACHE_DIR": folder} if ROWS[name].cold else {})}
        command = [sys.executable, __file__, "--row", name]
        told = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True, env=environment)
    found: dict[str, float] = json.loads(told.stdout.splitlines()[-1])
    return found


def main(names: list[str]) -> None:
    """Measures the rows of which a name is asked, or all, and prints the table."""
    table = Table("call", "kernel s", "rest s", "rest / kernel", "MiB", "to reach", "reached")
    for name, row in ROWS.items():
        if names and not any(wanted in name for wanted in names):
            continue
        found = measured(name)
        rest, kernel = found["call"] - found["kernel"], found["kernel"]
        ratio = f"{rest / kernel:.2g}" if kernel else ""
        table.add_row(
            name, f"{kernel:.3g}", f"{rest:.3g}", ratio, f"{found['mib']:.0f}", asked(row), reached(row, found)
        )
    Console(width=140).print(table)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--row"]:
        print(json.dumps(measure(ROWS[sys.argv[2]])))
    else:
        main(sys.argv[1:])
