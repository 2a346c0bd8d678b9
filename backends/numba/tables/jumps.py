"""The jumps of `zanella` in compiled code: chain by chain, all jumps of a step in one call."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Array, Precision
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.tables.array_sweeps import CALLED, find_logits, small_model_tables
from spinbench.methods.baselines.jumps import MIN_TOTAL_RATE, Jumps, State, Tables
from spinbench.methods.baselines.zanella import Zanella


class CompiledJumps(Jumps):
    """Of NumPy arrays."""

    def make_jumps(self, t: Tables, u: Array, x: Array) -> State:
        chains, max_states = u.shape[1], t.exists.shape[1]
        logits = np.zeros((len(t.values), t.exists.size, chains), u.dtype)
        for section in t.sections:
            for values, sums in zip(t.values, logits, strict=True):
                _sum_entries(values, section, x, sums)
        states, logits = x.T.copy(), logits.transpose(2, 0, 1).copy()
        times, (w, stuck) = np.zeros((chains, t.exists.size), u.dtype), np.zeros((2, chains), u.dtype)
        _walk(t.neighbourhoods, t.values, t.last, u, states, logits, times, w, stuck)
        return State(states.T.copy(), times[:, t.variables * max_states + t.states].T, w, stuck)


def compile_jumps(precision: Precision) -> None:
    """Compile what `CompiledJumps` calls, or find it compiled."""
    backend, t = small_model_tables(precision, Zanella().plan)
    CompiledJumps(backend).make_jumps(t, np.zeros((1, 1), dtype=precision), np.zeros((2, 1), dtype=np.int32))


@njit(**JIT)
def _sum_entries(values, section, x, sums):
    """Sums (N K, C) of the entries at the states of all variables of a section, given the rest."""
    max_states, at, shift = len(sums) // len(x), np.empty(x.shape[1], np.int32), np.zeros(x.shape[1], np.int32)
    for b in range(section.rows.shape[0]):
        for i in range(section.rows.shape[1]):
            first = section.rows[b, i] * max_states
            find_logits(values, section, b, i, shift, x, at, sums[first : first + section.states[b, -1, i] + 1])


@njit(**JIT)
def _walk(near, values, last, u, x, logits, times, w, stuck):
    """Of chains x (C, N) with logits (C, P, N K) of P tables; times (C, N K) in states are added to."""
    count, max_states = len(last), times.shape[1] // len(last)
    rates, sums, since = np.zeros((count, max_states), u.dtype), np.empty(count, u.dtype), np.empty(count, u.dtype)
    for c in range(len(x)):
        since[:] = 0
        for v in range(count):
            _set_rates(v, last, x[c], logits[c], rates, sums)
        for j in range(len(u)):
            total = sums[0]
            for v in range(1, count):
                total += sums[v]
            # 1 / total would overflow if all rates are 0.
            if total > MIN_TOTAL_RATE:
                # The mean of the exponential holding time replaces a draw of it: the same law of states with less noise
                # (Zanella 2020).
                w[c] += 1 / total
                v, new = _choose_jump(u[j, c] * total, sums, rates)
                times[c, v * max_states + x[c, v]] += w[c] - since[v]
                since[v] = w[c]
                _jump(v, new, near, values, last, x[c], logits[c], rates, sums)
            else:
                w[c] += 1
                stuck[c] += 1
        for v in range(count):
            times[c, v * max_states + x[c, v]] += w[c] - since[v]


@njit(**CALLED)
def _choose_jump(rest, sums, rates):
    """(variable, state) where the sum of rates passes `rest`; rounding ends at none that has no rate."""
    v, rest = _find_passing(rest, sums)
    return v, _find_passing(rest, rates[v])[0]


@njit(**CALLED)
def _find_passing(rest, rates):
    """(place at which the sum of rates passes `rest`, what is left of that there)."""
    place = -1
    for k in range(len(rates)):
        if rates[k] > 0:
            place = k
            if rest < rates[k]:
                break
            rest -= rates[k]
    return place, rest


@njit(**CALLED)
def _jump(v, new, near, values, last, x, logits, rates, sums):
    """To a new state of variable v; x (N,), logits (P, N K), rates (N, K) and their sums (N,)."""
    old, x[v] = x[v], new
    for m in range(near.rows.shape[1]):
        u = near.rows[v, m]
        for f in range(near.bases.shape[2]):
            at, step = near.bases[v, m, f], near.moved[v, m, f]
            for o in range(near.others.shape[1]):
                at += near.steps[v, o, m, f] * x[near.others[v, o, m, f]]
            # Padding of smaller neighbourhoods: a factor with step 0 is skipped.
            for k in range(last[u, 0] + 1 if step else 0):
                place, state = at + k * near.strides[v, m, f], u * rates.shape[1] + k
                for part in range(len(values)):
                    logits[part, state] += values[part, place + new * step] - values[part, place + old * step]
        _set_rates(u, last, x, logits, rates, sums)


@njit(**CALLED)
def _set_rates(u, last, x, logits, rates, sums):
    """Barker's, of the states of variable u, and their sum."""
    first = u * rates.shape[1]
    sums[u] = 0
    for k in range(last[u, 0] + 1):
        change = logits[0, first + k] - logits[0, first + x[u]]
        blocked = k == x[u] or (len(logits) > 1 and logits[-1, first + k] > 0.5)
        # Barker's rate σ(change), with exponentials of negative numbers only, which do not overflow.
        rates[u, k] = 0 if blocked else math.exp(min(change, type(change)(0))) / (1 + math.exp(-abs(change)))
        sums[u] += rates[u, k]
