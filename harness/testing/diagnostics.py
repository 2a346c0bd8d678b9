"""Checks of standard errors, effective sample sizes and R-hat, of many chains and of one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from spinbench.api import Estimate, Precision
from spinbench.mathematics.claims import remembered
from spinbench.testing import limits
from spinbench.testing.answers import EACH, FEW, FLOOR
from spinbench.testing.check import OF_PAIRS, require, skip
from spinbench.testing.joint import RARE, chances, effective, pair_errors
from spinbench.testing.laws.cases import FloatArray
from spinbench.testing.limits import SLACK
from spinbench.testing.pair import BATCH, BATCHES, Pair
from spinbench.testing.trial import FEW_CHAINS, SEED, Batches, reduce_batches

CALIBRATED = ("dense", "sparse")
"""Cases, the first one for what needs not be tried on both."""
UNSEEN = 1.5
"""Half of the rule of three: what n independent draws do not show, an error of UNSEEN / n may be claimed for."""
PACE = 2
"""Steps of a chain in which claims may see one independent draw: they know the pace of small, fast models roughly."""
MERGED = 4
"""Batches that are joined to see whether errors depend on how long they are."""
FEW_OF = 8
"""Chains, as few as are believed, of which claims are looked at beside those of one and of many."""
GROUPS = 64
"""Replicas for calibration, at most."""
FEWEST = 16
"""And at least: fewer could not tell errors of half the size."""
MIXED, APART = "dense", "huge couplings"
"""Models on which chains mix at once, and on which they hardly ever leave a mode."""
STATES, STATES_APART = "three states", "three states, apart"
"""The same, of variables of three states."""
FAR = 0.9
"""Between the marginals of two chains that are in different modes."""
ERRORS = {
    "standard errors": ("marginals_se", "log_z_se"),
    "error bounds": ("marginals_error_bound", "log_z_error_bound"),
}
"""The two errors of an `Estimate`, by their names there."""
SEEN = 1.2
"""R-hat from which chains are not taken for one."""
ALIKE = 1.5
"""R-hat of one short chain that mixes, at most."""
FEWER = 10.0
"""Times that effective sample sizes may be too small."""
HALVES = 8.0
"""Draws in effect, at most, of a chain of two halves."""


@OF_PAIRS.add("calibration, {}, {}", "sampler", over=lambda pair: product(CALIBRATED[:1], pair.other_precisions))
@OF_PAIRS.add("calibration, {}", "sampler", over=CALIBRATED)
def calibration(pair: Pair, case: str, precision: Precision | None = None, *, believed: bool = False) -> None:
    """Over independent replicas, errors divided by their standard errors have mean square 1; `believed`: a log Z that
    the method doubts is left alone, and doubted marginals may claim too much, as what a setting chooses may suit other
    models."""
    groups, width = replicas(pair)
    sample = pair.sample(case, precision, least=groups * width)
    known = sample.bound.law
    estimates = pair.replicas(sample, groups, groups * width)
    done, floor = steps(sample.batches), FLOOR[precision or pair.precision]
    compare_errors(estimates, known.log_z, known.marginals, width, done, believed=believed, floor=floor)
    chances(estimates, known.log_z)
    pair_errors(estimates, known)
    longer = replace(sample, batches=_merged(sample.batches, pair.method.reductions))
    batches = f"{len(longer.batches)} batches of {longer.batches[0][0]} steps"
    single(pair.replicas(longer, groups, groups * width), known.marginals, f"{width} chains in {batches}")
    single(pair.replicas(sample, groups, groups), known.marginals, "one chain")
    single(pair.replicas(sample, groups, groups * FEW_OF), known.marginals, f"{FEW_OF} chains")


def _merged(batches: Batches, reductions: Mapping[str, str]) -> Batches:
    """`MERGED` batches in one, as their reductions say."""
    found: Batches = []
    for first in range(0, len(batches), MERGED):
        some = batches[first : first + MERGED]
        joined = {name: reduce_batches([batch[name] for _, batch in some], kind) for name, kind in reductions.items()}
        found.append((steps(some), joined))
    return found


def single(estimates: list[Estimate], marginals: FloatArray, what: str) -> None:
    """Claims of runs of a kind, where they are believed, are not too small."""
    sure = [e for e in estimates if e.marginals is not None and e.status == "ok"]
    if not sure:
        return
    errors = np.stack([np.asarray(e.marginals) - marginals for e in sure])
    for kind, (of_marginals, _) in ERRORS.items():
        claimed = np.stack([np.asarray(getattr(e, of_marginals)) for e in sure])
        z = np.where(np.abs(errors) < FLOOR["float32"], 0.0, errors / np.maximum(claimed, 1e-100))
        square = float((z**2).mean(axis=0).max())
        most = limits.chi_square_limits(len(z), z.shape[1])[1] / len(z) * SLACK**2
        require(
            square <= most,
            f"over {len(z)} runs of {what}, (error / {kind[:-1]})² has mean {square:.2g}, where {most:.2g} is the "
            f"most: {kind} of {what} are too small",
        )


def replicas(pair: Pair) -> tuple[int, int]:
    """For calibration: how many, and the chains of each."""
    chains = max(pair.chains, FEWEST * EACH)
    groups = min(GROUPS, chains // EACH)
    return groups, chains // groups


def steps(batches: Batches) -> int:
    """Of a chain."""
    return sum(count for count, _ in batches)


def compare_errors(
    estimates: list[Estimate],
    log_z: float,
    marginals: FloatArray,
    chains: int,
    steps: int,
    *,
    believed: bool = False,
    floor: float = FLOOR["float64"],
) -> None:
    """Errors of replicas divided by their standard errors have mean square 1, but for chance, `SLACK` and `wider`.

    Args:
        estimates: of the replicas.
        log_z, marginals: exact.
        chains, steps: of each replica.
        believed: leave a log Z alone that is doubted, and errors of doubted marginals that are too large.
        floor: errors below it are rounding, which need not be claimed.
    """
    for kind, (of_marginals, of_log_z) in ERRORS.items():
        z, what, most = np.zeros((len(estimates), 0)), [], np.zeros(0)
        if estimates[0].marginals is not None:
            given = [getattr(e, of_marginals) for e in estimates]
            require(all(one is not None for one in given), f"a stochastic method reports marginals without {kind}")
            errors, claimed = np.stack([np.asarray(e.marginals) - marginals for e in estimates]), np.stack(given)
            sure = (claimed < floor).all(axis=0) & (np.abs(errors) < floor).all(axis=0)
            z = errors[:, ~sure] / claimed[:, ~sure]
            most = SLACK**2 + wider(estimates, errors, marginals, chains, steps)[~sure]
            if believed and all(e.doubted("marginals") for e in estimates):
                most[:] = np.inf
            what = [f"marginal {i}" for i in np.flatnonzero(~sure)]
        told = not (believed and any(e.doubted("log Z") for e in estimates))
        found = [getattr(e, of_log_z) for e in estimates]
        if told and all(e.log_z is not None for e in estimates) and all(one and np.isfinite(one) for one in found):
            z = np.column_stack([z, [(e.log_z - log_z) / one for e, one in zip(estimates, found, strict=True)]])  # type: ignore[operator]
            what.append("log Z")
            most = np.append(most, SLACK**2)
        _require_calibrated(z, what, most, kind)
    if estimates[0].marginals is not None:
        effective(estimates, errors, marginals)


def _require_calibrated(z: FloatArray, what: Sequence[str], most: FloatArray, kind: str) -> None:
    """Mean squares of columns are 1, but for chance, `SLACK`, and by how much errors may be too large."""
    squares = (z**2).mean(axis=0)
    low, high = (limit / len(z) for limit in limits.chi_square_limits(len(z), max(len(what), 1)))
    lows, high = low / most, high * SLACK**2
    for name, value, low in zip(what, squares.tolist(), lows.tolist(), strict=True):
        require_mean_square(f"{name}: over {len(z)} replicas", value, low, high, kind)


def require_mean_square(what: str, square: float, low: float, high: float, kind: str = "standard errors") -> None:
    """The mean square of errors by what is claimed of them is within the limits of chance."""
    wrong = "small" if square > 1 else "large"
    times = max(square, 1 / square) ** 0.5 if square else np.inf
    require(
        low <= square <= high,
        f"{what}, (error / {kind[:-1]})² has mean {square:.3g}, where {low:.3g} to {high:.3g} is chance: {kind} are "
        f"about {times:.2g} times too {wrong}",
    )


def wider(estimates: list[Estimate], errors: FloatArray, marginals: FloatArray, chains: int, steps: int) -> FloatArray:
    """By how many squares of the true error claims may exceed it: (N,).

    For what chains remember, the share 1 - 1 / R-hat² of their spread, which is √chains times the error of their mean;
    short runs of slow chains show such a share by chance. And for what has not been seen, by as many independent draws
    as the slowest variable has had, one in `PACE` steps at most: means of conditional probabilities may vary little and
    yet rest on few draws.
    """
    variance = np.maximum((errors**2).mean(axis=0), np.finfo(float).tiny)
    single = marginals * (1 - marginals)
    worth = np.clip(single / variance, 1.0, chains * steps / PACE)
    varies = single > FLOOR["float64"]
    unseen = UNSEEN / worth[varies].min() if varies.any() else 0.0
    kept = np.zeros(len(marginals))
    if all(e.r_hat is not None for e in estimates):
        kept = np.mean([remembered(np.asarray(e.r_hat)) ** 2 for e in estimates], axis=0)
    return np.asarray(chains * kept + unseen**2 / variance)


@OF_PAIRS.add("effective sample sizes, {}", "sampler", over=lambda pair: pair.other_precisions)
@OF_PAIRS.add("effective sample sizes", "sampler")
def sizes(pair: Pair, precision: Precision | None = None) -> None:
    """Effective sample sizes of groups of chains and of single chains are those that their errors show."""
    sample = pair.sample(MIXED, precision)
    marginals = sample.bound.law.marginals
    for chains, what in ((EACH, f"{EACH} chains"), (1, "one chain")):
        groups = min(FEW, pair.chains // chains)
        _sized(pair.replicas(sample, groups, groups * chains), marginals, what)


def _sized(estimates: list[Estimate], marginals: FloatArray, what: str) -> None:
    if any(e.marginals is None or e.ess is None for e in estimates):
        skip("it has no marginals, or no effective sample sizes")
    known = [e for e in estimates if np.isfinite(np.asarray(e.ess)).all()]
    if len(known) < len(estimates) / 2:
        return
    errors = np.stack([np.asarray(e.marginals) - marginals for e in known])
    effective(known, errors, marginals, what)
    single = marginals * (1 - marginals)
    told = (single > RARE) & (np.abs(errors).max(axis=0) > FLOOR["float32"])
    if not told.any():
        return
    worth = np.stack([np.asarray(e.ess) for e in known])[:, told]
    times = float((errors[:, told] ** 2 * worth / single[told]).mean(axis=0).min())
    least = limits.chi_square_limits(len(known), int(told.sum()))[0] / len(known) / FEWER
    require(
        times >= least,
        f"effective sample sizes of {what} are about {1 / max(times, 1e-300):.2g} times too small: over {len(known)} "
        f"replicas, error² · ess / (p (1 - p)) has mean {times:.2g}, where {least:.2g} is the least",
    )


@OF_PAIRS.add("R-hat", "sampler")
def r_hat(pair: Pair) -> None:
    """R-hat is small where chains mix, and large where they do not, also within one chain; they are then doubted."""
    mixed, far = pair.sample(MIXED), pair.sample(APART)
    _mixed(lambda chains: pair.estimate(mixed, chains))
    _told_apart(lambda batches, chains: pair.estimate(replace(far, batches=batches), chains), far.batches, APART)


@OF_PAIRS.add("R-hat, three states", "sampler")
def r_hat_of_states(pair: Pair) -> None:
    """As `r_hat`, of variables of three states."""
    mixed, far = (pair.trial(name) for name in (STATES, STATES_APART))
    batches = mixed.run(FEW_CHAINS, SEED, [BATCH] * BATCHES)
    _mixed(lambda chains: mixed.estimate(batches, chains))
    _told_apart(far.estimate, far.run(FEW_CHAINS, SEED, [BATCH] * BATCHES), STATES_APART)


def _mixed(estimate: Callable[[slice], Estimate]) -> None:
    one, several = estimate(slice(0, 1)), estimate(slice(0, EACH))
    if one.r_hat is None and several.r_hat is None:
        skip("it has no R-hat")
    for found, what in ((one, "one chain"), (several, f"{EACH} chains")):
        most = float(np.nanmax(np.asarray(found.r_hat), initial=1.0)) if found.r_hat is not None else 1.0
        require(most <= ALIKE, f"R-hat of {what} that mixes is {most:.3g}; {ALIKE} is the most that chance makes it")


def _told_apart(estimate: Callable[[Batches, list[int]], Estimate], batches: Batches, where: str) -> None:
    """Chains in two modes, and one that goes from one to the other, have a large R-hat and few effective samples."""
    singles = [estimate(batches, [c]) for c in range(EACH)]
    means = np.stack([np.asarray(e.marginals) for e in singles])
    variable = int(np.argmax(np.ptp(means, axis=0)))
    first, other = int(means[:, variable].argmin()), int(means[:, variable].argmax())
    if np.ptp(means[:, variable]) < FAR:
        skip(f"its chains mix on {where!r}, too")
    apart = f"{EACH} chains, half of them in one mode and half in another,"
    _large(estimate(batches, [first, other] * (EACH // 2)), variable, apart)
    found = estimate(_joined(batches, first, other), [0])
    _large(found, variable, "one chain that is in one mode in its first half and in another in its second")
    size = 0.0 if found.ess is None else float(np.asarray(found.ess)[variable])
    require(
        not size > HALVES,
        f"the effective sample size of one chain, half of its steps in one mode and half in another, is {size:.3g}; "
        f"{HALVES:g} is the most",
    )


def _large(found: Estimate, variable: int, what: str) -> None:
    """R-hat of such chains, unless none is claimed; and a doubt."""
    value = np.nan if found.r_hat is None else float(np.asarray(found.r_hat)[variable])
    require(
        np.isnan(value) or value >= SEEN,
        f"R-hat of {what} is {value:.3g}; {SEEN} is the least that shows that they differ",
    )
    require(found.doubted("marginals"), f"marginals of {what} are not doubted; they have not mixed")


def _joined(batches: Batches, first: int, other: int) -> Batches:
    """One chain, of the first half of one and the second of another."""
    half = len(batches) // 2
    return [
        (steps, {name: array[..., [first if turn < half else other]] for name, array in statistics.items()})
        for turn, (steps, statistics) in enumerate(batches)
    ]
