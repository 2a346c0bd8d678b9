"""Gibbs sampling: spin updates a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparison import ours, problems
from comparison.answers import Sampled
from comparison.contender import Race, present
from comparison.peers import dwave, openjij, pgmpy_gibbs, thrml

Runner = Callable[[Any], None]
DWAVE = "dwave-samplers"


def test_smallest(race: Runner) -> None:
    """3 × 3, NumPy, which compiles nothing; pgmpy's sampler tabulates all states of a model, and can do no more."""
    known = problems.grid(3, 0.5)
    model = known.model

    def numpy() -> Any:
        return ours.sampler(
            model, "gibbs", "numpy", asked="1 chain, marginals each sweep", chains=1, samples=1000, work=1000.0 * 9,
            precision="float64", log_z="none", marginals="empirical",
        )  # fmt: skip

    here, missing = present(numpy, lambda: pgmpy_gibbs.gibbs(model, samples=1000))
    race(Race("Gibbs 3×3, 1 chain", "updates", "pgmpy", Sampled(known.exact, 0.1), here, missing))


def test_one_chain(race: Runner) -> None:
    known = problems.grid(10)
    model = known.model

    def mine(asked: str, precision: Any, samples: int, bar: float, **settings: Any) -> Callable[[], Any]:
        return lambda: ours.sampler(
            model, "gibbs", "numba", asked=asked, chains=1, samples=samples, work=100.0 * samples,
            precision=precision, bar=bar, log_z="none", **settings,
        )  # fmt: skip

    here, missing = present(
        mine("raster order, means of s each sweep", "float64", 200_000, 3.5, scan="raster", marginals="empirical"),
        mine("two colours, means of s each sweep", "float64", 200_000, 3.5, marginals="empirical"),
        mine("two colours, Rao-Blackwell means each sweep", "float64", 200_000, 3.5),
        mine("two colours, means of s each sweep", "float32", 400_000, 8.0, marginals="empirical"),
        mine("two colours, Rao-Blackwell means each sweep", "float32", 400_000, 8.0),
        lambda: dwave.gibbs(model, reads=1, sweeps=100_000, check_reads=10_000),
        lambda: thrml.gibbs(model, chains=1, samples=2500, thin=10),
        lambda: openjij.metropolis(model, reads=1, sweeps=100_000),
    )
    race(Race("Gibbs 10×10, 1 chain", "updates", DWAVE, Sampled(known.exact, 0.3), here, missing))


@pytest.mark.parametrize("chains", [100, 1000])
def test_many_chains(race: Runner, chains: int) -> None:
    known = problems.grid(10)
    model = known.model
    samples = 400_000 // chains

    def mine(asked: str, precision: Any, bar: float, **settings: Any) -> Callable[[], Any]:
        return lambda: ours.sampler(
            model, "gibbs", "numba", asked=asked, chains=chains, samples=samples, work=100.0 * samples * chains,
            precision=precision, bar=bar, log_z="none", **settings,
        )  # fmt: skip

    here, missing = present(
        mine("means of s each sweep", "float32", 15.0, marginals="empirical"),
        mine("Rao-Blackwell means each sweep", "float32", 15.0),
        mine("means of s each sweep", "float64", 15.0, marginals="empirical"),
        mine("Rao-Blackwell means each sweep", "float64", 15.0),
        *(
            mine(
                "precision_bits, means of s each sweep",
                "float32",
                35.0,
                marginals="empirical",
                precision_bits=bits,
                resolution=f"{bits} bits",
            )
            for bits in (16, 24)
        ),
        lambda: dwave.gibbs(model, reads=chains, sweeps=100_000 // chains, check_reads=10_000),
        lambda: thrml.gibbs(model, chains=chains, samples=20_000 // chains, thin=5),
    )
    race(Race(f"Gibbs 10×10, {chains} chains", "updates", DWAVE, Sampled(known.exact, 0.05), here, missing))


def test_large_grid(race: Runner) -> None:
    """1000 × 1000, 1 chain. Building and planning stand in a column of their own."""
    model, exact, classes = problems.tiled_grid(1000)
    n = float(model.num_variables)

    def mine(precision: Any, samples: int, **settings: Any) -> Callable[[], Any]:
        return lambda: ours.sampler(
            model, "gibbs", "numba", asked="two colours, means of s each sweep", chains=1, samples=samples,
            work=n * samples, precision=precision, burn_in=100, bar=10.0, log_z="none", marginals="empirical",
            **settings,
        )  # fmt: skip

    here, missing = present(
        mine("float32", 50),
        mine("float64", 50),
        lambda: dwave.gibbs(model, reads=1, sweeps=30),
        lambda: thrml.gibbs(model, chains=1, samples=2, thin=10, burn_in=20),
    )
    race(Race("Gibbs 1000×1000, 1 chain", "updates", DWAVE, Sampled(exact, 0.1, classes), here, missing))


def test_dense(race: Runner) -> None:
    """Sherrington-Kirkpatrick, β = 1; judged on a dense model of the same size whose exact answer is known."""
    n = 2000
    model, known = problems.sherrington_kirkpatrick(n), problems.mattis(n)

    def mine(precision: Any) -> Callable[[], Any]:
        return lambda: ours.sampler(
            model, "gibbs", "numba", asked="1 chain, means of s each sweep", chains=1, samples=2000, work=2000.0 * n,
            precision=precision, burn_in=100, bar=10.0, check_model=known.model, log_z="none", marginals="empirical",
        )  # fmt: skip

    here, missing = present(
        mine("float32"),
        mine("float64"),
        lambda: dwave.gibbs(model, reads=1, sweeps=300, check_reads=50, check_sweeps=100, check_model=known.model),
    )
    race(Race(f"Gibbs dense N = {n}", "updates", DWAVE, Sampled(known.exact, 0.1), here, missing))


@pytest.mark.parametrize("backend", ["jax", "numpy"])
def test_other_backends(race: Runner, backend: str) -> None:
    """100 chains of 10 × 10 against thrml, in the precision that thrml has and in the reference one."""
    known = problems.grid(10)
    model, chains = known.model, 100
    samples = 1000 if backend == "jax" else 300

    def mine(precision: Any, marginals: str) -> Callable[[], Any]:
        asked = "means of s each sweep" if marginals == "empirical" else "Rao-Blackwell means each sweep"
        return lambda: ours.sampler(
            model, "gibbs", backend, asked=asked, chains=chains, samples=samples, work=100.0 * samples * chains,
            precision=precision, bar=2.0 if backend == "jax" else 1.0, log_z="none", marginals=marginals,
        )  # fmt: skip

    here, missing = present(
        mine("float32", "empirical"),
        mine("float32", "rao_blackwell"),
        mine("float64", "rao_blackwell"),
        lambda: thrml.gibbs(model, chains=chains, samples=200, thin=5),
    )
    race(Race(f"Gibbs 10×10, 100 chains, {backend}", "updates", "thrml", Sampled(known.exact, 0.05), here, missing))


def test_numpy_large_grid(race: Runner) -> None:
    """1000 × 1000, 1 chain, in plain NumPy."""
    model, exact, classes = problems.tiled_grid(1000)
    n = float(model.num_variables)

    def mine(precision: Any) -> Callable[[], Any]:
        return lambda: ours.sampler(
            model, "gibbs", "numpy", asked="two colours, means of s each sweep", chains=1, samples=5, work=n * 5,
            precision=precision, burn_in=20, bar=1.0, log_z="none", marginals="empirical",
        )  # fmt: skip

    here, missing = present(
        mine("float32"), mine("float64"), lambda: thrml.gibbs(model, chains=1, samples=2, thin=10, burn_in=20)
    )
    race(Race("Gibbs 1000×1000, 1 chain, numpy", "updates", "thrml", Sampled(exact, 0.1, classes), here, missing))
