"""How many rungs a ladder needs: the barrier Λ between β = 0 and the model, from a short annealing on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.foundation import deadline
from spinbench.methods.tempering.program import Replicas

FloatArray = npt.NDArray[np.float64]

PARTICLES = 8, 32
"""At least and at most: of `VALUES` values in all, as far as that goes. Λ grows with the root of the variables, and so
does its error, so that few particles tell it of many variables: eight within 5 % on grids of 10 to 100 a side."""
VALUES = 2**15
TEMPERATURES = 32
SWEEPS = 4
"""At each temperature. Particles lag behind, so that the barrier is found too large rather than too small: more rungs
than are needed cost in proportion, fewer cost round trips."""
RUNGS = (4, 64)
"""At least and at most."""


def barrier(replicas: Replicas, tables: Any, cardinalities: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(betas, Λ up to each of them), by annealing particles; the same for the same tables.

    Args:
        replicas, tables, cardinalities: see `anneal`.
    """
    betas, seen = anneal(replicas, tables, cardinalities)
    return betas, barriers_of(betas, seen)


def anneal(replicas: Replicas, tables: Any, cardinalities: npt.ArrayLike) -> tuple[FloatArray, FloatArray]:
    """(betas (T,) from 0 to 1, D (T, P) of P particles at each); the same for the same tables.

    Args:
        replicas: over `HostArrays`.
        tables: of the replicas.
        cardinalities: (N,) of the variables.
    """
    rng = np.random.default_rng(0)
    betas = np.minimum((np.arange(TEMPERATURES) / (TEMPERATURES - 1)) ** 2, np.nextafter(1, 0))
    particles = int(np.clip(VALUES // max(np.size(cardinalities), 1), *PARTICLES))
    start = rng.integers(0, np.asarray(cardinalities)[:, None], size=(np.size(cardinalities), particles))
    x = replicas.begin(tables, start.astype(np.float64))
    seen = []
    for beta in betas:
        for _ in range(SWEEPS if beta else 1):
            deadline.check()
            x, _ = replicas.sweep(rng, tables, x, np.full(particles, beta))
        seen.append(np.asarray(replicas.log_weights(tables, x)[0]))
    return np.append(betas[:-1], 1.0), np.array(seen)


def barriers_of(betas: FloatArray, seen: FloatArray) -> FloatArray:
    """(T,) Λ up to each of the betas: where a swap between near rungs is rejected at the rate λ dβ,
    λ = E |D - D'| / 2 of two independent states (Syed et al., JRSS B 2022, equation 13)."""
    spread = np.array([_mean_difference(values) for values in seen])
    return np.concatenate([[0.0], np.cumsum(np.diff(betas) * (spread[1:] + spread[:-1]) / 4)])


def ladder(betas: FloatArray, barriers: FloatArray, rungs: int) -> FloatArray:
    """Of `rungs` rungs, or, where that is 0, of as many as Λ asks for, with equal parts of it between neighbours."""
    count = rungs or int(np.clip(np.ceil(2 * barriers[-1]) + 1, *RUNGS))
    rising = barriers + 1e-9 * np.arange(len(barriers))
    found = np.interp(np.linspace(0.0, rising[-1], count), rising, betas)
    found[-1] = 1.0
    return found


def _mean_difference(values: FloatArray) -> float:
    """E |D - D'| of two of the values."""
    ordered, count = np.sort(values), len(values)
    weights = 2 * np.arange(count) - count + 1
    return float(2 * (weights * ordered).sum() / (count * (count - 1)))
