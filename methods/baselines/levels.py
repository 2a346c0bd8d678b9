"""The levels of nested sampling, by a run of it on the host: each is where half of the points are left."""

from __future__ import annotations

import numpy as np

from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.table_layouts import FloatArray
from spinbench.methods.baselines.shells import GROUND, WIDTH, Shells, Tables
from spinbench.methods.gibbs.host_arrays import HostArrays

EVEN = 0.5
"""Share of the points that count in effect where all that are left are weighed: there is no need to climb on."""
UPDATES = 25_000
"""Of variables, on the way up; what takes more takes a step of a run too long."""


def climbed(t: Tables, sweeps: int, levels: int) -> tuple[FloatArray, float]:
    """(levels (T,); H) of a run of one population; H is 0 where it met no state of positive weight.

    Args:
        t: without levels; of as many points as the run has.
        sweeps: after each level.
        levels: at which it ends at the latest; 0: where those that are left weigh about the same.

    Raises:
        UnsupportedError: that is not so after `UPDATES`.
    """
    most = levels or UPDATES // max(sweeps * len(t.sizes), 1) + 1
    shells, rng = Shells(HostArrays()), np.random.default_rng(0)
    points, found = shells.begin(rng, t, (len(t.points), 1)), [GROUND]
    logs, heights = np.array([]), np.array([])
    while True:
        exact = shells.log_exact(t, points.x)
        rest = exact + points.log_x - np.log(len(exact))
        low = np.clip(found[-1] - points.d, 0.0, WIDTH)
        level = float(np.median(points.d + low + (WIDTH - low) * rng.random(len(low))))
        with np.errstate(divide="ignore"):
            even = share(exact) >= EVEN
            if len(found) >= most or even:
                logs, heights = np.append(logs, rest), np.append(heights, exact)
                break
            left = shells.left(points.d, np.array(found[-1]), np.array(level))
            logs, heights = np.append(logs, rest + np.log(1 - left)), np.append(heights, exact)
        points = shells.thinned(rng, points, left)
        for _ in range(sweeps):
            points = shells.sweep(rng, t, points, np.array(level))
        found.append(level)
    if not even and not levels:
        raise UnsupportedError(
            f"nested: after {most} levels of {len(t.sizes)} variables a pilot's points still weigh unevenly, and more "
            f"would be too long a step; levels={most} ends there all the same"
        )
    log_z, some = np.logaddexp.reduce(logs), np.isfinite(logs)
    information = float(np.exp(logs[some] - log_z) @ heights[some] - log_z) if some.any() else 0.0
    return np.array(found), information


def share(logs: FloatArray) -> float:
    """(Σ w)² / (n Σ w²) of weights with these logarithms; 0 where all are 0."""
    w = np.exp(logs - logs.max()) if np.isfinite(logs.max()) else np.zeros(len(logs))
    return float(w.sum() ** 2 / (len(w) * max((w**2).sum(), 1.0)))
