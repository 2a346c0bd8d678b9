"""Bounds on the distance to stationarity from the times at which coupled chains meet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

CONFIDENCE = 0.95
_NORMAL, _UNSEEN = 1.645, 3.0
"""Standard errors, and excesses that pairs have not shown, of a limit that holds with `CONFIDENCE`."""


class Distance(NamedTuple):
    """Of the law after t sweeps. Attributes: mean: the estimated bound; most: its upper confidence limit."""

    mean: float
    most: float


@dataclass(frozen=True)
class Mixing:
    """How long a sampler takes to forget its starts.

    The distance in total variation between the law of s_t and the model is at most
    E max(0, ⌈(τ - L - t) / L⌉) for the meeting time τ of chains that are L sweeps apart (Biswas, Jacob and Vanetti,
    "Estimating convergence of Markov chains with L-lag couplings", NeurIPS 2019, theorem 2.5); the mean over
    independent pairs estimates it. A part of the states that no pair has entered is not seen.

    Attributes:
        sweeps: after which the bound is below `tv` with a confidence of 95 %; None: not resolved.
        estimate: after which the estimated bound is below `tv`; None where a pair has not met.
        tv: the distance that was asked for.
        lag: L.
        times: (P,) meeting times τ in sweeps of the chain ahead; -1 of pairs that have not met.
        seconds: spent, loading of compiled code left out.
        ran: sweeps that were made at most.
        method, backend, model: their names.
    """

    sweeps: int | None
    estimate: int | None
    tv: float
    lag: int
    times: IntArray
    seconds: float
    ran: int
    method: str = "gibbs"
    backend: str = ""
    model: str = "model"

    @property
    def verdict(self) -> Literal["resolved", "not resolved"]:
        """Whether `sweeps` is known."""
        return "not resolved" if self.sweeps is None else "resolved"

    @property
    def met(self) -> float:
        """The share of pairs that have met."""
        return float((self.times >= 0).mean())

    def distance(self, t: int) -> Distance:
        """Of the law after t sweeps; infinite where a pair has not met."""
        return distance(self.times, self.lag, t)

    def sentences(self) -> list[str]:
        """What it says, a line each."""
        pairs = f"{len(self.times)} pairs, lag {self.lag}"
        if self.met < 1:
            met = int((self.times >= 0).sum())
            return [f"not resolved: {met} of {pairs}, have met in {self.ran} sweeps and {self.seconds:.3g} s"]
        about = f"the estimate is {self.estimate}; {pairs}, in {self.seconds:.3g} s"
        if self.sweeps is None:
            return [f"not resolved: too few pairs for 95 % confidence in a distance below {self.tv:g}; {about}"]
        return [f"{self.method}: total variation below {self.tv:g} after {self.sweeps} sweeps, 95 % sure; {about}"]

    def __repr__(self) -> str:
        return f"Mixing({self.model!r}: {'; '.join(self.sentences())})"


def distance(times: IntArray, lag: int, t: int) -> Distance:
    """See `Mixing.distance`.

    The limit allows for rare long meetings, of which so few pairs may show none; none that is many lags longer.
    """
    if (times < 0).any():
        return Distance(np.inf, np.inf)
    excess = np.maximum(0, -((t + lag - times) // lag))
    mean, count = float(excess.mean()), len(times)
    return Distance(mean, mean + _NORMAL * float(excess.std()) / np.sqrt(count) + _UNSEEN / count)


def first_below(times: IntArray, lag: int, tv: float) -> tuple[int | None, int | None]:
    """(sweeps after which the limit of the distance is below `tv`, those after which its mean is); None: never."""
    if (times < 0).any():
        return None, None
    ends = max(int(times.max()) - lag, 0)

    def first(which: int) -> int | None:
        if not distance(times, lag, ends)[which] < tv:
            return None
        low, high = -1, ends
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if distance(times, lag, middle)[which] < tv else (middle, high)
        return high

    return first(1), first(0)
