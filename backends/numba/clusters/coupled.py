"""Coupling from the past in compiled code, chain by chain."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.api import Backend, Kernel
from spinbench.backends.numba.clusters.moves import sweep
from spinbench.backends.numba.gibbs.form import Steps
from spinbench.backends.numba.gibbs.shared import JIT
from spinbench.backends.numba.simd.functions import ONE, ZERO, sigmoid
from spinbench.backends.numba.simd.random import chain_keys, fill_rows
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.methods.clusters import cftp
from spinbench.methods.clusters.attractive import flipped
from spinbench.methods.clusters.cftp import CouplingFromThePast, Tables
from spinbench.models import PairwiseModel

Array = npt.NDArray[Any]
FARTHEST = np.uint64(cftp.FIRST << cftp.DOUBLINGS)
"""More than the sweeps of any draw: by so much the numbers of one draw are apart from those of the next."""


class Flat(NamedTuple):
    """Of the flipped model, in the order of the tables: as of `moves.Flat`; flip (N,) bool."""

    bounds: Array
    start: Array
    columns: Array
    weights: Array
    biases: Array
    flip: Array


class Asked(NamedTuple):
    """Attributes: averaged: p is summed, else draws; first: sweeps tried first; epochs, each of twice as many."""

    averaged: bool
    first: int
    epochs: int


class Sums(NamedTuple):
    """Attributes: mean, square (C, N) and sweeps, open (C,) float64, added to; draw (C, N) the last."""

    mean: Array
    square: Array
    draw: Array
    sweeps: Array
    open: Array


@nb.njit(**JIT)
def couple(f, asked, step, key, pair, u, x):
    """Draw number `step` of a chain, in both rows of pair (2, N) where they have met: (sweeps made, whether they have).

    u (U,) scratch for the numbers of a sweep, U >= N a multiple of 16; x (N,) for fields. Those of the sweep that is t
    before now depend on step and t alone.
    """
    n, made, back = pair.shape[1], 0, asked.first
    one = ONE(pair[0, 0])
    for _ in range(asked.epochs):
        pair[0, :], pair[1, :] = one, ZERO(one)
        for t in range(back, 0, -1):
            fill_rows(key, (np.uint64(step) * FARTHEST + np.uint64(t)) * np.uint64(u.size), u)
            sweep(f, one, pair[0], u[:n], x)
            sweep(f, one, pair[1], u[:n], x)
        made += back
        apart = 0
        for i in range(n):
            apart += pair[0, i] != pair[1, i]
        if apart == 0:
            return made, True
        back *= 2
    return made, False


@nb.njit(**JIT)
def run_draws(f, asked, steps, keys, sums, u):
    """Draws number first … end - 1 of all chains; keys (C, 2) uint64, u as of `couple`."""
    n = f.biases.size
    pair, x = np.empty((2, n), dtype=u.dtype), np.empty(n, dtype=u.dtype)
    for c in range(len(keys)):
        for step in range(steps.first, steps.end):
            made, met = couple(f, asked, step, keys[c], pair, u, x)
            sums.sweeps[c] += made
            sums.open[c] += not met
            s = pair[0]
            for i in range(n):
                here = f.biases[i]
                for e in range(f.start[i], f.start[i + 1]):
                    here += f.weights[e] * s[f.columns[e]]
                own, p = np.float64(s[i]), np.float64(sigmoid(here))
                if f.flip[i]:
                    own, p = 1.0 - own, 1.0 - p
                seen = p if asked.averaged else own
                sums.mean[c, i] += seen
                sums.square[c, i] += seen * seen
                sums.draw[c, i] = own


@dataclass
class DrawState:
    """Attributes: step: draws so far of each chain; keys: (C, 2) uint64."""

    step: int
    keys: Array


class CouplingKernel(Kernel):
    """`CouplingFromThePast` with the same statistics as its program; float32 and float64."""

    def __init__(self, method: CouplingFromThePast, backend: Backend, model: PairwiseModel, tables: Tables) -> None:
        real = np.dtype(backend.precision)
        place = np.argsort(tables.order)
        turned = flipped(model, tables.flip[place] > 0)
        rows = compressed_rows(turned, tables.order)
        self._averaged = method.marginals == "rao_blackwell"
        self._u = np.empty(-(-model.num_variables // 16) * 16, dtype=real)
        self._flat = Flat(
            bounds=tables.bounds.astype(np.int64),
            start=rows.start.astype(np.int64),
            columns=rows.columns.astype(np.uint32),
            weights=rows.weights.astype(real),
            biases=turned.biases[tables.order].astype(real),
            flip=tables.flip > 0,
        )

    def init(self, seed: int, start: Array) -> DrawState:
        """Wherever chains start."""
        return DrawState(0, chain_keys(seed, start.shape[1]).T.copy())

    def warm(self, state: DrawState, steps: int) -> DrawState:
        """There is nothing to burn in."""
        return state

    def advance(self, state: DrawState, steps: int) -> tuple[DrawState, dict[str, Array]]:
        shape = len(state.keys), len(self._flat.biases)
        asked = Asked(self._averaged, cftp.FIRST, cftp.DOUBLINGS)
        sums = Sums(np.zeros(shape), np.zeros(shape), np.zeros(shape), np.zeros(shape[0]), np.zeros(shape[0]))
        run_draws(self._flat, asked, Steps(state.step, state.step + steps), state.keys, sums, self._u)
        state.step += steps
        return state, {
            "mean": sums.mean.T,
            "square": sums.square.T,
            "draw": sums.draw.T,
            "sweeps": sums.sweeps,
            "open": sums.open,
        }
