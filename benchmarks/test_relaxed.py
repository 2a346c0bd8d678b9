"""Hamiltonian Monte Carlo and block Gibbs on the Gaussian relaxation: samples a second, and effective ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparison import ours, problems, relaxed
from comparison.answers import Sampled
from comparison.contender import Race, counted, present
from comparison.peers import hmc

Runner = Callable[[Any], None]


@pytest.mark.parametrize("precision", ["float32", "float64"])
@pytest.mark.parametrize("chains", [1, 100])
def test_dhmc(race: Runner, chains: int, precision: Any) -> None:
    """5 leapfrog steps of the same size on the same density, N = 100. The sparse form x = (W + D)y has its own step."""
    known = problems.grid(10, 0.5)
    model = known.model
    density = relaxed.density(model)
    samples = 20_000 if chains == 1 else 500

    def mine(form: str, asked: str, **settings: Any) -> Callable[[], Any]:
        return lambda: ours.sampler(
            model, "dhmc", "numba", asked=asked, chains=chains, samples=samples, work=float(samples) * chains,
            precision=precision, burn_in=500, bar=2.5, form=form, leapfrog_steps=density.leapfrog, log_z="none",
            **settings,
        )  # fmt: skip

    here, missing = present(
        mine("identity", f"A = I, {counted(chains, 'chain')}, 5 steps of {density.step:.3g}", step_size=density.step),
        mine("sparse", f"x = (W + D)y, {counted(chains, 'chain')}, 5 steps, adapted", diagonal="dd", slack=0.05),
        lambda: hmc.blackjax(density, chains=chains, samples=samples, precision=precision),
        lambda: hmc.blackjax(density, chains=chains, samples=samples, precision=precision, documented=True),
        lambda: hmc.numpyro(density, chains=chains, samples=samples, precision=precision),
    )
    name = f"DHMC N = 100, {counted(chains, 'chain')}, {precision}"
    race(Race(name, "samples", "blackjax", Sampled(known.exact, 0.2), here, missing))


def test_block_gibbs(race: Runner) -> None:
    """No peer: microseconds a sample are what counts. Aim: 2 µs for one chain, 1 µs with sparse noise."""
    known = problems.grid(10, 0.5)
    model = known.model

    def mine(form: str, chains: int, precision: Any, **settings: Any) -> Callable[[], Any]:
        samples = 100_000 // chains
        return lambda: ours.sampler(
            model, "block_gibbs", "numba", asked=f"form {form}, {counted(chains, 'chain')}", chains=chains,
            samples=samples, work=float(samples) * chains, precision=precision, form=form, log_z="none", **settings,
        )  # fmt: skip

    here, missing = present(
        *(
            mine(form, chains, precision)
            for form in ("harmonium", "identity", "sparse")
            for chains in (1, 100)
            for precision in ("float32", "float64")
        )
    )
    race(Race("block Gibbs N = 100", "samples", "none", Sampled(known.exact, 0.1), here, missing))
