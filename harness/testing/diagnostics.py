"""Checks of standard errors, effective sample sizes and R-hat, of many chains and of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from spinbench.api import Estimate, Precision
from spinbench.api.estimate import is_doubted, verdict
from spinbench.inference.checks.evidence import LOG_Z_TOLERANCE
from spinbench.mathematics.claims import BOUND, memory_share
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, NUM_REPLICAS, REPLICA_CHAINS
from spinbench.testing.check import PAIR_CHECKS, require, skip
from spinbench.testing.joint import (
    MIN_VARIANCE,
    require_bounds,
    require_effective_sizes,
)
from spinbench.testing.laws.cases import FloatArray
from spinbench.testing.limits import SLACK
from spinbench.testing.pair import BATCH, BATCHES, Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Batches, reduce_batches

# Cases; the first serves checks that need not run on both.
CALIBRATED = ("dense", "sparse")
# Allowance for states that n independent draws have not shown: the error bound of a standard error UNSEEN / n.
UNSEEN = 3 / BOUND
# Steps that may count as one independent draw: estimates of autocorrelation on small, fast models are rough.
MIN_STEPS_PER_DRAW = 2
# Batches that are merged, to test whether errors depend on the length of batches.
MERGED_BATCHES = 4
# A small number of chains whose errors are trusted, tested beside one and many chains.
FEW_REPLICA_CHAINS = 8
# Largest number of replicas for calibration.
MAX_REPLICAS = 64
# Smallest number: with fewer, errors that are half as large as they should be go unnoticed.
MIN_REPLICAS = 16
# Models on which chains mix at once, and on which they hardly ever leave a mode.
MIXED, APART = "dense", "huge couplings"
# The same for variables of three states.
STATES, STATES_APART = "three states", "three states, apart"
# Smallest distance between the marginals of two chains in different modes.
MIN_MODE_DISTANCE = 0.9
# The two kinds of errors: names of the fields of `Estimate`, and their smallest size in standard errors.
ERRORS = {
    "standard errors": ("marginals_se", "log_z_se", 1.0),
    "error bounds": ("marginals_error_bound", "log_z_error_bound", BOUND),
}
# Smallest R-hat of chains in different modes.
MIN_R_HAT_APART = 1.2
# R-hat of short chains that mix, in the middle of so many.
MAX_R_HAT_MIXED, NUM_SINGLES = 1.5, 5
# Largest factor by which effective sample sizes may be too small.
MAX_ESS_DEFICIT = 10.0
# Largest effective sample size of a chain whose halves lie in different modes.
MAX_ESS_OF_HALVES = 8.0


@PAIR_CHECKS.add("calibration, {}, {}", "sampler", over=lambda pair: product(CALIBRATED[:1], pair.other_precisions))
@PAIR_CHECKS.add("calibration, {}", "sampler", over=CALIBRATED)
def check_calibration(pair: Pair, case: str, precision: Precision | None = None, *, only_trusted: bool = False) -> None:
    """Over independent replicas, errors divided by their standard errors have mean square 1.

    `only_trusted`: a log Z that the method doubts is left alone, and doubted marginals may claim too much, as what a
    setting chooses may suit other models.
    """
    groups, width = replica_sizes(pair)
    sample = pair.sample(case, precision, min_chains=groups * width)
    law = sample.bound.law
    estimates = pair.estimate_replicas(sample, groups, groups * width)
    num_steps, floor = count_steps(sample.batches), FLOOR[precision or pair.precision]
    compare_errors(estimates, law.log_z, law.marginals, width, num_steps, only_trusted=only_trusted, floor=floor)
    require_bounds(estimates, law.log_z, floor)
    longer = replace(sample, batches=_merge_batches(sample.batches, pair.method.reductions))
    batches = f"{len(longer.batches)} batches of {longer.batches[0][0]} steps"
    for run, count, runs in (
        (longer, width, f"{width} chains in {batches}"),
        (sample, 1, "one chain"),
        (sample, FEW_REPLICA_CHAINS, f"{FEW_REPLICA_CHAINS} chains"),
    ):
        require_wide_errors(pair.estimate_replicas(run, groups, groups * count), law.marginals, runs)


def _merge_batches(batches: Batches, reductions: Mapping[str, str]) -> Batches:
    """`MERGED_BATCHES` batches in one, as their reductions say."""
    merged: Batches = []
    for first in range(0, len(batches), MERGED_BATCHES):
        some = batches[first : first + MERGED_BATCHES]
        statistics = {
            name: reduce_batches([batch[name] for _, batch in some], kind) for name, kind in reductions.items()
        }
        merged.append((count_steps(some), statistics))
    return merged


def require_wide_errors(estimates: list[Estimate], marginals: FloatArray, runs: str) -> None:
    """Require that errors of runs without warnings are not too small."""
    sure = [e for e in estimates if e.marginals is not None and verdict(e) == "ok"]
    if not sure:
        return
    errors = np.stack([np.asarray(e.marginals) - marginals for e in sure])
    for kind, (of_marginals, _, times) in ERRORS.items():
        claimed = np.stack([np.asarray(getattr(e, of_marginals)) for e in sure]) / times
        z = np.where(np.abs(errors) < FLOOR["float32"], 0.0, errors / np.maximum(claimed, 1e-100))
        square = float((z**2).mean(axis=0).max())
        max_square = limits.chi_square_limits(len(z), z.shape[1])[1] / len(z) * SLACK**2
        require(
            square <= max_square,
            f"over {len(z)} runs of {runs}, (error / {kind[:-1]})² has mean {square:.2g}, where {max_square:.2g} is "
            f"the most: {kind} of {runs} are too small",
        )


def replica_sizes(pair: Pair) -> tuple[int, int]:
    """Number of replicas for calibration, and chains of each."""
    chains = max(pair.chains, MIN_REPLICAS * REPLICA_CHAINS)
    groups = min(MAX_REPLICAS, chains // REPLICA_CHAINS)
    return groups, chains // groups


def count_steps(batches: Batches) -> int:
    """Number of steps of a chain in all batches."""
    return sum(count for count, _ in batches)


def compare_errors(
    estimates: list[Estimate],
    log_z: float,
    marginals: FloatArray,
    chains: int,
    steps: int,
    *,
    only_trusted: bool = False,
    floor: float = FLOOR["float64"],
) -> None:
    """Require that errors over standard errors have mean square 1, up to chance, `SLACK` and `excess_allowance`.

    Args:
        estimates: of the replicas.
        log_z, marginals: exact.
        chains, steps: of each replica.
        only_trusted: leave a log Z alone that is doubted, and errors of doubted marginals that are too large.
        floor: errors below it are rounding, which need not be claimed.
    """
    for kind, (of_marginals, of_log_z, times) in ERRORS.items():
        z, quantities, max_excess = np.zeros((len(estimates), 0)), [], np.zeros(0)
        if estimates[0].marginals is not None:
            claims = [getattr(e, of_marginals) for e in estimates]
            require(all(error is not None for error in claims), f"a stochastic method reports marginals without {kind}")
            errors = np.stack([np.asarray(e.marginals) - marginals for e in estimates])
            claimed = np.stack(claims) / times
            sure = (claimed < floor).all(axis=0) & (np.abs(errors) < floor).all(axis=0)
            z = errors[:, ~sure] / claimed[:, ~sure]
            max_excess = SLACK**2 + excess_allowance(estimates, errors, marginals, chains, steps)[~sure]
            if only_trusted and all(is_doubted(e, "marginals") for e in estimates):
                max_excess[:] = np.inf
            quantities = [f"marginal {i}" for i in np.flatnonzero(~sure)]
        is_log_z_trusted = not (only_trusted and any(is_doubted(e, "log Z") for e in estimates))
        log_z_errors = [getattr(e, of_log_z) for e in estimates]
        if (
            is_log_z_trusted
            and all(e.log_z is not None for e in estimates)
            and all(error and np.isfinite(error) for error in log_z_errors)
        ):
            offsets = np.array([(e.log_z or 0.0) - log_z for e in estimates])
            z = np.column_stack([z, times * offsets / np.array(log_z_errors)])
            quantities.append("log Z")
            # Bounds that allow for states which no draw has shown may be wide, as long as they are of use.
            useful = of_log_z == "log_z_error_bound" and max(log_z_errors) <= LOG_Z_TOLERANCE
            max_excess = np.append(max_excess, np.inf if useful else SLACK**2)
        _require_calibrated(z, quantities, max_excess, kind)
    if estimates[0].marginals is not None:
        require_effective_sizes(estimates, errors, marginals)


def _require_calibrated(z: FloatArray, quantities: Sequence[str], max_excess: FloatArray, kind: str) -> None:
    """Mean squares of columns are 1, but for chance, `SLACK`, and by how much errors may be too large."""
    squares = (z**2).mean(axis=0)
    low, high = (limit / len(z) for limit in limits.chi_square_limits(len(z), max(len(quantities), 1)))
    lows, high = low / max_excess, high * SLACK**2
    for name, value, low in zip(quantities, squares.tolist(), lows.tolist(), strict=True):
        require_mean_square(f"{name}: over {len(z)} replicas", value, low, high, kind)


def require_mean_square(quantity: str, square: float, low: float, high: float, kind: str = "standard errors") -> None:
    """Require that the mean square of errors over their standard errors is within the limits of chance."""
    wrong = "small" if square > 1 else "large"
    times = max(square, 1 / square) ** 0.5 if square else np.inf
    require(
        low <= square <= high,
        f"{quantity}, (error / {kind[:-1]})² has mean {square:.3g}, where {low:.3g} to {high:.3g} is chance: {kind} "
        f"are about {times:.2g} times too {wrong}",
    )


def excess_allowance(
    estimates: list[Estimate], errors: FloatArray, marginals: FloatArray, chains: int, steps: int
) -> FloatArray:
    """(N,) by how many squared true errors the squared standard errors may be too large.

    For what chains remember, the share 1 - 1 / R-hat² of their spread, which is √chains times the error of their mean;
    short runs of slow chains show such a share by chance. And for what has not been seen, by as many independent draws
    as the slowest variable has had, one in `MIN_STEPS_PER_DRAW` steps at most: means of conditional probabilities may
    vary little and yet rest on few draws.
    """
    variance = np.maximum((errors**2).mean(axis=0), np.finfo(float).tiny)
    single = marginals * (1 - marginals)
    worth = np.clip(single / variance, 1.0, chains * steps / MIN_STEPS_PER_DRAW)
    unseen = UNSEEN / worth[single > FLOOR["float64"]].min(initial=np.inf)
    memory = np.zeros(len(marginals))
    if all(e.r_hat is not None for e in estimates):
        memory = np.mean([memory_share(np.asarray(e.r_hat)) ** 2 for e in estimates], axis=0)
    return np.asarray(chains * memory + unseen**2 / variance)


@PAIR_CHECKS.add("effective sample sizes, {}", "sampler", over=lambda pair: pair.other_precisions)
@PAIR_CHECKS.add("effective sample sizes", "sampler")
def check_effective_sample_sizes(pair: Pair, precision: Precision | None = None) -> None:
    """Effective sample sizes of groups of chains and of single chains are those that their errors show."""
    sample = pair.sample(MIXED, precision)
    marginals = sample.bound.law.marginals
    for chains, runs in ((REPLICA_CHAINS, f"{REPLICA_CHAINS} chains"), (1, "one chain")):
        groups = min(NUM_REPLICAS, pair.chains // chains)
        _require_effective_sample_sizes(pair.estimate_replicas(sample, groups, groups * chains), marginals, runs)


def _require_effective_sample_sizes(estimates: list[Estimate], marginals: FloatArray, runs: str) -> None:
    if any(e.marginals is None or e.ess is None for e in estimates):
        skip("it has no marginals, or no effective sample sizes")
    finite = [e for e in estimates if np.isfinite(np.asarray(e.ess)).all()]
    if len(finite) < len(estimates) / 2:
        return
    errors = np.stack([np.asarray(e.marginals) - marginals for e in finite])
    require_effective_sizes(finite, errors, marginals, runs)
    single = marginals * (1 - marginals)
    is_compared = (single > MIN_VARIANCE) & (np.abs(errors).max(axis=0) > FLOOR["float32"])
    if not is_compared.any():
        return
    worth = np.stack([np.asarray(e.ess) for e in finite])[:, is_compared]
    times = float((errors[:, is_compared] ** 2 * worth / single[is_compared]).mean(axis=0).min())
    least = limits.chi_square_limits(len(finite), int(is_compared.sum()))[0] / len(finite) / MAX_ESS_DEFICIT
    require(
        times >= least,
        f"effective sample sizes of {runs} are about {1 / max(times, 1e-300):.2g} times too small: over {len(finite)} "
        f"replicas, error² · ess / (p (1 - p)) has mean {times:.2g}, where {least:.2g} is the least",
    )


@PAIR_CHECKS.add("R-hat", "sampler")
def check_r_hat(pair: Pair) -> None:
    """R-hat is small where chains mix, and large where they do not, also within one chain; they are then doubted."""
    mixed, far = pair.sample(MIXED), pair.sample(APART)
    _require_small_r_hat(lambda chains: pair.estimate(mixed, chains))
    _require_modes_show(
        lambda batches, chains: pair.estimate(replace(far, batches=batches), chains), far.batches, APART
    )


@PAIR_CHECKS.add("R-hat, three states", "sampler")
def check_r_hat_of_three_states(pair: Pair) -> None:
    """As `check_r_hat`, of variables of three states."""
    mixed, far = (pair.trial(name) for name in (STATES, STATES_APART))
    batches = mixed.run(FEW_CHAINS, SEED, [BATCH] * BATCHES)
    _require_small_r_hat(lambda chains: mixed.estimate(batches, chains))
    _require_modes_show(far.estimate, far.run(FEW_CHAINS, SEED, [BATCH] * BATCHES), STATES_APART)


def _require_small_r_hat(estimate: Callable[[slice], Estimate]) -> None:
    # one short chain of a slow sampler may have any R-hat by chance, most of several not
    singles, several = [estimate(slice(c, c + 1)) for c in range(NUM_SINGLES)], estimate(slice(0, REPLICA_CHAINS))
    if singles[0].r_hat is None and several.r_hat is None:
        skip("it has no R-hat")
    for answers, runs in ((singles, "one chain"), ([several], f"{REPLICA_CHAINS} chains")):
        r_hat = float(np.median([np.nanmax(np.asarray(e.r_hat, np.float64), initial=1.0) for e in answers]))
        message = f"R-hat of {runs} that mixes is {r_hat:.3g}; {MAX_R_HAT_MIXED} is the most that chance makes it"
        require(r_hat <= MAX_R_HAT_MIXED, message)


def _require_modes_show(estimate: Callable[[Batches, list[int]], Estimate], batches: Batches, where: str) -> None:
    """Chains in two modes, and one that goes from one to the other, have a large R-hat and few effective samples."""
    singles = [estimate(batches, [c]) for c in range(REPLICA_CHAINS)]
    means = np.stack([np.asarray(e.marginals) for e in singles])
    variable = int(np.argmax(np.ptp(means, axis=0)))
    first, other = int(means[:, variable].argmin()), int(means[:, variable].argmax())
    if np.ptp(means[:, variable]) < MIN_MODE_DISTANCE:
        skip(f"its chains mix on {where!r}, too")
    apart = f"{REPLICA_CHAINS} chains, half of them in one mode and half in another,"
    _require_large_r_hat(estimate(batches, [first, other] * (REPLICA_CHAINS // 2)), variable, apart)
    halves = estimate(_join_chain_halves(batches, first, other), [0])
    one_chain = "one chain that is in one mode in its first half and in another in its second"
    _require_large_r_hat(halves, variable, one_chain)
    size = 0.0 if halves.ess is None else float(np.asarray(halves.ess)[variable])
    require(
        not size > MAX_ESS_OF_HALVES,
        f"the effective sample size of one chain, half of its steps in one mode and half in another, is {size:.3g}; "
        f"{MAX_ESS_OF_HALVES:g} is the most",
    )


def _require_large_r_hat(estimate: Estimate, variable: int, runs: str) -> None:
    """R-hat of such chains, unless none is claimed; and a doubt."""
    value = np.nan if estimate.r_hat is None else float(np.asarray(estimate.r_hat)[variable])
    require(
        np.isnan(value) or value >= MIN_R_HAT_APART,
        f"R-hat of {runs} is {value:.3g}; {MIN_R_HAT_APART} is the least that shows that they differ",
    )
    require(is_doubted(estimate, "marginals"), f"marginals of {runs} are not doubted; they have not mixed")


def _join_chain_halves(batches: Batches, first: int, other: int) -> Batches:
    """One chain, of the first half of one and the second of another."""
    half = len(batches) // 2
    return [
        (steps, {name: array[..., [first if turn < half else other]] for name, array in statistics.items()})
        for turn, (steps, statistics) in enumerate(batches)
    ]
