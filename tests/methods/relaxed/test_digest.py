"""Looks of the samplers of the relaxation: made within a call or between calls, and kept as two numbers a chain."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numba.relaxed.block_gibbs import BlockGibbsKernel
from spinbench.backends.numba.relaxed.dhmc import DHMCKernel
from spinbench.backends.numba.relaxed.relaxed_kernel import RelaxedKernel
from spinbench.methods.relaxed.block_gibbs import BlockGibbs
from spinbench.methods.relaxed.dhmc import DHMC
from spinbench.models.generators import grid

MODEL = grid(4, 4, seed=0, scale=1.0)
KERNELS: list[tuple[type[RelaxedKernel], Any]] = [
    (BlockGibbsKernel, BlockGibbs()),
    (BlockGibbsKernel, BlockGibbs(form="sparse")),
    (DHMCKernel, DHMC()),
    (DHMCKernel, DHMC(form="harmonium")),
]


@pytest.mark.parametrize("chains", [3, 16])
@pytest.mark.parametrize(("kind", "method"), KERNELS)
def test_looks_within_a_call_are_those_between_calls(kind: Any, method: Any, chains: int) -> None:
    kernel = kind(method, NumbaBackend(), MODEL, method.plan(MODEL))
    state, other = (kernel.adapt(kernel.init(3, np.zeros((16, chains), dtype=np.int8)), True) for _ in range(2))
    state, statistics, seen = kernel.advance_and_look(state, 17, 3, 5)
    looks, sums = [], []
    for steps in (3, 5, 5, 4):
        other, part = kernel.advance(other, steps)
        looks.append(kernel.look(other)["alpha"])
        sums.append(part["p"])
    np.testing.assert_allclose(seen["alpha"], looks[:3], rtol=1e-12)
    np.testing.assert_allclose(statistics["p"], sum(sums), rtol=1e-12)
    np.testing.assert_array_equal(kernel.look(state)["alpha"], looks[3])


def test_without_log_z_nothing_is_looked_at() -> None:
    method = DHMC(log_z="none")
    kernel = DHMCKernel(method, NumbaBackend(), MODEL, method.plan(MODEL))
    state = kernel.init(0, np.zeros((16, 4), dtype=np.int8))
    assert not kernel.look_steps(state)
    assert kernel.look(state) == {}


@pytest.mark.parametrize("method", ["block_gibbs", "dhmc"])
def test_the_standard_error_of_log_z_halves_where_a_run_gets_four_times_as_long(method: str) -> None:
    """To 0.4 to 0.6, and it is what log Z is off by."""
    log_z, medians, scores = spinbench.exact(MODEL).log_z, [], []
    for samples in (10_000, 40_000):
        results = [spinbench.run(MODEL, method, "numba", samples, seed=seed) for seed in range(8)]
        assert all(result.level == "converged" for result in results)
        medians.append(np.median([result.log_z_se for result in results]))
        scores += [(result.log_z - log_z) / result.log_z_se for result in results]
    assert all(0.4 < long / short < 0.6 for short, long in pairwise(medians))
    assert 0.67 < np.sqrt(np.mean(np.square(scores))) < 1.5


def test_draws_that_are_asked_for_are_those_that_estimators_get() -> None:
    for draws in (160, 3200):
        result = spinbench.run(MODEL, "block_gibbs", "numpy", 400, draws=draws, log_z="mirrored_in_sample")
        assert draws <= result.diagnostics["log_z_draws"] < 2 * max(draws, 256)
