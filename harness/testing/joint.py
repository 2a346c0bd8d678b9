"""Checks of what an answer holds beside marginals and log Z: joint probabilities, draws, bounds, sizes of samples."""

from __future__ import annotations

import numpy as np

from spinbench.api import Estimate
from spinbench.api.bounds import CERTAIN
from spinbench.api.estimate import verdict
from spinbench.inference.result import Result
from spinbench.models import FactorGraph
from spinbench.testing import limits
from spinbench.testing.check import CheckError, require
from spinbench.testing.laws.cases import FloatArray, Law

# p (1 - p) from which effective sample sizes are compared.
MIN_VARIANCE = 0.01
# Standard error up to which draws differ by rounding alone, as of methods that sum a variable out exactly.
ROUNDING = 1e-6
# Largest factor by which effective sample sizes may be too large; they are estimated from few batches.
MAX_ESS_EXCESS = 2.0
# Smallest effective number of draws for a test of their means.
MIN_EFFECTIVE_DRAWS = 64
# Smallest median of a squared error in squared standard errors; for normal errors it is 0.45.
MIN_MEDIAN_SQUARE = 0.01
# States that n draws have not shown have probability up to UNSEEN / n (rule of three).
UNSEEN = 3.0
# Largest error of a joint probability, in the largest error bound of a marginal: methods state no errors of pairs.
PAIR_BOUNDS = 3.0


def compare_parts(answer: Estimate | Result, law: Law, floor: float, *, coupled: bool) -> None:
    """Compare pairs and draws of an answer without warnings with the exact law, and certified bounds of any answer.

    Args:
        answer: of a method.
        law: what is right.
        floor: rounding; relative for log Z.
        coupled: whether approximations may be off.
    """
    require_certain_bounds(answer, law.log_z, floor)
    status = verdict(answer) if isinstance(answer, Estimate) else answer.status
    if status != "ok":
        return
    pairs = answer.pairs() if callable(answer.pairs) else answer.pairs
    bounds = answer.marginals_error_bound
    if pairs is not None and (bounds is not None or answer.log_z_kind == "exact" or not coupled):
        if bounds is not None:
            floor += PAIR_BOUNDS * float(np.max(np.hstack(bounds), initial=0.0))
        _compare_pairs(_concatenate_tables(pairs), _exact_pairs(law), floor)
    if answer.draws is not None:
        _compare_draws(answer, law)


def require_bounds(estimates: list[Estimate], log_z: float, floor: float) -> None:
    """Require that of independent replicas certified bounds are right, and probable ones wrong no more often than their
    delta allows."""
    for estimate in estimates:
        require_certain_bounds(estimate, log_z, floor)
    for side, sign in (("lower", 1.0), ("upper", -1.0)):
        bounds = [b for e in estimates for b in e.bounds if b.side == side and b.grade == "probable"]
        wrong = sum(sign * (bound.value - log_z) > 0 for bound in bounds)
        max_wrong = limits.binomial_limit(len(bounds), max((bound.delta for bound in bounds), default=0.0))
        require(
            wrong <= max_wrong,
            f"{wrong} of {len(bounds)} probable {side} bounds on log Z are wrong; {max_wrong} is the most that their "
            "delta allows for",
        )


def require_effective_sizes(
    estimates: list[Estimate], errors: FloatArray, marginals: FloatArray, runs: str = ""
) -> None:
    """Require that effective sample sizes are not too large: so many independent draws would have such errors."""
    single = marginals * (1 - marginals)
    varies = single > MIN_VARIANCE
    if not varies.any() or any(e.ess is None for e in estimates):
        return
    worth = np.stack([np.asarray(e.ess) for e in estimates])[:, varies]
    if all(e.marginals_se is not None for e in estimates):
        variances = np.stack([np.asarray(e.marginals_se) for e in estimates])[:, varies] ** 2
        scatters = variances.mean(axis=0) > ROUNDING**2
        claimed = (variances * worth / single[varies]).mean(axis=0)[scatters]
        least = float(claimed.min(initial=np.inf))
        if least < 1 / limits.SLACK**2:
            raise CheckError(
                f"effective sample sizes{runs and f' of {runs}'} are up to {1 / least:.2g} times too small for their "
                f"standard errors: se² · ess / (p (1 - p)) is {least:.2g}; is each variable's its own?"
            )
    # The median, since few batches of one replica may be alike by chance, and its size is then any number.
    times = float(((errors[:, varies] ** 2).mean(axis=0) * np.median(worth, axis=0) / single[varies]).max())
    max_times = (
        limits.chi_square_limits(len(errors), int(varies.sum()))[1] / len(errors) * limits.SLACK**2 * MAX_ESS_EXCESS
    )
    require(
        times <= max_times,
        f"effective sample sizes{runs and f' of {runs}'} are about {times:.2g} times too large: over {len(errors)} "
        f"replicas, mean error² · median ess / (p (1 - p)) is {times:.2g}, where {max_times:.2g} is the most",
    )


def require_certain_bounds(answer: Estimate | Result, log_z: float, floor: float) -> None:
    """Require that certified bounds are on their sides of log Z, up to a relative rounding error."""
    floor *= max(1.0, abs(log_z))
    for bound in answer.bounds:
        if bound.grade not in CERTAIN:
            continue
        above = bound.value - log_z
        if bound.side == "lower":
            require(not above > floor, f"the {bound.grade} lower bound on log Z is {above:.3g} too high")
        else:
            require(not -above > floor, f"the {bound.grade} upper bound on log Z is {-above:.3g} too low")


def _exact_pairs(law: Law) -> FloatArray:
    """Of each edge p(s_i = s_j = 1); of each factor its table, flat, one after another."""
    states, p = law.states, law.probabilities
    if not isinstance(law.model, FactorGraph):
        return np.array([p @ (states[:, i] * states[:, j]) for i, j in law.model.edges])
    tables = []
    for factor in law.model.factors:
        shape = factor.log_table.shape
        place = np.ravel_multi_index(tuple(states[:, v] for v in factor.scope), shape) if shape else 0 * states[:, 0]
        tables.append(np.bincount(place, p, minlength=factor.log_table.size))
    return np.concatenate([np.zeros(0), *tables])


def _concatenate_tables(tables: object) -> FloatArray:
    """Of all edges, or of all factors, one after another."""
    if not isinstance(tables, list | tuple):
        tables = [tables]
    return np.concatenate([np.zeros(0), *map(np.ravel, tables)])


def _compare_pairs(pairs: FloatArray, exact: FloatArray, floor: float) -> None:
    require(pairs.shape == exact.shape, f"pairs are {pairs.size} numbers; {exact.size} are needed")
    wrong = np.flatnonzero(~(np.abs(pairs - exact) <= floor))
    order = ""
    if np.allclose(np.sort(pairs), np.sort(exact), rtol=0.0, atol=floor):
        order = "in another order than the edges, or the factors' states, "
    require(not wrong.size, f"pairs {order}{wrong.tolist()} are off by {(pairs - exact)[wrong]}; {floor:g} is allowed")


def _compare_draws(answer: Estimate | Result, law: Law) -> None:
    """Weighted means of draws; as many count as their weights, and what the method says of itself, leave."""
    states, logs = answer.draws  # type: ignore[misc]
    states = np.asarray(states)
    logs = np.zeros(states.shape[1]) if logs is None else np.asarray(logs, np.float64)
    if not np.isfinite(logs).any():
        return
    weights = np.exp(logs - logs.max())
    worth = weights.sum() ** 2 / (weights**2).sum()
    if answer.ess is not None:
        worth = min(worth, float(np.nanmin(np.hstack(answer.ess))))
    if worth < MIN_EFFECTIVE_DRAWS:
        return
    levels = np.arange(int(law.states.max()) + 1)[:, None, None]
    frequencies = (states == levels) @ (weights / weights.sum())
    exact = (levels == law.states.T) @ law.probabilities
    limit = limits.normal_limit(exact.size)
    allowed = limit * np.sqrt(exact * (1 - exact) / worth) + UNSEEN * limit / worth
    wrong = np.argwhere(~(np.abs(frequencies - exact) <= allowed))
    if wrong.size:
        level, variable = wrong[0]
        raise CheckError(
            f"draws have another law than the model: variable {variable} is in state {level} with another probability "
            "than it should be"
        )
    _compare_pair_frequencies(states, weights / weights.sum(), worth, law)


def _compare_pair_frequencies(states: np.ndarray, weights: FloatArray, worth: float, law: Law) -> None:
    """Of draws (N, D), what two variables are at the same time has its probability."""
    levels = np.arange(int(law.states.max()) + 1)
    drawn_levels = (states[:, None, :] == levels[:, None]).reshape(-1, states.shape[1])
    law_levels = (law.states.T[:, None, :] == levels[:, None]).reshape(-1, len(law.states))
    frequencies, exact = (drawn_levels * weights) @ drawn_levels.T, (law_levels * law.probabilities) @ law_levels.T
    limit = limits.normal_limit(exact.size)
    allowed = limit * np.sqrt(exact * (1 - exact) / worth) + UNSEEN * limit / worth
    wrong = np.argwhere(~(np.abs(frequencies - exact) <= allowed))
    if wrong.size:
        first, second = (wrong[0] // len(levels)).tolist()
        raise CheckError(
            f"draws have another law than the model: variables {first} and {second} are not related as there"
        )
