"""Checks at other numbers of variables and chains than the small cases have: what vectors and tiles leave over."""

from __future__ import annotations

import time
from itertools import product
from unittest import SkipTest

import numpy as np
import numpy.typing as npt

from spinbench.api import Precision
from spinbench.errors import IntractableError, InvalidResultError
from spinbench.inference.starts import random_start
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, compare, compare_log_z
from spinbench.testing.check import OF_PAIRS, CheckError, require, skip
from spinbench.testing.deadline import at_most
from spinbench.testing.diagnostics import compare_errors, replicas, require_mean_square, steps
from spinbench.testing.joint import certain
from spinbench.testing.laws.cases import FloatArray, law
from spinbench.testing.laws.known import ODD, SIZES, known
from spinbench.testing.pair import BATCH, BATCHES, LARGE, Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Trial, advance

COUNTS = {True: (3, 5, 6, 16, 17, 100), False: (3, 16, 17)}
"""Of kernels, and of programs; 16 is how many run by default."""
NEAR = 1e-5
"""What rounding leaves between chains that do the same."""
ALONE = {False: 24, True: 96}
"""Steps in which chains from one start part; of `MANY` chains, whose 10^7 pairs agree by chance for a while, more."""
OTHER_COUNTS = (2, 7, 31)
"""Of what is compiled for any count."""
MANY = 4099
"""Chains; `MANY` of kernels that sample. None fills vectors of 2, 4, 8 or 16. Vectors of programs are the backend's,
which may compile each count."""
WHOLE = 101
"""Variables of the large model that a whole run is made of."""
FEW, WHOLES = 17, 12
"""Chains and runs where log Z is calibrated by whole runs."""
RUNS = 3
"""Of each count, with seeds of their own."""
LENGTHS = [16] * 8
"""Steps of the batches in which each chain is watched."""
LONGEST = 10.0
"""CPU seconds beyond which a large model is left out, where Python gets to run between."""
WIDE = 4.0
"""Times that claims may be too wide on average over the variables of a large model."""


@OF_PAIRS.add("accuracy, {}, {}", "sampler", "native", over=lambda pair: product(SIZES[1:2], pair.other_precisions))
@OF_PAIRS.add("accuracy, {}", over=SIZES)
def size(pair: Pair, name: str, precision: Precision | None = None, *, believed: bool = False) -> None:
    """Marginals and log Z of a model too large for small tiles and indices; errors of the right size.

    Args:
        name: of `SIZES`; precision: by default the pair's.
        believed: leave marginals alone that the method doubts: a step with some settings is less than a sweep.

    Raises:
        SkipTest: it takes too long, also beside those before it, or the method refuses the model.
    """
    if pair.seconds <= 0:
        skip(f"other large models took {LARGE:g} CPU s")
    since = time.process_time()
    try:
        at_most(min(LONGEST, pair.seconds), name, lambda: _size(pair, name, precision, believed))
    finally:
        pair.seconds -= time.process_time() - since


def _size(pair: Pair, name: str, precision: Precision | None, believed: bool) -> None:
    precision = precision or pair.precision
    exact, at = known(name), pair.trial(name, precision)
    chains = FEW_CHAINS
    try:
        batches = at.run(chains, SEED, [BATCH] * (BATCHES // 2), steps=BATCHES // at.hurry)
        found = at.estimate(batches)
    except IntractableError as refusal:
        raise SkipTest(f"refused: {refusal}") from refusal
    certain(found, exact.log_z, FLOOR[precision])
    if not at.sampler or found.marginals is None or found.log_z_kind == "exact":
        compare(found, exact.log_z, exact.marginals, FLOOR[precision], coupled=True, chains=chains)
        return
    require(found.marginals_error_bound is not None, "a stochastic method reports marginals without standard errors")
    if not np.any(found.marginals_error_bound):  # no chance is claimed to be in it
        compare(found, exact.log_z, exact.marginals, FLOOR[precision], coupled=True, chains=chains)
        return
    size = exact.marginals.size
    kind = "variables" if size == exact.model.num_variables else "variables' states"
    still = np.flatnonzero(np.isinf(found.r_hat)) if found.r_hat is not None else np.zeros(0, dtype=np.int64)
    if still.size:  # of weighed states it may be infinite though chains move
        alone = np.stack([at.estimate(batches, slice(c, c + 1)).marginals for c in range(chains)])
        still = still[np.isin(alone[:, still], (0, 1)).all(axis=0)]
    require(not still.size, f"of {size} {kind}, {_ranges(still)} stand still in every chain")
    unknown = found.r_hat is not None and np.isnan(found.r_hat).any()
    require(not unknown, f"R-hat of some of {size} {kind} is NaN, in {chains} chains")
    if believed and found.doubted("marginals"):
        return
    error, claimed = found.marginals - exact.marginals, np.asarray(found.marginals_error_bound)
    limit = limits.student_limit(max(chains - 1, 1), error.size)
    wrong = np.flatnonzero(np.abs(error) > limit * claimed + FLOOR[precision])
    require(
        not wrong.size,
        f"of {size} {kind}, marginals {_ranges(wrong)} are wrong, by up to "
        f"{np.abs(error[wrong]).max(initial=0):.2g}, though small models' are right",
    )
    if found.doubted("log Z") and error.size == WHOLE:  # what comes before burn-in, and looks, may tell
        found = at.whole(chains, SEED)
    if not found.doubted("log Z"):
        compare_log_z(found, exact.log_z, FLOOR[precision], limits.normal_limit(1), coupled=True)
    square = float(np.mean((error / np.maximum(claimed, FLOOR[precision])) ** 2))
    doubted = found.doubted("marginals")  # such errors may be of any size above
    low, high = _chance(error.size, doubted)
    if not low <= square <= high:  # what single chains show is asked only here: estimates of large models take long
        low, high = _chance(
            apart(np.stack([at.estimate(batches, slice(c, c + 1)).marginals for c in range(chains)])), doubted
        )
    require_mean_square(f"over {error.size} variables", square, low, high)


@OF_PAIRS.add("accuracy, odd sizes", "native")
def odd(pair: Pair) -> None:
    """As `size`, of models with 10 to 95 variables, one of which has 5 to 33 neighbours."""
    for name, (_, leaves) in ODD.items():
        try:
            size(pair, name, believed=True)
        except CheckError as error:
            raise CheckError(f"where one variable has {leaves} neighbours: {error}") from None


@OF_PAIRS.add("calibration, log Z", "sampler")
def log_z(pair: Pair) -> None:
    """Over whole runs, errors of log Z divided by their standard errors have mean square 1.

    Of samplers whose log Z needs more than their statistics: looks at the chains, or what comes before burn-in.
    """
    case = law("dense")
    at = pair.trial("dense")
    if not at.estimate(at.run(FEW, SEED, [1])).doubted("log Z"):
        skip("other calibrations have it")
    found = [at.whole(FEW, SEED + r) for r in range(WHOLES)]
    sure = [e for e in found if not e.doubted("log Z") and e.log_z is not None and e.log_z_error_bound]
    z = np.array([((e.log_z or 0.0) - case.log_z) / e.log_z_error_bound for e in sure if e.log_z_error_bound])
    if z.size < WHOLES / 2:
        skip(f"{WHOLES - z.size} of {WHOLES} short runs claim nothing of log Z")
    low, high = (value / z.size for value in limits.chi_square_limits(z.size, 1))
    slack = limits.SLACK**2
    require_mean_square(f"log Z: over {z.size} runs", float(np.mean(z**2)), low / slack, high * slack)


def whole(pair: Pair) -> None:
    """log Z of one whole run of all chains is as near as it claims; bounds hold."""
    case = law("dense")
    at = pair.trial("dense")
    found = at.whole(pair.chains, SEED)
    if found.doubted("log Z"):
        return
    compare_log_z(found, case.log_z, FLOOR[pair.precision], limits.normal_limit(1), coupled=True)


def _chance(degrees: float, doubted: bool) -> tuple[float, float]:
    """Limits of the mean of so many squares of errors by their claims; fewer have wider ones."""
    low, high = (value / degrees for value in limits.chi_square_limits(degrees, 1))
    return 0.0 if doubted else low / WIDE**2, high * limits.SLACK**2


def apart(means: FloatArray) -> float:
    """Of how many independent errors N variables have the worth, at least, from the means (C, N) of single chains.

    A mean of squares of normal numbers varies at most as that of N / λ independent ones, where λ is the largest
    eigenvalue of their correlations: no more than λ of N fall together.
    """
    scaled = means - means.mean(axis=0)
    lengths = np.linalg.norm(scaled, axis=0)
    moving = scaled[:, lengths > 0] / lengths[lengths > 0]
    return float(moving.shape[1] / np.linalg.norm(moving, ord=2) ** 2) if moving.size else 1.0


@OF_PAIRS.add("calibration, {}", "sampler", over=("three states",))
def states(pair: Pair, name: str) -> None:
    """Errors of replicas on a model with variables of several states: given, and of the right size."""
    exact, at = known(name), pair.trial(name)
    groups, width = replicas(pair)
    batches = at.run(groups * width, SEED, [BATCH] * BATCHES)
    estimates = [at.estimate(batches, slice(g * width, (g + 1) * width)) for g in range(groups)]
    compare_errors(estimates, exact.log_z, exact.marginals, width, steps(batches))


def _counts(pair: Pair) -> list[int]:
    """Chains, two and more, that a pair is asked for."""
    counts = list(COUNTS[pair.native])
    if pair.sampler and pair.compiles_once:
        counts += OTHER_COUNTS
    if pair.sampler and pair.native:
        counts.append(MANY)
    return counts


@OF_PAIRS.add("{} chains, {}", "sampler", "native", over=((17, "three states"),))
@OF_PAIRS.add(
    "{0} chains, {2}", "sampler", "native", over=lambda pair: [(17, "dense", p) for p in pair.other_precisions]
)
@OF_PAIRS.add("{} chains", over=_counts)
@OF_PAIRS.add("1 chain", over=(1,))
def lanes(pair: Pair, count: int, name: str = "dense", precision: Precision | None = None) -> None:
    """Each of `count` chains by itself: it moves, and has the law of the chains of a large run.

    Args:
        name: of the model; precision: by default the pair's.

    Raises:
        SkipTest: so many take too long.
    """
    at_most(LONGEST, f"a run of {count} chains", lambda: _lanes(pair, count, name, precision))


def _lanes(pair: Pair, count: int, model: str, precision: Precision | None) -> None:
    if not pair.sampler:
        at, known_law = pair.trial("zero couplings"), law("zero couplings")
        found = at.estimate(at.run(count, SEED, LENGTHS))
        compare(found, known_law.log_z, known_law.marginals, FLOOR[pair.precision], coupled=False, chains=count)
        return
    at = pair.trial(model, precision)
    _short(at, count)
    _twins(at, count)
    key = model, precision or pair.precision
    if key not in pair.many:
        pair.many[key] = _means(at, pair, pair.chains, SEED)
    runs = [_means(at, pair, count, SEED + 1 + r) for r in range(RUNS)]
    for name, (centre, moves) in pair.many[key].items():
        still = np.flatnonzero(~np.any([run[name][1] for run in runs], axis=0))
        require(
            not (moves.all() and still.size),
            f"of {count} chains, {_ranges(still)} stand still: {name} is the same in each of {len(LENGTHS)} batches",
        )
        if centre is None:
            continue
        spread = centre.std(axis=1, keepdims=True, ddof=1)
        rows = (spread > 1e-9 * (1 + np.abs(centre).max(axis=1, keepdims=True)))[:, 0]
        mean = np.mean([np.asarray(run[name][0]) for run in runs], axis=0)
        z = (mean - centre.mean(axis=1, keepdims=True))[rows] / (spread[rows] / np.sqrt(RUNS))
        limit = 2 * limits.normal_limit(max(z.size, 1))
        off = np.flatnonzero((np.abs(z) > limit).any(axis=0))
        require(
            not off.size,
            f"of {count} chains, {_ranges(off)} have another law than those of a run of {pair.chains}: {name} is off "
            f"by up to {np.abs(z).max(initial=0):.0f} standard errors; {limit:.0f} is chance",
        )


def _short(at: Trial, count: int) -> None:
    """However few the chains and samples are, an answer is made of numbers; infinite errors and doubts are allowed."""
    batches = at.run(count, SEED, [1, 1], steps=0)
    for what, several in (("one step", batches[:1]), ("two steps", batches)):
        try:
            at.estimate(several)
        except InvalidResultError as error:
            raise CheckError(f"{what} of {count} chains: {error}") from error


def _twins(at: Trial, count: int) -> None:
    """Chains from one start go ways of their own; where `init` parts them, those with the same numbers soon meet."""
    start = np.repeat(random_start(at.model, 1, SEED), count, axis=1)
    steps = ALONE[count >= MANY]
    late = advance(at.engine, at.engine.init(SEED, start), [1] * steps)[1][steps // 2 :]
    rows = [[np.asarray(array, np.float64).reshape(-1, count) for array in batch.values()] for _, batch in late]
    paths = np.stack([np.concatenate(arrays) for arrays in rows])
    moving = np.flatnonzero((paths != paths[:1]).any(axis=(0, 1)))
    if moving.size < 2:
        return
    ways = paths[..., moving].reshape(-1, moving.size)
    twins = [f"{moving[a]} and {moving[b]}" for a, b in _alike(ways)]
    alike = (ways == ways[:, :1]).all()  # what is averaged over chains
    told = f"of {count} chains from one start, {', '.join(twins[:6])} take the same way: they share random numbers"
    require(alike or not twins, told)


def _alike(ways: FloatArray) -> list[tuple[int, int]]:
    """Columns that are the same but for rounding: of each the first that it is like.

    Those alike have nearly the same sum with any weights; only columns with such sums are compared.
    """
    ways = ways[(ways != ways[:, :1]).any(axis=1)]
    known = np.where(np.isfinite(ways), ways, 0.0)
    weights = np.random.default_rng(SEED).normal(size=len(ways))
    sums, slack = weights @ known, NEAR * float(np.abs(weights) @ (1 + np.abs(known).max(axis=1)))
    order = np.argsort(sums, kind="stable")
    ends = np.searchsorted(sums[order], sums[order] + slack, side="right")
    found: dict[int, int] = {}
    for place, column in enumerate(order):
        others = order[place + 1 : ends[place]]
        near = others[np.isclose(ways[:, others], ways[:, [column]], rtol=NEAR, atol=NEAR).all(axis=0)][:1]
        for a, b in (sorted((int(column), int(other))) for other in near):
            found[b] = min(a, found.get(b, a))
    return [(found[b], b) for b in sorted(found)]


def _means(at: Trial, pair: Pair, chains: int, seed: int) -> dict[str, tuple[FloatArray | None, npt.NDArray[np.bool_]]]:
    """Of each statistic: the mean of each row and chain, where the reduction makes one, and which chains move.

    Without burn-in, which would adapt the settings of few chains otherwise than those of many.
    """
    batches = at.run(chains, seed, LENGTHS, steps=0)
    found: dict[str, tuple[FloatArray | None, npt.NDArray[np.bool_]]] = {}
    for name, reduction in pair.method.reductions.items():
        series = np.stack([np.asarray(batch[name], np.float64).reshape(-1, chains) for _, batch in batches])
        mean = series.sum(axis=0) / sum(LENGTHS) if reduction == "sum" else None
        found[name] = mean, (series != series[:1]).any(axis=(0, 1))
    return found


def _ranges(indices: npt.NDArray[np.int64]) -> str:
    """ "0, 4 to 7" """
    parts = np.split(indices, np.flatnonzero(np.diff(indices) > 1) + 1) if indices.size else []
    texts = [str(p[0]) if p.size == 1 else f"{p[0]} to {p[-1]}" for p in parts]
    return ", ".join(texts[:6]) + (f" and {len(texts) - 6} more" if len(texts) > 6 else "")
