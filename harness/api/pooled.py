"""Batch means of a run, read a few rows at a time. With many chains batches are merged, and with very many only some
chains are read: standard errors hardly lose precision."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.chains import Every

FloatArray = npt.NDArray[np.float64]

TOLD = 2**12
"""Number of batch means of all chains that gives a standard error to 1 / sqrt(2 * 4096) = 1 %."""
FEWEST = 16
"""Smallest number of batches: with fewer, a longer autocorrelation is underestimated."""
MOST_CHAINS = TOLD // FEWEST
"""Largest number of chains that standard errors use: the spread of so many gives them to 1 / sqrt(2 * 256) = 4 %."""


class Means:
    """Batch means (B, N, C) of a summed statistic, of which `means[:, rows]` computes some rows, to save memory.

    Neighbouring batches are pooled where as many as they were would tell no more; an odd rest at the end is left out.
    So are all but the first `MOST_CHAINS`.

    Attributes:
        shape: (B, N, C).
        chains: of the run.
    """

    def __init__(self, sums: Sequence[FloatArray], counts: Sequence[int]) -> None:
        self.chains = sums[0].shape[-1]
        enough = max(TOLD // max(self.chains, 1), FEWEST)
        self._pooled = max(len(sums) // enough, 1)
        self._sums, self._counts = sums, counts
        self.shape: tuple[int, ...] = (len(sums) // self._pooled, *sums[0].shape[:-1], min(self.chains, MOST_CHAINS))

    @property
    def every(self) -> Every | None:
        """Summaries of all chains and of the unmerged batches; None if no chain and no batch is left out or merged."""
        if (self._pooled, self.shape[-1]) == (1, self.chains):
            return None
        variance = self._variance()
        if self.shape[-1] == self.chains:
            return Every(self.chains, variance)
        starts = np.arange(0, len(self) * self._pooled, self._pooled)
        whole_groups = slice(0, len(self) * self._pooled)
        counts = np.add.reduceat(np.array(self._counts[whole_groups]), starts)
        return Every(self.chains, variance, np.add.reduceat(self._rows[whole_groups], starts) / counts[:, None])

    def _variance(self) -> FloatArray:
        """(N,) of means of single batches, one of each that were pooled."""
        picked = range(0, len(self) * self._pooled, self._pooled)
        single = np.array([self._sums[k][:, : self.shape[-1]] / self._counts[k] for k in picked])
        single -= single.mean(axis=-1).mean(axis=0)[:, None]
        return np.asarray(np.einsum("bnc,bnc->n", single, single) / max(len(single) * single.shape[-1] - 1, 1))

    def mean(self) -> FloatArray:
        """(N,) means over all steps and chains."""
        if self.shape[-1] < self.chains:
            return np.asarray(self._rows.sum(axis=0) / sum(self._counts))
        total = self._sums[0] + 0.0
        for more in self._sums[1:]:
            total += more
        total /= sum(self._counts)
        return np.asarray(total.mean(axis=-1))

    @cached_property
    def _rows(self) -> FloatArray:
        """Of each batch that was pooled (N,) sums of steps, means over all chains."""
        return np.array([batch.mean(axis=-1) for batch in self._sums])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: tuple[slice, slice]) -> FloatArray:
        every, rows = key
        those = slice(0, self.shape[-1])
        first = self._sums[0][rows, those]
        batches = range(len(self))[every]
        means = np.empty((len(batches), *first.shape))
        for out, batch in zip(means, batches, strict=True):
            some = slice(batch * self._pooled, (batch + 1) * self._pooled)
            out[:] = self._sums[some.start][rows, those]
            for more in self._sums[some][1:]:
                out += more[rows, those]
            out /= sum(self._counts[some])
        return means
