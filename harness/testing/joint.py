"""Checks of what an answer holds beside marginals and log Z: joint probabilities, draws, bounds, sizes of samples."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate
from spinbench.api.bounds import CERTAIN
from spinbench.inference.result import Result
from spinbench.models import FactorGraph
from spinbench.testing import limits
from spinbench.testing.check import require
from spinbench.testing.laws.cases import FloatArray, Law

RARE = 0.01
"""p (1 - p) from which effective sample sizes are compared."""
ROUGH = 2.0
"""Times that they may be too large, estimated from few batches as they are."""
FEWEST = 64
"""Draws in effect from which their means tell something."""
LOOSE = 0.01
"""Median of a squared error by its claim, at least; of normal ones it is .45."""
UNSEEN = 3.0
"""What n draws do not show has a probability of up to UNSEEN / n, with some certainty."""


def beside(answer: Estimate | Result, whole: Law, floor: float, *, coupled: bool) -> None:
    """Pairs and draws within their errors, where the answer is believed; bounds that are certain in any case.

    Args:
        answer: of a method.
        whole: what is right.
        floor: rounding; relative for log Z.
        coupled: whether approximations may be off.
    """
    certain(answer, whole.log_z, floor)
    if answer.status != "ok":
        return
    pairs = answer.pairs() if callable(answer.pairs) else answer.pairs
    exact = answer.pairs_se is not None or answer.log_z_kind == "exact" or not coupled
    if pairs is not None and exact:
        _pairs(_flat(pairs), answer.pairs_se, _joint(whole), floor)
    if answer.draws is not None:
        _draws(answer, whole)


def chances(estimates: list[Estimate], log_z: float) -> None:
    """Bounds that may be wrong with a probability are so no more often, over independent replicas."""
    for side, sign in (("lower", 1.0), ("upper", -1.0)):
        found = [b for e in estimates for b in e.bounds if b.side == side and b.grade == "probable"]
        wrong = sum(sign * (bound.value - log_z) > 0 for bound in found)
        most = limits.binomial_limit(len(found), max((bound.delta for bound in found), default=0.0))
        require(
            wrong <= most,
            f"{wrong} of {len(found)} probable {side} bounds on log Z are wrong; {most} is the most that their delta "
            "allows for",
        )


def effective(estimates: list[Estimate], errors: FloatArray, marginals: FloatArray, what: str = "") -> None:
    """As many independent draws as are claimed would have errors as large as those of replicas, at least."""
    single = marginals * (1 - marginals)
    varies = single > RARE
    if not varies.any() or any(e.ess is None for e in estimates):
        return
    worth = np.stack([np.asarray(e.ess) for e in estimates])[:, varies]
    times = float((errors[:, varies] ** 2 * worth / single[varies]).mean(axis=0).max())
    most = limits.chi_square_limits(len(errors), int(varies.sum()))[1] / len(errors) * limits.SLACK**2 * ROUGH
    require(
        times <= most,
        f"effective sample sizes{what and f' of {what}'} are about {times:.2g} times too large: over {len(errors)} "
        f"replicas, error² · ess / (p (1 - p)) has mean {times:.2g}, where {most:.2g} is the most",
    )


def certain(answer: Estimate | Result, log_z: float, floor: float) -> None:
    """Bounds that hold for sure are on their sides of log Z but for rounding, which is relative."""
    floor *= max(1.0, abs(log_z))
    for bound in answer.bounds:
        above = bound.value - log_z
        wrong = bound.grade in CERTAIN and (above if bound.side == "lower" else -above) > floor
        way = "high" if above > 0 else "low"
        require(not wrong, f"the {bound.grade} {bound.side} bound on log Z is {abs(above):.3g} too {way}")


def pair_errors(estimates: list[Estimate], whole: Law) -> None:
    """Standard errors of pairs are not too large, over independent replicas; each shows that they are not too small."""
    found = [e for e in estimates if e.pairs is not None and e.pairs_se is not None and e.status == "ok"]
    if not found:
        return
    errors = np.stack([_flat(e.pairs) for e in found]) - _joint(whole)
    claims = np.stack([_flat(e.pairs_se) for e in found])
    square = float(np.median((errors / np.maximum(claims, 1e-100)) ** 2, axis=0).mean())
    require(
        square >= LOOSE,
        f"standard errors of pairs are too large: over {len(found)} replicas, (error / standard error)² has median "
        f"{square:.2g}, where {LOOSE:g} is the least",
    )


def _joint(whole: Law) -> FloatArray:
    """Of each edge p(s_i = s_j = 1); of each factor its table, flat, one after another."""
    states, p = whole.states, whole.probabilities
    if not isinstance(whole.model, FactorGraph):
        return np.array([p @ (states[:, i] * states[:, j]) for i, j in whole.model.edges])
    tables = []
    for factor in whole.model.factors:
        shape = factor.log_table.shape
        place = np.ravel_multi_index(tuple(states[:, v] for v in factor.scope), shape) if shape else 0 * states[:, 0]
        tables.append(np.bincount(place, p, minlength=factor.log_table.size))
    return np.concatenate(tables) if tables else np.zeros(0)


def _flat(tables: Any) -> FloatArray:
    """Of all edges, or of all factors, one after another."""
    each = tables if isinstance(tables, list | tuple) else [tables]
    return np.concatenate([np.ravel(table) for table in each]) if each else np.zeros(0)


def _pairs(pairs: FloatArray, errors: Any, exact: FloatArray, floor: float) -> None:
    require(pairs.shape == exact.shape, f"pairs are {pairs.size} numbers; {exact.size} are needed")
    allowed = np.full(exact.shape, floor)
    if errors is not None:
        allowed += limits.normal_limit(max(exact.size, 1)) * _flat(errors)
    wrong = np.flatnonzero(~(np.abs(pairs - exact) <= allowed))
    off = (pairs - exact)[wrong]
    require(not wrong.size, f"pairs {wrong.tolist()} are off by {off}; {allowed[wrong]} is allowed")


def _draws(answer: Estimate | Result, whole: Law) -> None:
    """Weighted means of draws; as many count as their weights, and what the method says of itself, leave."""
    drawn, logs = answer.draws  # type: ignore[misc]
    drawn = np.asarray(drawn)
    logs = np.zeros(drawn.shape[1]) if logs is None else np.asarray(logs, np.float64)
    weights = np.exp(logs - logs.max(initial=-np.inf)) if np.isfinite(logs).any() else np.zeros(0)
    worth = weights.sum() ** 2 / (weights**2).sum() if weights.size else 0.0
    if answer.ess is not None:
        worth = min(worth, float(np.nanmin(np.hstack(answer.ess))))
    if worth < FEWEST:
        return
    levels = np.arange(int(whole.states.max()) + 1)[:, None, None]
    found = (drawn == levels) @ (weights / weights.sum())
    exact = (levels == whole.states.T) @ whole.probabilities
    limit = limits.normal_limit(exact.size)
    allowed = limit * np.sqrt(exact * (1 - exact) / worth) + UNSEEN * limit / worth
    wrong = np.argwhere(~(np.abs(found - exact) <= allowed))
    require(
        not wrong.size,
        f"draws have another law than the model: variable {wrong[0][1] if wrong.size else ''} is in state "
        f"{wrong[0][0] if wrong.size else ''} with another probability than it should be",
    )
    _check_drawn_pairs(drawn, weights / weights.sum(), worth, whole)


def _check_drawn_pairs(drawn: npt.NDArray[Any], weights: FloatArray, worth: float, whole: Law) -> None:
    """Of draws (N, D), what two variables are at the same time has its probability."""
    levels = np.arange(int(whole.states.max()) + 1)
    there = (drawn[:, None, :] == levels[:, None]).reshape(-1, drawn.shape[1])
    known = (whole.states.T[:, None, :] == levels[:, None]).reshape(-1, len(whole.states))
    found, exact = (there * weights) @ there.T, (known * whole.probabilities) @ known.T
    limit = limits.normal_limit(exact.size)
    allowed = limit * np.sqrt(exact * (1 - exact) / worth) + UNSEEN * limit / worth
    wrong = np.argwhere(~(np.abs(found - exact) <= allowed))
    one, other = (wrong[0] // len(levels)).tolist() if wrong.size else (0, 0)
    require(
        not wrong.size, f"draws have another law than the model: variables {one} and {other} are not related as there"
    )
