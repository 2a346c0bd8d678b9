"""Small runs of all kernels that use addresses, a family a process, in the debug mode of `backends.numba.simd`.

What is run is chosen by models and settings, as users choose it; see `gibbs.kernel.choose` for when a form
of Gibbs runs.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import config

import spinbench
from spinbench import PairwiseModel
from spinbench.backends.numba import machine_code
from spinbench.models import FactorGraph, Model, generators

# Method, model, chains and what else `spinbench.run` takes.
Run = tuple[str, Model, int, dict[str, Any]]

CHIB = {"log_z": "chib"}
STATES = {"marginals": "empirical", "log_z": "none"}
SINGLE = {"precision": "float32"}
SPARSE = {"form": "sparse", "diagonal": "dd"}


def random_model(n: int, edges: list[tuple[int, int]], scale: float = 0.3, **more: Any) -> PairwiseModel:
    rng = np.random.default_rng(n)
    return PairwiseModel.from_edges(rng.normal(size=n), edges, scale * rng.normal(size=len(edges)), **more)


def complete(n: int) -> PairwiseModel:
    return random_model(n, [(i, j) for i in range(n) for j in range(i)], n**-0.5)


GRID = generators.grid(6, 7, seed=1)
# Without a narrow band.
RING = random_model(40, [(i, (i + 1) % 40) for i in range(40)])
# Two colours of many rows, and rows of many neighbours.
LAYERS = random_model(44, [(i, 22 + j) for i in range(22) for j in range(22) if (i * j) % 3])
GROUPS = random_model(7, [(0, 3), (1, 4), (2, 5), (0, 5), (2, 4)], groups=((4, 0, 1), (3,)))
TRIPLES = FactorGraph.from_log_tables(
    [3, 2, 3, 2], [([2, 0, 1], np.linspace(-1, 1, 18)), ([1, 3], [[0.0, -np.inf], [0.3, 0.7]]), ([2], np.zeros(3))]
)


def gibbs_rows() -> Iterator[Run]:
    """One chain after the other."""
    yield from (("gibbs", GRID, 2, settings) for settings in (CHIB, STATES))  # sites by patterns
    yield from (("gibbs", LAYERS, 2, settings) for settings in (CHIB, STATES | SINGLE))  # sites by shifts and gathers
    yield from (("gibbs", GRID, 2, settings | {"scan": "raster"}) for settings in (CHIB, STATES))  # rows by patterns
    yield from (("gibbs", complete(12), 2, settings) for settings in (CHIB, STATES))  # rows
    yield from (("gibbs", complete(130), 2, settings | SINGLE) for settings in ({}, STATES))  # long rows


def gibbs_chains() -> Iterator[Run]:
    """Many chains at once, and single units."""
    yield from (("gibbs", GRID, 40, settings) for settings in (CHIB, STATES))  # by patterns
    yield from (("gibbs", complete(12), 20, settings | SINGLE) for settings in (CHIB, STATES))
    yield "gibbs", GRID, 256, STATES | {"precision_bits": 16}
    yield "gibbs", GROUPS, 3, CHIB
    yield "gibbs", GRID, 3, {"scan": "random"} | STATES
    yield "gibbs", GRID, 3, {"sample": "update"} | CHIB
    yield "gibbs", GROUPS, 3, {"scan": "random"} | STATES
    yield "gibbs", GROUPS, 1, STATES
    yield "gibbs", GROUPS, 3, {"log_z": "chib"}
    yield "gibbs", TRIPLES, 40, CHIB


def dhmc_leapfrog() -> Iterator[Run]:
    for chains, more in ((1, SINGLE), (20, {})):
        yield from (("dhmc", model, chains, more) for model in (GRID, complete(12), GROUPS))
        yield "dhmc", GRID, chains, {"form": "harmonium", "log_z": "zero_state"} | more


def dhmc_rotation() -> Iterator[Run]:
    for chains, more in ((1, {}), (20, SINGLE)):
        yield "dhmc", GRID, chains, {"form": "preconditioned"} | more
        yield from (("dhmc", model, chains, SPARSE | more) for model in (GRID, RING, GROUPS))


def block_gibbs() -> Iterator[Run]:
    for chains, more in ((1, {}), (20, SINGLE)):
        yield from (("block_gibbs", model, chains, more) for model in (GRID, GROUPS))
        yield "block_gibbs", complete(12), chains, {"form": "identity", "log_z": "zero_state"} | more
        yield from (("block_gibbs", model, chains, {"form": "sparse"} | more) for model in (GRID, RING))


def tables() -> Iterator[Run]:
    """Sweeps that look factors up."""
    for method in ("metropolis", "smc", "tempered_transitions", "multicanonical", "nested"):
        yield from ((method, model, chains, {}) for model, chains in ((TRIPLES, 5), (GRID, 20)))
        yield method, TRIPLES, 70, SINGLE


def exact() -> Iterator[Run]:
    yield "exact", GRID, 1, {"solver": "grid"}


FAMILIES = (gibbs_rows, gibbs_chains, dhmc_leapfrog, dhmc_rotation, block_gibbs, tables, exact)


def main(family: str) -> None:
    for method, model, chains, settings in next(f for f in FAMILIES if f.__name__ == family)():
        result = spinbench.run(model, method, "numba", 80, chains=chains, checkpoints=1, **settings)
        assert result.log_z is None or np.isfinite(result.log_z), (method, settings)
        shares = () if result.marginals is None else result.marginals
        assert all(np.isfinite(part).all() for part in shares), (method, settings)
    assert machine_code.CHECKED
    assert config.BOUNDSCHECK


if __name__ == "__main__":
    main(sys.argv[1])
