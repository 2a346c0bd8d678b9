"""Gauged lower bounds: seconds of a core for a whole ascent, and many models in one batch on JAX."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.backends.jax.gauge import batch
from spinbench.methods.gauge.g_bp import (
    GaugedBeliefPropagation,
    GaugedBeliefPropagationMultiple,
    GaugedBeliefPropagationSequential,
    GaugedBeliefPropagationSingle,
)
from spinbench.methods.gauge.g_mf import GaugedMeanField
from spinbench.methods.gauge.method import Gauged
from spinbench.models.forney.generators import gauge_complete, gauge_regular

STEPS = 100_000
"""More than any of these ascents takes; they end by themselves."""
MODELS = 20


@pytest.mark.parametrize(("method", "share"), [(GaugedMeanField(), 0.9), (GaugedBeliefPropagation(), 0.75)])
def test_regular_graph(benchmark: Any, note: Callable[[str], None], method: Gauged, share: float) -> None:
    """3-regular, 200 factors, β = 0.5, generic: at least this share of what Bethe's log Z gains over
    mean field (seed 0). Aimed at: 3 s for G-MF and 1 s for G-BP."""
    model = gauge_regular(200, 3, 0.5, seed=0)
    bethe, field = (_log_z(spinbench.run(model, name, "numpy", f"{STEPS} samples")) for name in ("bp", "forney_mf"))
    seconds: list[float] = []

    def once() -> spinbench.Result:
        since = time.process_time()
        found = spinbench.run(model, method, "numpy", f"{STEPS} samples")
        seconds.append(time.process_time() - since)
        return found

    once()  # imports
    seconds.clear()
    found = benchmark.pedantic(once, rounds=5, iterations=1)
    gained = (_log_z(found) - field) / (bethe - field)
    benchmark.extra_info["gained"] = gained
    note(f"{method.name} on 3-regular 200: {min(seconds):.2f} s of CPU with planning, {gained:.3f} of Bethe's gain")
    assert found.status == "ok"
    assert gained >= share


@pytest.mark.parametrize(
    "method",
    [
        GaugedBeliefPropagation(),
        GaugedBeliefPropagationSingle(),
        GaugedBeliefPropagationMultiple(),
        GaugedBeliefPropagationSequential(),
        GaugedMeanField(),
    ],
    ids=lambda method: method.name,
)
def test_batch(benchmark: Any, note: Callable[[str], None], method: Gauged) -> None:
    """20 complete graphs of 4 factors, β = 0.5, in one batch against 20 runs on backend jax, all compiled before.
    Aimed at: five times as fast."""
    models = [gauge_complete(4, 0.5, seed=seed) for seed in range(MODELS)]
    together: list[float] = []
    alone: list[float] = []

    def turn() -> float:
        """Both, one after the other; the largest difference of their bounds."""
        start = time.process_time()
        answers = batch.solve(models, method)
        middle = time.process_time()
        runs = [spinbench.run(model, method, "jax", f"{STEPS} samples") for model in models]
        together.append(middle - start)
        alone.append(time.process_time() - middle)
        bounds = [[_log_z(answer), _log_z(run)] for answer, run in zip(answers, runs, strict=True)]
        return float(np.abs(np.diff(bounds)).max())

    turn()  # compiles
    together.clear()
    alone.clear()
    apart = benchmark.pedantic(turn, rounds=3, iterations=1)
    ratio = min(alone) / min(together)
    benchmark.extra_info["ratio"] = ratio
    seconds = f"{min(together):.3f} s of CPU in one batch, {min(alone):.3f} s in single runs"
    note(f"{method.name}, {MODELS} models: {seconds}: {ratio:.1f} times")
    assert apart < 1e-6


def _log_z(found: spinbench.Result | Estimate) -> float:
    assert found.log_z is not None
    return found.log_z
