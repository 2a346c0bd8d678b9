"""Two Gibbs chains that are driven by the same random numbers, so that they meet.

Chain X is L sweeps ahead of chain Y, and both begin with independent draws of the same law of starts. One number
updates a site of both, by the maximal coupling of their conditionals p and q: with probability Σ_k min(p_k, q_k) both
take the same state. Where all states are alike they stay so. Biswas, Jacob and Vanetti, "Estimating convergence of
Markov chains with L-lag couplings", NeurIPS 2019.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import FactorTables

IntArray = npt.NDArray[np.int64]
FloatArray = npt.NDArray[np.float64]

_SHIFTS = 30, 27, 31
_FACTORS = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ULP = 2.0**-53


class Pairs(NamedTuple):
    """P pairs of chains on their way; arrays are written to.

    Attributes:
        keys: (2, P) uint64 streams of random numbers: number k is the hash of start + k gamma, gamma odd.
        x, y: (P, N) int64 states, y being L sweeps behind.
        met: (P,) int64 sweeps of X after which both were the same for the first time; -1: not yet.
    """

    keys: npt.NDArray[np.uint64]
    x: IntArray
    y: IntArray
    met: IntArray


def pairs_of(seed: Any, x: npt.ArrayLike, y: npt.ArrayLike) -> Pairs:
    """At starts (N, P) of both chains."""
    ahead, behind = (np.ascontiguousarray(np.asarray(states, dtype=np.int64).T) for states in (x, y))
    keys = np.random.SeedSequence(seed).generate_state(2 * len(ahead), np.uint64).astype(np.uint64).reshape(2, -1)
    keys[1] |= np.uint64(1)
    return Pairs(keys, ahead, behind, np.full(len(ahead), -1, dtype=np.int64))


def advance(t: FactorTables, order: IntArray, pairs: Pairs, lag: int, first: int, last: int) -> None:
    """Sweeps first … last of X, on arrays; pairs that have met stay where they are.

    Args:
        t: the tables of the model.
        order: (N',) variables in the order of a sweep.
        pairs: after sweep first - 1.
        lag: L; sweep s of X is sweep s - L of Y.
        first, last: numbers of sweeps, from 1 on.
    """
    places = [_places(t, v) for v in order.tolist()]
    for sweep in range(first, last + 1):
        open_ = np.flatnonzero(pairs.met < 0)
        if not open_.size:
            return
        keys, x, y = pairs.keys[:, open_], pairs.x[open_].T, pairs.y[open_].T
        for k, (v, near) in enumerate(zip(order.tolist(), places, strict=True)):
            u = _uniform(keys, sweep * len(order) + k)
            p = _conditionals(t, v, near, x)
            q = _conditionals(t, v, near, y) if sweep > lag else p
            x[v], fresh = coupled_draws(p, q, u)
            if sweep > lag:
                y[v] = fresh
        pairs.x[open_], pairs.y[open_] = x.T, y.T
        if sweep > lag:
            pairs.met[open_[(x == y).all(axis=0)]] = sweep


def coupled_draws(p: FloatArray, q: FloatArray, u: FloatArray) -> tuple[IntArray, IntArray]:
    """States (P,) of two laws (K, P) by one number each, the same with the largest possible probability."""
    least = np.minimum(p, q)
    overlap = least.sum(axis=0)
    both = _inverted(least, u)
    rest = u - overlap
    same = rest < 0
    return np.where(same, both, _inverted(p - least, rest)), np.where(same, both, _inverted(q - least, rest))


def _inverted(weights: FloatArray, u: FloatArray) -> IntArray:
    """The first state at which the sum of weights passes u."""
    passed = np.cumsum(weights, axis=0) <= u
    return np.asarray(np.minimum(passed.sum(axis=0), len(weights) - 1))


def _places(t: FactorTables, v: int) -> list[tuple[int, int, list[tuple[int, int]]]]:
    """Of each factor of v: where it begins, v's stride, and its other variables with theirs."""
    found = []
    for place in range(t.starts[v], t.starts[v + 1]):
        f = int(t.factors[place])
        scope = range(t.scope_starts[f], t.scope_starts[f + 1])
        others = [(int(t.scope_variables[j]), int(t.scope_strides[j])) for j in scope if t.scope_variables[j] != v]
        found.append((int(t.offsets[f]), int(t.strides[place]), others))
    return found


def _conditionals(t: FactorTables, v: int, near: list[tuple[int, int, list[tuple[int, int]]]], x: IntArray) -> Any:
    """(K, P) p(x_v | rest)."""
    states = np.arange(t.cardinalities[v])[:, None]
    logs = np.zeros((len(states), x.shape[1]))
    for begin, stride, others in near:
        base = np.full(x.shape[1], begin)
        for u, step in others:
            base = base + step * x[u]
        logs += t.values[base + states * stride]
    weights = np.exp(logs - logs.max(axis=0))
    return weights / weights.sum(axis=0)


def _uniform(keys: npt.NDArray[np.uint64], counter: int) -> FloatArray:
    """Number `counter` of each stream, a multiple of 2^-53 in [0, 1)."""
    with np.errstate(over="ignore"):
        z = keys[0] + keys[1] * np.uint64(counter)
        for shift, factor in zip(_SHIFTS, (*_FACTORS, np.uint64(1)), strict=True):
            z = (z ^ (z >> np.uint64(shift))) * factor
    return np.asarray((z >> np.uint64(11)) * _ULP)
