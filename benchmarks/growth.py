"""Points of the scaling curves. As a program: memory and speed of one grid in a process of its own.

python benchmarks/growth.py SIZE    prints peak bytes, bytes held while sampling, edges, updates a second
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from spinbench.inference import binding, registry
from spinbench.models import PairwiseModel, generators

SHORTEST = 0.02
"""Seconds that a timed call takes at least."""
REPEATS = 5


class Point(NamedTuple):
    """Seconds of one sweep of all chains, the best of REPEATS by CPU time, and the model's edges."""

    edges: int
    seconds: float


class Rate(NamedTuple):
    """Updates a second by the clock on the wall; busy: CPU time over wall."""

    rate: float
    busy: float


def grid_sweep(size: int, chains: int) -> Point:
    """A Gibbs sweep of a size × size grid."""
    return _sweep(generators.grid(size, size), chains)


def dense_sweep(n: int) -> Point:
    """A Gibbs sweep of the Sherrington-Kirkpatrick model, β = 1, one chain."""
    return _sweep(generators.sherrington_kirkpatrick(n, beta=1.0), 1)


def _engine(model: PairwiseModel, threads: int = 1) -> Any:
    method = registry.make_method("gibbs", {"log_z": "none", "marginals": "empirical", "threads": threads})
    return binding.bind(method, "numba", model, method.plan(model), precision="float32").engine


def _warm(engine: Any, n: int, chains: int, sweeps: int, seed: int) -> Any:
    """Chains from uniform random states after so many sweeps."""
    start = np.random.default_rng(seed).integers(0, 2, (n, chains), dtype=np.int8)
    return engine.warm(engine.init(seed, start), sweeps)


def _sweep(model: PairwiseModel, chains: int) -> Point:
    engine = _engine(model)
    state = _warm(engine, model.num_variables, chains, 8, 0)
    sweeps = 1
    while True:
        since = time.process_time()
        state, _ = engine.advance(state, sweeps)
        if time.process_time() - since >= SHORTEST:
            break
        sweeps *= 2
    seconds = []
    for _ in range(REPEATS):
        since = time.process_time()
        state, _ = engine.advance(state, sweeps)
        seconds.append((time.process_time() - since) / sweeps)
    return Point(model.num_edges, min(seconds))


def parallel_updates(how: str, workers: int, chains: int = 1000, sweeps: int = 20_000) -> Rate:
    """All chains shared out among threads of the kernel (its setting `threads`), or processes begun together."""
    if how == "threads":
        found = [_work(chains, sweeps, 0, None, workers)]
    else:
        context = multiprocessing.get_context("spawn")
        with context.Manager() as manager, context.Pool(workers) as pool:
            shared = manager.Barrier(workers)
            found = pool.starmap(_work, [(chains // workers, sweeps, number, shared) for number in range(workers)])
    wall = max(end for _, end, _ in found) - min(begin for begin, _, _ in found)
    return Rate(100.0 * chains * sweeps / wall, sum(cpu for *_, cpu in found) / wall)


def _work(chains: int, sweeps: int, seed: int, barrier: Any, threads: int = 1) -> tuple[float, float, float]:
    """Begin and end by the monotonic clock, and CPU time of this process between them."""
    engine = _engine(generators.grid(10, 10), threads)
    state = _warm(engine, 100, chains, 100, seed)
    if barrier is not None:
        barrier.wait()
    begin, cpu = time.monotonic(), time.process_time()
    engine.advance(state, sweeps)
    return begin, time.monotonic(), time.process_time() - cpu


def _memory(size: int) -> None:
    most = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    generators.grid(10, 10)
    grid_sweep(10, 1)
    grid_sweep(40, 1)  # everything is compiled and imported
    before = _memory_of("VmRSS")
    model = generators.grid(size, size)
    engine = _engine(model)
    start = np.random.default_rng(0).integers(0, 2, (model.num_variables, 1), dtype=np.int8)
    state = engine.warm(engine.init(0, start), 1)
    since = time.process_time()
    state, _ = engine.advance(state, 4)
    seconds = time.process_time() - since
    peak, held = _memory_of("VmHWM") - before, _memory_of("VmRSS") - before
    print(peak, held, model.num_edges, 4 * model.num_variables / seconds)


def _memory_of(name: str) -> int:
    """Bytes, from /proc: VmRSS what this process holds, VmHWM the most that it held."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {name}")


if __name__ == "__main__":
    _memory(int(sys.argv[1]))
