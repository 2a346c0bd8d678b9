"""How far joint probabilities are from the exact ones."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api.metric import Measured, Metric
from spinbench.inference.result import Result
from spinbench.models import FactorGraph, Model


class PairRMSE(Metric):
    """Root of the mean square error of `Result.pairs`: p(s_i = s_j = 1) over the edges of a pairwise model, the entries
    of the tables of all factors of two or more variables of a factor graph.

    Its standard error is sqrt(Σ d² se²) / (n RMSE), with errors taken to be independent, as that of the marginals'.
    """

    title = "RMSE of pairs"
    unit = "probability"
    families = ("inference", "gate")
    floor = 1e-6
    judged = "accuracy"
    falls = 0.5

    def measure(self, model: Model, result: Result, reference: Result | None) -> Measured | str:
        if result.pairs is None:
            return f"{result.method} gives no pairs"
        if reference is None or reference.pairs is None:
            return "the exact pairs are out of reach"
        estimated, exact = _flatten(model, result.pairs), _flatten(model, reference.pairs)
        if not exact.size:
            return "the model has no pairs"
        difference = estimated - exact
        rmse = float(np.sqrt(np.mean(difference**2)))
        if result.pairs_se is None or not rmse > 0:
            return Measured(rmse)
        errors = _flatten(model, result.pairs_se)
        return Measured(rmse, float(np.sqrt(np.sum((difference * errors) ** 2)) / (difference.size * rmse)))


def _flatten(model: Model, pairs: Any) -> npt.NDArray[np.float64]:
    if not isinstance(model, FactorGraph):
        return np.asarray(pairs, dtype=np.float64)
    tables = [table for table, factor in zip(pairs, model.factors, strict=True) if len(factor.scope) > 1]
    return np.concatenate([np.empty(0), *tables])
