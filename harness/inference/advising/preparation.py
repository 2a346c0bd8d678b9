"""What all candidates share, loaded once before their processes are forked: each would load it for itself."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from spinbench.foundation import plugins
from spinbench.inference import kernels, registry
from spinbench.inference.advising.candidates import OWN, Candidate
from spinbench.inference.runner import run
from spinbench.models import PairwiseModel


def prepare(candidates: Iterable[Candidate]) -> None:
    """Import what built-in candidates run; JAX does not survive a fork once it has begun."""
    _shared()
    for candidate in candidates:
        if candidate.backend == "numba":
            _compiler()
        if candidate.backend != "jax":
            for point in kernels.asked(candidate.method, candidate.backend):
                if plugins.distribution(point) == OWN:
                    kernels.load(point)


@lru_cache
def _shared() -> None:
    pair = PairwiseModel.from_edges([0.0, 0.0], [(0, 1)], [1.0])
    run(pair, "gibbs", "numpy", 2, burn_in=1, chains=2)


@lru_cache
def _compiler() -> None:
    """Numba's own tables, which it fills when it compiles for the first time."""
    registry.backend_class("numba")()
    from numba import njit

    njit()(_nothing)()


def _nothing() -> int:
    return 0
