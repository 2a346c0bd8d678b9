"""What there is at least of Z and of Z P(x_v = k), from means of importance weights.

They hold but for chance, whatever the proposal; what it does not cover is missing from them. Three are at hand: of the
product laws of where probes stay the mixture of all, and draws of one that are annealed within its well; and small
mini-buckets.

Draws from mini-buckets of few entries, which have all the patterns that small wells beside each other make.

In a long chain, a tree or a strip where each stretch may be in either of two wells, a state is a pattern of them, and
no product law has more than one pattern. Weighted mini-buckets sum what is narrow exactly, whatever the wells, and are
a proposal for the rest; of models that are wide everywhere they know next to nothing.

Liu, Fisher and Ihler, "Probabilistic variational bounds for graphical models", NIPS 2015.

"""

from __future__ import annotations

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from spinbench.inference.checks.probes import PROBES, FloatArray, IntArray, Probed, anneal, probe
from spinbench.mathematics.graphs.factor_tables import FactorTables
from spinbench.methods.buckets.draws import draw
from spinbench.methods.buckets.tighten import split_into_mini_buckets
from spinbench.methods.tempering.replicas import build_graph_tables
from spinbench.reference.network import FlatFactors

# Share of the uniform law in each probe's proposal q: a state with q = 0 would have an infinite weight.
FLOOR = 1e-3
# Draws per probe.
DRAWS = 64
# Standard errors above the mean for upper bounds: of the total weight, and of the many states' weights.
ERRORS = 3.0, 5.0

# Annealing steps when the estimate should be close to Z and not only a lower bound.
SLOWLY = 64
# With n draws, weights of 0 that were not seen may have a probability of up to UNSEEN / n, which no standard error
# shows.
UNSEEN = 5.0


# log2 of the largest number of entries of a mini-bucket.
LIMIT = 10
# Passes that tighten the bound on the weights.
PASSES = 10


class Least(NamedTuple):
    """Logarithms of what there is at least. Attributes: z: Z; states: (S,) Z P(x_v = k), variable by variable."""

    z: float
    states: FloatArray


class Bounds:
    """Of one model, each found when it is asked for. Attributes: probed: where probes stay."""

    def __init__(self, flat: FactorTables) -> None:
        self._flat = flat
        self._tables = build_graph_tables(flat)
        self._wells = dict[int, Least]()
        self.probed: Probed = probe(flat, self._tables, np.random.default_rng(0))

    @cached_property
    def mixture(self) -> Least:
        """From draws of all probes' laws, as of one proposal."""
        flat, logs = self._flat, np.log(self._laws)
        rows = _draw_states(flat.cardinalities, self._laws, np.random.default_rng(1))
        log_q = np.zeros((PROBES, rows.shape[1]))
        for log_ratios in rows:
            log_q += logs[log_ratios].T
        states = rows - _firsts(flat.cardinalities)[:, None]
        log_p = flat.log_weights(states)
        return _least(log_p - np.logaddexp.reduce(log_q) + np.log(PROBES), rows, len(logs), DRAWS // 2)

    @cached_property
    def wide(self) -> tuple[Least, ...]:
        """Of what reaches beyond one well."""
        drawn_states = _draw_from_mini_buckets(self._flat, DRAWS * PROBES, np.random.default_rng(4))
        if drawn_states is None:
            return (self.mixture,)
        states, log_w = drawn_states
        firsts, number = _firsts(self._flat.cardinalities), int(self._flat.cardinalities.sum())
        return self.mixture, _least(log_w, states + firsts[:, None], number, DRAWS // 2)

    def weigh_probe_well(self, number: int) -> Least:
        """Of the well in which a probe stays."""
        if number not in self._wells:
            law, rng = self._laws[:, number], np.random.default_rng((2, number))
            log_w, x = anneal(self._flat, self._tables.sweep, law, DRAWS, rng)
            self._wells[number] = _least(log_w, x + _firsts(self._flat.cardinalities)[:, None], len(law), DRAWS // 8)
        return self._wells[number]

    def log_z_estimate_from(self, marginals: FloatArray) -> float:
        """log Z of where a run's marginals (S,) are, if log weights that come from there have a normal law.

        log Z is then their mean and half their variance, for which errors are allowed.
        """
        law, rng = self._positive(np.clip(marginals, 0.0, 1.0)), np.random.default_rng(3)
        log_w = anneal(self._flat, self._tables.sweep, law, DRAWS, rng, steps=SLOWLY)[0]
        finite = log_w[np.isfinite(log_w)]
        if 2 * len(finite) < len(log_w):
            return np.inf
        variance = finite.var(ddof=1)
        error = np.sqrt((variance + variance**2 / 2) / len(finite))
        mean = np.logaddexp.reduce(finite) - np.log(len(finite))
        return float(max(mean, finite.mean() + variance / 2 + ERRORS[0] * error))

    def _positive(self, laws: FloatArray) -> FloatArray:
        sizes = self._flat.cardinalities
        spread = (FLOOR / np.repeat(sizes, sizes)).reshape(-1, *[1] * (laws.ndim - 1))
        return np.asarray((1 - FLOOR) * laws + spread)

    @cached_property
    def _laws(self) -> FloatArray:
        return self._positive(self.probed.laws)


def _least(log_w: FloatArray, rows: IntArray, states: int, groups: int) -> Least:
    """Of weights (C,), at draws that have the states `rows` (N, C) of all S, in groups that are all alike."""
    top = float(log_w.max())
    if not np.isfinite(top):
        return Least(-np.inf, np.full(states, -np.inf))
    w, bins = np.exp(log_w - top), rows + states * (np.arange(log_w.size) * groups // log_w.size)
    sums, squares = (_sum_by_bin(bins, part, groups, states) for part in (w, w**2))
    of_states = _surely(sums, squares, log_w.size, ERRORS[1])
    z = _surely(w.reshape(groups, -1).sum(axis=1), (w**2).reshape(groups, -1).sum(axis=1), log_w.size, ERRORS[0])
    return Least(float(z) + top, np.asarray(of_states) + top)


def _sum_by_bin(bins: IntArray, parts: FloatArray, groups: int, states: int) -> FloatArray:
    """(G, S)."""
    sums = np.bincount(bins.ravel(), np.tile(parts, len(bins)), groups * states)
    return sums.reshape(groups, states).astype(np.float64)


def _surely(sums: FloatArray, squares: FloatArray, number: int, errors: float) -> Any:
    """Logarithm of what the mean of so many weights is at least, by groups' sums (G, …) of them and of their squares.

    Their mean, less its errors; or, where a few weights have most of it, that of the logarithms of groups' means, which
    is too low, less its own.
    """
    mean, groups = sums.sum(axis=0) / number, len(sums)
    error = np.sqrt(np.maximum(squares.sum(axis=0) / number - mean**2, 0.0) / number)
    with np.errstate(divide="ignore", invalid="ignore"):
        coverage = 1 - UNSEEN / number
        plain = np.log(np.maximum(coverage * mean - errors * error, 0.0))
        logs = np.log(coverage * sums * groups / number)
        of_logs = logs.mean(axis=0) - errors * logs.std(axis=0, ddof=1) / np.sqrt(groups)
    return np.fmax(plain, of_logs)


def _draw_states(sizes: IntArray, law: FloatArray, rng: np.random.Generator) -> IntArray:
    """(N, D P) places in the law's first axis of D states drawn from each probe's law, one of each after another."""
    rows = np.empty((len(sizes), DRAWS, PROBES), dtype=np.int64)
    for v, first in enumerate(_firsts(sizes)):
        reached = np.cumsum(law[first : first + sizes[v]], axis=0)
        goals = rng.random((DRAWS, PROBES)) * reached[-1]
        rows[v] = first + (goals >= reached[:-1, None, :]).sum(axis=0)
    return rows.reshape(len(sizes), -1)


def _firsts(sizes: IntArray) -> IntArray:
    return np.asarray(np.cumsum(sizes) - sizes)


def _draw_from_mini_buckets(
    flat: FactorTables, count: int, rng: np.random.Generator
) -> tuple[IntArray, FloatArray] | None:
    """States (N, C) and their log weights (C,), whose mean is Z; None where the proposal would be too poor.

    Args:
        flat: the model.
        count: C.
        rng: of the draws.
    """
    split = split_into_mini_buckets(
        FlatFactors(
            flat.cardinalities, flat.scope_starts, flat.scope_variables, flat.offsets, flat.values, flat.log_constant
        ),
        LIMIT,
    )
    if split is None:
        return None
    bound, place = split.bound, np.argsort(split.order)
    point, work = bound.tighten(PASSES), bound.passes.work
    if not np.isfinite(point.value):
        return None
    draws = draw(bound.at, point.weights, work.probabilities, work.logs, rng.random((len(place), count, 1)))
    return draws.states[place, :, 0], point.value + draws.logs[:, 0]
