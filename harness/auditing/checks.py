"""What draws of a model's law have to be like: checks, each with a p-value."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from spinbench.auditing.statistics import (
    FloatArray,
    IntArray,
    Logits,
    autocorrelation_times,
    binomial_p_values,
    normal_p_values,
    probabilities,
    slope,
    z_scores,
)
from spinbench.models import FactorGraph, Model

# Largest number of entries of joint tables that are compared.
MAX_EVENTS = 20_000
# Largest number of states of a model whose frequencies of states are compared.
MAX_STATES = 2**14
# Smallest expected count of a cell of a chi-square test: rarer states are merged into one cell.
MIN_EXPECTED = 10.0
# Sum of the variances of an indicator over draws below which its mean does not count as normal.
MIN_INFORMATION = 25.0
# Effective draws per squared skewness of the log weights from which their mean counts as normal.
MIN_DRAWS_PER_SKEWNESS = 100.0
# Draws this many autocorrelation times apart count as independent in a chi-square test.
THINNED = 3.0


class Check(NamedTuple):
    """One thing that was compared.

    Attributes:
        name: what.
        p_value: of the worst comparison, adjusted for how many there are in this check (Bonferroni).
        detail: of the worst comparison, in words.
    """

    name: str
    p_value: float
    detail: str


class Row(NamedTuple):
    """A frequency beside its probability.

    Attributes:
        quantity: "marginal" or "pair" (of a factor of any order).
        variables, states: which event: these variables have these states.
        observed, expected: frequency and probability.
        z: normal score of the p-value; positive where it happens too often.
        p_value: two-sided.
    """

    quantity: str
    variables: tuple[int, ...]
    states: tuple[int, ...]
    observed: float
    expected: float
    z: float
    p_value: float


class Draws(NamedTuple):
    """States of positive weight, and what they are worth.

    Attributes:
        states: (N, C, D); log_weights: (C, D).
        chained: as of `Samples`.
    """

    states: IntArray
    log_weights: FloatArray
    chained: bool

    @property
    def number(self) -> int:
        """All of them."""
        return self.log_weights.size

    def thin(self, series: int, max_numbers: int) -> Draws:
        """Every second, third, … draw, so that so many series of them have no more numbers than `max_numbers`."""
        step = max(1, -(-self.number * series // max(max_numbers, 1)))
        return self._replace(states=self.states[..., ::step], log_weights=self.log_weights[:, ::step])

    def effective(self, series: FloatArray) -> FloatArray:
        """(Q,) independent draws that means of series (Q, C, D) are worth."""
        times = autocorrelation_times(series) if self.chained else np.ones(len(series))
        return np.asarray(self.number / times)


def marginal_events(model: Model) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """(variables, states) of single variables; of binary ones state 1 alone."""
    return [((v,), (k,)) for v, size in enumerate(model.cardinalities) for k in informative_states(size)]


def informative_states(size: int) -> range:
    """All states of a variable; of a binary one state 1 alone."""
    return range({2: 1}.get(size, 0), size)


def pair_events(model: Model) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Of a pairwise model both ends of an edge in state 1; of a factor graph all entries of factors of more than one
    variable, in their order, as many as are compared."""
    if not isinstance(model, FactorGraph):
        return [((int(i), int(j)), (1, 1)) for i, j in model.edges[:MAX_EVENTS].tolist()]
    events: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for factor in model.factors:
        if len(factor.scope) > 1 and len(events) + factor.log_table.size <= MAX_EVENTS:
            events += [(factor.scope, entry) for entry in np.ndindex(factor.log_table.shape)]
    return events


def pair_probabilities(model: Model, pairs: Sequence[FloatArray] | FloatArray) -> FloatArray:
    """Of `pair_events`, of exact `Result.pairs`."""
    if not isinstance(model, FactorGraph):
        return np.asarray(pairs, dtype=np.float64)[:MAX_EVENTS]
    chosen: list[FloatArray] = [np.zeros(0)]
    for factor, table in zip(model.factors, pairs, strict=True):
        if len(factor.scope) > 1 and sum(map(len, chosen)) + factor.log_table.size <= MAX_EVENTS:
            chosen.append(np.asarray(table, dtype=np.float64).ravel())
    return np.concatenate(chosen)


def compare_frequencies(
    quantity: str, draws: Draws, events: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], p: FloatArray
) -> list[Row]:
    """Frequencies of events beside their probabilities (Q,)."""
    rows = []
    for (variables, states), probability in zip(events, p.tolist(), strict=True):
        happens = np.logical_and.reduce([draws.states[v] == k for v, k in zip(variables, states, strict=True)])
        series = happens[None].astype(np.float64)
        mean = float(series.mean())
        p_value = float(binomial_p_values(np.array(mean), np.array(probability), draws.effective(series)[0]))
        z = float(z_scores(np.array(p_value), np.array(mean - probability)))
        rows.append(Row(quantity, variables, states, mean, probability, z, p_value))
    return rows


def check_rows(name: str, rows: Sequence[Row]) -> Check:
    """The worst of frequencies."""
    worst = min(rows, key=lambda row: row.p_value)
    event = ", ".join(f"x{v} = {k}" for v, k in zip(worst.variables, worst.states, strict=True))
    detail = f"{event} in {worst.observed:.4g} of the draws, probability {worst.expected:.4g} (z = {worst.z:+.1f})"
    return Check(name, min(1.0, worst.p_value * len(rows)), detail)


def check_energy(draws: Draws, means: Sequence[float], spacing: float) -> Check | None:
    """The mean log weight beside its expectation; None where its law is too skew for so few draws.

    Args:
        draws: that are audited.
        means: E_β[log p*] at β = 1 - spacing, 1 and 1 + spacing, whose differences are variance and third cumulant.
        spacing: of β.
    """
    variance = (means[2] - means[0]) / (2 * spacing)
    skewness = (means[2] - 2 * means[1] + means[0]) / spacing**2 / max(variance, 1e-300) ** 1.5
    effective = float(draws.effective(draws.log_weights[None])[0])
    if not variance > 1e-9 or effective < MIN_DRAWS_PER_SKEWNESS * max(skewness**2, 0.1):
        return None
    mean = float(draws.log_weights.mean())
    z = (mean - means[1]) / math.sqrt(variance / effective)
    detail = f"mean log weight {mean:.6g}, expected {means[1]:.6g} ± {math.sqrt(variance / effective):.2g}"
    return Check("energy", float(normal_p_values(np.array(z), np.inf)), f"{detail} (z = {z:+.1f})")


def check_state_frequencies(model: Model, draws: Draws) -> Check | None:
    """Pearson's chi-square of the states' frequencies; None of models of too many states, or of too few draws."""
    sizes = model.cardinalities
    if math.prod(sizes) > MAX_STATES:
        return None
    states = np.indices(sizes).reshape(len(sizes), -1)
    logs = model.log_weight(states.T)
    p = np.exp(logs - logs.max())
    p /= p.sum()
    step = 1
    if draws.chained:
        times = autocorrelation_times(np.concatenate([draws.states.astype(np.float64), draws.log_weights[None]]))
        if times.max() > 1.0:
            step = math.ceil(THINNED * float(times.max()))
    places = np.asarray(
        np.ravel_multi_index(tuple(draws.states[..., ::step].reshape(len(sizes), -1)), sizes), dtype=np.int64
    )
    expected, observed = places.size * p, np.bincount(places, minlength=len(p)).astype(np.float64)
    rare = expected < MIN_EXPECTED
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
        # The merged cell is still too small and is merged with the rarest of the others.
        if expected[-1] < MIN_EXPECTED:
            if len(expected) < 3:
                return None
            least = int(expected[:-1].argmin())
            expected[least] += expected[-1]
            observed[least] += observed[-1]
            expected, observed = expected[:-1], observed[:-1]
    if len(expected) < 2:
        return None
    chi = float(((observed - expected) ** 2 / expected).sum())
    p_value = float(special.chdtrc(len(expected) - 1, chi))
    return Check("states", p_value, f"chi-square {chi:.4g} of {len(expected)} cells and {places.size} draws")


def check_heaviest(draws: Draws, state: IntArray, probabilities_: tuple[float, float]) -> Check:
    """How often the heaviest state occurs, whose probability lies in a range; it was found without the draws."""
    happens = (draws.states == np.asarray(state)[:, None, None]).all(axis=0)[None].astype(np.float64)
    mean, effective = float(happens.mean()), float(draws.effective(happens)[0])
    nearest = float(np.clip(mean, *probabilities_))
    p_value = float(binomial_p_values(np.array(mean), np.array(nearest), np.array(effective)))
    low, high = probabilities_
    probability = f"{low:.4g}" if high - low < 1e-9 * high else f"{low:.4g} to {high:.4g}"
    missed = "never occurs"
    if happens.any():
        missed = f"occurs in {mean:.4g} of the draws"
    return Check("heaviest state", p_value, f"it {missed}; probability {probability}")


def check_chains(
    draws: Draws, events: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], p: FloatArray | None
) -> Check | None:
    """Each chain alone beside the law, or beside the other chains; None of one chain.

    Args:
        draws: that are audited.
        events: of single variables.
        p: their probabilities, where they are known.
    """
    chains, length = draws.log_weights.shape
    if chains < 2 or not draws.chained:
        return None
    worst = (1.0, 0, events[0])
    for number, (variables, states) in enumerate(events):
        series = (draws.states[variables[0]] == states[0])[None].astype(np.float64)
        effective = length / float(autocorrelation_times(series)[0])
        means = series[0].mean(axis=1)
        if p is not None:
            values = binomial_p_values(means, p[number], np.array(effective))
        else:
            # Without an exact answer a chain is compared with the mean of the other chains, which has an error of its
            # own.
            others = (means.sum() - means) / (chains - 1)
            variance = np.maximum(others * (1 - others), 1e-12) / effective * (1 + 1 / (chains - 1))
            is_testable = effective * others * (1 - others) >= MIN_EXPECTED
            values = np.where(is_testable, normal_p_values((means - others) / np.sqrt(variance), effective), 1.0)
        if values.min() < worst[0]:
            worst = (float(values.min()), int(values.argmin()), events[number])
    (v,), (k,) = worst[2]
    detail = f"chain {worst[1]} is furthest away, by x{v} = {k}; split R-hat up to {largest_r_hat(draws, events):.3g}"
    return Check("chains", min(1.0, worst[0] * chains * len(events)), detail)


def largest_r_hat(draws: Draws, events: Sequence[tuple[tuple[int, ...], tuple[int, ...]]]) -> float:
    """Over single variables' states; NaN for chains of fewer than two draws."""
    from spinbench.mathematics.statistics import split_r_hat

    half = draws.states.shape[-1] // 2
    if half < 1:
        return float("nan")
    indicators = np.stack([draws.states[variables[0]] == states[0] for variables, states in events])
    halves = np.stack([indicators[..., :half].mean(axis=-1), indicators[..., half : 2 * half].mean(axis=-1)])
    return float(np.nanmax(split_r_hat(halves)))


def check_conditionals(draws: Draws, logits: Logits) -> Check | None:
    """Each variable is in a state as often as its neighbours say, whatever they are; None where too little is known of
    every variable.

    This is an identity of the model's law that needs no Z.
    """
    tests: list[tuple[float, int, int, float]] = []
    for v, size in enumerate(len(rows) for rows in logits.values):
        p = probabilities(logits, v)
        for k in informative_states(size):
            variance = float((p[k] * (1 - p[k])).sum())
            if variance < MIN_INFORMATION:
                continue
            residuals = ((draws.states[v] == k) - p[k])[None]
            effective = float(draws.effective(residuals)[0])
            z = float(residuals.mean() / math.sqrt(variance / draws.number / effective))
            tests.append((float(normal_p_values(np.array(z), np.inf)), v, k, z))
    if not tests:
        return None
    p_value, v, k, z = min(tests)
    detail = f"x{v} = {k} {'more' if z > 0 else 'less'} often than its neighbours say (z = {z:+.1f})"
    return Check("conditionals", min(1.0, p_value * len(tests)), detail)


def check_temperature(draws: Draws, logits: Logits) -> Check | None:
    """Whether β = 1 solves the equation of maximum pseudo-likelihood: all conditionals together, by one number. None of
    few draws, or where the log pseudo-likelihood's slope is the same in all of them."""
    score, _ = slope(logits, 1.0)
    spread, effective = float(score.std()), float(draws.effective(score[None])[0])
    if effective < MIN_INFORMATION or not spread > 0:
        return None
    z = float(score.mean() / (spread / math.sqrt(effective)))
    detail = f"draws are {'colder' if z > 0 else 'hotter'} than the model (z = {z:+.1f})"
    return Check("temperature", float(normal_p_values(np.array(z), effective - 1)), detail)
