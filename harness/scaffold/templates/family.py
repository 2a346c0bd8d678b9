"""A family of models to start from: an Ising chain with a defect. Replace the mathematics."""

from __future__ import annotations

import numpy as np

from spinbench.api import PairwiseModel, family
from spinbench.errors import ModelError


@family  # converts values from the command line to the annotated types, or refuses them in one sentence
def mine(n: int = 20, coupling: float = 1.0, defect: float = -2.0, seed: int = 0) -> PairwiseModel:
    """Spins in a row, exp(K Σ σ_i σ_i+1 + h·σ), h ~ N(0, 1), with one bond of another strength in the middle."""
    if n < 3:
        raise ModelError(f"model 'mine': n = {n}; it must be 3 or more")
    if seed < 0:
        raise ModelError(f"model 'mine': seed = {seed}; it must be 0 or more")
    rng = np.random.Generator(np.random.PCG64(seed))
    bonds = np.full(n - 1, coupling)
    bonds[len(bonds) // 2] = defect
    edges = np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)
    return PairwiseModel.from_spins(rng.standard_normal(n), edges, bonds, name="mine")
