"""Draws from the mini-buckets, on arrays, and what is kept of them.

Liu, Fisher and Ihler, "Probabilistic variational bounds for graphical models", NIPS 2015: in reverse order, x_v comes
from q = Σ_c w_c p_c(x_v | rest). By Jensen's inequality the weight f(x) / q(x) is at most e^U, always; its mean is Z.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.foundation import deadline
from spinbench.methods.buckets.layout import Array, Buckets, FloatArray

# Number of histogram bins of log weights below the bound; with `WIDTH` they reach 32 nats down.
BINS = 128
# Width of a bin in nats; the last bin also holds all smaller weights, zero weights included.
WIDTH = 0.25


# Log weight of a draw with weight 0: statistics have to be finite, which -inf is not.
DEAD = -1e300


class Draws(NamedTuple):
    """Draws of C chains, one after another in each.

    Attributes:
        states: (n, D, C), in the order of elimination.
        logs: (D, C) log weights relative to the bound, at most 0; -inf of dead draws.
    """

    states: Array
    logs: FloatArray


class DrawSums(NamedTuple):
    """What becomes of draws, reduced over each chain's.

    Attributes:
        log_weight, log_square: (C,) logs of Σ w and Σ w², relative to the bound and its double.
        rows: (Σ (K_v - 1), C) log Σ w of the draws with x_v = 1, 2, …
        counts, sums: (BINS, C) of draws with weights in each bin, and their weights as a share of e^U.
        states, last: (n, C), (C,) the last draws, and their log weights or `DEAD`.
    """

    log_weight: FloatArray
    log_square: FloatArray
    rows: FloatArray
    counts: FloatArray
    sums: FloatArray
    states: Array
    last: FloatArray


def draw(at: Buckets, weights: FloatArray, probabilities: Array, logs: FloatArray, uniform: FloatArray) -> Draws:
    """From uniform numbers (n, D, C)."""
    states = np.zeros(uniform.shape, dtype=np.int64)
    total, alive = np.zeros(uniform.shape[1:]), np.ones(uniform.shape[1:], dtype=bool)
    for v in range(len(at.cards) - 1, -1, -1):
        deadline.check()
        cliques = range(at.buckets[v], at.buckets[v + 1])
        places = [_place(at, c, states) for c in cliques]
        options = np.arange(at.cards[v])[:, None, None]
        shares = [weights[c] * probabilities[place + options] for c, place in zip(cliques, places, strict=True)]
        mixed = np.sum(shares, axis=0, dtype=np.float64)
        sums = np.cumsum(mixed, axis=0)
        alive &= sums[-1] > 0
        reached = (uniform[v] * sums[-1] >= sums[:-1]).sum(axis=0) if at.cards[v] > 1 else np.zeros_like(states[v])
        states[v] = np.where(alive, np.minimum(reached, at.cards[v] - 1), 0)
        chosen = np.take_along_axis(mixed, states[v][None], axis=0)[0]
        alive &= chosen > 0
        parts = sum(weights[c] * logs[place + states[v]] for c, place in zip(cliques, places, strict=True))
        alive &= parts > -np.inf
        ratio = np.where(alive, chosen, 1.0) / np.where(alive, sums[-1], 1.0)
        total += np.where(alive, parts, 0.0) - np.log(ratio)
    return Draws(states, np.where(alive, np.minimum(total, 0.0), -np.inf))


def _place(at: Buckets, c: int, states: Array) -> Array:
    """Where the row of a mini-bucket begins, given the variables that are drawn already."""
    begin, end = at.scope_starts[c], at.scope_starts[c + 1] - 1
    rest = np.tensordot(at.strides[begin:end], states[at.scope[begin:end]], axes=1)
    return np.asarray(at.entries[c] + rest)


def keep(at: Buckets, draws: Draws) -> DrawSums:
    """Statistics of draws."""
    # Without split buckets all weights equal Z up to rounding.
    logs = draws.logs if at.split else np.zeros_like(draws.logs)
    top = logs.max(axis=0)
    shift = np.where(top > -np.inf, top, 0.0)
    weights = np.exp(logs - shift)
    chains = np.arange(logs.shape[1])
    bins = np.minimum(np.where(logs > -np.inf, -logs, np.inf) / WIDTH, BINS - 1).astype(np.int64)
    counts, sums = np.zeros((BINS, len(chains))), np.zeros((BINS, len(chains)))
    np.add.at(counts, (bins, chains), 1.0)
    np.add.at(sums, (bins, chains), np.exp(logs))
    rows = [
        (weights * (draws.states[v] == state)).sum(axis=0)
        for v, card in enumerate(at.cards.tolist())
        for state in range(1, card)
    ]
    with np.errstate(divide="ignore"):
        return DrawSums(
            np.log(weights.sum(axis=0)) + shift,
            np.log((weights**2).sum(axis=0)) + 2 * shift,
            np.log(np.array(rows).reshape(-1, len(chains))) + shift,
            counts,
            sums,
            draws.states[:, -1],
            np.maximum(draws.logs[-1], DEAD),
        )
