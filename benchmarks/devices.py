"""A GPU beside the CPU: seconds of a step of compiled code, for work of several sizes.

python benchmarks/devices.py [--seconds S] [--where BACKEND:DEVICE …] [--only WORD]: a Markdown table, single precision
(`exact`: double); in each cell the least time a step (a sweep, a trajectory, an iteration, a whole solution) of several
stretches of about S seconds (0.5).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import machine
import numpy as np

from spinbench import run
from spinbench.errors import SpinbenchError
from spinbench.inference import binding, registry
from spinbench.models import Model, generators

STRETCHES = 3
WHERE = ("jax:gpu", "jax:cpu", "numba:cpu")


@dataclass(frozen=True)
class Work:
    """What is timed.

    Attributes:
        method, settings: by name.
        title: of the model.
        model: makes it.
        chains: side by side.
        unit, units: what a step does, of all chains, and how many of it.
    """

    method: str
    title: str
    model: Callable[[], Model]
    chains: int
    unit: str
    units: float
    settings: tuple[tuple[str, Any], ...] = ()


def grid(side: int) -> Callable[[], Model]:
    return lambda: generators.grid(side, side, 0.5, 0.5, seed=1)


def rough(side: int) -> Callable[[], Model]:
    """On which messages never settle."""
    return lambda: generators.grid(side, side, 0.5, 3.0, seed=1)


def dense(n: int) -> Callable[[], Model]:
    return lambda: generators.sherrington_kirkpatrick(n, 0.5, seed=1)


def work() -> list[Work]:
    """From what a CPU's cache holds to what fills a GPU."""
    flips, leaps, messages = "updates", "leapfrog steps x variables", "messages"
    sweeps = [
        Work("gibbs", f"{side} x {side} grid", grid(side), chains, flips, side * side * chains)
        for side, chains in ((10, 100), (10, 10_000), (100, 1_000), (1_000, 16))
    ]
    sweeps += [
        Work("gibbs", f"dense, {n}", dense(n), chains, flips, n * chains)
        for n, chains in ((1_000, 1_000), (4_000, 256))
    ]
    relaxed = [
        Work(method, f"dense, {n}", dense(n), 1_000, unit, n * 1_000 * steps, (("log_z", "none"), *own))
        for n in (100, 1_000, 4_000)
        for method, unit, steps, own in (
            ("block_gibbs", flips, 1, ()),
            ("dhmc", leaps, 10, (("leapfrog_steps", 10), ("step_size", 0.1))),
        )
    ]
    passes = [
        Work("bp", f"{side} x {side} rough grid", rough(side), 1, messages, 4.0 * side * (side - 1))
        for side in (100, 1_000)
    ]
    tempered = [Work("pt", "32 x 32 grid", grid(32), 256, "steps", 1)]
    solved = [Work("exact", f"{side} x {side} grid", grid(side), 1, "solutions", 1) for side in (10, 16, 20)]
    return [*sweeps, *relaxed, *passes, *tempered, *solved]


def seconds(task: Work, model: Model, backend: str, device: str, stretch: float) -> float:
    """Wall-clock of a step of all chains, at best."""
    if task.method == "exact":
        return min(_solved(model, backend, device) for _ in range(STRETCHES + 1))
    method = registry.make_method(task.method, dict(task.settings))
    planned = method.plan(model)
    engine = binding.bind(method, backend, model, planned, precision="float32", device=device).engine
    start = np.random.default_rng(1).integers(0, 2, size=(model.num_variables, task.chains), dtype=np.int8)
    state = engine.adapt(engine.init(0, start), True)
    state, _ = engine.advance(state, 1)
    count = 1
    found: list[float] = []
    while len(found) < STRETCHES:
        since = time.perf_counter()
        state, _ = engine.advance(state, count)
        spent = time.perf_counter() - since
        if spent >= stretch / 2 or found:
            found.append(spent / count)
        else:
            count = max(2 * count, int(count * stretch / max(spent, 1e-4) / 2))
    return min(found)


def _solved(model: Model, backend: str, device: str) -> float:
    return run(model, "exact", backend, device=device, precision="float64").seconds.run


def main() -> None:
    """Print the table row by row."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--where", nargs="+", default=WHERE, metavar="BACKEND:DEVICE", help=" ".join(WHERE))
    parser.add_argument("--only", default="", help="methods or models with this in their name")
    given = parser.parse_args()
    where = [tuple(one.split(":")) for one in given.where]
    print(machine.description(), flush=True)
    print("| method | model | chains |" + "".join(f" {b} {d}, s a step |" for b, d in where) + " fastest, a second |")
    print("|---|---|---|" + "---|" * (len(where) + 1), flush=True)
    for task in work():
        if given.only not in f"{task.method} {task.title}":
            continue
        model, cells, best = task.model(), [], np.inf
        for backend, device in where:
            try:
                found = seconds(task, model, backend, device, given.seconds)
            except (SpinbenchError, MemoryError) as error:
                cells.append(str(error).splitlines()[0][:60])
                continue
            cells.append(f"{found:.3g}")
            best = min(best, found)
        rate = f"{task.units / best:.3g} {task.unit}"
        print(f"| {task.method} | {task.title} | {task.chains} | " + " | ".join(cells) + f" | {rate} |", flush=True)


if __name__ == "__main__":
    main()
