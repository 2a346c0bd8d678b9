"""Nested sampling: points climb through ever smaller sets of states, those of D = log p* above a level.

    P points drawn at β = 0;
    k = 1 … T:  X_k, the share of states above level k, is X_k-1 times the share of points that are;
                those that fall add (X_k-1 / P) p*(x) to Ẑ; as many are copied from those that are left;
                `sweeps` sweeps in which every variable is drawn evenly among its states above level k;
    those that are left add (X_T / P) p*(x).

A state has many values of D in common with others, so that a label, uniform on a nat, is added to it, and summed over.
Skilling, "Nested sampling for general Bayesian computation", Bayesian Analysis 2006; of discrete models, with labels:
Murray, MacKay, Ghahramani, Skilling, "Nested sampling for Potts models", NIPS 2005.

There each level is the lowest point's D, and Ẑ is as good as the sweeps: too few of them leave copies together, and
nothing in a run tells. Here a pilot, run so on the host, sets the levels once for all runs, each at half of what is
left, up to where those that are left weigh about the same; then E Ẑ = Z whatever the sweeps do (Salomone, South,
Drovandi, Kroese, "Unbiased and consistent nested sampling via sequential Monte Carlo", 2018). Runs are weighed by Ẑ as
those of `smc`, and their scatter is what is claimed. The published error, sqrt(H / P) over the root of the number of
runs, H being the information that p has over β = 0, stands in the diagnostics: it takes sweeps to mix. What shows that
they do not: half of the chains make three times as many. Where the halves disagree, or few runs carry all the weight,
or would be expected to, marginals and log Z are doubted.

**A chain of a run of spinbench is a population, a step is a whole run**, and nothing is burnt in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Estimate, Method, Model, Program, Reduction, Trace
from spinbench.errors import UnsupportedError
from spinbench.foundation.parameters import check_whole
from spinbench.mathematics.bennett import CONTRADICTED
from spinbench.mathematics.claims import NOTHING
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import FloatArray, table_sweep
from spinbench.methods.baselines.climb import NestedSamplingProgram
from spinbench.methods.baselines.shells import LABEL_NATS, LOWEST_LEVEL, Shells, Tables
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.population.estimates import population_estimate, summarise_runs
from spinbench.methods.weighted_means import state_pairs

# Number of factors whose look-up takes about as long as the fixed cost of an update: an update of a variable with fewer
# factors costs no less.
FACTORS_PER_UPDATE = 16
# Smallest and largest number of points that is chosen automatically (as many as there are levels); largest number that
# may be requested.
MIN_POINTS, MAX_AUTO_POINTS, MAX_POINTS = 8, 64, 2**16
# Once the effective share of the remaining points reaches this, their weighted mean is used: further levels would only
# add noise.
EVEN_WEIGHT_SHARE = 0.5
# Updates of variables in the pilot run. A model that needs more has steps (each one a whole run) too long to be timed
# or interrupted.
MAX_PILOT_UPDATES = 25_000


@dataclass(frozen=True)
class NestedSampling(Method[Tables]):
    """Nested sampling: populations climb a ladder of levels of D = log p*, which gives an unbiased estimate of Z.

    Attributes:
        points: P of a population; 0: as many as the pilot has levels, 8 to 64.
        sweeps: after each level.
        levels: at most, that of all states among them; 0: as many as it takes, to be found in a pilot's 25,000 updates.
    """

    points: int = 0
    sweeps: int = 1
    levels: int = 0

    name: ClassVar[str] = "nested"
    summary: ClassVar[str] = (
        "nested sampling with labels and levels set by a pilot; log Z without bias; any factor graph"
    )
    model_form = "categorical"

    def __post_init__(self) -> None:
        check_whole(self, "points", 0, MAX_POINTS)
        check_whole(self, "sweeps", 1)
        check_whole(self, "levels", 0)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """z, square: (C,) log Ẑ and twice that; p: (R, C) log of Ẑ p."""
        return dict.fromkeys(("z", "square", "p"), "logsumexp")

    def plan(self, model: Model) -> Tables:
        """Tables of the sweeps; levels by the pilot.

        Raises:
            UnsupportedError: the pilot has not found all levels.
        """
        graph = factor_tables(model)
        tables = Tables(
            np.array([LOWEST_LEVEL]),
            np.zeros(MAX_AUTO_POINTS),
            np.array(model.cardinalities, dtype=np.float64),
            table_sweep(graph, "raster", single=True),
            *state_pairs(model.cardinalities),
            np.array(graph.log_constant + np.log(model.cardinalities).sum()),
            np.array(0.0),
        )
        levels, information = run_pilot(tables, self.sweeps, self.levels)
        points = np.zeros(self.points or int(np.clip(len(levels), MIN_POINTS, MAX_AUTO_POINTS)))
        return tables._replace(levels=levels, points=points, information=np.array(information))

    def step_updates(self, tables: Tables) -> float:
        """Of a whole run; half of the chains make three times as many. One of many factors is as many as they fill."""
        single = tables.sweep.single
        updates_per_variable = 1.0
        if single is not None:
            updates_per_variable = max(1.0, single.bases.shape[1] / FACTORS_PER_UPDATE)
        return 2 * updates_per_variable * len(tables.sizes) * len(tables.levels) * len(tables.points) * self.sweeps

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return NestedSamplingProgram(backend, self.sweeps).program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals and log Z, and what may be claimed of both."""
        runs = summarise_runs(model.cardinalities, trace)
        information, distance = float(tables.information), halves_distance(trace)
        diagnostics = {
            "levels": float(len(tables.levels) - 1),
            "points": float(len(tables.points)),
            "information": information,
            "published_error": float(np.sqrt(max(information, 0.0) / (runs.num_runs * len(tables.points)))),
            "halves_apart": distance,
        }
        is_supported = runs.supported and distance < CONTRADICTED
        return population_estimate(model, runs, float(tables.base), len(tables.points), is_supported, diagnostics)


def halves_distance(trace: Trace) -> float:
    """By how many joint standard errors log Ẑ of the chains with more sweeps and of the others are apart."""
    z = trace.series("z")
    # A scatter needs at least two chains in each half.
    if z.shape[1] < 4 or not np.isfinite(z.max()):
        return np.inf
    parts = [z[:, : z.shape[1] // 2].ravel(), z[:, z.shape[1] // 2 :].ravel()]
    top = float(z.max())
    w = [np.exp(part - top) for part in parts]
    if not all(part.any() for part in w):
        return np.inf
    noise = float(np.hypot(*(part.std(ddof=1) / part.mean() / np.sqrt(part.size) for part in w)))
    difference = abs(float(np.log(w[0].mean() / w[1].mean())))
    return difference / noise if noise > NOTHING else 0.0


def run_pilot(t: Tables, sweeps: int, levels: int) -> tuple[FloatArray, float]:
    """(levels (T,); H) of a run of one population; H is 0 where it met no state of positive weight.

    Args:
        t: without levels; of as many points as the run has.
        sweeps: after each level.
        levels: at which it ends at the latest; 0: where those that are left weigh about the same.

    Raises:
        UnsupportedError: that is not so after `MAX_PILOT_UPDATES`.
    """
    max_levels = levels or MAX_PILOT_UPDATES // max(sweeps * len(t.sizes), 1) + 1
    # A fixed seed: the levels depend only on the model and the settings and are the same in all runs, as E Ẑ = Z
    # requires.
    shells, rng = Shells(HostArrays()), np.random.default_rng(0)
    points, pilot_levels = shells.draw_points(rng, t, (len(t.points), 1)), [LOWEST_LEVEL]
    logs, heights = np.array([]), np.array([])
    while True:
        exact = shells.exact_log_weights(t, points.x)
        rest = exact + points.log_x - np.log(len(exact))
        # The labels of these points lie above the last level, so that they are uniform on the part of their nat above
        # it.
        low = np.clip(pilot_levels[-1] - points.d, 0.0, LABEL_NATS)
        level = float(np.median(points.d + low + (LABEL_NATS - low) * rng.random(len(low))))
        with np.errstate(divide="ignore"):
            is_even = effective_share(exact) >= EVEN_WEIGHT_SHARE
            if len(pilot_levels) >= max_levels or is_even:
                logs, heights = np.append(logs, rest), np.append(heights, exact)
                break
            left = shells.surviving_share(points.d, np.array(pilot_levels[-1]), np.array(level))
            logs, heights = np.append(logs, rest + np.log(1 - left)), np.append(heights, exact)
        points = shells.resample_points(rng, points, left)
        for _ in range(sweeps):
            points = shells.sweep(rng, t, points, np.array(level))
        pilot_levels.append(level)
    if not is_even and not levels:
        raise UnsupportedError(
            f"nested: after {max_levels} levels of {len(t.sizes)} variables a pilot's points still weigh unevenly, "
            f"and more would be too long a step; levels={max_levels} ends there all the same"
        )
    log_z, is_finite = np.logaddexp.reduce(logs), np.isfinite(logs)
    # H = Σ (w / Z) log (p* / Z), Skilling's information of p relative to the uniform law.
    information = 0.0
    if is_finite.any():
        information = float(np.exp(logs[is_finite] - log_z) @ heights[is_finite] - log_z)
    return np.array(pilot_levels), information


def effective_share(logs: FloatArray) -> float:
    """(Σ w)² / (n Σ w²) of weights with these logarithms; 0 where all are 0."""
    w = np.exp(logs - logs.max()) if np.isfinite(logs.max()) else np.zeros(len(logs))
    return float(w.sum() ** 2 / (len(w) * max((w**2).sum(), 1.0)))
