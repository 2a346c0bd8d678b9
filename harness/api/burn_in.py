"""What is recorded before a run: stepping stones from β = 0, probes, and the windows of burn-in; and a digest of looks
during the run."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

# Ends of the windows of burn-in, as shares; settings may be adapted after each.
WINDOWS = (0.125, 0.25, 0.5, 1.0)


class Climb(NamedTuple):
    """Slopes of log weights along the stepping stones p*^β, from independent draws at β = 0 to the model at β = 1.

    Attributes:
        betas: (K,) ascending, 0 first; the run itself is at 1.
        slopes: (S, K, C) d log p*^β / dβ after S sweeps at each.
        sweeps: at each, of which the first are left out; 0 where the way is gone once alone.
        steps: of the run, which it takes.
    """

    betas: FloatArray
    slopes: FloatArray
    sweeps: int = 0
    steps: int = 0

    @property
    def burn_in(self) -> int:
        """Burn-in sweeps at each temperature, a quarter of all: chains come from the temperature before."""
        return self.sweeps // 4


class Probes(NamedTuple):
    """Means over a few steps of probes: chains that are restarted at β = 0 and cooled before the run.

    Attributes:
        means: (…, P) of a summed statistic, by probe.
        steps: of each.
        burn_in: steps that followed, at most.
        began: whether the run's chains begin where the last of them ended.
    """

    means: FloatArray
    steps: int
    burn_in: int
    began: bool = True


class Arrival(NamedTuple):
    """Values of a statistic at the end of a window of burn-in, which show how far chains are from their initial states.

    Attributes:
        steps: of burn-in that were made.
        values: (…, C) of the statistic that is watched, after the last of them.
    """

    steps: int
    values: FloatArray


class LookDigest(Protocol):
    """Condenses the looks of a run while it goes on, if they would take too much memory.

    Attributes:
        min_looks: of a run that has so many samples.
        look_steps: optional; cost in steps of a look's part in `digest`, by which looks become less frequent.
    """

    @property
    def min_looks(self) -> int: ...

    def digest(self, looks: list[dict[str, FloatArray]]) -> LookDigest:
        """Condense the looks so far (oldest first) in place, once there are enough; the digest of later looks."""
        ...
