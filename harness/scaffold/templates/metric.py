"""A metric to start from: how far the worst marginal is off. Replace the mathematics."""

from __future__ import annotations

import numpy as np

from spinbench import Result
from spinbench.api import Measured, Metric, Model


class MyMetric(Metric):
    """The largest error of a marginal, with the standard error that is claimed for that marginal."""

    title = "largest error"
    unit = "probability"
    better = "lower"
    families = ("inference", "gate")  # tracked over commits by both; empty: only in records and reports
    judged = "accuracy"  # `spinbench gate` refuses commits that make it worse; "no": only shown
    floor = 1e-6
    falls = 0.5  # exponent of its decrease with the number of samples: a square root

    def measure(self, model: Model, result: Result, reference: Result | None) -> Measured | str:
        """The number, or in a sentence why there is none."""
        if result.marginals is None:
            return f"{result.method} gives no marginals"
        if reference is None:
            return "there is no exact answer"
        errors = [abs(np.ravel(p) - np.ravel(q)) for p, q in zip(result.marginals, reference.marginals, strict=True)]
        flat = np.concatenate(errors)
        worst = int(flat.argmax())
        if result.marginals_se is None:
            return Measured(float(flat[worst]))
        claimed = np.concatenate([np.ravel(each) for each in result.marginals_se])
        return Measured(float(flat[worst]), float(claimed[worst]))
