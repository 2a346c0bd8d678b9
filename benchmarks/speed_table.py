"""CPU time of compiled kernels and whole calls: a table that later commits are compared with.

    python benchmarks/speed_table.py --output FILE.json         measure; about five minutes
    python benchmarks/speed_table.py --compare OLD.json         measure, and print the ratio new / old of each row

A kernel's row is nanoseconds per update of a variable; a call's row is milliseconds, after a first call; a cold row is
seconds of a new process whose caches are empty, imports included. Every value is CPU time on one pinned core, the
least of several short rounds in which the rows take turns, so that a slow minute of the machine meets all of them.
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
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import machine
from rich.progress import track

import spinbench
from spinbench.history.suite.kernels import Sampler, step_seconds, three_state_torus
from spinbench.inference import budget, registry
from spinbench.measuring import environment
from spinbench.models import Model, generators

if TYPE_CHECKING:
    from collections.abc import Callable

    from spinbench.api import Precision

ROUNDS, COLD_ROUNDS = 15, 4  # a cold call takes up to 6 s
SHORTEST_SECONDS = 0.05  # shortest total time of a measurement
NOTABLE_RATIO = 1.10
NOISE_RATIO = 1.15  # two runs of one commit on a shared machine differ by as much in a few rows

REGULAR = (60, 3), (200, 3), (200, 8)  # (variables, degree)
MODELS: dict[str, Callable[[], Model]] = {
    **{f"grid {n}": partial(generators.grid, n, n, seed=1) for n in (10, 15, 32)},
    **{f"regular {n}, degree {d}": partial(generators.random_regular, n, d, seed=1) for n, d in REGULAR},
    **{f"dense {n}": partial(generators.sherrington_kirkpatrick, n, seed=1) for n in (100, 400)},
    "rbm 784 x 64": lambda: generators.rbm(784, 64, seed=1),
    "torus 20, 3 states": three_state_torus,
    "CSP_12": lambda: spinbench.load("uai14/CSP_12"),
}
ON_GRID_10 = dict.fromkeys(("metropolis", "block_gibbs", "dhmc", "pt", "smc", "swendsen_wang"), ("grid 10",))
KERNELS: dict[tuple[Precision, tuple[int, ...]], dict[str, tuple[str, ...]]] = {  # (…, numbers of chains): models
    ("float64", (1, 16, 100)): {
        "gibbs": tuple(name for name in MODELS if name not in ("grid 15", "regular 60, degree 3")),
        **ON_GRID_10,
    },
    ("float64", (16,)): {  # without block methods on dense models, which compile for 40 s
        "metropolis": ("regular 200, degree 8", "dense 100", "torus 20, 3 states"),
        "block_gibbs": ("regular 200, degree 8", "dense 100", "rbm 784 x 64"),
        "dhmc": ("regular 200, degree 8", "dense 100"),
        "pt": ("regular 200, degree 8", "dense 100", "torus 20, 3 states"),
        "smc": ("dense 100", "torus 20, 3 states"),
        "swendsen_wang": ("grid 32", "dense 100"),
        "blocks": ("grid 10", "grid 32", "regular 200, degree 3", "torus 20, 3 states"),
    },
    ("float32", (16,)): {
        "gibbs": ("grid 10", "regular 200, degree 8", "dense 400", "rbm 784 x 64"),
        **ON_GRID_10,
    },
}
CALLS: list[tuple[str, tuple[str, ...], int]] = [  # (method, models, budget in samples)
    ("gibbs", ("grid 10", "dense 400"), 100),
    ("bp", ("grid 10", "grid 32", "dense 100", "torus 20, 3 states"), 100),
    ("trw", ("grid 10",), 20),
    ("wmb", ("grid 10", "regular 200, degree 3", "torus 20, 3 states"), 20),
    ("exact", ("grid 10", "grid 15", "regular 60, degree 3", "CSP_12"), 1),
]
COLD = ("gibbs", 10), ("block_gibbs", 10), ("trw", 10), ("exact", 15)  # (method, side of a grid)


class Row(NamedTuple):
    name: str
    unit: str
    prepare: Callable[[], Callable[[], float]]  # returns the function that measures once


@cache
def load_model(name: str) -> Model:
    """One of `MODELS`, made once."""
    return MODELS[name]()


def prepare_kernel(method: str, model: str, chains: int, precision: Precision) -> Callable[[], float]:
    """Nanoseconds per update of a variable, of one chain at one temperature."""
    sampler = Sampler(load_model(model), method, chains=chains, burn_in=2, precision=precision)
    per_sweep = load_model(model).num_variables * (len(sampler.plan.betas) if method == "pt" else 1)
    updates = (
        budget.step_updates(registry.make_method(method, {}), sampler.plan) or per_sweep
    )  # a step of smc is a whole run
    seconds = step_seconds(sampler.advance, SHORTEST_SECONDS)
    return lambda: 1e9 * next(seconds) / (chains * updates)


def prepare_call(method: str, model: str, samples: int) -> Callable[[], float]:
    """Milliseconds of a call of `spinbench.run`, made so often that the clock is read after 50 ms at least."""

    def time_calls() -> float:
        count, since = 0, time.process_time()
        while count == 0 or time.process_time() - since < 0.05:
            spinbench.run(load_model(model), method, "numba", samples, seed=1)
            count += 1
        return 1e3 * (time.process_time() - since) / count

    time_calls()
    return time_calls


def prepare_cold_call(method: str, side: int) -> Callable[[], float]:
    """CPU seconds of a new process with an empty cache of compiled code; byte code is kept."""
    call = f"spinbench.run(generators.grid({side}, {side}, seed=1), {method!r}, 'numba', 100, seed=1)"
    command = [sys.executable, "-c", f"import spinbench; from spinbench.models import generators; {call}"]

    def time_process() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(command, env={**os.environ, "SPINBENCH_CACHE_DIR": folder}, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return time_process


def list_rows() -> list[Row]:
    """All rows of the table, in its order."""
    rows = []
    for (precision, numbers), methods in KERNELS.items():
        for method, model in ((method, model) for method, models in methods.items() for model in models):
            for chains in numbers:
                name = f"{method}, {model}, chains={chains}, {precision}"
                rows.append(Row(name, "ns per update", partial(prepare_kernel, method, model, chains, precision)))
    for method, models, samples in CALLS:
        rows += [Row(f"call of {method}, {m}", "ms", partial(prepare_call, method, m, samples)) for m in models]
    rows += [Row(f"cold {method}, grid {n}", "s", partial(prepare_cold_call, method, n)) for method, n in COLD]
    return rows


def measure(rows: list[Row]) -> list[list[float]]:
    """The values of each row, one a round."""
    timers = [row.prepare() for row in track(rows, "compile and warm up")]
    values: list[list[float]] = [[] for _ in rows]
    for number in track(range(ROUNDS), "rounds"):
        for row, timer, row_values in zip(rows, timers, values, strict=True):
            if row.unit != "s" or number < COLD_ROUNDS:
                row_values.append(timer())
    return values


def describe_run() -> dict[str, Any]:
    """The machine, the versions and the commit."""
    machine_environment = environment.describe()
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    commit = subprocess.check_output(command, cwd=Path(__file__).parent, text=True).strip()
    return {**{name: machine_environment[name] for name in ("cpu", "cores", "python", "versions")}, "commit": commit}


def compare(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Prints the ratio new / old of each row, and returns whether one is beyond noise."""
    before = {row["name"]: row["best"] for row in old["rows"]}
    ratios = {row["name"]: row["best"] / before[row["name"]] for row in new["rows"] if row["name"] in before}
    for name, ratio in ratios.items():
        print(f"{ratio:6.3f}  {name}")
    slower = {name: ratio for name, ratio in ratios.items() if ratio > NOTABLE_RATIO}
    print(f"median {statistics.median(ratios.values()):.3f}; {len(slower)} of {len(ratios)} over {NOTABLE_RATIO:.2f}")
    for name, ratio in slower.items():
        print(f"{ratio:6.3f}  {name}: {'slower' if ratio > NOISE_RATIO else f'noise, below {NOISE_RATIO:.2f}'}")
    if old["run"]["cpu"] != new["run"]["cpu"]:
        print(f"the processors differ, and ratios say little: {old['run']['cpu']}; {new['run']['cpu']}")
    return any(ratio > NOISE_RATIO for ratio in slower.values())


def main() -> int:
    """Measures, then writes or compares; returns 1 if a row is slower, beyond noise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names; only rows with one of them in theirs")
    parser.add_argument("--output", type=Path, help="a JSON file to write")
    parser.add_argument("--figures", type=Path, help="a table for benchmarks/page.py")
    parser.add_argument("--compare", type=Path, help="a JSON file that --output wrote")
    options = parser.parse_args()
    machine.pin(1)
    for name in ("NUMBA_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"):  # a cold call must compile kernels, and only these
        os.environ.pop(name, None)
    rows = [row for row in list_rows() if not options.names or any(part in row.name for part in options.names)]
    table: dict[str, Any] = {"run": describe_run(), "rows": []}
    for row, values in zip(rows, measure(rows), strict=True):
        best, median = (float(f"{value:.4g}") for value in (min(values), statistics.median(values)))
        table["rows"].append({"name": row.name, "unit": row.unit, "best": best, "median": median})
        print(f"{best:10.4g} {row.unit:14} {row.name}")
    if options.output:
        options.output.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
    if options.figures:
        columns = ("work", "best", "median", "unit")
        figures = [[row["name"], f"{row['best']:.4g}", f"{row['median']:.4g}", row["unit"]] for row in table["rows"]]
        note = "CPU time on one core; the best and the median of rounds in which the rows take turns."
        command = "python benchmarks/speed_table.py"
        machine.write_figures(options.figures, "Kernels, calls and cold starts", command, columns, figures, note)
    if options.compare:
        return int(compare(json.loads(options.compare.read_text()), table))
    return 0


if __name__ == "__main__":
    sys.exit(main())
