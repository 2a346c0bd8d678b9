"""Checks at other numbers of variables and chains than the small cases have: what vectors and tiles leave over."""

from __future__ import annotations

import time
from itertools import product
from unittest import SkipTest

import numpy as np
import numpy.typing as npt

from spinbench.api import Precision
from spinbench.api.estimate import is_doubted
from spinbench.errors import IntractableError, InvalidResultError
from spinbench.inference.initial_states import random_start
from spinbench.mathematics.claims import BOUND
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, compare_answer, compare_log_z
from spinbench.testing.check import PAIR_CHECKS, CheckError, require, run_with_deadline, skip
from spinbench.testing.diagnostics import compare_errors, count_steps, replica_sizes, require_mean_square
from spinbench.testing.joint import require_certain_bounds
from spinbench.testing.laws.cases import FloatArray, law
from spinbench.testing.laws.large_models import ODD, SIZES, find_solved_model
from spinbench.testing.pair import BATCH, BATCHES, LARGE_MODEL_SECONDS, Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Trial, advance_batches

# Numbers of chains for kernels (True) and programs (False); the default number is 16.
COUNTS = {True: (3, 5, 6, 16, 17, 100), False: (3, 16, 17)}
# Largest rounding difference between chains that take the same states.
ROUNDING = 1e-5
# Steps within which chains from one start differ; more for `MANY`, whose 10^7 pairs partly agree by chance for long.
SEPARATION_STEPS = {False: 24, True: 96}
# Further numbers of chains for code that is compiled for any number.
OTHER_COUNTS = (2, 7, 31)
# Number of chains that fills no vector of 2, 4, 8 or 16, for kernels that sample. Vectors of programs are the
# backend's, which may compile each number.
MANY = 4099
# Variables of the large model for whole runs.
WHOLE_VARIABLES = 101
# Chains and runs for the calibration of log Z by whole runs.
FEW, NUM_WHOLE_RUNS = 17, 12
# Runs of each number of chains, with different seeds.
RUNS = 3
# Steps of the batches in which single chains are observed.
LENGTHS = [16] * 8
# CPU seconds above which a large model is skipped, checked whenever Python runs between calls.
MAX_SECONDS = 8.0
# Largest average factor by which error bounds on a large model may be too wide.
MAX_EXCESS = 4.0


@PAIR_CHECKS.add("accuracy, {}, {}", "sampler", "native", over=lambda pair: product(SIZES[1:2], pair.other_precisions))
@PAIR_CHECKS.add("accuracy, {}", over=SIZES)
def check_size(pair: Pair, name: str, precision: Precision | None = None, *, only_trusted: bool = False) -> None:
    """Marginals and log Z of a model too large for small tiles and indices; errors of the right size.

    Args:
        name: of `SIZES`; precision: by default the pair's.
        only_trusted: leave marginals alone that the method doubts: a step with some settings is less than a sweep.

    Raises:
        SkipTest: it takes too long, also beside those before it, or the method refuses the model.
    """
    if pair.seconds <= 0:
        skip(f"other large models took {LARGE_MODEL_SECONDS:g} CPU s")
    since = time.process_time()
    try:
        limit = min(MAX_SECONDS, pair.seconds)
        run_with_deadline(limit, name, lambda: _check_size(pair, name, precision, only_trusted))
    finally:
        pair.seconds -= time.process_time() - since


def _check_size(pair: Pair, name: str, precision: Precision | None, only_trusted: bool) -> None:
    precision = precision or pair.precision
    exact, at = find_solved_model(name), pair.trial(name, precision)
    chains = FEW_CHAINS
    try:
        batches = at.run(chains, SEED, [BATCH] * (BATCHES // 2), steps=BATCHES // at.burn_in_divisor)
        estimate = at.estimate(batches)
    except IntractableError as refusal:
        raise SkipTest(f"refused: {refusal}") from refusal
    require_certain_bounds(estimate, exact.log_z, FLOOR[precision])
    if not at.sampler or estimate.marginals is None or estimate.log_z_kind == "exact":
        compare_answer(estimate, exact.log_z, exact.marginals, FLOOR[precision], coupled=True, chains=chains)
        return
    require(estimate.marginals_error_bound is not None, "a stochastic method reports marginals without standard errors")
    if not np.any(estimate.marginals_error_bound):  # the method reports no error, as if exact
        compare_answer(estimate, exact.log_z, exact.marginals, FLOOR[precision], coupled=True, chains=chains)
        return
    size = exact.marginals.size
    kind = "variables" if size == exact.model.num_variables else "variables' states"
    still = np.flatnonzero(np.isinf(np.asarray(estimate.r_hat, np.float64)))
    if still.size:  # for weighted draws it may be infinite although chains move
        alone = np.stack([at.estimate(batches, slice(c, c + 1)).marginals for c in range(chains)])
        still = still[np.isin(alone[:, still], (0, 1)).all(axis=0)]
    require(not still.size, f"of {size} {kind}, {_format_ranges(still)} stand still in every chain")
    unknown = estimate.r_hat is not None and np.isnan(estimate.r_hat).any()
    require(not unknown, f"R-hat of some of {size} {kind} is NaN, in {chains} chains")
    if only_trusted and is_doubted(estimate, "marginals"):
        return
    error, claimed = estimate.marginals - exact.marginals, np.asarray(estimate.marginals_error_bound) / BOUND
    limit = limits.student_limit(max(chains - 1, 1), error.size)
    wrong = np.flatnonzero(np.abs(error) > limit * claimed + FLOOR[precision])
    require(
        not wrong.size,
        f"of {size} {kind}, marginals {_format_ranges(wrong)} are wrong, by up to "
        f"{np.abs(error[wrong]).max(initial=0):.2g}, though small models' are right",
    )
    if is_doubted(estimate, "log Z") and error.size == WHOLE_VARIABLES:  # log Z may need burn-in and looks
        estimate = at.estimate_whole_run(chains, SEED)
    if not is_doubted(estimate, "log Z"):
        compare_log_z(estimate, exact.log_z, FLOOR[precision], limits.normal_limit(1), coupled=True)
    square = float(np.mean((error / np.maximum(claimed, FLOOR[precision])) ** 2))
    doubted = is_doubted(estimate, "marginals")  # with a warning, errors are not checked from above
    low, high = _mean_square_limits(error.size, doubted)
    if not low <= square <= high:  # single chains are estimated only here, since estimates of large models take long
        means = np.stack([at.estimate(batches, slice(c, c + 1)).marginals for c in range(chains)])
        low, high = _mean_square_limits(effective_dimension(means), doubted)
    require_mean_square(f"over {error.size} variables", square, low, high)


@PAIR_CHECKS.add("accuracy, odd sizes", "native")
def check_odd_sizes(pair: Pair) -> None:
    """As `size`, of models with 10 to 95 variables, one of which has 5 to 33 neighbours."""
    for name, (_, leaves) in ODD.items():
        try:
            check_size(pair, name, only_trusted=True)
        except CheckError as error:
            raise CheckError(f"where one variable has {leaves} neighbours: {error}") from None


@PAIR_CHECKS.add("calibration, log Z", "sampler")
def check_log_z_calibration(pair: Pair) -> None:
    """Over whole runs, errors of log Z divided by their standard errors have mean square 1.

    Of samplers whose log Z needs more than their statistics: looks at the chains, or what comes before burn-in.
    """
    case = law("dense")
    at = pair.trial("dense")
    if not is_doubted(at.estimate(at.run(FEW, SEED, [1])), "log Z"):
        skip("other calibrations have it")
    estimates = [at.estimate_whole_run(FEW, SEED + r) for r in range(NUM_WHOLE_RUNS)]
    sure = [e for e in estimates if not is_doubted(e, "log Z") and e.log_z is not None and e.log_z_error_bound]
    z = np.array([BOUND * ((e.log_z or 0.0) - case.log_z) / e.log_z_error_bound for e in sure if e.log_z_error_bound])
    if z.size < NUM_WHOLE_RUNS / 2:
        skip(f"{NUM_WHOLE_RUNS - z.size} of {NUM_WHOLE_RUNS} short runs claim nothing of log Z")
    low, high = np.array(limits.chi_square_limits(z.size, 1)) / z.size * (limits.SLACK**-2, limits.SLACK**2)
    require_mean_square(f"log Z: over {z.size} runs", float(np.mean(z**2)), low, high)


def check_log_z_of_whole_run(pair: Pair) -> None:
    """log Z of one whole run of all chains is as near as it claims; bounds hold."""
    estimate = pair.trial("dense").estimate_whole_run(pair.chains, SEED)
    if is_doubted(estimate, "log Z"):
        return
    log_z = law("dense").log_z
    compare_log_z(estimate, log_z, FLOOR[pair.precision], limits.normal_limit(1), coupled=True)


def _mean_square_limits(degrees: float, doubted: bool) -> tuple[float, float]:
    """Limits of the mean of so many squares of errors by their claims; fewer have wider ones."""
    low, high = (value / degrees for value in limits.chi_square_limits(degrees, 1))
    return 0.0 if doubted else low / MAX_EXCESS**2, high * limits.SLACK**2


def effective_dimension(means: FloatArray) -> float:
    """Effective number of independent errors among N variables, a lower bound from the means (C, N) of single chains.

    A mean of squares of normal numbers varies at most as that of N / λ independent ones, where λ is the largest
    eigenvalue of their correlations: no more than λ of N fall together.
    """
    scaled = means - means.mean(axis=0)
    lengths = np.linalg.norm(scaled, axis=0)
    moving = scaled[:, lengths > 0] / lengths[lengths > 0]
    return float(moving.shape[1] / np.linalg.norm(moving, ord=2) ** 2) if moving.size else 1.0


@PAIR_CHECKS.add("calibration, {}", "sampler", over=("three states",))
def check_calibration_of_states(pair: Pair, name: str) -> None:
    """Errors of replicas on a model with variables of several states: given, and of the right size."""
    exact, at = find_solved_model(name), pair.trial(name)
    groups, width = replica_sizes(pair)
    batches = at.run(groups * width, SEED, [BATCH] * BATCHES)
    estimates = [at.estimate(batches, slice(g * width, (g + 1) * width)) for g in range(groups)]
    compare_errors(estimates, exact.log_z, exact.marginals, width, count_steps(batches))


def _chain_counts(pair: Pair) -> list[int]:
    """Chains, two and more, that a pair is asked for."""
    counts = list(COUNTS[pair.native])
    if pair.sampler and pair.compiles_once:
        counts += OTHER_COUNTS
    if pair.sampler and pair.native:
        counts.append(MANY)
    return counts


@PAIR_CHECKS.add("{} chains, {}", "sampler", "native", over=((17, "three states"),))
@PAIR_CHECKS.add(
    "{0} chains, {2}", "sampler", "native", over=lambda pair: [(17, "dense", p) for p in pair.other_precisions]
)
@PAIR_CHECKS.add("{} chains", over=_chain_counts)
@PAIR_CHECKS.add("1 chain", over=(1,))
def check_chain_count(pair: Pair, count: int, name: str = "dense", precision: Precision | None = None) -> None:
    """Each of `count` chains by itself: it moves, and has the law of the chains of a large run.

    Args:
        name: of the model; precision: by default the pair's.

    Raises:
        SkipTest: so many take too long.
    """
    run_with_deadline(MAX_SECONDS, f"a run of {count} chains", lambda: _check_chain_count(pair, count, name, precision))


def _check_chain_count(pair: Pair, count: int, model: str, precision: Precision | None) -> None:
    if not pair.sampler:
        at, exact = pair.trial("zero couplings"), law("zero couplings")
        estimate = at.estimate(at.run(count, SEED, LENGTHS))
        compare_answer(estimate, exact.log_z, exact.marginals, FLOOR[pair.precision], coupled=False, chains=count)
        return
    at = pair.trial(model, precision)
    _check_short_runs(at, count)
    _require_different_chains(at, count)
    key = model, precision or pair.precision
    if key not in pair.many:
        pair.many[key] = _chain_means(at, pair, pair.chains, SEED)
    runs = [_chain_means(at, pair, count, SEED + 1 + r) for r in range(RUNS)]
    for name, (centre, moves) in pair.many[key].items():
        still = np.flatnonzero(~np.any([run[name][1] for run in runs], axis=0))
        require(
            not (moves.all() and still.size),
            f"of {count} chains, {_format_ranges(still)} stand still: {name} is the same in each of {len(LENGTHS)} "
            "batches",
        )
        if centre is None:
            continue
        spread = centre.std(axis=1, keepdims=True, ddof=1)
        rows = (spread > 1e-9 * (1 + np.abs(centre).max(axis=1, keepdims=True)))[:, 0]
        mean = np.mean([np.asarray(run[name][0]) for run in runs], axis=0)
        z = (mean - centre.mean(axis=1, keepdims=True))[rows] / (spread[rows] / np.sqrt(RUNS))
        limit = 2 * limits.normal_limit(max(z.size, 1))
        wrong_chains = np.flatnonzero((np.abs(z) > limit).any(axis=0))
        require(
            not wrong_chains.size,
            f"of {count} chains, {_format_ranges(wrong_chains)} have another law than those of a run of {pair.chains}: "
            f"{name} is off by up to {np.abs(z).max(initial=0):.0f} standard errors; {limit:.0f} is chance",
        )


def _check_short_runs(at: Trial, count: int) -> None:
    """However few the chains and samples are, an answer is made of numbers; infinite errors and doubts are allowed."""
    batches = at.run(count, SEED, [1, 1], steps=0)
    for steps, several in (("one step", batches[:1]), ("two steps", batches)):
        try:
            at.estimate(several)
        except InvalidResultError as error:
            raise CheckError(f"{steps} of {count} chains: {error}") from error


def _require_different_chains(at: Trial, count: int) -> None:
    """Chains from one start go ways of their own; where `init` parts them, those with the same numbers soon meet."""
    start = np.repeat(random_start(at.model, 1, SEED), count, axis=1)
    steps = SEPARATION_STEPS[count >= MANY]
    late = advance_batches(at.engine, at.engine.init(SEED, start), [1] * steps)[1][steps // 2 :]
    rows = [[np.asarray(array, np.float64).reshape(-1, count) for array in batch.values()] for _, batch in late]
    paths = np.stack([np.concatenate(arrays) for arrays in rows])
    moving = np.flatnonzero((paths != paths[:1]).any(axis=(0, 1)))
    if moving.size < 2:
        return
    ways = paths[..., moving].reshape(-1, moving.size)
    twins = [f"{moving[a]} and {moving[b]}" for a, b in _equal_columns(ways)]
    alike = (ways == ways[:, :1]).all()  # averages over chains
    message = f"of {count} chains from one start, {', '.join(twins[:6])} take the same way: they share random numbers"
    require(alike or not twins, message)


def _equal_columns(ways: FloatArray) -> list[tuple[int, int]]:
    """Columns that are the same but for rounding: of each the first that it is like.

    Those alike have nearly the same sum with any weights; only columns with such sums are compared.
    """
    ways = ways[(ways != ways[:, :1]).any(axis=1)]
    finite = np.where(np.isfinite(ways), ways, 0.0)
    weights = np.random.default_rng(SEED).normal(size=len(ways))
    sums, slack = weights @ finite, ROUNDING * float(np.abs(weights) @ (1 + np.abs(finite).max(axis=1)))
    order = np.argsort(sums, kind="stable")
    ends = np.searchsorted(sums[order], sums[order] + slack, side="right")
    first_equal: dict[int, int] = {}
    for place, column in enumerate(order):
        others = order[place + 1 : ends[place]]
        near = others[np.isclose(ways[:, others], ways[:, [column]], rtol=ROUNDING, atol=ROUNDING).all(axis=0)][:1]
        for a, b in (sorted((int(column), int(other))) for other in near):
            first_equal[b] = min(a, first_equal.get(b, a))
    return [(first_equal[b], b) for b in sorted(first_equal)]


def _chain_means(
    at: Trial, pair: Pair, chains: int, seed: int
) -> dict[str, tuple[FloatArray | None, npt.NDArray[np.bool_]]]:
    """Of each statistic: the mean of each row and chain, where the reduction makes one, and which chains move.

    Without burn-in, which would adapt the settings of few chains otherwise than those of many.
    """
    batches = at.run(chains, seed, LENGTHS, steps=0)
    means_and_moves: dict[str, tuple[FloatArray | None, npt.NDArray[np.bool_]]] = {}
    for name, reduction in pair.method.reductions.items():
        series = np.stack([np.asarray(batch[name], np.float64).reshape(-1, chains) for _, batch in batches])
        mean = series.sum(axis=0) / sum(LENGTHS) if reduction == "sum" else None
        means_and_moves[name] = mean, (series != series[:1]).any(axis=(0, 1))
    return means_and_moves


def _format_ranges(indices: npt.NDArray[np.int64]) -> str:
    """ "0, 4 to 7" """
    parts = np.split(indices, np.flatnonzero(np.diff(indices) > 1) + 1) if indices.size else []
    texts = [str(p[0]) if p.size == 1 else f"{p[0]} to {p[-1]}" for p in parts]
    return ", ".join(texts[:6]) + (f" and {len(texts) - 6} more" if len(texts) > 6 else "")
