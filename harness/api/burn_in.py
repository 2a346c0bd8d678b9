"""What chains saw before the run: on their way from independent draws, of probes, and in burn-in's windows; and what
makes few numbers of what they see later."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]


class Climb(NamedTuple):
    """What chains saw on their way from independent draws to the model, whose log weights are multiplied by β.

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
        """Sweeps at each temperature that are left out, a quarter: chains come from the temperature before."""
        return self.sweeps // 4


class Probes(NamedTuple):
    """What chains that were melted and cooled anew, before the run, report of a few steps.

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
    """Where chains were on their way from their starts.

    Attributes:
        steps: of burn-in that were made.
        values: (…, C) of the statistic that is watched, after the last of them.
    """

    steps: int
    values: FloatArray


class LookDigest(Protocol):
    """Makes few numbers of the looks of a run while it goes on, where what is seen takes much memory.

    Attributes:
        min_looks: of a run that has so many samples.
    """

    @property
    def min_looks(self) -> int: ...

    def digest(self, looks: list[dict[str, FloatArray]]) -> LookDigest:
        """Replace looks, oldest first, once they are enough; what does so with those to come."""
        ...
