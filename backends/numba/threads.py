"""Chains shared out among threads."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np


def run_in_threads(run: Callable[[slice], None], count: int, threads: int) -> None:
    """`run` for parts of `count` chains, or blocks of them, one for each of so many threads."""
    threads = min(threads, count)
    if threads == 1:
        run(slice(0, count))
        return
    cuts = np.linspace(0, count, threads + 1).astype(int).tolist()
    with ThreadPoolExecutor(threads) as pool:
        # Reading the results raises here whatever a thread raised.
        list(pool.map(run, map(slice, cuts, cuts[1:])))
