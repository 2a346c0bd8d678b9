"""Weighted mini-buckets in compiled code: kernels, and both passes and the draws as loops over entries.

What the loops compute stands in `spinbench.methods.buckets.passes` and `draws`.
"""

from __future__ import annotations

import math
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.backends.numba.kernel_cache import Options, njit
from spinbench.backends.numba.simd import ULP, chain_keys, exp, hash64, log
from spinbench.mathematics.graphs.factor_tables import starts_of
from spinbench.methods.buckets import kernel, lower_kernel, passes, size, tuning
from spinbench.methods.buckets.draws import BINS, DEAD, WIDTH, DrawSums
from spinbench.methods.buckets.layout import Array, Buckets, FloatArray

# Fast-math flags without "ninf": log 0 occurs and must stay -∞.
OPTIONS: Options = {"cache": True, "error_model": "numpy", "fastmath": {"contract", "arcp", "nsz", "reassoc"}}
# Smaller arguments of the exponential count as -∞.
LEAST = -708.0
# Sums are kept relative to one weight and rescaled when a weight exceeds it by this many nats: e^40 squared is far from
# overflow, and rescaling is a pass over all rows.
_RAISE = 40.0


class Source(NamedTuple):
    """Mini-buckets, their weights, conditionals and the logs of these, and each variable's first row in `DrawSums`."""

    at: Buckets
    weights: Array
    probabilities: Array
    logs: Array
    firsts: Array


class CompiledPasses(passes.Passes):
    """Both passes."""

    def forward(self, theta: FloatArray, weights: FloatArray) -> float:
        return float(forward(self.at, theta, weights, self.work))

    def backward(self) -> tuple[FloatArray, FloatArray]:
        backward(self.at, self.work)
        return self.work.shifts, self.work.entropies


class NumbaBucketKernel(kernel.BucketKernel):
    """As on arrays, with draws from streams of the chains' own."""

    code: ClassVar[tuning.Code] = tuning.Code(
        size.Costs(entry=8e-9, look=2e-9, clique=7e-7, made=1.2e-8, step=3.5e-8, row=5e-8),
        CompiledPasses,
    )
    compiles: ClassVar[bool] = True
    block: ClassVar[int] = 2**20

    def _draw(self, tuned: tuning.Tuned, state: kernel.BucketState, index: int, steps: int) -> DrawSums:
        chains = state.chains
        firsts = starts_of(tuned.at.cards - 1)
        source = Source(tuned.at, tuned.point.weights, tuned.probabilities, tuned.logs, firsts)
        (logs, squares), (counts, sums) = np.zeros((2, chains)), np.zeros((2, BINS, chains))
        rows, states = np.zeros((int(firsts[-1]), chains)), np.zeros((len(firsts) - 1, chains), dtype=np.int64)
        draws = DrawSums(logs, squares, rows, counts, sums, states, np.zeros(chains))
        advance(source, chain_keys(state.seed, chains), index, steps, draws)
        return draws


class NumbaLowerKernel(lower_kernel.LowerKernel):
    """The same in compiled code."""

    compiles: ClassVar[bool] = True
    code: ClassVar[tuning.Code] = NumbaBucketKernel.code


@njit(**OPTIONS)
def forward(at, theta, weights, work):
    """The bound; conditionals and messages are written."""
    logs, probabilities, messages = work.logs, work.probabilities, work.messages
    total, longest = at.constant, 0
    for c in range(len(at.variable)):
        longest = max(longest, at.messages[c + 1] - at.messages[c])
    tops, sums = np.empty(longest), np.empty(longest)
    for c in range(len(at.variable)):
        begin, end, card = at.entries[c], at.entries[c + 1], at.cards[at.variable[c]]
        _gather(at, c, begin, end - begin, theta, messages, logs)
        first, last = at.messages[c], at.messages[c + 1]
        rows = logs[begin:end], probabilities[begin:end], messages[first:last]
        # The literal 2 makes Numba compile a second version of the loops with a known stride, which LLVM vectorises.
        if card == 2:
            _rows(*rows, 2, weights[c], tops, sums)
        else:
            _rows(*rows, card, weights[c], tops, sums)
        if at.parent[c] < 0:
            total += messages[first]
    return total


@njit(**OPTIONS)
def _gather(at, c, begin, size, theta, messages, logs):
    """ψ_c, into `logs`."""
    for i in range(size):
        logs[begin + i] = at.base[begin + i]
    for k in range(at.child_starts[c], at.child_starts[c + 1]):
        sent, place = at.messages[at.children[k]], at.parent_map[at.children[k]]
        for i in range(size):
            logs[begin + i] += messages[sent + at.maps[place + i]]
    place = at.shift_maps[c]
    if place >= 0:
        for i in range(size):
            logs[begin + i] += theta[at.shifts[c] + at.maps[place + i]]


@njit(forceinline=True, **OPTIONS)
def _rows(logs, probabilities, messages, card, weight, tops, sums):
    """w log Σ exp(ψ / w) of each row, of which the conditionals and their logs are written; ψ stands in `logs`."""
    # A negative weight w (lower bounds) reverses the order: the smallest ψ has the largest ψ / w.
    inverse, sign, count = 1.0 / weight, 1.0 if weight > 0 else -1.0, len(messages)
    for r in range(count):
        top = sign * logs[r * card]
        for x in range(1, card):
            top = max(top, sign * logs[r * card + x])
        # All entries of the row are 0: -∞ - -∞ would be NaN.
        tops[r] = 0.0 if top == -np.inf else sign * top
    for r in range(count):
        for x in range(card):
            logs[r * card + x] = (logs[r * card + x] - tops[r]) * inverse
    for i in range(count * card):
        probabilities[i] = exp(logs[i]) if logs[i] > LEAST else 0.0
    for r in range(count):
        sums[r] = 0.0
        for x in range(card):
            sums[r] += probabilities[r * card + x]
    for r in range(count):
        possible = sums[r] > 0.0
        shift = log(sums[r]) if possible else 0.0
        messages[r] = tops[r] + weight * shift if possible else -np.inf
        tops[r], sums[r] = shift, 1.0 / sums[r] if possible else 0.0
    for r in range(count):
        for x in range(card):
            logs[r * card + x] -= tops[r]
            probabilities[r * card + x] *= sums[r]


@njit(**OPTIONS)
def backward(at, work):
    """The gradient: g_c in place of the conditionals, and its marginals."""
    logs, probabilities, upward, shifts = work.logs, work.probabilities, work.upward, work.shifts
    upward[:] = 0.0
    shifts[:] = 0.0
    for c in range(len(at.variable) - 1, -1, -1):
        begin, size, card = at.entries[c], at.entries[c + 1] - at.entries[c], at.cards[at.variable[c]]
        sent, parent = at.messages[c], at.parent[c]
        if parent < 0:
            upward[sent] = 1.0
        else:
            above, place = at.entries[parent], at.parent_map[c]
            for i in range(at.entries[parent + 1] - above):
                upward[sent + at.maps[place + i]] += probabilities[above + i]
        entropy = 0.0
        for r in range(size // card):
            share = upward[sent + r]
            for i in range(begin + r * card, begin + (r + 1) * card):
                g = probabilities[i] * share
                probabilities[i] = g
                # 0 log 0 counts as 0; computed, it would be NaN.
                if g > 0.0:
                    entropy -= g * logs[i]
        work.entropies[c] = entropy
        place = at.shift_maps[c]
        if place >= 0:
            for i in range(size):
                shifts[at.shifts[c] + at.maps[place + i]] += probabilities[begin + i]


@njit(cache=True, error_model="numpy", nogil=True)
def advance(source, keys, index, steps, stats):
    """So many draws of each chain, from streams with keys (2, C), beginning with step `index`.

    Args:
        source, keys, index, steps: what is drawn from, and which draws.
        stats: `DrawSums`, whose counts and sums are 0; rows by the variables' first ones.
    """
    at, rows = source.at, np.zeros(stats.rows.shape[0])
    n, split = len(at.cards), len(at.variable) > len(at.cards)
    x, places = np.zeros(n, np.int64), np.zeros(len(at.variable), np.int64)
    mixed = np.zeros(at.cards.max() if n else 1)
    log_weight = 0.0
    for chain in range(keys.shape[1]):
        scale, total, squares = -np.inf, 0.0, 0.0
        for r in range(rows.size):
            rows[r] = 0.0
        for step in range(steps):
            counter = np.uint64(index + step) * np.uint64(n)
            log_weight = _one(source, keys[:, chain], counter, x, places, mixed)
            # A log weight above the bound is a rounding error, and without split buckets all weights equal Z.
            log = min(log_weight, 0.0) if split else 0.0
            bin_index = BINS - 1 if -log >= WIDTH * (BINS - 1) else int(-log / WIDTH)
            # Weights go into bins, since the betting bound needs their empirical distribution and not only their mean
            # (`methods/buckets/betting.py`).
            stats.counts[bin_index, chain] += 1.0
            if log == -np.inf:
                continue
            stats.sums[bin_index, chain] += math.exp(log)
            if scale == -np.inf:
                scale = log
            elif log > scale + _RAISE:
                factor = math.exp(scale - log)
                total, squares, scale = total * factor, squares * factor * factor, log
                for r in range(rows.size):
                    rows[r] *= factor
            weight = math.exp(log - scale)
            total += weight
            squares += weight * weight
            for v in range(n):
                if x[v] > 0:
                    rows[source.firsts[v] + x[v] - 1] += weight
        for v in range(n):
            stats.states[v, chain] = x[v]
        stats.last[chain] = max(min(log_weight, 0.0), DEAD)
        stats.log_weight[chain], stats.log_square[chain] = math.log(total) + scale, math.log(squares) + 2 * scale
        for r in range(rows.size):
            stats.rows[r, chain] = math.log(rows[r]) + scale


@njit(cache=True, error_model="numpy")
def _one(source, key, counter, x, places, mixed):
    """One draw into x; its log weight relative to the bound, -inf where it is dead."""
    at, weights, logs = source.at, source.weights, source.logs
    total = 0.0
    for v in range(len(at.cards) - 1, -1, -1):
        card, first, last = at.cards[v], at.buckets[v], at.buckets[v + 1]
        for s in range(card):
            mixed[s] = 0.0
        for c in range(first, last):
            place = at.entries[c]
            for k in range(at.scope_starts[c], at.scope_starts[c + 1] - 1):
                place += x[at.scope[k]] * at.strides[k]
            places[c] = place
            for s in range(card):
                mixed[s] += weights[c] * source.probabilities[place + s]
        norm = 0.0
        for s in range(card):
            norm += mixed[s]
        if not norm > 0.0:
            return -np.inf
        uniform = np.float64(hash64(key[0], key[1], counter + np.uint64(v)) >> np.uint64(11)) * ULP * norm
        s = 0
        while s < card - 1 and uniform >= mixed[s]:
            uniform -= mixed[s]
            s += 1
        # Rounding left a remainder of probability for the last state: a state that no mini-bucket allows must not be
        # drawn.
        if mixed[s] == 0.0:
            return -np.inf
        x[v] = s
        total -= math.log(mixed[s] / norm)
        for c in range(first, last):
            log = logs[places[c] + s]
            if log == -np.inf:
                return -np.inf
            total += weights[c] * log
    return total
