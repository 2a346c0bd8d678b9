"""Costs that were measured by pairs (`spinbench.history.pairs`): differences of cells, groups and all, with errors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from spinbench.history import axes
from spinbench.history.regression_test import noise
from spinbench.history.regression_test.effects import Effects
from spinbench.history.regression_test.measurements import Place
from spinbench.history.regression_test.noise import FloatArray, VarianceEstimate
from spinbench.history.regression_test.significance import Level

# Log ratio by which two builds of one program differ whatever the number of starts: of ten cells, each the mean of
# eight starts, nine are within 0.01 of 0 and one is at -0.03.
BUILD_ERROR, BUILD_FREEDOM = 0.01, 20.0
# Relative rise that is let pass, as of the costs that seeds are compared by.
MARGIN = 0.05


def pair_effects(ratios: Mapping[Place, Sequence[float]]) -> Effects:
    """Of the CPU time of a step.

    Args:
        ratios: of each cell, logarithms of head's over base's in each start of both sides; two at least.
    """
    (metric,) = (metric for metric in axes.metrics() if metric.name == "step_cpu_seconds")
    places = tuple(sorted(ratios))
    difference = np.array([np.mean(ratios[place]) for place in places])
    counts = np.array([len(ratios[place]) for place in places], dtype=np.float64)
    scatter = VarianceEstimate(np.array([np.var(ratios[place], ddof=1) for place in places]), counts - 1)
    starts = noise.moderate_variances(scatter)
    means = VarianceEstimate(starts.variance / counts, np.maximum(starts.freedom, 1.0))
    groups = sorted({place.group for place in places})
    members = np.array([[place.group == group for place in places] for group in groups], dtype=np.float64)
    levels = {"cell": np.eye(len(places)), "group": members, "all": np.ones((1, len(places)))}
    return Effects(
        replace(metric, title=f"{metric.title}, by pairs", margin=MARGIN),
        places,
        tuple(_pool(name, difference, means, membership) for name, membership in levels.items()),
        {},
    )


def _pool(name: str, difference: FloatArray, means: VarianceEstimate, membership: FloatArray) -> Level:
    """Means of cells, each with its precision as weight; the builds differ by as much as in one cell."""
    precision = membership / np.maximum(means.variance, noise.ROUNDING_ERROR**2)
    weights = precision / precision.sum(axis=1, keepdims=True)
    parts = weights**2 * means.variance
    within = parts.sum(axis=1)
    freedom = within**2 / np.maximum((parts**2 / means.freedom).sum(axis=1), noise.ROUNDING_ERROR**4)
    builds = VarianceEstimate(np.full(len(within), BUILD_ERROR**2), np.full(len(within), BUILD_FREEDOM))
    whole = noise.satterthwaite_variance(VarianceEstimate(within, np.maximum(freedom, 1.0)), 1.0, builds)
    return Level(name, weights @ difference, np.sqrt(whole.variance), whole.freedom, weights)
