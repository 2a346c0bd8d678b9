"""Claims of every other sampler against exact answers, on each backend that runs it: marginals and log Z.

Run by `pytest -m calibration`; takes some minutes.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference import registry
from spinbench.models import Factor, FactorGraph, Model, generators

pytestmark = pytest.mark.calibration

SAMPLERS = (
    "blocks",
    "cftp",
    "gaussian_bound",
    "importance",
    "metropolis",
    "multicanonical",
    "nested",
    "pt",
    "rejection",
    "smc",
    "swendsen_wang",
    "tempered_transitions",
    "wmb",
    "zanella",
)
PAIRS = [(method, backend) for method in SAMPLERS for backend in ("numba", "numpy", "jax")]
SIZES = [(60, 16), (400, 16)]
SEEDS = 4
FIRST = {"nested": 1}
"""Of a program that takes half a minute for a larger model, the small ones alone."""
MOST, RATE = 6.0, 1e-4
"""Claims that a number may be off by, and the share of numbers that may be off by more."""


def states_with_zeros(n: int) -> FactorGraph:
    """A ring of variables of three states, a sixth of whose pairs of states are forbidden."""
    rng = np.random.default_rng(n)
    factors = []
    for i in range(n):
        table = rng.normal(size=(3, 3))
        table[rng.random(size=(3, 3)) < 1 / 6] = -np.inf
        np.fill_diagonal(table, 0.0)  # some state has weight
        factors.append(Factor((i, (i + 1) % n), table))
    return FactorGraph((3,) * n, factors, name="ring with zeros")


def triples(n: int) -> FactorGraph:
    """Factors of three binary variables each, in a chain."""
    rng = np.random.default_rng(n)
    factors = [Factor((i, i + 1, i + 2), rng.normal(size=(2, 2, 2))) for i in range(n - 2)]
    return FactorGraph((2,) * n, factors, name="triples")


MODELS: list[Model] = [
    generators.grid(2, 3, seed=31),
    generators.grid(7, 9, 1.0, 1.0, seed=32),
    generators.sherrington_kirkpatrick(14, 1.2, 0.3, seed=33),
    generators.torus(6, 6, 0.35),
    generators.planar_glass(12, 12, 0.5),
    states_with_zeros(24),
    triples(40),
]


def flat(numbers: object) -> np.ndarray:
    return np.concatenate([np.ravel(part) for part in numbers])  # type: ignore[attr-defined]


@pytest.mark.parametrize(("method", "backend"), PAIRS)
def test_what_is_vouched_for_is_right(method: str, backend: str) -> None:
    how = registry.support(method, backend)
    if not how.runs:
        pytest.skip(how.reason)
    scores: dict[str, list[np.ndarray]] = defaultdict(list)  # of each run
    refused, runs = set(), 0
    programs = MODELS[::3][: FIRST.get(method)]  # are slower, and the same everywhere
    for model in MODELS if how.tier == "native" else programs:
        exact = spinbench.exact(model)
        for samples, chains in SIZES:
            for seed in range(SEEDS):
                same = {"chains": chains, "seed": seed, "checkpoints": 1}
                try:
                    result = spinbench.run(model, method, backend, samples, **same)
                except SpinbenchError as why:
                    refused.add(f"{model.name}: {why}")
                    continue
                runs += 1
                if "marginals" not in result.status and result.marginals_se is not None:
                    error = np.maximum(flat(result.marginals_se), 1e-12)
                    scores["marginals"].append((flat(result.marginals) - flat(exact.marginals)) / error)
                for name, (value, se) in result.log_z_estimates.items():
                    if np.isfinite(se):
                        scores[name].append(np.array([(value - exact.log_z) / max(se, 1e-10)]))
    print(f"\n{method} on {backend}: {runs} runs, {len(refused)} models refused: {sorted(refused)}")
    assert runs
    beyond = []
    for name, parts in scores.items():
        z, noise = np.concatenate(parts), 2 / np.sqrt(len(parts))  # what one run says of its variables goes together
        mean, spread, most = float(np.mean(z)), float(np.std(z)), float(np.abs(z).max())
        print(f"{method}.{backend} {name:20s} {len(z):6d}  mean {mean:+.2f}  std {spread:.2f}  largest {most:.1f}")
        if np.mean(np.abs(z) > MOST) > RATE or abs(mean) > 0.3 + noise or spread > 1.3 + noise:
            beyond.append(name)
    assert not beyond
