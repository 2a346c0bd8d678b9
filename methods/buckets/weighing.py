"""From the weights of draws to marginals and log Z, with what may be claimed of them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Estimate
from spinbench.api.bounds import Bound
from spinbench.api.trace import Trace
from spinbench.mathematics.claims import UNSEEN, t_factor
from spinbench.methods.buckets import betting
from spinbench.methods.buckets.draws import BINS, WIDTH
from spinbench.methods.buckets.layout import Array
from spinbench.methods.buckets.passes import FloatArray
from spinbench.methods.buckets.problem import all_states, draws_of, on_model
from spinbench.models import Model

FEWEST = 100.0
"""Draws of equal weight that tell as much as those that were made."""
MOST_UNSEEN = 0.1
"""Share of Z that draws may not have shown, by the bound on their weights."""
_EDGES = np.append(np.exp(-WIDTH * np.arange(BINS)), 0.0)


class Told(NamedTuple):
    """What the run says of its bound."""

    value: float
    slack: float
    ibound: float
    passes: float
    split: float


def estimate(model: Model, cards: Array, trace: Trace, delta: float, *, draws: bool) -> Estimate:
    """Self-normalised marginals and the mean weight, between the bounds."""
    told = Told(*trace.total("bound")[:, 0].tolist())
    weights = _weights(trace)
    bounds = _bounds(told, weights, delta)
    diagnostics = {
        "weight_ess": weights.effective,
        "ibound": told.ibound,
        "passes": told.passes,
        **{f"{bound.grade}_{bound.side}": bound.value for bound in bounds},
    }
    if not told.split:
        exact = all_states(cards, trace.total("beliefs")[:, :1], np.ones(1))[:, 0]
        return Estimate(
            marginals=_laid_out(model, exact),
            marginals_se=_laid_out(model, np.zeros(len(exact))),
            ess=_laid_out(model, np.full(len(exact), weights.number)),
            log_z=told.value,
            log_z_kind="exact",
            draws=draws_of(model, trace) if draws else None,
            diagnostics=diagnostics,
        )
    enough = weights.effective >= FEWEST and _unseen(weights) <= MOST_UNSEEN
    doubts = () if enough else ("marginals too short", "log Z unresolved")
    if not weights.effective:  # every draw is dead
        return Estimate(log_z=told.value + told.slack, log_z_kind="upper", bounds=bounds, doubts=doubts)
    drawn = draws_of(model, trace) if draws else None
    means, errors, ess = _of_rows(trace, cards, weights)
    return Estimate(
        marginals=_laid_out(model, means),
        marginals_se=_laid_out(model, errors),
        ess=_laid_out(model, ess),
        log_z=told.value + weights.log_mean,
        log_z_se=_log_z_error(weights),
        bounds=bounds,
        draws=drawn,
        diagnostics=diagnostics,
        doubts=doubts,
    )


def _weights(trace: Trace) -> betting.Weights:
    counts, sums = trace.total("counts").sum(axis=1), trace.total("sums").sum(axis=1)
    total, square = (float(np.logaddexp.reduce(trace.total(name))) for name in ("log_weight", "log_square"))
    return betting.Weights(float(counts.sum()), total, square, _EDGES, counts, sums)


def _bounds(told: Told, weights: betting.Weights, delta: float) -> tuple[Bound, ...]:
    if not told.split:
        return tuple(Bound(told.value, side, "exact", by="wmb") for side in ("lower", "upper"))
    highest = told.value + told.slack
    low = told.value - told.slack + betting.lower(weights, delta / 2)
    high = min(told.value + told.slack + betting.upper(weights, delta / 2), highest)
    return (
        Bound(highest, "upper", "certified", by="wmb"),
        *([Bound(low, "lower", "probable", delta / 2, by="wmb")] if low > -np.inf else []),
        Bound(high, "upper", "probable", delta / 2, by="wmb"),
    )


def _of_rows(trace: Trace, cards: Array, weights: betting.Weights) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(Σ K_v,) means, claims and effective sample sizes, from sums over chains and batches, which are independent."""
    counts = np.log(np.array(trace.counts, dtype=np.float64))
    logs = trace.series("log_weight") + counts[:, None]
    top = logs.max()
    total = np.exp(logs - top)
    rows = all_states(cards, np.exp(trace.series("rows") + counts[:, None, None] - top), total)
    means = np.clip(rows.sum(axis=(0, 2)) / total.sum(), 0.0, 1.0)
    squares = ((rows - means[None, :, None] * total[:, None, :]) ** 2).sum(axis=(0, 2)) / total.sum() ** 2
    groups = total.size
    farthest = np.maximum(means, 1 - means)
    errors = np.sqrt(squares * groups / (groups - 1)) if groups > 1 else farthest
    variance = means * (1 - means)
    ess = np.where(errors > 0, variance / np.maximum(errors, 1e-150) ** 2, weights.effective)
    claimed = np.hypot(t_factor(groups - 1) * errors, _unseen(weights) * farthest)
    return means, np.minimum(claimed, farthest), ess


def _unseen(weights: betting.Weights) -> float:
    """Of Z, what n draws of at most e^U may not have shown, relative to what they have."""
    return float(UNSEEN * np.exp(min(-weights.log_mean, 600.0)) / weights.number)


def _log_z_error(weights: betting.Weights) -> float:
    """Of the log of the mean weight."""
    relative = max(weights.number / weights.effective - 1, 0.0) / weights.number
    return float(np.hypot(np.sqrt(relative), _unseen(weights)))


def _laid_out(model: Model, found: FloatArray) -> Any:
    vectors = on_model(model, found)
    binary = all(card == 2 for card in model.cardinalities)
    return np.array([vector[1] for vector in vectors]) if binary else vectors
