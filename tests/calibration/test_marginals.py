"""Marginals of Gibbs sampling: what is vouched for is right within its claim, on every scan and backend."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.inference.result import Result
from spinbench.models import Factor, FactorGraph, Model, PairwiseModel, generators

pytestmark = pytest.mark.calibration


def rare(n: int) -> PairwiseModel:
    """A chain whose fields make p(s = 1) as small as 1e-6 and as large as 1 - 1e-6."""
    rng = np.random.default_rng(n)
    edges = [(i, i + 1) for i in range(n - 1)]
    return PairwiseModel.from_edges(rng.uniform(-14, 14, size=n), edges, 2 * rng.normal(size=n - 1), name="rare")


def chain(n: int, states: int) -> FactorGraph:
    """Of variables of several states, with tables of normal numbers."""
    tables = np.random.default_rng(n).normal(size=(n - 1, states, states))
    return FactorGraph((states,) * n, [Factor((i, i + 1), table) for i, table in enumerate(tables)], name="chain")


MODELS: dict[str, Model] = {
    "grid of 6": generators.grid(2, 3, seed=11),
    "grid": generators.grid(9, 11, seed=12),
    "strong grid": generators.grid(9, 9, 0.5, 2.0, seed=13),
    "SK": generators.sherrington_kirkpatrick(15, 1.5, 0.3, seed=14),
    "RBM": generators.rbm(10, 30, seed=15),
    "ring of 4096": generators.ring(4096),
    "long grid": generators.grid(8, 300, seed=16),
    "rare": rare(200),
    "4 states": chain(40, 4),
}
SMALL = ["grid of 6", "grid", "SK", "rare", "4 states"]
CASES: list[tuple[str, dict[str, Any]]] = [
    ("numba", {}),
    ("numba", {"scan": "raster"}),
    ("numba", {"scan": "random"}),
    ("numba", {"marginals": "empirical"}),
    ("numba", {"precision": "float32"}),
    ("jax", {"precision": "float32"}),
    ("jax", {}),
    ("numpy", {}),
]
SIZES = [(100, 16), (1000, 16), (400, 64)]


@cache
def exact(name: str) -> np.ndarray:
    return flat(spinbench.exact(MODELS[name]).marginals)


def flat(marginals: Any) -> np.ndarray:
    return np.ravel(marginals) if isinstance(marginals, np.ndarray) else np.concatenate(marginals)


def z_of(result: Result, name: str) -> np.ndarray:
    return (flat(result.marginals) - exact(name)) / np.maximum(flat(result.marginals_se), 1e-15)


@pytest.mark.parametrize(("backend", "options"), CASES)
def test_what_is_vouched_for_is_right(backend: str, options: dict[str, Any]) -> None:
    parts = []
    same: dict[str, Any] = {"checkpoints": 1, "log_z": "none", **options}
    for name in SMALL if options or backend != "numba" else MODELS:
        for samples, chains in SIZES:
            for seed in range(3):
                result = spinbench.run(MODELS[name], "gibbs", backend, samples, chains=chains, seed=seed, **same)
                if result.status == "ok":
                    parts.append(z_of(result, name))
    each = np.array([part.std() for part in parts])
    z = np.concatenate(parts)
    print(
        f"{backend} {options}: {len(parts)} runs, {z.size} numbers, mean {z.mean():+.3f}, std {z.std():.2f}, ", end=""
    )
    print(f"largest {abs(z).max():.1f}, outside 2 {np.mean(abs(z) > 2):.2%}, std within a run {np.median(each):.2f}")
    assert abs(z.mean()) <= 0.3
    assert z.std() <= 1.3
    assert np.mean(abs(z) > 2) <= 0.05
    assert (abs(z) > 6).sum() <= 1e-4 * z.size


def well(size: int, field: float, pull: float) -> PairwiseModel:
    """A ferromagnet of two wells, of which the field makes one the heavier."""
    i, j = np.triu_indices(size, 1)
    couplings = np.full(len(i), 4 * pull / size)
    return PairwiseModel.from_edges(
        np.full(size, -2 * pull * (size - 1) / size + field), np.stack([i, j], 1), couplings, name="well"
    )


STUCK: dict[str, tuple[Model, dict[str, Any]]] = {
    "frozen ferromagnet": (generators.torus(12, 12, 0.7), {"chains": 16}),
    "two wells": (well(60, 0.0, 3.0), {"chains": 16}),
    "one chain": (generators.grid(6, 6), {"chains": 1}),
    "four chains": (generators.grid(6, 6), {"chains": 4}),
    "three samples": (generators.grid(6, 6), {"budget": 3}),
}


@pytest.mark.parametrize("case", STUCK)
def test_what_is_stuck_or_short_says_so(case: str) -> None:
    model, options = STUCK[case]
    runs = 100
    verdicts = [
        spinbench.run(
            model, "gibbs", "numba", seed=seed, checkpoints=1, log_z="none", **{"budget": 400, **options}
        ).status
        for seed in range(runs)
    ]
    assert verdicts.count("ok") <= 0.01 * runs


@pytest.mark.parametrize("samples", [4, 6, 8])
def test_short_runs_are_right_or_say_so(samples: int) -> None:
    for name in SMALL:
        for seed in range(20):
            result = spinbench.run(MODELS[name], "gibbs", "numba", samples, seed=seed, checkpoints=1, log_z="none")
            if result.status == "ok":
                assert abs(z_of(result, name)).max() <= 6
