"""Confidence bounds on the mean of bounded independent weights, by betting.

Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 86 (2024). Of weights
0 <= X <= u with mean m, Π (1 + c (X / m - 1)) and Π (1 + c (m - X) / (u - m)), 0 < c < 1, are non-negative martingales
that begin at 1, and so are their averages over values of c that are fixed beforehand; by Ville's inequality one of them
exceeds 1 / δ with a probability of at most δ, whenever one stops.

The products are bounded from below, from sums alone, which keeps what is said true: by the inequality
log(1 + cξ) >= cξ + (log(1 - c) + c) ξ² for ξ >= -1 (Fan, Grama and Liu, "Exponential inequalities for martingales with
applications", EJP 2015), which is tight where weights are alike, and by chords over bins of weights, which are where
weights are not. For each c the larger of both counts.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Stakes c, fixed beforehand as Ville's inequality requires, each with an equal share of the capital. Small stakes win
# where weights scatter widely, stakes near 1 where weights are nearly equal.
STAKES = np.concatenate([np.geomspace(1e-7, 0.3, 40), 1 - np.geomspace(0.7, 1e-4, 15)[1:]])
# Distances from the mean, in nats, at which a bound is tried.
_DISTANCES = np.geomspace(1e-6, 200.0, 80)
# Bins of a histogram of weights, from which a bound is computed.
_BINS = 200
# Bisection steps of a distance: to a millionth of it.
_HALVINGS = 20
# Rounding error of the nearly cancelling sums, per weight. It is subtracted from the capital, so that the bound stays
# valid.
_ROUNDING = 1e-13


class Weights(NamedTuple):
    """Sums over n independent weights, as shares of their largest possible value, u = 1.

    Attributes:
        number: n, weights of 0 among them.
        log_sum, log_square: logs of Σ X and Σ X².
        edges: (J + 1,) falling from 1 to 0: bin j holds edges[j] >= X >= edges[j + 1].
        counts, sums: (J,) of each bin.
    """

    number: float
    log_sum: float
    log_square: float
    edges: FloatArray
    counts: FloatArray
    sums: FloatArray

    @property
    def log_mean(self) -> float:
        """-inf where all are 0."""
        return self.log_sum - float(np.log(self.number))

    @property
    def effective(self) -> float:
        """(Σ X)² / Σ X², how many equal weights tell as much; 0 where all are 0."""
        if self.log_sum > -np.inf:
            return float(np.exp(2 * self.log_sum - self.log_square))
        return 0.0


def lower(weights: Weights, delta: float) -> float:
    """A bound below the log of the mean with a probability of at least 1 - delta; -inf where there is none."""
    if not weights.log_mean > -np.inf:
        return -np.inf
    return _search(weights, delta, -1.0)


def upper(weights: Weights, delta: float) -> float:
    """A bound above the log of the mean with a probability of at least 1 - delta; at most 0."""
    return min(_search(weights, delta, 1.0), 0.0)


def log_mean_below(logs: FloatArray, delta: float) -> float:
    """Below log E X with a probability of at least 1 - delta, from the logs (n,) of independent X >= 0."""
    top = float(logs.max())
    if not top > -np.inf:
        return -np.inf
    x = np.sort(np.exp(logs - top))[::-1]
    edges = np.append(x[np.unique(np.linspace(0, len(x) - 1, _BINS).astype(int))], 0.0)
    bins = np.minimum(np.searchsorted(-edges, -x, side="right") - 1, len(edges) - 2)
    counts = np.bincount(bins, minlength=len(edges) - 1).astype(np.float64)
    sums = np.bincount(bins, x, minlength=len(edges) - 1).astype(np.float64)
    total, square = float(np.log(x.sum())), float(np.log((x**2).sum()))
    return top + lower(Weights(float(len(x)), total, square, edges, counts, sums), delta)


def _search(weights: Weights, delta: float, sign: float) -> float:
    """The refuted value next to the mean that is found by looking further and further away, and halving.

    What is refuted refutes all that is further away, since the martingales' products are monotone in m.
    """
    start = weights.log_mean if weights.log_mean > -np.inf else -_DISTANCES[-1]
    need, near = float(np.log(1 / delta)), 0.0
    for far in _DISTANCES:
        if sign > 0 and start + far >= 0:
            break
        if _capital(weights, start + sign * far, sign) >= need:
            return start + sign * _bisect(weights, start, sign, need, near, float(far))
        near = float(far)
    if sign < 0:
        return -np.inf
    # Just below the largest possible value, where the capital is still finite.
    last = -start * (1 - 1e-12)
    if near < last and _capital(weights, start + last, sign) >= need:
        return start + _bisect(weights, start, sign, need, near, last)
    return 0.0


def _bisect(weights: Weights, start: float, sign: float, need: float, near: float, far: float) -> float:
    for _ in range(_HALVINGS):
        middle = (near + far) / 2
        if _capital(weights, start + sign * middle, sign) >= need:
            far = middle
        else:
            near = middle
    return far


def _capital(weights: Weights, log_mean: float, sign: float) -> float:
    """A lower bound on the log of the capital that bets against a mean have made: sign -1: it is too small."""
    n, c = weights.number, STAKES
    if sign < 0:
        first = np.exp(min(weights.log_sum - log_mean, 600.0)) - n
        second = np.exp(min(weights.log_square - 2 * log_mean, 600.0)) - 2 * first - n
        at = weights.edges * np.exp(min(-log_mean, 600.0)) - 1
    else:
        mean, room = np.exp(log_mean), -np.expm1(log_mean)
        total, squares = np.exp(weights.log_sum), np.exp(weights.log_square)
        lost = _ROUNDING * n
        first = (n * mean - total - lost) / room
        second = (squares - 2 * mean * total + n * mean**2 + lost) / room**2
        # With a mean near 1 the difference of the two terms is dominated by rounding; this form avoids the subtraction.
        at = (1 - weights.edges) / room - 1
    alike = c * first + (np.log1p(-c) + c) * max(second, 0.0)
    best = np.maximum(alike, _chords(weights, at, c))
    top = best.max()
    if np.isfinite(top):
        return float(top + np.log(np.mean(np.exp(best - top))))
    return float(top)


def _chords(weights: Weights, at: FloatArray, c: FloatArray) -> FloatArray:
    """(stakes,) Σ log(1 + cξ), on the chord between the ends of each bin."""
    values = np.log1p(np.maximum(c[:, None] * at, -1 + 1e-16))
    high, low = weights.edges[:-1], weights.edges[1:]
    # A chord lies below a concave function: given count and sum of a bin, it bounds Σ log(1 + cξ) in the bin from
    # below.
    share = np.clip((weights.sums - weights.counts * low) / np.maximum(high - low, 1e-300), 0.0, weights.counts)
    return np.asarray(values[:, 1:] @ (weights.counts - share) + values[:, :-1] @ share)
