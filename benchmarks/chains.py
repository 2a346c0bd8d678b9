"""What batching gains: the run seconds of C cells of one chain each, over those of one cell of C chains.

python benchmarks/chains.py [SAMPLES]: a Markdown table for a 10 x 10 grid, each time the best of three.
"""

from __future__ import annotations

import sys

from spinbench import run
from spinbench.models import generators

CHAINS = (10, 100)
REPEATS = 3


def seconds(method: str, backend: str, chains: int, samples: int) -> float:
    """Wall-clock of the samples that count, without planning, compiling, burn-in and estimating."""
    model = generators.grid(10, 10, seed=1)
    runs = [
        run(model, method, backend, samples, chains=chains, burn_in=10, seed=seed, checkpoints=1)
        for seed in range(REPEATS)
    ]
    return min(result.seconds.run for result in runs)


def main(samples: int) -> None:
    """Print the table row by row."""
    print(f"| {samples} samples a chain | 1 chain, s |" + "".join(f" {count} chains, s | gain |" for count in CHAINS))
    print("|---|---|" + "---|---|" * len(CHAINS))
    for method in ("gibbs", "dhmc", "block_gibbs"):
        for backend in ("numpy", "numba", "jax"):
            single = seconds(method, backend, 1, samples)
            row = f"| {method}, {backend} | {single:.4f} |"
            for count in CHAINS:
                batched = seconds(method, backend, count, samples)
                row += f" {batched:.4f} | {count * single / batched:.1f} |"
            print(row, flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
