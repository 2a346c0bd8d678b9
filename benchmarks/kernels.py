"""CPU nanoseconds of the compiled kernels of samplers for hard models, and what is aimed at.

python benchmarks/kernels.py [ROUNDS]: a Markdown table, 16 chains or ladders, float64, each time the least of so many
rounds (9), in which the kernels take turns. pt is held to 1.3 times what gibbs takes with as many chains as replicas.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from spinbench.api import Precision
from spinbench.inference import binding, registry
from spinbench.models import FactorGraph, Model, generators

CHAINS = 16
SECONDS = 0.05
"""Least time of what is timed at once."""


def tables(size: int = 20, states: int = 3) -> FactorGraph:
    """A torus of so many states, each variable with 4 neighbours."""
    rng = np.random.default_rng(0)
    here = np.arange(size * size).reshape(size, size)
    edges = np.concatenate([np.stack([here, np.roll(here, -1, axis)], -1).reshape(-1, 2) for axis in (0, 1)]).tolist()
    factors = [(tuple(edge), 0.5 * rng.normal(size=(states, states))) for edge in edges]
    return FactorGraph.from_log_tables([states] * size**2, factors)


def steps(
    name: str, model: Model, chains: int = CHAINS, precision: Precision = "float64", **settings: Any
) -> tuple[Callable[[], float], Any]:
    """(CPU seconds of a step of all chains, the plan's tables)."""
    method = registry.make_method(name, settings)
    planned = method.plan(model)
    engine = binding.bind(method, "numba", model, planned, precision=precision).engine
    rng = np.random.default_rng(1)
    start = rng.integers(0, np.array(model.cardinalities)[:, None], size=(model.num_variables, chains)).astype(np.int8)
    state, count = engine.warm(engine.init(0, start), 2), 1

    def timed() -> float:
        nonlocal state, count
        while True:
            since = time.process_time()
            state, _ = engine.advance(state, count)
            spent = time.process_time() - since
            if spent >= SECONDS:
                return spent / count
            count *= 2

    return timed, planned


def entries(planned: Any) -> float:
    """Of the tables of all buckets of a sweep's blocks."""
    sizes = np.prod(planned.cards, axis=1, dtype=np.float64)
    return float(sum(sizes[planned.starts[b] : planned.starts[b + 1]].sum() for b in planned.sweep))


def main(rounds: int) -> None:
    """Print the table."""
    torus, few = tables(), generators.grid(10, 10, 1.0, 1.0, seed=1)
    many = generators.regular_glass(100, 8, 0.5, "gaussian", 0.3, seed=1)
    gibbs, _ = steps("gibbs", torus)
    blocks, cut = steps("blocks", torus, size=81, log_z="none")
    clusters, _ = steps("swendsen_wang", generators.grid(64, 64, 0.1, 0.44, seed=0))
    (first, grid), (second, glass) = steps("pt", few), steps("pt", many)
    replicas = [CHAINS * len(planned.betas) for planned in (grid, glass)]
    plain = [steps("gibbs", model, count, log_z="none")[0] for model, count in zip((few, many), replicas, strict=True)]
    timers = gibbs, blocks, clusters, first, plain[0], second, plain[1]
    best = np.min([[timer() for timer in timers] for _ in range(rounds)], axis=0) * 1e9
    best /= CHAINS * np.array([400, entries(cut), 64**2, *np.repeat(np.array(replicas) * 100 / CHAINS, 2)])
    print("| kernel | ns | a unit | aim |\n|---|---|---|---|")
    print(f"| gibbs, 20 × 20 torus of 3 states | {best[0]:.3g} | update | 25 |")
    print(f"| blocks, the same, size=81 | {best[1]:.3g} | table entry | 5 |")
    print(f"| swendsen_wang, 64 × 64 grid | {best[2]:.3g} | variable | 30 |")
    names = "10 × 10 grid", "100 variables of 8 neighbours"
    for name, count, own, other in zip(names, replicas, best[3::2], best[4::2], strict=True):
        print(f"| pt, {name}, {count} replicas | {own:.3g} | update | {1.3 * other:.3g} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
