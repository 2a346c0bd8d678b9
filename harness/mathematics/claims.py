"""The two errors of a mean over chains: its standard error, and a bound that allows for what the run has not seen.

The standard error is what the run knows of its own scatter: from batch means and the spread between chains, widened by
Student's t for few of them. It falls as 1 / sqrt(n). Where chains have not mixed it says too little: what they remember
of where they began, and states too rare to have been seen, leave no trace in it. Both add to the *error bound*
(`error_bound`), beyond which at most one number in 200 is off.

Symbols: B batches of C chains over n steps each; R̂ is split R-hat, and 1 - 1/R̂² the share of spread that chains
remember (the intraclass correlation of their halves). Beside them: how far conditional probabilities can be from what
a run has seen of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypedDict
from warnings import warn

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.chains import FEWEST_CHAINS, Batches, Every, certain, drift, parts_of, summarize_chains
from spinbench.mathematics.statistics import FloatArray, blocks, effective_sample_size
from spinbench.models import PairwiseModel

if TYPE_CHECKING:
    from spinbench.api.types import LogZKind

# Smallest number of batches for a standard error.
FEWEST_BATCHES = 4
# Smallest number of samples per chain: in shorter runs, chains that all begin in one of two modes are too often still
# there.
FEWEST_SAMPLES = 8
# Error bounds grow with R-hat and stay valid far beyond the usual 1.01; above this limit estimates get a warning. It
# rejects no estimate that is right, while 1.05 rejected 2 to 4 % of them.
LARGEST_R_HAT = 1.2
# Smallest overlap of the two laws of a ratio estimate (1: equal laws). With it and `LEAST_WEIGHT` none of 887 accepted
# estimates was off by more than 4 standard errors.
LEAST_OVERLAP = 0.05
# Smallest effective number of draws that both sides of a ratio estimate share.
LEAST_WEIGHT = 5.0
# Half of the rule of three (Hanley and Lippman-Hand 1983): states that n draws have not shown have probability at most
# 3 / n (at 95 %), and error bounds are about twice this.
UNSEEN = 1.5
# Error bound in standard errors that one normal number in 200 exceeds; the factor of Student's t is applied separately.
BOUND = 2.81
# The same that one in ten exceeds to the side to which states move a number that the run has missed; the rule of three
# misses them once in twenty, so that both together happen once in 200.
BOUND_IF_UNSEEN = 1.28
# A state that none or few of n draws have shown gets at least the standard error LEAST_DRAW / n, since scatter
# underestimates it. Jeffreys' prior adds as much to each state.
LEAST_DRAW = 0.5
# Number of draws of a state from which scatter gives its standard error, to about a third.
FEW_DRAWS = 10.0
# Quantile of the variables' autocorrelation times that is assumed for states not seen yet: variables that must change
# together are slower than the median variable, but have slow neighbours that were seen.
SLOW = 0.9
# P(z <= 2) of the standard normal law: t quantiles over 2 tend to 1 for many degrees of freedom.
_TWO_SIGMA = 0.9772
# Smaller variations in nats are rounding, and fewer effective draws count as none.
NOTHING = 1e-9


class MarginalClaims(NamedTuple):
    """The errors of N means.

    Attributes:
        se: (N,) standard errors, of chains that have mixed: of batches or of chains, the larger one, with Student's t.
        error_bounds: (N,) error bounds, no less than `se`.
        mcse: (N,) Monte Carlo standard errors of batch means alone, of which effective sample sizes are made.
        r_hat: (N,) split R-hat.
        memory: the largest share of a variable's spread that chains remember; 0 where that may be chance.
        doubt: why not to believe the errors: "not mixed", "too short" or "too few chains"; or "".
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


def error_bound(
    se: FloatArray | float, unseen: FloatArray | float = 0.0, memory: FloatArray | float = 0.0
) -> FloatArray:
    """How far off numbers may be: at most one in 200 is further off.

    Scatter counts by its quantile, or by a lesser one beside the whole rule of three of what draws have not shown; what
    chains remember counts as it is: it is no chance that grows with confidence.

    Args:
        se: standard errors, arrays or numbers.
        unseen: by how much states may move them whose probability is `UNSEEN` over the number of independent draws.
        memory: the spread between chains that they remember of where they began.
    """
    return np.asarray(np.hypot(np.maximum(BOUND * se, BOUND_IF_UNSEEN * se + 2 * unseen), memory))


def t_factor(freedom: npt.ArrayLike) -> FloatArray:
    """By how much two standard errors of `freedom` degrees fall short of 95 % of Student's law."""
    from scipy.special import stdtrit

    degrees = np.maximum(freedom, 1.0)
    # In slowly mixing runs most variables have the smallest degrees of freedom, whose quantile takes a search: it is
    # computed once.
    least = degrees.min(initial=np.inf)
    more = degrees > least
    factors = np.full(degrees.shape, stdtrit(least, _TWO_SIGMA) / 2)
    factors[more] = stdtrit(degrees[more], _TWO_SIGMA) / 2
    return factors


def memory_share(r_hat: npt.ArrayLike) -> FloatArray:
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
    group_size: float = 1.0,
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
        group_size: independent chains of which each that the series has is the mean.
    """
    batches, _, chains = series.shape
    summary, columns = summarize_chains(series), chains
    if every is not None:
        summary, columns = every.extend_summary(summary, chains), every.chains
    count = columns * group_size
    if group_size > 1:
        summary = summary.ungroup(group_size)
    variables, per_batch, memory = len(summary.means), samples / batches, 0.0
    # Results overwrite the arrays they are computed from: with many variables, allocating new memory takes time.
    time, mcse, bounds = summary.variance, summary.standard, summary.spread
    for some in blocks(variables, 1):
        errors, variance = np.nan_to_num(summary.standard[some]), summary.variance[some]
        spent = per_batch * errors**2 * batches * count / np.maximum(variance, np.finfo(float).tiny)
        spent = np.clip(spent, 1.0, samples)
        # A negative sign marks constant variables, which avoids a second array.
        time[some] = np.where(variance > 1e-12, spent, -spent)
    varies = time > 0
    # At least one batch length: the decorrelation within batches says nothing about modes that no chain has entered.
    pace = np.quantile(time[varies], slow) if varies.any() else per_batch
    effective = min(samples * count / pace, visits)
    draws = float(samples * count)
    if varies.any():
        # What is rare is seen in spells that last as long as those of slow variables.
        ess = effective_sample_size(summary.means[varies], np.nan_to_num(mcse[varies]), round(draws))
        draws = min(draws, float(np.quantile(ess, 1 - slow)))
    alike = np.ones(variables, dtype=bool)
    if summary.compared is not None:
        alike = certain(summary.compared.alike, chains)
    for some in blocks(variables, 1):
        means, spread, remembered_share = summary.means[some], summary.spread[some], memory_share(summary.r_hat[some])
        base = np.maximum(np.nan_to_num(mcse[some]), spread / np.sqrt(parts_of(series) * count / chains))
        freedom = np.maximum(chains * np.maximum(1.0, samples / (10 * np.abs(time[some]))) - 1, 1.0)
        farthest = np.maximum(high[some] - means, means - low[some])
        scatter, unseen = t_factor(freedom) * base, UNSEEN * farthest / effective
        wide = error_bound(scatter, unseen, remembered_share * spread)
        # The error of a mean is at most the range of the averaged values.
        np.minimum(wide, farthest, out=bounds[some])
        nearest = np.where(time[some] < 0, 0.0, np.minimum(high[some] - means, means - low[some]))
        of_rare = widen_of_rare(scatter, nearest, farthest, draws)
        # From here on the array holds standard errors.
        time[some] = np.minimum(of_rare, bounds[some])
        memory = max(memory, float(remembered_share[alike[some]].max(initial=0.0)))
    doubt = ""
    if batches < FEWEST_BATCHES or samples < FEWEST_SAMPLES:
        doubt = "too short"
    elif chains < FEWEST_CHAINS:
        doubt = "too few chains"
    elif (summary.r_hat > LARGEST_R_HAT).any():
        doubt = "not mixed"
    elif summary.compared is not None and drift(summary.compared.move, summary.compared.wander, columns, bounds):
        doubt = "too short"
    return MarginalClaims(time, bounds, mcse, summary.r_hat, memory, doubt)


def widen_of_rare(scatter: FloatArray, nearest: FloatArray, farthest: FloatArray, draws: float) -> FloatArray:
    """(N,) standard errors by scatter, and no less than half a draw's of what fewer than `FEW_DRAWS` have shown.

    Args:
        scatter: (N,) by scatter alone.
        nearest, farthest: (N,) from the means to the ends of the ranges of what is averaged.
        draws: independent ones of which these are means.
    """
    rare = nearest * draws < FEW_DRAWS * farthest
    return np.where(rare, np.maximum(scatter, LEAST_DRAW * farthest / draws), scatter)


class LogZParts(TypedDict, total=False):
    """Parts of an `Estimate`, under its names."""

    log_z: float
    log_z_se: float
    log_z_error_bound: float
    log_z_kind: LogZKind
    log_z_estimates: Mapping[str, tuple[float, float]]


def log_z_parts(reported: Claim | None, estimates: Mapping[str, Claim]) -> LogZParts:
    """log Z with its errors, by their names in an `Estimate`.

    Args:
        reported: None where no estimator could be had.
        estimates: of all estimators that ran, by name.
    """
    values: dict[str, tuple[float, float]] = {}
    for name, each in estimates.items():
        values[name] = (each.value, each.se)
    parts: LogZParts = {"log_z_estimates": values}
    if reported is not None:
        parts |= {"log_z": reported.value, "log_z_se": reported.se, "log_z_error_bound": reported.error_bound}
    return parts


def expit(values: npt.ArrayLike) -> FloatArray:
    """The logistic function; NumPy's exponential is in vectors, as SciPy's `expit` is not."""
    # The exponential overflows to infinity, and 1 / (1 + infinity) is the correct 0.
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-np.asarray(values, dtype=np.float64))))


@lru_cache(maxsize=4)
def conditional_range(model: PairwiseModel) -> tuple[FloatArray, FloatArray]:
    """(N,) the least and the largest p(s_i = 1 | rest) that any state of the others leaves, by interval arithmetic."""
    low, high = (model.biases + pull for pull in model.pulls)
    least, largest = expit(low), expit(high)
    for group in model.groups:
        members = list(group)
        least[members] = expit(low[members] - _log_sum_of_others(high[members]))
        largest[members] = expit(high[members] - _log_sum_of_others(low[members]))
    return least, largest


def _log_sum_of_others(values: FloatArray) -> FloatArray:
    """(K,) log of the sum of the exponentials of all others: of those before and of those after."""
    end = np.full(1, -np.inf)
    before = np.concatenate([end, np.logaddexp.accumulate(values)[:-1]])
    after = np.concatenate([end, np.logaddexp.accumulate(values[::-1])[:-1]])[::-1]
    return np.asarray(np.logaddexp(before, after))
