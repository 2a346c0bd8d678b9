"""Batch means of a run, a few rows at a time; of many chains in fewer, longer batches, which tell as much."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

TOLD = 2**12
"""Batch means of all chains together, from which a standard error is known to 1 / sqrt(2 * 4096) = 1 %."""
FEWEST = 16
"""Batches, however many chains there are: of fewer, an autocorrelation that outlasts them is told too small."""


class Means:
    """Batch means (B, N, C) of a sum, of which `means[:, rows]` finds some rows: all take as much memory as the trace.

    Neighbouring batches are pooled where as many as they were would tell no more; an odd rest at the end is left out.

    Attributes:
        shape: (B, N, C).
    """

    def __init__(self, sums: Sequence[FloatArray], counts: Sequence[int]) -> None:
        enough = max(TOLD // max(sums[0].shape[-1], 1), FEWEST)
        self._pooled = max(len(sums) // enough, 1)
        self._sums, self._counts = sums, counts
        self.shape: tuple[int, ...] = (len(sums) // self._pooled, *sums[0].shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: tuple[slice, slice]) -> FloatArray:
        every, rows = key
        first = self._sums[0][rows]
        wanted = range(len(self))[every]
        found = np.empty((len(wanted), *first.shape))
        for out, batch in zip(found, wanted, strict=True):
            some = slice(batch * self._pooled, (batch + 1) * self._pooled)
            out[:] = self._sums[some.start][rows]
            for more in self._sums[some][1:]:
                out += more[rows]
            out /= sum(self._counts[some])
        return found
