"""From the weights of draws to marginals and log Z with their errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Bound, Estimate, Model, Trace
from spinbench.mathematics.claims import LEAST_DRAW, UNSEEN, LogZParts, error_bound, t_factor
from spinbench.methods.buckets import betting
from spinbench.methods.buckets.draws import BINS, DEAD, WIDTH
from spinbench.methods.buckets.layout import Array, FloatArray, all_states, problem_of
from spinbench.methods.exact import split_marginals
from spinbench.methods.weighted_means import group_sums, ratio_means, with_bounds

# Effective number of draws below which estimates get a warning: on DBN_11 an effective number of 10 left marginals off
# by 0.055 (root mean square); from 100 on they are right.
FEWEST = 100.0
# Largest share of Z that draws may have missed, by the rule of three and the bound e^U on their weights.
MOST_UNSEEN = 0.1
_EDGES = np.append(np.exp(-WIDTH * np.arange(BINS)), 0.0)


class Totals(NamedTuple):
    """What the run says of its bound."""

    value: float
    slack: float
    ibound: float
    passes: float
    split: float


def estimate(model: Model, cards: Array, trace: Trace, delta: float, *, draws: bool) -> Estimate:
    """Self-normalised marginals and the mean weight, between the bounds."""
    totals = Totals(*trace.total("bound")[:, 0].tolist())
    weights = _weights(trace)
    bounds = bracket(totals.value, totals.slack, weights, delta, "wmb")
    if not totals.split:
        bounds = tuple(Bound(totals.value, side, "exact", by="wmb") for side in ("lower", "upper"))
    diagnostics = {
        "weight_ess": weights.effective,
        "ibound": totals.ibound,
        "passes": totals.passes,
        **{f"{bound.grade}_{bound.side}": bound.value for bound in bounds},
    }
    stored_draws = None
    if draws:
        stored_draws = draws_of(model, trace)
    if not totals.split:
        exact = all_states(cards, trace.total("beliefs")[:, :1], np.ones(1))[:, 0]
        return Estimate(
            marginals=_split_rows(model, exact),
            marginals_se=_split_rows(model, np.zeros(len(exact))),
            ess=_split_rows(model, np.full(len(exact), weights.number)),
            log_z=totals.value,
            log_z_kind="exact",
            draws=stored_draws,
            diagnostics=diagnostics,
        )
    # Every draw has weight 0: only the upper bound remains.
    if not weights.effective:
        return Estimate(log_z=totals.value + totals.slack, log_z_kind="upper", bounds=bounds, doubts=doubts(weights))
    marginals: dict[str, Any] = {
        name: _split_rows(model, values) for name, values in _marginals_of_rows(trace, cards, weights).items()
    }
    return Estimate(
        **marginals,
        **log_z_errors(totals.value, weights),
        bounds=bounds,
        draws=stored_draws,
        diagnostics=diagnostics,
        doubts=doubts(weights),
    )


def _weights(trace: Trace) -> betting.Weights:
    counts, sums = trace.total("counts").sum(axis=1), trace.total("sums").sum(axis=1)
    total, square = (float(np.logaddexp.reduce(trace.total(name))) for name in ("log_weight", "log_square"))
    return betting.Weights(float(counts.sum()), total, square, _EDGES, counts, sums)


def bracket(value: float, slack: float, weights: betting.Weights, delta: float, by: str) -> tuple[Bound, ...]:
    """The certified bound e^U and those that its draws give, each of which misses log Z with probability delta / 2.

    Args:
        value, slack: U, and nats by which rounding may put it off.
        weights: relative to the bound.
        delta: of both sides.
        by: the method.
    """
    highest = value + slack
    # Half of δ on each side, so that the bracket as a whole misses with probability at most δ.
    low = value - slack + betting.lower(weights, delta / 2)
    high = min(highest + betting.upper(weights, delta / 2), highest)
    return (
        Bound(highest, "upper", "certified", by=by),
        *([Bound(float(low), "lower", "probable", delta / 2, by=by)] if low > -np.inf else []),
        Bound(float(high), "upper", "probable", delta / 2, by=by),
    )


def _marginals_of_rows(trace: Trace, cards: Array, weights: betting.Weights) -> dict[str, Any]:
    """(Σ K_v,) means, errors and effective sample sizes, from sums over chains and batches, which are independent."""
    sums, parts, _ = group_sums(trace, "log_weight", "rows")
    means, errors = ratio_means(sums, all_states(cards, parts, sums))
    variance = means * (1 - means)
    ess = np.where(errors > 0, variance / np.maximum(errors, 1e-150) ** 2, weights.effective)
    return {**with_bounds(means, t_factor(sums.size - 1) * errors, unseen(weights)), "ess": ess}


def is_enough(weights: betting.Weights) -> bool:
    """Whether draws may be believed."""
    return weights.effective >= FEWEST and unseen(weights) <= MOST_UNSEEN


def doubts(weights: betting.Weights) -> tuple[str, ...]:
    """Of weighted means, where draws may not be believed."""
    if is_enough(weights):
        return ()
    return ("marginals too short", "log Z unresolved")


def unseen(weights: betting.Weights) -> float:
    """Of Z, what n draws of at most e^U may not have shown, relative to what they have."""
    return float(UNSEEN * np.exp(min(-weights.log_mean, 600.0)) / weights.number)


def log_z_errors(value: float, weights: betting.Weights) -> LogZParts:
    """log Z by the mean weight, relative to e^value, by its names in an `Estimate`.

    Its errors are infinite where draws are too few: the scatter of those that were drawn then says nothing of the rest,
    and the bracket alone holds.
    """
    log_z = value + weights.log_mean
    if not is_enough(weights):
        return {"log_z": log_z, "log_z_se": math.inf}
    scatter = math.sqrt(max(weights.number / weights.effective - 1, 0.0) / weights.number)
    missed = unseen(weights)
    return {
        "log_z": log_z,
        "log_z_se": max(scatter, LEAST_DRAW / UNSEEN * missed),
        "log_z_error_bound": float(error_bound(scatter, missed)),
    }


def _split_rows(model: Model, rows: FloatArray) -> FloatArray | list[FloatArray]:
    """As `Estimate.marginals`, from (Σ K_v,) numbers of the problem's variables."""
    return split_marginals(problem_of(model).decode_marginals(rows), model.cardinalities)


def draws_of(model: Model, trace: Trace) -> tuple[Array, FloatArray]:
    """(N, S) states of the model and (S,) log weights, of the last draw of each chain and batch."""
    states, logs = trace.series("states").astype(np.int64), trace.series("drawn").ravel()
    flat = np.moveaxis(states, 1, 2).reshape(logs.size, -1)
    return problem_of(model).origin.lift(flat).T, np.where(logs > DEAD, logs, -np.inf)
