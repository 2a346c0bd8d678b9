"""The two errors of a mean over chains: its standard error, and a bound that allows for what the run has not seen.

The standard error is what the run knows of its own scatter: from batch means and the spread between chains, widened by
Student's t for few of them. It falls as 1 / sqrt(n). Where chains have not mixed it says too little: what they remember
of where they began, and states too rare to have been seen, leave no trace in it. Both add to the *error bound*, which
two times over holds in 95 % of runs, as two standard errors would.

Symbols: B batches of C chains over n steps each; R̂ is split R-hat, and 1 - 1/R̂² the share of spread that chains
remember (the intraclass correlation of their halves).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.chains import (
    FEWEST_CHAINS,
    Batches,
    Every,
    certain,
    drift,
    parts_of,
    r_hat_of,
    seen,
    spread_of_chains,
)
from spinbench.mathematics.statistics import FloatArray, blocks, standard_error

FEWEST_BATCHES = 4
FEWEST_SAMPLES = 8
"""Of each chain; in fewer, chains that all begin on one side of what they remember are too often still there."""
LARGEST_R_HAT = 1.2
"""Claims grow with R-hat, so that they hold far beyond the usual 1.01; above this they say nothing."""
LEAST_OVERLAP = 0.05
"""Of the laws on both sides of a ratio estimate, 1 where they are the same."""
LEAST_WEIGHT = 5.0
"""Draws, in effect, that both sides of a ratio estimate share."""
UNSEEN = 1.5
"""Half of the rule of three: what n draws have not shown has a probability of at most 3 / n (at 95 %)."""
LEAST_DRAW = 0.5
"""Of n effective draws: no standard error is less than what so much of one draw would change. That of a state which
none of them has shown would be 0; Jeffreys' prior adds as much to each state."""
SLOW = 0.9
"""Variables of which so many are faster tell at what pace states come that have not been seen: several variables that
must change together are slower than the median one, and with neighbours of theirs that were seen to be slow."""
_TWO_SIGMA = 0.9772
NOTHING = 1e-9
"""Nats: what varies by less is constant but for rounding. Draws: fewer are none."""
CONTRADICTED = 3.0
"""Joint claims that two estimates of the same number may differ by."""
STEPS, EXACTLY = 64, 1e-14
"""At most, in which two sides are balanced, and to what share of the value."""
SHARED = 0.5
"""Of the claim that draws of both sides allow; an average of one takes more draws, but does not see what it lacks."""


class MarginalClaims(NamedTuple):
    """The errors of N means.

    Attributes:
        se: (N,) standard errors, of chains that have mixed: of batches or of chains, the larger one, with Student's t.
        error_bounds: (N,) error bounds, no less than `se`.
        mcse: (N,) Monte Carlo standard errors of batch means alone, of which effective sample sizes are made.
        r_hat: (N,) split R-hat.
        memory: the largest share of a variable's spread that chains remember; 0 where that may be chance.
        doubt: why not to believe the errors, or "".
    """

    se: FloatArray
    error_bounds: FloatArray
    mcse: FloatArray
    r_hat: FloatArray
    memory: float
    doubt: str

    @property
    def errors(self) -> FloatArray:
        """Deprecated: `error_bounds`, until 0.3."""
        warn("MarginalClaims.errors is called error_bounds, beside se", DeprecationWarning, stacklevel=2)
        return self.error_bounds

    @property
    def standard_errors(self) -> FloatArray:
        """Deprecated: `mcse`, until 0.3."""
        warn("MarginalClaims.standard_errors is called mcse", DeprecationWarning, stacklevel=2)
        return self.mcse


class Claim(NamedTuple):
    """A number with its errors. Attributes: value; se: its standard error; error_bound: its error bound."""

    value: float
    se: float
    error_bound: float

    def plus(self, constant: float) -> Claim:
        """The same of the number and a constant."""
        return self._replace(value=self.value + constant)


class Ratio(NamedTuple):
    """A log ratio of normalising constants from draws of both laws.

    Attributes:
        value: the log ratio.
        se: its standard error.
        error_bound: its error bound, no less than `se`.
        overlap: of the two laws, 0 to 1; weight: the number of draws, in effect, that both share.
        supported: whether the claim may be believed.
    """

    value: float
    se: float
    error_bound: float
    overlap: float
    weight: float
    supported: bool

    @property
    def claim(self) -> Claim:
        """The value with its errors, which are infinite where nothing supports it."""
        if not self.supported:
            return Claim(self.value, np.inf, np.inf)
        return Claim(self.value, self.se, self.error_bound)


def t_factor(freedom: npt.ArrayLike) -> FloatArray:
    """By how much two standard errors of `freedom` degrees fall short of 95 % of Student's law."""
    from scipy.special import stdtrit

    known = np.maximum(freedom, 1.0)
    least = known.min(initial=np.inf)  # where chains are slow, that of most variables; each takes a search
    more = known > least
    found = np.full(known.shape, stdtrit(least, _TWO_SIGMA) / 2)
    found[more] = stdtrit(known[more], _TWO_SIGMA) / 2
    return found


def remembered(r_hat: npt.ArrayLike) -> FloatArray:
    """1 - 1/R̂², 0 to 1; 1 where R-hat is infinite or not defined."""
    r = np.asarray(r_hat, dtype=np.float64)
    with np.errstate(divide="ignore"):
        share = np.clip(1 - 1 / np.maximum(r, 1.0) ** 2, 0.0, 1.0)
    return np.where(np.isfinite(r), share, 1.0)


def marginal_claims(
    series: Batches,
    samples: int,
    low: FloatArray,
    high: FloatArray,
    visits: float = np.inf,
    slow: float = SLOW,
    every: Every | None = None,
) -> MarginalClaims:
    """The errors of means of s_i or of p(s_i = 1 | rest).

    Args:
        series: (B, N, C) batch means; an array, or the `Trace.means` of what takes much memory.
        samples: n, steps of each chain.
        low, high: (N,) the range of what is averaged: of p(s_i = 1 | rest) over all states, or 0 and 1. States that
            the run has not seen can move the mean to either.
        visits: independent draws at most, where the method knows of a bound.
        slow: the share of variables that are no slower than states come which have not been seen.
        every: of all chains and batches, where the series has some of them, or longer ones.
    """
    batches, _, chains = series.shape
    shown, count = seen(series), chains
    if every is not None:
        shown, count = every.told(shown, chains), every.chains
    variables, per_batch, memory = len(shown.means), samples / batches, 0.0
    # in whose place they come: of many variables new memory takes time
    time, mcse, bounds = shown.variance, shown.standard, shown.spread
    for some in blocks(variables, 1):
        errors, variance = np.nan_to_num(shown.standard[some]), shown.variance[some]
        spent = per_batch * errors**2 * batches * count / np.maximum(variance, np.finfo(float).tiny)
        spent = np.clip(spent, 1.0, samples)
        time[some] = np.where(variance > 1e-12, spent, -spent)  # of what does not vary, with a sign
    varies = time > 0
    # No less than a batch: how fast chains forget what they have seen, as batches' correlations tell below that, says
    # nothing of wells that none of them has entered.
    pace = np.quantile(time[varies], slow) if varies.any() else per_batch
    effective = min(samples * count / pace, visits)
    alike = None if shown.compared is None else certain(shown.compared.alike, chains)
    for some in blocks(variables, 1):
        means, spread, kept = shown.means[some], shown.spread[some], remembered(shown.r_hat[some])
        base = np.maximum(np.nan_to_num(mcse[some]), spread / np.sqrt(parts_of(series) * count / chains))
        freedom = np.maximum(chains * np.maximum(1.0, samples / (10 * np.abs(time[some]))) - 1, 1.0)
        farthest = np.maximum(high[some] - means, means - low[some])
        scatter, unseen = t_factor(freedom) * base, UNSEEN * farthest / effective
        wide = np.sqrt(scatter**2 + (kept * spread) ** 2 + unseen**2)
        np.minimum(wide, farthest, out=bounds[some])  # the mean can be no further off
        least = LEAST_DRAW * farthest * np.abs(time[some]) / (samples * count)
        time[some] = np.minimum(np.maximum(scatter, least), bounds[some])  # in whose place standard errors come
        memory = max(memory, float((kept if alike is None else kept[alike[some]]).max(initial=0.0)))
    short = batches < FEWEST_BATCHES or samples < FEWEST_SAMPLES
    doubt = _doubt(short, chains, shown.r_hat)
    if not doubt and shown.compared is not None:
        doubt = "too short" if drift(shown.compared.move, shown.compared.wander, count, bounds) else ""
    return MarginalClaims(time, bounds, mcse, shown.r_hat, memory, doubt)


def _doubt(short: bool, chains: int, r_hat: FloatArray) -> str:
    if short:
        return "too short"
    if chains < FEWEST_CHAINS:
        return "too few chains"
    return "not mixed" if (r_hat > LARGEST_R_HAT).any() else ""


def ratio(
    forward: FloatArray, backward: FloatArray, fewest_chains: int = FEWEST_CHAINS, unseen: float = UNSEEN
) -> Ratio:
    """Log of E_p[e^-x]^-1 = E_q[e^x], x = log of dp/dq up to the constant that is asked for, by Bennett's ratio.

    Bennett, "Efficient estimation of free energy differences from Monte Carlo data", J. Comput. Phys. 1976; Meng and
    Wong, "Simulating ratios of normalizing constants via a simple identity", Statistica Sinica 1996.

    Args:
        forward: (B, C) x at states of chains that sample p, evenly spaced.
        backward: (R,) x at independent draws of q.
        fewest_chains: fewer support nothing.
        unseen: over the number of independent ones of the first is the least bound, for states that they do not show.
    """
    chains, drawn = forward.shape[1], backward.size
    error = float(standard_error(forward)) if len(forward) >= FEWEST_BATCHES else 0.0
    effective = float(forward.size)
    if error > NOTHING:
        effective = float(np.clip(forward.var() / error**2, 4.0, forward.size))
    shift = float(np.log(drawn / effective))
    value = _balance(forward, backward, effective, shift)
    a, b = expit(value - forward + shift), expit(backward - value - shift)
    weight = float(effective * (a * (1 - a)).mean() + (b * (1 - b)).sum())
    overlap = weight * (effective + drawn) / (effective * drawn)
    if not weight > NOTHING:
        return Ratio(value, np.inf, np.inf, 0.0, 0.0, supported=False)
    spread, parts = spread_of_chains(a[:, None])
    between = np.nan_to_num(float(standard_error(a)))
    kept = float((remembered(r_hat_of(a[:, None])) * spread)[0])
    base = max(between, float(spread[0]) / np.sqrt(parts))
    freedom = max(chains - 1, min(effective / 10, 100.0))
    of_draws = drawn * (float(b.var(ddof=1)) if drawn > 1 else 0.0)

    # Without and with what chains remember of where they began.
    scatter = t_factor(freedom) * np.sqrt(effective**2 * np.array([base**2, base**2 + kept**2]) + of_draws) / weight
    # Either the states that matter were seen, and the error is of these, or they were not.
    se, bound = max(float(scatter[0]), LEAST_DRAW / effective), max(float(scatter[1]), unseen / effective)
    enough = chains >= fewest_chains and len(forward) >= FEWEST_BATCHES and drawn >= 2
    supported = enough and overlap >= LEAST_OVERLAP and weight >= LEAST_WEIGHT
    return Ratio(value, se, bound, float(overlap), weight, supported)


def beside(given: Claim, reference: Ratio) -> Claim:
    """The errors of an estimate that cannot tell by itself when it is wrong, beside one that can.

    Returns:
        Errors that are infinite where the reference supports nothing or contradicts it, else the larger ones of both,
        widened by as much of their distance as these do not explain.
    """
    distance, joint = given.value - reference.value, float(np.hypot(given.error_bound, reference.error_bound))
    if not (reference.supported and np.isfinite(given.error_bound) and abs(distance) <= CONTRADICTED * joint):
        return Claim(given.value, np.inf, np.inf)
    bias = np.sqrt(max(distance**2 - joint**2, 0.0))
    se, error_bound = max(given.se, reference.se), max(given.error_bound, reference.error_bound)
    return Claim(given.value, float(np.hypot(se, bias)), float(np.hypot(error_bound, bias)))


def one_sided(value: float, se: float, reference: Ratio) -> Claim:
    """The errors of an average that draws of one side made, of which the reference took draws of both.

    Where both are off alike, for they share draws, neither the own error nor the distance shows it.

    Returns:
        Errors that are infinite where the reference supports nothing, else widened by the distance, and no less than
        `SHARED` of the reference's.
    """
    if not (reference.supported and np.isfinite(se)):
        return Claim(value, np.inf, np.inf)
    apart = float(np.hypot(se, value - reference.value))
    return Claim(value, max(apart, SHARED * reference.se), max(apart, SHARED * reference.error_bound))


def log_z_parts(reported: Claim | None, estimates: Mapping[str, Claim]) -> dict[str, Any]:
    """log Z with its errors, by their names in an `Estimate`.

    Args:
        reported: None where no estimator could be had.
        estimates: of all estimators that ran, by name.
    """
    known: dict[str, tuple[float, float]] = {}
    for name, each in estimates.items():
        known[name] = (each.value, each.se)
    found: dict[str, Any] = {"log_z_estimates": known}
    if reported is not None:
        found |= {"log_z": reported.value, "log_z_se": reported.se, "log_z_error_bound": reported.error_bound}
    return found


def _balance(forward: FloatArray, backward: FloatArray, effective: float, shift: float) -> float:
    """Where the two sides' weights are equal: their difference falls in the value, by Newton's steps, or halves where
    these lead out of what is left or hardly on."""
    low = float(min(forward.min(), backward.min())) - 50.0
    high = float(max(forward.max(), backward.max())) + 50.0
    ahead, behind, each = forward.ravel(), backward.ravel(), effective / forward.size
    value, before = (low + high) / 2, high - low
    for _ in range(STEPS):
        theirs, ours = expit(behind - (value + shift)), expit((value + shift) - ahead)
        given, taken = float(theirs.sum()), float(ours.sum()) * each
        excess = given - taken
        slope = given - float(theirs @ theirs) + taken - float(ours @ ours) * each
        if excess > 0:
            low = value
        else:
            high = value
        step = excess / slope if slope > NOTHING else np.inf
        if not (low <= value + step <= high) or abs(step) > before / 2:
            step = (low + high) / 2 - value
        before, value = abs(step), value + step
        if before <= EXACTLY * max(abs(value), 1.0):
            break
    return value


def expit(values: npt.ArrayLike) -> FloatArray:
    """The logistic function; NumPy's exponential is in vectors, as SciPy's `expit` is not."""
    with np.errstate(over="ignore"):  # 1 / (1 + infinity) is right
        return np.asarray(1 / (1 + np.exp(-np.asarray(values, dtype=np.float64))))
