"""Gibbs sampling that is measured in processes of its own, which import this file."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from spinbench.history.suite.kernels import Sampler, step_seconds
from spinbench.models import PairwiseModel
from spinbench.models.generators import grid


def gibbs_sampler(model: PairwiseModel, chains: int, **options: Any) -> Sampler:
    """In single precision, without log Z."""
    settings = {"precision": "float32", "marginals": "empirical", "log_z": "none", **options}
    return Sampler(model, "gibbs", chains=chains, **settings)


def run_in_processes(function: Callable[..., Any], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Results of calls in new processes of their own, which begin together at a barrier that each is given."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, context.Pool(len(arguments)) as pool:
        barrier = manager.Barrier(len(arguments))
        return pool.starmap(function, [(*call_arguments, barrier) for call_arguments in arguments])


def measure_memory(size: int, _: Any) -> tuple[int, int, int, float]:
    """Bytes at the peak and while sampling, above those of a process that has loaded the kernels; edges; updates a
    second."""
    for side in (10, 40):
        next(step_seconds(gibbs_sampler(grid(side, side), 1).advance))
    before = memory_bytes("VmRSS")
    model = grid(size, size)
    sampler = gibbs_sampler(model, 1, burn_in=1)
    since = time.process_time()
    sampler.advance(4)
    rate = 4 * model.num_variables / (time.process_time() - since)
    return memory_bytes("VmHWM") - before, memory_bytes("VmRSS") - before, model.num_edges, rate


def memory_bytes(name: str) -> int:
    """From /proc: VmRSS what this process holds, VmHWM the most that it held."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


class Stretch(NamedTuple):
    begin: float  # seconds of the monotonic clock
    end: float
    cpu: float  # CPU seconds of this process from begin to end


def measure_stretch(chains: int, sweeps: int, threads: int, barrier: Any) -> Stretch:
    """Sweeps of a 10 × 10 grid that begin when all processes are ready."""
    sampler = gibbs_sampler(grid(10, 10), chains, burn_in=100, threads=threads)
    barrier.wait()
    begin, cpu = time.monotonic(), time.process_time()
    sampler.advance(sweeps)
    return Stretch(begin, time.monotonic(), time.process_time() - cpu)
