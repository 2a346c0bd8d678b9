"""What a run has reported so far: batches of statistics on the host, merged in pairs when they become many."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from spinbench.api.burn_in import Arrival, Climb, LookDigest, Probes
from spinbench.api.pooled import Means
from spinbench.api.types import Reduction, check_reductions
from spinbench.errors import InvalidResultError

FloatArray = npt.NDArray[np.float64]

MAX_BATCHES = 512
"""Largest number of batches of runs with few chains."""
MANY_CHAINS = 64
"""Number of chains from which batches become fewer: chains show a standard error as well as batches do."""
MANY_BATCHES = 64
"""Number of batches that is stored however many chains there are."""
COARSE, COARSE_OF_MANY = 8, 4
"""Numbers of batches of a coarse trace, with few and with many chains."""
MAX_BYTES = 128 * 2**20
FEWEST_KEPT = 8
"""Smallest number of batches, however large they are."""
FEWEST_WANTED = 16
"""Smallest number of batches, however long an estimate from them takes."""
GROUPS = 10
"""Default number of groups of batches of the jackknife."""
FEWEST_GROUPS = 4


class Trace:
    """Batches of equal length (to one step) with their reduced statistics, oldest first.

    When `capacity` batches are full, neighbours are merged and the trace covers the same steps with half as many
    batches; the memory of a run is bounded, whatever its length.

    Attributes:
        reductions: of each statistic.
        chains: of the run; statistics may be of groups of them.
        counts: steps of each batch.
        samples: steps so far; each is one sample of every chain. Of an iteration that counts its own steps, as many as
            it has taken: those that it was asked for beyond its end are none.
        looks: what was seen at a few steps, evenly spaced: one dictionary of (C,) arrays each, or what `digest` makes.
        digest: condenses looks while the run goes on, where the warm-up names one.
        climb: what the warm-up saw, where the method has one that sees something.
        wanted: sweeps that it would have taken where it was given too few.
        seconds: of the whole run, where its budget is one; None where samples are counted.
        probes: of the warm-up, by statistic, where the method sends any.
        watched: a summed statistic of which burn-in tells (`arrivals`), where the warm-up names one.
        arrivals: at the ends of burn-in's windows but the last.
    """

    def __init__(
        self,
        reductions: Mapping[str, Reduction],
        chains: int = 1,
        numbers: int = 0,
    ) -> None:
        """As many batches as are enough for so many chains; fewer where they would take over MAX_BYTES.

        Args:
            reductions: of each statistic.
            chains: of the run.
            numbers: of a batch, about, where that is known before there is one.

        Raises:
            BrokenPluginError: a reduction has a name that no reduction has.
        """
        check_reductions(reductions)
        self.reductions = dict(reductions)
        self.counts_iterations = self.reductions.get("iterations") == "last"
        self.chains = chains
        enough = MAX_BATCHES * MANY_CHAINS // max(chains, MANY_CHAINS) // 2 * 2
        self._most = min(MAX_BATCHES, max(enough, MANY_BATCHES))
        self._fit = max(MAX_BYTES // (8 * max(numbers, 1)), FEWEST_KEPT) // 2 * 2
        self.counts: list[int] = []
        self.samples = 0
        self.looks: list[dict[str, FloatArray]] = []
        self.digest: LookDigest | None = None
        self.climb: Climb | None = None
        self.wanted = 0
        self.seconds: float | None = None
        self.probes: dict[str, Probes] = {}
        self.watched: str | None = None
        self.arrivals: list[Arrival] = []
        self._batches: list[dict[str, FloatArray]] = []
        self._capacity = self._most
        self._coarse = COARSE if chains < MANY_CHAINS else COARSE_OF_MANY

    @property
    def enough(self) -> int:
        """Number of batches of a run whose budget is in samples; no more than are stored, since long batches take fewer
        calls."""
        return min(self._most // 2, self._fit)

    @property
    def full(self) -> bool:
        """Whether the next batch makes a merge necessary."""
        return len(self._batches) >= self._capacity

    @property
    def numbers(self) -> int:
        """How many numbers a batch holds; 0 before the first batch."""
        return sum(array.size for batch in self._batches[-1:] for array in batch.values())

    def add(self, batch: Mapping[str, npt.NDArray[np.generic]], count: int, *, joined: bool = False) -> None:
        """Append copies of the statistics of `count` further steps: an engine may write into its state again. In them
        chains lie next to each other, however the engine keeps these.

        Args:
            batch: by name, all that the reductions name.
            count: steps.
            joined: to the batch before.

        Raises:
            InvalidResultError: one that the reductions name is not there, or holds no numbers.
        """
        check_reported(batch, self.reductions)
        stored = {}
        for name in self.reductions:
            try:
                stored[name] = np.array(batch[name], dtype=np.float64, order="C")
            except (TypeError, ValueError) as error:
                kind = getattr(batch[name], "dtype", type(batch[name]).__name__)
                raise InvalidResultError(f"a batch of steps reported {name!r} as {kind}; numbers are needed") from error
        if not self._batches:
            size = sum(array.nbytes for array in stored.values())
            self._capacity = min(max(MAX_BYTES // max(size, 1), FEWEST_KEPT), self._most) // 2 * 2
        if joined:
            self._batches[-1] = self._join([self._batches[-1], stored])
            self.counts[-1] += count
        else:
            self._batches.append(stored)
            self.counts.append(count)
        requested = self.samples + count
        self.samples = int(stored["iterations"].max()) if self.counts_iterations else requested

    def limit(self, batches: int) -> None:
        """Lower the number of batches that are stored from here on, but not below what the run needs."""
        self._capacity = min(self._capacity, max(batches, FEWEST_WANTED) // 2 * 2)

    def merge(self) -> None:
        """Join batches 0 and 1, 2 and 3, …; an odd last batch stays."""
        pairs = range(0, len(self._batches) - 1, 2)
        tail = self._batches[len(pairs) * 2 :]
        self._batches = [self._join(self._batches[i : i + 2]) for i in pairs] + tail
        tail_counts = self.counts[len(pairs) * 2 :]
        self.counts = [self.counts[i] + self.counts[i + 1] for i in pairs] + tail_counts

    def total(self, name: str) -> FloatArray:
        """The reduction over all steps: the sum, the log of the sum of exponentials, or the last value."""
        return combine_parts(self.reductions[name], [batch[name] for batch in self._batches])

    def mean(self, name: str) -> FloatArray:
        """The mean over steps of a summed statistic (log of the mean for "logsumexp"); the chain axis remains."""
        if self.reductions[name] == "logsumexp":
            return np.asarray(self.total(name) - np.log(self.samples))
        return np.asarray(self.total(name) / self.samples)

    def series(self, name: str, most: int | None = None) -> FloatArray:
        """(B, …, C): means over each of the B batches (logs of means for "logsumexp"; draws for "last").

        Args:
            name: of a statistic.
            most: of a sum: neighbouring batches are pooled until B < 2 most; an odd rest at the end is left out.
        """
        stacked = np.stack([batch[name] for batch in self._batches])
        counts = np.array(self.counts, dtype=np.float64).reshape(-1, *([1] * (stacked.ndim - 1)))
        match self.reductions[name]:
            case "sum" if most is not None and (pooled := len(stacked) // most) > 1:
                kept = len(stacked) // pooled * pooled
                starts = np.arange(0, kept, pooled)
                return np.add.reduceat(stacked[:kept], starts) / np.add.reduceat(counts[:kept], starts)
            case "sum":
                stacked /= counts
                return stacked
            case "logsumexp":
                stacked -= np.log(counts)
                return stacked
            case _:
                return stacked

    def means(self, name: str) -> Means:
        """`series` of a summed (N, C) statistic, read a few rows at a time, in few batches that suffice for errors."""
        return Means([batch[name] for batch in self._batches], self.counts)

    def se(self, function: Callable[[Trace], npt.ArrayLike], groups: int = GROUPS) -> FloatArray:
        """The jackknife standard error of any function of a trace, such as a ratio or a product of means.

        The run is cut into groups of time, all chains together, and the function is evaluated without each of them in
        turn (Busing, Meijer and van der Leeden, "Delete-m jackknife for unequal m", Statistics and Computing 1999).
        Groups have to be long against the autocorrelation time, and what tells chains apart for good is not seen. From
        10 groups the error itself is known to a fourth, and (estimate - truth) / error is about t-distributed with 9
        degrees of freedom.

        Args:
            function: of a trace, to a number or an array: `lambda t: t.mean("a").mean() / t.mean("b").mean()`.
                The traces it is given have a batch for each group, and one draw of each for "last".
            groups: 4 or more.

        Returns:
            In the shape of what the function returns; infinite where fewer than 4 batches, or a part without
            a value, leave nothing to estimate it from.

        Raises:
            ValueError: fewer than 4 groups.
        """
        if groups < FEWEST_GROUPS:
            raise ValueError(f"groups={groups} was given; {FEWEST_GROUPS} or more are needed")
        batches, counts = self._group_batches(groups)
        value, count = np.asarray(function(self._part(batches, counts)), dtype=np.float64), len(counts)
        if count < FEWEST_GROUPS:
            return np.full(value.shape, np.inf)
        parts = [self._part(batches[:g] + batches[g + 1 :], counts[:g] + counts[g + 1 :]) for g in range(count)]
        left = np.array([function(part) for part in parts], np.float64)
        shares = np.array(counts, dtype=np.float64).reshape(-1, *([1] * value.ndim)) / sum(counts)
        pseudo = value / shares - (1 / shares - 1) * left
        centre = count * value - ((1 - shares) * left).sum(axis=0)
        error = np.sqrt(((pseudo - centre) ** 2 / (1 / shares - 1)).mean(axis=0))
        return np.where(np.isfinite(error), error, np.inf)

    def looked(self, name: str) -> FloatArray:
        """(L, C) values of a statistic of the looks, at L steps.

        Raises:
            InvalidResultError: what is looked at is not there under that name.
        """
        if self.looks:  # all looks of a trace come from one engine
            check_seen(self.looks[0], name)
        return np.array([look[name] for look in self.looks], dtype=np.float64)

    def as_it_is(self) -> Trace:
        """A snapshot of the trace, which later batches do not change."""
        snapshot = copy.copy(self)
        snapshot._batches, snapshot.counts, snapshot.looks = self._batches.copy(), self.counts.copy(), self.looks.copy()
        return snapshot

    def coarse(self) -> Trace:
        """The same run merged into few batches, which suffice for means; the trace itself if it stores draws."""
        if len(self._batches) < 2 * self._coarse or {*self.reductions.values()} != {"sum"}:
            return self
        coarse = copy.copy(self)
        coarse._batches, coarse.counts = self._group_batches(self._coarse)
        return coarse

    def _group_batches(self, groups: int) -> tuple[list[dict[str, FloatArray]], list[int]]:
        """Neighbouring batches joined, so that there are at most so many, about equally long."""
        ends = np.cumsum(self.counts)
        place = np.minimum((ends - np.array(self.counts) / 2) * groups // max(ends[-1:], default=1), groups - 1)
        starts = [*np.flatnonzero(np.diff(place, prepend=-1)).tolist(), len(place)]
        batches = [self._join(self._batches[low:high]) for low, high in pairwise(starts)]
        return batches, [sum(self.counts[low:high]) for low, high in pairwise(starts)]

    def _part(self, batches: list[dict[str, FloatArray]], counts: list[int]) -> Trace:
        """A trace of these batches alone."""
        part = Trace(self.reductions)
        part._batches, part.counts, part.samples = batches, counts, sum(counts)
        return part

    def _join(self, batches: Sequence[dict[str, FloatArray]]) -> dict[str, FloatArray]:
        """One batch of several."""
        sums = {}
        for name, reduction in self.reductions.items():
            sums[name] = combine_parts(reduction, [batch[name] for batch in batches])
        return sums


def combine_parts(reduction: Reduction, parts: Sequence[FloatArray]) -> FloatArray:
    """The reduction over a run of those over its parts, in their order: the sum, the log of the sum of exponentials, or
    the last value."""
    match reduction:
        case "sum":
            total = parts[0] + 0.0
            for part in parts[1:]:
                total += part
            return total
        case "logsumexp":
            return np.asarray(np.logaddexp.reduce(parts, axis=0))
        case _:
            return parts[-1]


def check_reported(batch: Mapping[str, object], reductions: Mapping[str, Reduction]) -> None:
    """Check that a batch has a statistic for each of the method's reductions.

    Raises:
        InvalidResultError: some of it is not there.
    """
    if lacking := [name for name in reductions if name not in batch]:
        raise InvalidResultError(
            f"a batch of steps reported {', '.join(map(repr, batch)) or 'nothing'}; the method's reductions name "
            f"{', '.join(map(repr, lacking))}, too"
        )


def check_seen(seen: Mapping[str, object], *names: str) -> None:
    """Check that an engine's look has the statistics that the method needs, which a kernel may lack.

    Raises:
        InvalidResultError: some of `names` are not there.
    """
    if lacking := [name for name in names if name not in seen]:
        keys = ", ".join(map(repr, seen)) or "nothing"
        raise InvalidResultError(f"a look at the chains gave {keys}; the method needs {', '.join(map(repr, lacking))}")
