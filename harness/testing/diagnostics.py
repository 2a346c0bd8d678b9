"""Checks of effective sample sizes and R-hat, of many chains and of one."""

from __future__ import annotations

import numpy as np

from spinbench.api import Estimate
from spinbench.testing import limits
from spinbench.testing.answers import EACH, FEW, FLOOR
from spinbench.testing.cases import FloatArray
from spinbench.testing.check import require, skip
from spinbench.testing.joint import RARE, effective
from spinbench.testing.pair import Pair, Sample

MIXED, APART = "dense", "huge couplings"
"""Models on which chains mix at once, and on which they hardly ever leave a mode."""
FAR = 0.9
"""Between the marginals of two chains that are in different modes."""
SEEN = 1.2
"""R-hat from which chains are not taken for one."""
ALIKE = 1.5
"""R-hat of one short chain that mixes, at most."""
FEWER = 10.0
"""Times that effective sample sizes may be too small."""
HALVES = 8.0
"""Draws in effect, at most, of a chain of two halves."""


def sizes(pair: Pair) -> None:
    """Effective sample sizes of groups of chains and of single chains are those that their errors show."""
    sample = pair.sample(MIXED)
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


def r_hat(pair: Pair) -> None:
    """R-hat is small where chains mix, and large where they do not, also within one chain."""
    mixed = pair.sample(MIXED)
    one, several = pair.estimate(mixed, slice(0, 1)), pair.estimate(mixed, slice(0, EACH))
    if one.r_hat is None and several.r_hat is None:
        skip("it has no R-hat")
    for found, what in ((one, "one chain"), (several, f"{EACH} chains")):
        most = float(np.nanmax(np.asarray(found.r_hat), initial=1.0)) if found.r_hat is not None else 1.0
        require(most <= ALIKE, f"R-hat of {what} that mixes is {most:.3g}; {ALIKE} is the most that chance makes it")
    sample = pair.sample(APART)
    singles = [pair.estimate(sample, slice(c, c + 1)) for c in range(EACH)]
    means = np.stack([np.asarray(e.marginals) for e in singles])
    variable = int(np.argmax(np.ptp(means, axis=0)))
    first, other = int(means[:, variable].argmin()), int(means[:, variable].argmax())
    if np.ptp(means[:, variable]) < FAR:
        skip(f"its chains mix on {APART!r}, too")
    _large(
        pair.estimate(sample, [first, other] * (EACH // 2)),
        variable,
        f"{EACH} chains, half of them in one mode and half in another,",
    )
    found = pair.estimate(_joined(sample, first, other))
    _large(found, variable, "one chain that is in one mode in its first half and in another in its second")
    size = 0.0 if found.ess is None else float(np.asarray(found.ess)[variable])
    require(
        not size > HALVES,
        f"the effective sample size of one chain, half of its steps in one mode and half in another, is {size:.3g}; "
        f"{HALVES:g} is the most",
    )


def _large(found: Estimate, variable: int, what: str) -> None:
    """R-hat of such chains, unless none is claimed."""
    value = np.nan if found.r_hat is None else float(np.asarray(found.r_hat)[variable])
    require(
        np.isnan(value) or value >= SEEN,
        f"R-hat of {what} is {value:.3g}; {SEEN} is the least that shows that they differ",
    )


def _joined(sample: Sample, first: int, other: int) -> Sample:
    """One chain, of the first half of one and the second of another."""
    half = len(sample.batches) // 2
    batches = [
        (steps, {name: array[..., [first if turn < half else other]] for name, array in statistics.items()})
        for turn, (steps, statistics) in enumerate(sample.batches)
    ]
    return Sample(sample.bound, batches)
