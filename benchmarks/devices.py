"""A GPU beside the CPU: seconds of a step of compiled code, for work of several sizes.

python benchmarks/devices.py [--seconds S] [--where BACKEND:DEVICE …] [--only WORD] [--output FILE]: single precision
(`exact`: double); in each cell the least time a step (a sweep, a trajectory, an iteration, a whole solution) of several
stretches of about S seconds (0.5).
"""

from __future__ import annotations

import argparse
import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import machine
import numpy as np

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.history.suite.kernels import Sampler, step_seconds
from spinbench.inference import registry
from spinbench.models import Model, generators

STRETCHES = 3
WHERE = ("jax:gpu", "jax:cpu", "numba:cpu")


class Work(NamedTuple):
    """What is timed: a method on a grid of `size` x `size`, or on a dense model of `size` variables."""

    method: str
    kind: str  # "grid"; "rough grid", on which messages do not converge; "dense"; or "machine", 784 and 500 units
    size: int
    chains: int
    units: float  # updates in a step of all chains
    unit: str
    settings: Mapping[str, Any] = MappingProxyType({})

    @property
    def title(self) -> str:
        if self.kind in ("dense", "machine"):
            return f"{self.kind}, {self.size}"
        return f"{self.size} x {self.size} {self.kind}"

    def model(self) -> Model:
        if self.kind == "dense":
            return generators.sherrington_kirkpatrick(self.size, 0.5, seed=1)
        if self.kind == "machine":
            return generators.rbm(VISIBLE, self.size - VISIBLE, 0.1, 0.05, seed=1)
        return generators.grid(self.size, self.size, 0.5, {"rough grid": 3.0}.get(self.kind, 0.5), seed=1)


VISIBLE = 784  # units of a machine
UPDATES = "updates"  # an update: one variable of one chain
HMC = {"leapfrog_steps": 10, "step_size": 0.1, "log_z": "none"}
WORK = [  # from models that fit a CPU's cache to models that fill a GPU
    *(Work("gibbs", "grid", n, c, n**2 * c, UPDATES) for n, c in ((10, 100), (10, 10_000), (100, 1_000), (1_000, 16))),
    *(Work("gibbs", "dense", n, c, n * c, UPDATES) for n, c in ((1_000, 1_000), (4_000, 256))),
    # "product": the two products of such a sweep alone.
    *(Work(method, "machine", 1284, 4096, 1284 * 4096, UPDATES) for method in ("gibbs", "product")),
    *(Work("block_gibbs", "dense", n, 1_000, n * 1_000, UPDATES, {"log_z": "none"}) for n in (100, 1_000, 4_000)),
    *(Work("dhmc", "dense", n, 1_000, n * 10_000, "leapfrog steps x variables", HMC) for n in (100, 1_000, 4_000)),
    *(Work("bp", "rough grid", n, 1, 4.0 * n * (n - 1), "messages") for n in (100, 1_000)),
    Work("pt", "grid", 32, 256, 1, "steps"),
    *(Work("exact", "grid", n, 1, 1, "solutions") for n in (10, 16, 20)),
]


def measure(task: Work, model: Model, backend: str, device: str, stretch: float) -> float:
    """Wall-clock of a step of all chains, at best."""
    if task.method == "exact":
        runs = [spinbench.run(model, "exact", backend, device=device) for _ in range(STRETCHES + 1)]
        return min(result.seconds.run for result in runs)
    if task.method == "product":
        return min(itertools.islice(time_products(task, backend, device, stretch), STRETCHES))
    options = {"precision": "float32", "device": device, **task.settings}
    sampler = Sampler(model, task.method, backend, task.chains, burn_in=0, **options)
    sampler.advance(1)  # compiles
    seconds = step_seconds(sampler.advance, stretch / 2, time.perf_counter)
    return min(itertools.islice(seconds, STRETCHES))


def time_products(task: Work, backend: str, device: str, stretch: float) -> Iterator[float]:
    """Seconds of both sides' products of matrices."""
    arrays = registry.backend_class(backend)(precision="float32", device=device)
    sizes = (task.size - VISIBLE, VISIBLE), (VISIBLE, task.chains), (task.size - VISIBLE, task.chains)
    weights, visible, hidden = (arrays.to_device(np.ones(size)) for size in sizes)
    products = arrays.compile(lambda w, v, h: (arrays.xp.matmul(w, v), arrays.xp.matmul(w.T, h)))

    def advance(steps: int) -> int:
        for _ in range(steps):
            outcome = products(weights, visible, hidden)
        arrays.block_until_ready(outcome[1])
        return steps

    advance(1)
    return step_seconds(advance, stretch / 2, time.perf_counter)


def main() -> None:
    """Measure and print row by row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--where", nargs="+", default=WHERE, metavar="BACKEND:DEVICE", help=" ".join(WHERE))
    parser.add_argument("--only", default="", help="methods or models with this in their name")
    parser.add_argument("--output", type=Path, help="a table for benchmarks/page.py")
    options = parser.parse_args()
    places = [place.split(":") for place in options.where]
    headings = [f"{backend} {device}, s a step" for backend, device in places]
    columns, rows = ["method", "model", "chains", *headings, "fastest, a second"], []
    print(machine.machine_description(), *columns, sep="  ", flush=True)
    for task in WORK:
        if options.only not in f"{task.method} {task.title}":
            continue
        model, cells, best = task.model(), [], np.inf
        for backend, device in places:
            try:
                seconds = measure(task, model, backend, device, options.seconds)
            except (SpinbenchError, MemoryError) as error:
                cells.append(str(error).splitlines()[0][:60])
                continue
            cells.append(f"{seconds:.3g}")
            best = min(best, seconds)
        cells = [task.method, task.title, str(task.chains), *cells, f"{task.units / best:.3g} {task.unit}"]
        rows.append(cells)
        print(*cells, sep="  ", flush=True)
    if options.output:
        command = f"python benchmarks/devices.py --where {' '.join(options.where)}"
        machine.write_figures(options.output, "On a GPU", command, columns, rows)


if __name__ == "__main__":
    main()
