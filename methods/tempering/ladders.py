"""Ladders of R rungs over a backend's arrays: which replica stands where, swaps, what they tell, and their adaptation.

L ladders side by side, the last axis. A ladder has R *slots*, each with a state that stays where it is; what is swapped
are the rungs of slots. Rung 0 is the hottest, at β = 0, and rung R - 1 is the model, at β = 1. D is log p*, so that the
law at a rung is e^{β D}.

Swaps alternate between even and odd rungs, by the step's number alone, which makes a ladder non-reversible: replicas
keep their direction until a swap is rejected. Okabe, Kawata, Okamoto, Mikami, "Replica-exchange Monte Carlo method for
the isobaric-isothermal ensemble", Chem. Phys. Lett. 2001; Syed, Bouchard-Côté, Deligiannidis, Doucet, "Non-reversible
parallel tempering: a scalable highly parallel MCMC scheme", JRSS B 2022.
"""

from __future__ import annotations

from typing import NamedTuple

from spinbench.api import Array, Index
from spinbench.methods.chain_program import ArrayOperations

# Swaps at the average rejection rate that are added to those of each pair of rungs, so that chance in a short window
# does not move rungs.
PRIOR_SWAPS = 4.0
# Nats that a hard zero costs in a swap at β = 1, above every difference of finite log weights.
HARD_ZERO_NATS = 1e6
# Smallest rejection rate of a pair of rungs: without it, rungs would leave a part of [0, 1] in which no swap was
# rejected.
MIN_REJECTION = 1e-3


class SwapStatistics(NamedTuple):
    """What one step tells.

    Attributes:
        cold: (L,) slot at the last rung when it was seen.
        up, down: (R - 1, L) σ(Δβ D - c) at the lower and σ(c - Δβ D) at the upper of two neighbouring rungs.
        rejected: (R - 1, L) probability that a swap is rejected.
        trips: (L,) 1 where a replica came from the first rung to the last, else 0.
        lost: (L,) 1 where the state of the last rung meets a hard zero, else 0; it should not.
        at: (R, L) D by rung.
    """

    cold: Array
    up: Array
    down: Array
    rejected: Array
    trips: Array
    lost: Array
    at: Array


class Rungs(NamedTuple):
    """Attributes: betas (R,); levels (R - 1,) c, guesses of log Z at the upper of two neighbours, less the lower's."""

    betas: Array
    levels: Array


class Places(NamedTuple):
    """Attributes: slot (R, L) of each rung; rung (R, L) of each slot; hot (R, L) 1 where the slot's replica came from
    the first rung, 0 where it came from the last or from neither."""

    slot: Array
    rung: Array
    hot: Array


class Sums(NamedTuple):
    """Since the last window's end. Attributes: rejected (R - 1, L), at (R, L) as of `SwapStatistics`; steps (L,)."""

    rejected: Array
    at: Array
    steps: Array


class Ladders(ArrayOperations):
    """Over a backend's arrays."""

    def initial_places(self, rungs: int, ladders: Array) -> Places:
        """Slot k at rung k; `ladders` is any array (L,)."""
        none = self._xp.zeros_like(ladders, dtype=self._xp.int32)[None, :]
        places = self._xp.arange(rungs, dtype=self._xp.int32)[:, None] + none
        return Places(places, places, self._xp.zeros_like(places))

    def zero_sums(self, like: Array) -> Sums:
        """Nothing seen by ladders (R, L)."""
        zeros = self._xp.zeros_like(like)
        return Sums(zeros[1:, :], zeros, zeros[0, :])

    def swap_neighbours(
        self, u: Array, parity: Index, rungs: Rungs, places: Places, log_weights: Array, hard_zeros: Array | None
    ) -> tuple[Places, SwapStatistics]:
        """One round of swaps.

        Args:
            u: (R - 1, L) uniform numbers.
            parity: 0 or 1: the lower rungs of the pairs that may swap are even or odd.
            rungs: of all ladders.
            places: of the replicas.
            log_weights: (R, L) D of the slots' states.
            hard_zeros: (R, L) how many the slot's state meets: fewer come first at β = 1. None where there are none.
        """
        xp = self._xp
        at = self._gather_by_ladder(log_weights, places.slot)
        steps = (rungs.betas[1:] - rungs.betas[:-1])[:, None]
        lower, upper = steps * at[:-1, :], steps * at[1:, :]
        gain = lower - upper
        if hard_zeros is None:
            zeros = xp.zeros_like(at)
        else:
            zeros = self._gather_by_ladder(hard_zeros, places.slot)
            top = (xp.arange(gain.shape[0]) == gain.shape[0] - 1)[:, None]
            gain = gain + xp.where(top, HARD_ZERO_NATS * (zeros[1:, :] - zeros[:-1, :]), 0.0)
            # At β = 1 a state that meets a hard zero has weight 0: its term in log Z is σ(-∞).
            lower = xp.where(top & (zeros[:-1, :] > 0), -xp.inf, lower)
        accepted = xp.exp(xp.minimum(gain, xp.zeros_like(gain)))
        may_swap = (xp.arange(gain.shape[0], dtype=xp.int32) % 2 == parity)[:, None]
        moved, trips = self._apply_swaps(places, may_swap & (u < accepted))
        c = rungs.levels[:, None]
        statistics = SwapStatistics(
            places.slot[-1, :],
            self._sigmoid(lower - c),
            self._sigmoid(c - upper),
            1 - accepted,
            trips,
            xp.astype(zeros[-1, :] > 0, at.dtype),
            at,
        )
        return moved, statistics

    def add_step(self, sums: Sums, statistics: SwapStatistics) -> Sums:
        """With one more step."""
        return Sums(sums.rejected + statistics.rejected, sums.at + statistics.at, sums.steps + 1)

    def adapt_rungs(self, rungs: Rungs, sums: Sums) -> Rungs:
        """For equal rejection between all neighbours, as far as was seen (ibid., algorithm 2).

        The barrier up to β is taken to be linear between rungs, and so is E D for the levels.
        """
        xp, betas = self._xp, rungs.betas
        steps = xp.sum(sums.steps)
        has_steps = steps > 0
        total = xp.sum(sums.rejected, axis=1)
        rejected = (total + PRIOR_SWAPS * xp.mean(total) / xp.where(has_steps, steps, 1)) / (steps + PRIOR_SWAPS)
        pieces = xp.clip(rejected, MIN_REJECTION, 1.0)
        zero = xp.zeros_like(betas[:1])
        barrier = xp.concat([zero, xp.cumulative_sum(pieces)])
        places = xp.astype(xp.arange(betas.shape[0]), betas.dtype)
        targets = places * (barrier[-1] / (betas.shape[0] - 1))
        new_betas = self._interpolate(targets[1:-1], barrier, betas)
        # The ends stay fixed: β = 0, where Z is known, and β = 1, the model itself.
        new_betas = xp.concat([betas[:1], new_betas, betas[-1:]])
        mean = xp.sum(sums.at, axis=1) / xp.where(has_steps, steps, 1)
        slopes = self._interpolate(new_betas, betas, mean)
        # d log Z / dβ = E D, by the trapezoidal rule. A rough value is enough: Bennett's ratio is right for any level
        # and most precise near the true one.
        new_levels = (new_betas[1:] - new_betas[:-1]) * (slopes[1:] + slopes[:-1]) / 2
        return Rungs(xp.where(has_steps, new_betas, betas), xp.where(has_steps, new_levels, rungs.levels))

    def _interpolate(self, x: Array, places: Array, values: Array) -> Array:
        """`values` (R,) at ascending `places` (R,), linear between them, at x (…)."""
        xp = self._xp
        below = xp.sum(xp.astype(places[1:-1][:, None] <= x[None, :], xp.int32), axis=0)
        take = self._backend.take
        low, high = take(places, below), take(places, below + 1)
        share = (x - low) / xp.maximum(high - low, xp.full_like(low, 1e-30))
        return take(values, below) * (1 - share) + take(values, below + 1) * share

    def _apply_swaps(self, places: Places, swapped: Array) -> tuple[Places, Array]:
        """After the swaps (R - 1, L), and the trips that ended."""
        xp = self._xp
        swaps = xp.astype(swapped, xp.int32)
        none = xp.zeros_like(swaps[:1, :])
        shift = xp.concat([swaps, none], axis=0) - xp.concat([none, swaps], axis=0)
        rungs = places.slot.shape[0]
        source_rungs = xp.arange(rungs, dtype=xp.int32)[:, None] + shift
        slot, rung = (
            self._gather_by_ladder(places.slot, source_rungs),
            places.rung + self._gather_by_ladder(shift, places.rung),
        )
        at_last_rung = xp.astype(rung == rungs - 1, xp.int32)
        trips = xp.sum(at_last_rung * places.hot, axis=0)
        hot = xp.where(rung == 0, xp.ones_like(rung), (1 - at_last_rung) * places.hot)
        return Places(slot, rung, hot), xp.astype(trips, self._backend.real)

    def _gather_by_ladder(self, values: Array, places: Array) -> Array:
        """values[places[r, l], l]."""
        xp, ladders = self._xp, values.shape[1]
        flat = places * ladders + xp.arange(ladders, dtype=places.dtype)[None, :]
        return self._backend.take(xp.reshape(values, (-1,)), flat)
