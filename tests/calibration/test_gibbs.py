"""Gibbs sampling's log Z on many models and seeds: what is vouched for is right, within what it claims."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.models import Factor, FactorGraph, Model, generators

pytestmark = pytest.mark.calibration


def states_chain(n: int, states: int, scale: float) -> FactorGraph:
    """A chain of variables of several states, with tables of normal numbers."""
    rng = np.random.default_rng(n)
    tables = scale * rng.normal(size=(n - 1, states, states))
    return FactorGraph((states,) * n, [Factor((i, i + 1), table) for i, table in enumerate(tables)])


def potts(side: int, states: int, coupling: float) -> FactorGraph:
    """A grid of variables of several states, with fields, whose neighbours prefer to agree."""
    index = np.arange(side * side).reshape(side, side)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    fields = np.random.default_rng(side).normal(size=(side * side, states)) / 2
    alone = [Factor((v,), field) for v, field in enumerate(fields)]
    agree = coupling * np.eye(states)
    return FactorGraph((states,) * side**2, [*alone, *(Factor((int(a), int(b)), agree) for a, b in edges)])


MODELS: dict[str, Model] = {
    "grid of 6": generators.grid(2, 3),
    "weak grid": generators.grid(10, 10, 1.0, 0.5),
    "grid": generators.grid(10, 10),
    "strong grid": generators.grid(10, 10, 0.5, 2.0),
    "weak SK": generators.sherrington_kirkpatrick(16, 0.5, 0.2),
    "SK": generators.sherrington_kirkpatrick(16, 1.0, 0.2),
    "strong SK": generators.sherrington_kirkpatrick(16, 2.0, 0.2),
    "ring": generators.ring(200),
    "RBM": generators.rbm(12, 20, seed=3),
    "ferromagnet": generators.torus(8, 8, 0.3),
    "critical": generators.torus(8, 8),
    "glass of 64": generators.planar_glass(8, 8, 0.4),
    "weak glass of 256": generators.planar_glass(16, 16, 0.2),
    "glass of 256": generators.planar_glass(16, 16, 0.4),
    "weak glass of 1024": generators.planar_glass(32, 32, 0.1),
    "glass of 1024": generators.planar_glass(32, 32, 0.4),
    "glass of 4096": generators.planar_glass(64, 64, 0.2),
    "chain of 5 states": states_chain(20, 5, 1.0),
    "strong chain of 4 states": states_chain(30, 4, 2.0),
    "Potts": potts(5, 3, 0.7),
}
SMALL = [name for name, model in MODELS.items() if model.num_variables <= 256]


@cache
def exact(name: str) -> float:
    return float(spinbench.exact(MODELS[name]).log_z)


def scores(names: list[str], seeds: int, samples: tuple[int, ...], **options: Any) -> dict[str, np.ndarray]:
    """z of each estimate of log Z that is vouched for, by estimator, over models, seeds and lengths of run."""
    found: dict[str, list[float]] = {}
    for name in names:
        for count in samples:
            for seed in range(seeds):
                result = spinbench.run(MODELS[name], budget=count, seed=seed, checkpoints=1, **options)
                for estimator, (value, error) in result.log_z_estimates.items():
                    if np.isfinite(error):
                        found.setdefault(estimator, []).append((value - exact(name)) / error)
    return {estimator: np.array(z) for estimator, z in found.items()}


CASES: list[tuple[str, dict[str, Any], int]] = [
    ("numba", {"log_z": "auto"}, 10),
    ("numba", {"log_z": "stones"}, 10),
    ("numba", {"log_z": "auto", "scan": "raster", "precision": "float32"}, 6),
    ("numba", {"log_z": "stones", "scan": "random"}, 6),
    ("jax", {"log_z": "auto"}, 5),
    ("numpy", {"log_z": "auto"}, 5),
]


@pytest.mark.parametrize(("backend", "options", "seeds"), CASES)
def test_what_is_vouched_for_is_right(backend: str, options: dict[str, Any], seeds: int) -> None:
    native = backend == "numba"
    samples = (200, 2000) if native else (500,)
    found = scores(list(MODELS) if native else SMALL, seeds, samples, backend=backend, **options)
    for estimator, z in found.items():
        print(f"{backend} {options} {estimator}: {len(z)}, mean {z.mean():.2f}, sd {z.std():.2f}, {abs(z).max():.2f}")
    for z in found.values():
        assert len(z) >= 15
        noise = 2 / np.sqrt(len(z))
        assert abs(z.mean()) <= 0.3 + noise
        assert z.std() <= 1.3 + noise
        assert abs(z).max() <= 6
        assert z.std() >= 0.75 - noise


STUCK: dict[str, Model] = {
    "ordered ferromagnet": generators.torus(16, 16, 0.6),
    "frozen glass": generators.planar_glass(16, 16, 2.0),
    "frozen Potts grid": potts(8, 3, 4.0),
}


@pytest.mark.parametrize("name", STUCK)
def test_chains_that_are_stuck_get_another_verdict(name: str) -> None:
    """Enough or too few chains alike."""
    for chains in (16, 4):
        verdicts = [
            spinbench.run(STUCK[name], budget=500, seed=seed, chains=chains, checkpoints=1).status for seed in range(25)
        ]
        assert verdicts.count("ok") == 0


@pytest.mark.parametrize("name", MODELS)
def test_short_runs_get_another_verdict_or_are_right(name: str) -> None:
    for samples in (3, 8):
        for seed in range(10):
            result = spinbench.run(MODELS[name], budget=samples, seed=seed, checkpoints=1)
            assert samples == 8 or result.status != "ok"
            if result.status == "ok":
                assert result.log_z is not None
                assert result.log_z_se is not None
                assert abs(result.log_z - exact(name)) <= 6 * result.log_z_se
