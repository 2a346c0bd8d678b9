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

from typing import Any, NamedTuple

from spinbench.api import Array, Backend

SMOOTHING = 4.0
"""Swaps of average rejection that are added to those seen of each pair of rungs."""
ABYSS = 1e6
"""Nats that a hard zero costs in a swap at β = 1: all that finite log weights may differ by, and more."""
LEAST_REJECTION = 1e-3
"""Of a pair of rungs, so that all of [0, 1] keeps rungs."""


class Seen(NamedTuple):
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
    """Since the last window's end. Attributes: rejected (R - 1, L), at (R, L) as of `Seen`; steps (L,)."""

    rejected: Array
    at: Array
    steps: Array


class Ladders:
    """Over a backend's arrays."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._xp = backend.xp

    def begin(self, rungs: int, ladders: Array) -> Places:
        """Slot k at rung k; `ladders` is any array (L,)."""
        none = self._xp.zeros_like(ladders, dtype=self._xp.int32)[None, :]
        places = self._xp.arange(rungs, dtype=self._xp.int32)[:, None] + none
        return Places(places, places, self._xp.zeros_like(places))

    def none(self, like: Array) -> Sums:
        """Nothing seen by ladders (R, L)."""
        zeros = self._xp.zeros_like(like)
        return Sums(zeros[1:, :], zeros, zeros[0, :])

    def swap(
        self, u: Array, parity: Any, rungs: Rungs, places: Places, log_weights: Array, lost: Array | None
    ) -> tuple[Places, Seen]:
        """One round of swaps.

        Args:
            u: (R - 1, L) uniform numbers.
            parity: 0 or 1: the lower rungs of the pairs that may swap are even or odd.
            rungs: of all ladders.
            places: of the replicas.
            log_weights: (R, L) D of the slots' states.
            lost: (R, L) hard zeros that the slot's state meets: fewer come first at β = 1. None where there are none.
        """
        xp = self._xp
        at = self._along(log_weights, places.slot)
        steps = (rungs.betas[1:] - rungs.betas[:-1])[:, None]
        lower, upper = steps * at[:-1, :], steps * at[1:, :]
        gain = lower - upper
        if lost is None:
            zeros = xp.zeros_like(at)
        else:
            zeros = self._along(lost, places.slot)
            top = (xp.arange(gain.shape[0]) == gain.shape[0] - 1)[:, None]
            gain = gain + xp.where(top, ABYSS * (zeros[1:, :] - zeros[:-1, :]), 0.0)
            lower = xp.where(top & (zeros[:-1, :] > 0), -xp.inf, lower)
        accepted = xp.exp(xp.minimum(gain, xp.zeros_like(gain)))
        turn = (xp.arange(gain.shape[0], dtype=xp.int32) % 2 == parity)[:, None]
        moved, trips = self._moved(places, turn & (u < accepted))
        c = rungs.levels[:, None]
        seen = Seen(
            places.slot[-1, :],
            self._backend.sigmoid(lower - c),
            self._backend.sigmoid(c - upper),
            1 - accepted,
            trips,
            xp.astype(zeros[-1, :] > 0, at.dtype),
            at,
        )
        return moved, seen

    def added(self, sums: Sums, seen: Seen) -> Sums:
        """With one more step."""
        return Sums(sums.rejected + seen.rejected, sums.at + seen.at, sums.steps + 1)

    def adapted(self, rungs: Rungs, sums: Sums) -> Rungs:
        """For equal rejection between all neighbours, as far as was seen (ibid., algorithm 2).

        The barrier up to β is taken to be linear between rungs, and so is E D for the levels.
        """
        xp, betas = self._xp, rungs.betas
        steps = xp.sum(sums.steps)
        seen = steps > 0
        total = xp.sum(sums.rejected, axis=1)
        rejected = (total + SMOOTHING * xp.mean(total) / xp.where(seen, steps, 1)) / (steps + SMOOTHING)
        pieces = xp.clip(rejected, LEAST_REJECTION, 1.0)
        zero = xp.zeros_like(betas[:1])
        barrier = xp.concat([zero, xp.cumulative_sum(pieces)])
        places = xp.astype(xp.arange(betas.shape[0]), betas.dtype)
        wanted = places * (barrier[-1] / (betas.shape[0] - 1))
        found = self._interpolated(wanted[1:-1], barrier, betas)
        found = xp.concat([betas[:1], found, betas[-1:]])
        mean = xp.sum(sums.at, axis=1) / xp.where(seen, steps, 1)
        slopes = self._interpolated(found, betas, mean)
        fresh = (found[1:] - found[:-1]) * (slopes[1:] + slopes[:-1]) / 2
        return Rungs(xp.where(seen, found, betas), xp.where(seen, fresh, rungs.levels))

    def _interpolated(self, x: Array, places: Array, values: Array) -> Array:
        """`values` (R,) at ascending `places` (R,), linear between them, at x (…)."""
        xp = self._xp
        below = xp.sum(xp.astype(places[1:-1][:, None] <= x[None, :], xp.int32), axis=0)
        take = self._backend.take
        low, high = take(places, below), take(places, below + 1)
        share = (x - low) / xp.maximum(high - low, xp.full_like(low, 1e-30))
        return take(values, below) * (1 - share) + take(values, below + 1) * share

    def _moved(self, places: Places, swapped: Array) -> tuple[Places, Array]:
        """After the swaps (R - 1, L), and the trips that ended."""
        xp = self._xp
        there = xp.astype(swapped, xp.int32)
        none = xp.zeros_like(there[:1, :])
        shift = xp.concat([there, none], axis=0) - xp.concat([none, there], axis=0)
        rungs = places.slot.shape[0]
        own = xp.arange(rungs, dtype=xp.int32)[:, None] + shift
        slot, rung = self._along(places.slot, own), places.rung + self._along(shift, places.rung)
        ended = xp.astype(rung == rungs - 1, xp.int32)
        trips = xp.sum(ended * places.hot, axis=0)
        hot = xp.where(rung == 0, xp.ones_like(rung), (1 - ended) * places.hot)
        return Places(slot, rung, hot), xp.astype(trips, self._backend.real)

    def _along(self, values: Array, places: Array) -> Array:
        """values[places[r, l], l]."""
        xp, ladders = self._xp, values.shape[1]
        flat = places * ladders + xp.arange(ladders, dtype=places.dtype)[None, :]
        return self._backend.take(xp.reshape(values, (-1,)), flat)
