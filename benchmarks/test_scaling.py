"""How cost grows: with the size of the model, with chains, with threads. Slopes are fitted to logarithms."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

import growth
import numpy as np
import pytest
from machine import alone

Note = Callable[[str], None]

MOST_BYTES_AN_EDGE = 100


def _slope(name: str, sizes: Sequence[float], seconds: Sequence[float]) -> str:
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    points = ", ".join(f"{size:.3g}: {t:.3g}" for size, t in zip(sizes, seconds, strict=True))
    return f"{name}: slope {slope:.2f} ({points})"


@pytest.fixture
def lock(request: pytest.FixtureRequest) -> Any:
    """The file that is locked while a point is timed, or None."""
    return request.config.getoption("--lock")


@pytest.mark.parametrize("chains", [1, 16])
def test_grids(note: Note, lock: Any, chains: int, benchmark: Any) -> None:
    """Seconds of a Gibbs sweep of a square grid against its edges, N = 10² … 10⁶."""
    edges, seconds = [], []
    for size in (10, 32, 100, 316, 1000):
        with alone(lock):
            point = growth.grid_sweep(size, chains)
        edges.append(point.edges)
        seconds.append(point.seconds)
    note(
        _slope(
            f"seconds of a Gibbs sweep against edges, grids, {chains} chain{'' if chains == 1 else 's'}, float32",
            edges,
            seconds,
        )
    )
    benchmark.extra_info["points"] = list(zip(edges, seconds, strict=True))
    benchmark.pedantic(lambda: growth.grid_sweep(10, chains), rounds=1)


def test_dense(note: Note, lock: Any, request: pytest.FixtureRequest, benchmark: Any) -> None:
    """Seconds of a Gibbs sweep of the SK model against its edges, N = 10² … 10⁴."""
    edges, seconds = [], []
    for n in (100, 316, 1000, 3162, 10_000):
        with alone(lock):
            point = growth.dense_sweep(n)
        edges.append(point.edges)
        seconds.append(point.seconds)
    note(_slope("seconds of a Gibbs sweep against edges, dense, 1 chain, float32", edges, seconds))
    benchmark.extra_info["points"] = list(zip(edges, seconds, strict=True))
    benchmark.pedantic(lambda: growth.dense_sweep(100), rounds=1)


def test_chains(note: Note, lock: Any, benchmark: Any) -> None:
    """Seconds of a sweep of all chains against their number, 1 … 10⁴, on a 10 × 10 grid."""
    numbers = (1, 10, 100, 1000, 10_000)
    seconds = []
    for chains in numbers:
        with alone(lock):
            seconds.append(growth.grid_sweep(10, chains).seconds)
    note(_slope("seconds of a Gibbs sweep against chains, 10×10, float32", numbers, seconds))
    benchmark.extra_info["points"] = list(zip(numbers, seconds, strict=True))
    benchmark.pedantic(lambda: growth.grid_sweep(10, 1), rounds=1)


@pytest.mark.parametrize("size", [1000, 4000])
def test_memory(note: Note, size: int, benchmark: Any) -> None:
    """Bytes an edge that a process takes at most to build, plan, bind and sample a square grid, above its start.

    glibc is told to give large arrays back when they are freed: left alone it keeps those below 32 MiB for later ones.
    """
    command = [sys.executable, growth.__file__, str(size)]
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(2**20)}
    done = benchmark.pedantic(
        lambda: subprocess.run(command, env=environment, capture_output=True, text=True, check=True),
        rounds=1,
    )
    peak, held, edges, updates = map(float, done.stdout.split())
    note(
        f"memory, {size}×{size} grid, 1 chain, float32: {peak / edges:.0f} bytes an edge at the peak, "
        f"{held / edges:.0f} while sampling ({peak / 2**30:.2f} GiB, {edges:.3g} edges), "
        f"{updates / 1e6:.0f} M updates/s; aim: {MOST_BYTES_AN_EDGE} bytes"
    )


def test_threads(note: Note, lock: Any, request: pytest.FixtureRequest, benchmark: Any) -> None:
    """Chains shared out among processes and among threads; needs --cores 2 and two cores that are free."""
    if request.config.getoption("--cores") < 2:
        pytest.skip("two cores are needed: --cores 2")
    with alone(lock):
        for how in ("threads", "processes"):
            one, two = (growth.parallel_updates(how, workers) for workers in (1, 2))
            note(
                f"two {how}, Gibbs 10×10, 1000 chains in all, float32: {two.rate / one.rate:.2f} × one "
                f"({one.rate / 1e6:.0f} -> {two.rate / 1e6:.0f} M updates/s; CPU/wall {one.busy:.2f} -> {two.busy:.2f})"
            )
        benchmark.pedantic(lambda: growth.parallel_updates("threads", 1), rounds=1)
