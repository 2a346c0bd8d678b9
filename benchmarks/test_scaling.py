"""How cost grows with a model's size, chains, threads and processes, and seconds of a whole ascent of gauged bounds."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from processes import gibbs_sampler, measure_memory, measure_stretch, run_in_processes

import spinbench
from spinbench.history.suite.kernels import step_seconds
from spinbench.methods.gauge.g_bp import GaugedBeliefPropagation
from spinbench.methods.gauge.g_mf import GaugedMeanField
from spinbench.methods.gauge.method import Gauged
from spinbench.models.generators import grid, sherrington_kirkpatrick
from spinbench.models.networks import gauge_regular

Note = Callable[[str], None]

CALLS = 5
# More steps than any of the ascents takes before it converges.
ASCENT_STEPS = 100_000


# (Side of a grid, chains) of each point, or (variables of the Sherrington-Kirkpatrick model, None).
CURVES: list[Any] = [
    pytest.param("edges, grids, 1 chain", [(size, 1) for size in (10, 32, 100, 316, 1000)], id="grids, 1 chain"),
    pytest.param("edges, grids, 16 chains", [(size, 16) for size in (10, 32, 100, 316, 1000)], id="grids, 16 chains"),
    pytest.param("edges, dense, 1 chain", [(n, None) for n in (100, 316, 1000, 3162, 10_000)], id="dense"),
    pytest.param("chains, 10×10", [(10, chains) for chains in (1, 10, 100, 1000, 10_000)], id="chains"),
]


@pytest.mark.parametrize(("axis", "points"), CURVES)
def test_slope(note: Note, benchmark: Any, axis: str, points: list[tuple[int, int | None]]) -> None:
    """CPU seconds of a Gibbs sweep of all chains, the best of five calls, and the slope between their logarithms."""

    def measure() -> list[tuple[int, float]]:
        curve = []
        for size, chains in points:
            model = sherrington_kirkpatrick(size, beta=1.0) if chains is None else grid(size, size)
            seconds = step_seconds(gibbs_sampler(model, chains or 1, burn_in=8).advance)
            place = chains if chains and axis.startswith("chains") else model.num_edges
            curve.append((place, min(itertools.islice(seconds, CALLS))))
        return curve

    curve = benchmark.pedantic(measure, rounds=1)
    benchmark.extra_info["points"] = curve
    places, seconds = np.log(np.transpose(curve))
    slope = float(np.polyfit(places, seconds, 1)[0])
    numbers = ", ".join(f"{place:.3g}: {best:.3g}" for place, best in curve)
    note(f"seconds of a Gibbs sweep against {axis}, float32: slope {slope:.2f} ({numbers})")


@pytest.mark.parametrize("size", [1000, 4000])
def test_memory(note: Note, monkeypatch: pytest.MonkeyPatch, size: int, benchmark: Any) -> None:
    """Bytes an edge that a process takes at most to build, plan, bind and sample a square grid, above its start.

    glibc is told to give large arrays back when they are freed: left alone it keeps those below 32 MiB for later ones.
    """
    monkeypatch.setenv("MALLOC_MMAP_THRESHOLD_", str(2**20))
    [(peak, sampling_bytes, edges, rate)] = benchmark.pedantic(
        lambda: run_in_processes(measure_memory, [(size,)]), rounds=1
    )
    note(
        f"memory, {size}×{size} grid, 1 chain, float32: {peak / edges:.0f} bytes an edge at the peak, "
        f"{sampling_bytes / edges:.0f} while sampling ({peak / 2**30:.2f} GiB, {edges:.3g} edges), "
        f"{rate / 1e6:.0f} M updates/s"
    )


@pytest.mark.parametrize("way", ["threads", "processes"])
def test_parallel(note: Note, request: pytest.FixtureRequest, benchmark: Any, way: str) -> None:
    """Chains shared out among threads of the kernel, or processes; needs --cores 2 and two cores that are free."""
    if request.config.getoption("--cores") < 2:
        pytest.skip("two cores are needed: --cores 2")
    chains, sweeps = 1000, 20_000
    rates, busy = [], []
    for workers in (1, 2):
        calls = {"threads": [(chains, sweeps, workers)]}.get(way, [(chains // workers, sweeps, 1)] * workers)
        stretches = run_in_processes(measure_stretch, calls)
        wall = max(stretch.end for stretch in stretches) - min(stretch.begin for stretch in stretches)
        rates.append(100 * chains * sweeps / wall)
        busy.append(sum(stretch.cpu for stretch in stretches) / wall)
    benchmark.extra_info["rates"] = rates
    benchmark.pedantic(lambda: run_in_processes(measure_stretch, calls), rounds=1)
    note(
        f"two {way}, Gibbs 10×10, {chains} chains in all, float32: {rates[1] / rates[0]:.2f} × one "
        f"({rates[0] / 1e6:.0f} -> {rates[1] / 1e6:.0f} M updates/s; CPU/wall {busy[0]:.2f} -> {busy[1]:.2f})"
    )


@pytest.mark.parametrize(("method", "share"), [(GaugedMeanField(), 0.9), (GaugedBeliefPropagation(), 0.75)])
def test_gauged(benchmark: Any, note: Note, method: Gauged, share: float) -> None:
    """3-regular, 200 factors, β = 0.5: at least this share of what Bethe's log Z gains over mean field (seed 0)."""
    model = gauge_regular(200, 3, 0.5, seed=0)

    def log_z(name: str | Gauged) -> float:
        result = spinbench.run(model, name, "numpy", f"{ASCENT_STEPS} samples")
        assert result.status == "ok"
        assert result.log_z is not None
        return result.log_z

    def ascend() -> tuple[float, float]:
        since = time.process_time()
        bound = log_z(method)
        return bound, time.process_time() - since

    ascend()  # warm-up: imports and compiles
    bounds, seconds = zip(*(ascend() for _ in range(CALLS)), strict=True)
    benchmark.pedantic(ascend, rounds=1)
    mean_field = log_z("forney_mf")
    gained = (bounds[0] - mean_field) / (log_z("bp") - mean_field)
    note(f"{method.name} on 3-regular 200: {min(seconds):.2f} s of CPU with planning, {gained:.3f} of Bethe's gain")
    assert gained >= share
