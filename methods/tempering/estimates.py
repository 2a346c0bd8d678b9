"""What runs of ladders tell: log Z by bridges between neighbouring rungs, how well replicas travel, what to doubt."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import Trace
from spinbench.mathematics.chains import FEWEST_CHAINS, drifts, errors_of_means, r_hat_of
from spinbench.mathematics.claims import (
    FEWEST_BATCHES,
    LEAST_OVERLAP,
    UNSEEN,
    Claim,
    error_bound,
    memory_share,
    t_factor,
)
from spinbench.methods.weighted_means import ChainMeans, FloatArray

IntArray = npt.NDArray[np.integer]

# Smallest number of round trips of all ladders; with fewer, a mode beyond the barrier may be missed: of 23 runs that
# R-hat accepted one was wrong, of the 17 with at least this many trips none.
MIN_ROUND_TRIPS = 20
# Average number of round trips of a replica from which its initial state counts as forgotten: by then few replicas have
# made none.
TRIPS_TO_FORGET = 2.0
# Barrier below which a ladder is hardly needed: chains at β = 1 alone would mix.
NEGLIGIBLE_BARRIER = 0.5
# Share of runs whose ladders move together, or are apart, by chance as far as counts. By a lesser move log Z is off by
# no more than its scatter allows for, since half of a run is where they came from.
CHANCE = 0.01


class Travel(NamedTuple):
    """How replicas move.

    Attributes:
        barrier: Λ, the sum of the rejection rates between neighbours.
        trips: round trips of all ladders, from the first rung to the last.
        replicas: of all ladders.
        predicted_trips: of them, if states were drawn anew between swaps (Syed et al., JRSS B 2022, theorem 1).
        overlap: the least share of swaps between two rungs that are accepted.
        lost: share of steps in which a state at β = 1 met a hard zero.
    """

    barrier: float
    trips: float
    replicas: int
    predicted_trips: float
    overlap: float
    lost: float

    @property
    def is_sufficient(self) -> bool:
        """Whether the run may be believed: replicas have to have forgotten where they began, by sweeps or by trips."""
        min_trips = max(MIN_ROUND_TRIPS, TRIPS_TO_FORGET * self.replicas * (1 - self.efficiency))
        # A state that meets a hard zero at β = 1 has weight 0: the chain has not reached the model's law.
        return self.lost == 0 and (self.trips >= min_trips or self.barrier < NEGLIGIBLE_BARRIER)

    @property
    def efficiency(self) -> float:
        """Trips seen over those predicted: 1 where a replica's state is forgotten from swap to swap."""
        if not self.predicted_trips:
            return 0.0
        return self.trips / self.predicted_trips

    @property
    def visits(self) -> float:
        """Independent visits of the last rung at most: a replica brings news from the first rung once a round trip."""
        if self.barrier < NEGLIGIBLE_BARRIER:
            return np.inf
        return max(self.trips, 1.0)

    @property
    def diagnostics(self) -> dict[str, float]:
        """By name."""
        return {
            "barrier": self.barrier,
            "round_trips": self.trips,
            "trip_efficiency": self.efficiency,
            "least_swap_rate": self.overlap,
        }


def chain_means(trace: Trace, rows: IntArray, signs: FloatArray) -> ChainMeans:
    """Of "p" at some rows, or of what it leaves of 1 where the sign is -1; 1 where it is 0."""
    sign = signs[:, None]
    series = (sign < 1) + sign * trace.series("p")[:, rows]
    return ChainMeans(((sign < 1) + sign * trace.mean("p")[rows]).mean(axis=-1), series)


def summarise_travel(trace: Trace) -> Travel:
    """From "rejected", "trips" and "lost"."""
    rejected = trace.mean("rejected").mean(axis=-1)
    ladders = trace.total("trips").shape[-1]
    with np.errstate(divide="ignore"):
        inefficiency = float((rejected / np.maximum(1 - rejected, 0.0)).sum())
    return Travel(
        float(rejected.sum()),
        float(trace.total("trips").sum()),
        ladders * (len(rejected) + 1),
        trace.samples * ladders / (2 + 2 * inefficiency),
        float(1 - rejected.max()),
        float(trace.mean("lost").mean()),
    )


def estimate_log_z_ratio(trace: Trace, travel: Travel) -> Claim:
    """Log of Z at the last rung over that at the first; its errors are infinite where nothing supports it.

    Bennett's ratio between neighbours, with the level c that burn-in has left: Z_{r+1} / Z_r is
    e^c E_r[σ(Δβ D - c)] / E_{r+1}[σ(c - Δβ D)], whatever c is (Bennett, J. Comput. Phys. 1976; Meng and Wong,
    Statistica Sinica 1996). The standard error is that of the sum, to first order, over ladders and batches jointly;
    the bound is wider by what ladders remember, by how far all of them still move, and by what they are too few to
    have seen.

    Args:
        trace: of the run.
        travel: of the same run.
    """
    up, down = (trace.series(name) for name in ("up", "down"))
    levels = trace.total("levels")[:, 0]
    mean_up, mean_down = up.mean(axis=(0, 2)), down.mean(axis=(0, 2))
    if not all(((mean > 0) & (mean < np.inf)).all() for mean in (mean_up, mean_down)):
        return Claim(0.0, np.inf, np.inf)
    value = float((levels + np.log(mean_up) - np.log(mean_down)).sum())
    # Relative deviations: to first order their sum over rungs is the deviation of log Z.
    deviations = (up / mean_up[:, None] - down / mean_down[:, None]).sum(axis=1)[:, None, :]
    chains = deviations.shape[-1]
    errors = errors_of_means(deviations)
    memory = float((memory_share(r_hat_of(deviations)) * errors.spread)[0])
    se = float(t_factor(errors.freedom)[0] * errors.se[0])
    supported = chains >= FEWEST_CHAINS and len(deviations) >= FEWEST_BATCHES and travel.overlap >= LEAST_OVERLAP
    supported = supported and not drifts(deviations, np.hypot([se], memory))
    bound = float(error_bound(se, UNSEEN / travel.visits, float(np.hypot(memory, common_drift(deviations)))))
    if supported and travel.is_sufficient:
        return Claim(value, se, bound)
    return Claim(value, np.inf, np.inf)


def common_drift(deviations: FloatArray) -> float:
    """By how much the means (B, 1, C) of all ladders move together from the first half of a run to the second, beyond
    what they do by chance: where they all come from starts that they have not forgotten, they are alike, and wrong."""
    from scipy.special import stdtrit

    half, chains = len(deviations) // 2, deviations.shape[-1]
    if not half or chains < 2:
        return 0.0
    moves = (deviations[half : 2 * half].mean(axis=0) - deviations[:half].mean(axis=0))[0]
    by_chance = stdtrit(chains - 1, 1 - CHANCE / 2) * moves.std(ddof=1) / np.sqrt(chains)
    return float(np.sqrt(max(moves.mean() ** 2 - by_chance**2, 0.0)))
