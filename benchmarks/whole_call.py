"""What a whole call costs beside its kernel: CPU seconds and memory, each row in a process of its own.

    python benchmarks/whole_call.py                    the table; it takes some eight minutes and 10 GiB
    python benchmarks/whole_call.py "grid 10"          rows whose names contain it

Kernel: CPU seconds of the kept samples; rest: of all else in the call, burn-in included.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import machine
import numpy as np

import spinbench
from spinbench.models import generators, lattices

if TYPE_CHECKING:
    from collections.abc import Callable

FOLDERS: list[tempfile.TemporaryDirectory[str]] = []
# A call that takes less than the first number in seconds is repeated as often as the second says; the median is
# reported.
SHORT_CALL_SECONDS, N_SHORT_CALLS = 0.02, 25


@dataclass(frozen=True)
class Row:
    """A call that is measured after `before` of the same kind.

    Attributes:
        model: makes it.
        arguments: of the call.
        before: calls that warm up; none: what a new process pays, imports and model included.
        cold: whether the caches of compiled code are empty.
        call: of the model.
    """

    model: Callable[[], Any]
    arguments: dict[str, Any]
    before: int = 1
    cold: bool = False
    call: Callable[..., Any] = spinbench.run


def _gibbs_arguments(chains: int, sweeps: int, **more: Any) -> dict[str, Any]:
    return {"method": "gibbs", "backend": "numba", "chains": chains, "budget": sweeps, **more}


def _grid_factory(side: int) -> Callable[[], Any]:
    return lambda: generators.grid(side, side, seed=0)


def _dense_factory(n: int) -> Callable[[], Any]:
    return lambda: generators.sherrington_kirkpatrick(n, seed=0)


def _make_largest_model() -> spinbench.PairwiseModel:
    """20,000 variables, all coupled: more edges than generators make."""
    edges = lattices.complete_edges(20_000)
    couplings = np.random.default_rng(0).standard_normal(len(edges)) / np.sqrt(20_000)
    return spinbench.PairwiseModel(np.zeros(20_000), edges, couplings)


def _make_temporary_folder() -> Path:
    """It goes when the process ends."""
    FOLDERS.append(tempfile.TemporaryDirectory())
    return Path(FOLDERS[-1].name)


def _make_uai_file() -> Path:
    """A `.uai` of 12 MB."""
    path = _make_temporary_folder() / "grid.uai"
    spinbench.save(generators.grid(300, 300, seed=0), path)
    return path


def _make_records() -> list[Any]:
    import varied_records

    return varied_records.make_records()


def _write_report(records: list[Any]) -> Any:
    from spinbench.reporting import page

    return page.write_report(records, _make_temporary_folder())


def _sweep_tour(folder: Path) -> Any:
    command = [sys.executable, "-m", "spinbench", "sweep", "-m", "experiment=tour", f"sweep_dir={folder / 'tour'}"]
    return subprocess.run(command, cwd=folder, stdout=subprocess.DEVNULL, check=True)


def _cold_cache_row(method: str) -> Row:
    arguments = {"method": method, "backend": "numba", "budget": "0.1 s"}
    return Row(_grid_factory(10), arguments, before=0, cold=True)


JAX = {"method": "gibbs", "backend": "jax", "budget": 200}
ROWS = {
    "grid 10, 100 chains": Row(_grid_factory(10), _gibbs_arguments(100, 4000)),
    "grid 10, 1000 chains": Row(_grid_factory(10), _gibbs_arguments(1000, 400)),
    "grid 10, 100 000 chains": Row(_grid_factory(10), _gibbs_arguments(100_000, 40)),
    "grid 1000, 1 chain": Row(_grid_factory(1000), _gibbs_arguments(1, 200)),
    "grid 3162, 1 chain": Row(_grid_factory(3162), _gibbs_arguments(1, 20), before=0),
    "dense 2000": Row(_dense_factory(2000), _gibbs_arguments(16, 20)),
    "dense 5000, 1 chain": Row(_dense_factory(5000), _gibbs_arguments(1, 20), before=0),
    "dense 20 000, 1 chain": Row(_make_largest_model, _gibbs_arguments(1, 20, precision="float32"), before=0),
    "grid 10 on jax, second call": Row(_grid_factory(10), JAX),
    "grid 10 on jax, new process": Row(_grid_factory(10), JAX, before=0),
    "grid 10, exact": Row(_grid_factory(10), {"method": "exact"}, before=3),
    "cold caches, exact": _cold_cache_row("exact"),
    "cold caches, dhmc": _cold_cache_row("dhmc"),
    "cold caches, block_gibbs": _cold_cache_row("block_gibbs"),
    "cold caches, trw": _cold_cache_row("trw"),
    "cold caches, gibbs": _cold_cache_row("gibbs"),
    "cold caches, the tour": Row(_make_temporary_folder, {}, before=0, cold=True, call=_sweep_tour),
    "reading .uai, 12 MB": Row(_make_uai_file, {}, call=spinbench.load),
    "report of 5000 records": Row(_make_records, {}, call=_write_report, before=0),
    "grid 50, bp": Row(_grid_factory(50), {"method": "bp", "backend": "numba", "budget": 100}, before=2),
}


def _cpu_seconds() -> float:
    """Seconds of this process and of those that it has started and that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def _time_call(call: Callable[[], Any]) -> tuple[float, Any]:
    since = _cpu_seconds()
    result = call()
    return _cpu_seconds() - since, result


def measure(row: Row) -> dict[str, float]:
    """Of one call: CPU seconds ("s"), those of its kernel, and the process's peak in MiB."""
    call = partial(row.call, row.model(), **row.arguments)
    for _ in range(row.before):
        call()
    seconds, result = _time_call(call)
    figures = {"s": seconds if row.before else _cpu_seconds()}
    if row.before and seconds < SHORT_CALL_SECONDS:
        figures["s"] = statistics.median(_time_call(call)[0] for _ in range(N_SHORT_CALLS))
    laps = getattr(result, "laps", None)
    figures["kernel"] = 0.0
    if laps is not None:
        figures["kernel"] = laps.mean_cpu * result.samples
    figures["MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / {"darwin": 2**20}.get(sys.platform, 2**10)
    return figures


def measure_in_process(name: str) -> dict[str, float] | str:
    """`measure` in a process of its own, or why it ended; byte code is kept, as that of an installed package is."""
    with tempfile.TemporaryDirectory() as folder:
        variables = {variable: value for variable, value in os.environ.items() if variable != "PYTHONDONTWRITEBYTECODE"}
        if ROWS[name].cold:
            variables["SPINBENCH_CACHE_DIR"] = folder
        command = [sys.executable, __file__, "--row", name]
        done = subprocess.run(command, capture_output=True, check=False, text=True, env=variables)
    if done.returncode:
        return (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> None:
    """Measures the rows of which a name is asked, or all, and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names; only rows with one of them in theirs")
    parser.add_argument("--row", choices=ROWS, help="measure this one, in this process")
    parser.add_argument("--output", type=Path, help="a table for benchmarks/page.py")
    options = parser.parse_args()
    if options.row:
        print(json.dumps(measure(ROWS[options.row])))
        return
    selected = [name for name in ROWS if not options.names or any(part in name for part in options.names)]
    if not selected:
        parser.error(f"no row has such a name; there are {', '.join(ROWS)}")
    columns, rows = ("call", "kernel, CPU s", "rest, CPU s", "MiB at the peak"), []
    for name in selected:
        figures = measure_in_process(name)
        if isinstance(figures, str):
            rows.append([name, figures, "", ""])
        else:
            kernel, rest = figures["kernel"], figures["s"] - figures["kernel"]
            rows.append([name, f"{kernel:.3g}", f"{rest:.3g}", f"{figures['MiB']:.0f}"])
        print(*rows[-1], sep="  ", flush=True)
    if options.output:
        note = "Rest: plan, burn-in, estimates and all else of the call; of a new process imports and the model, too."
        machine.write_figures(options.output, "Whole calls", "python benchmarks/whole_call.py", columns, rows, note)


if __name__ == "__main__":
    main()
