"""Models of few neighbours, whose chains are packed into words."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from spinbench.models import PairwiseModel
from spinbench.testing import limits
from spinbench.testing.laws.cases import enumerate_law


def ising(n, edges, couplings, fields, name):
    """In spins ±1: Σ J_ij s_i s_j + Σ h_i s_i."""
    edges, couplings = np.array(edges), np.broadcast_to(couplings, len(edges))
    biases = 2 * np.broadcast_to(fields, n).astype(float)
    np.subtract.at(biases, edges.ravel(), 2 * np.repeat(couplings, 2))
    return PairwiseModel.from_edges(biases, edges, 4 * couplings, name=name)


def lattice(shape, periodic=False):
    """Edges between nearest neighbours."""
    index = np.arange(np.prod(shape)).reshape(shape)
    edges = []
    for axis in range(len(shape)):
        ends = np.roll(index, -1, axis) if periodic else np.delete(index, 0, axis)
        begins = index if periodic else np.delete(index, -1, axis)
        edges += zip(begins.ravel().tolist(), ends.ravel().tolist(), strict=True)
    return edges


def random_couplings(edges, seed=2, scale=0.6):
    return scale * np.random.default_rng(seed).normal(size=len(edges))


def random_signs(edges, size=0.5, seed=3):
    return size * np.random.default_rng(seed).choice([-1, 1], size=len(edges))


SQUARE, TORUS, CUBIC = lattice((3, 3)), lattice((3, 4), periodic=True), lattice((2, 2, 3))
CHIMERA = [(i, 4 + j) for i in range(4) for j in range(4)]
STAR = [(0, i) for i in range(1, 7)]
HUB = [(0, i) for i in range(1, 11)]
# All pairs but a matching.
EIGHT = [(i, j) for i in range(10) for j in range(i + 1, 10) if i // 2 != j // 2]
RNG = np.random.default_rng(1)
MODELS = {
    "±J grid": ising(9, SQUARE, random_signs(SQUARE), 0.2, "±J grid"),
    "grid": ising(9, SQUARE, random_couplings(SQUARE), 0.3 * RNG.normal(size=9), "grid"),
    "torus": ising(12, TORUS, random_couplings(TORUS), 0.2 * RNG.normal(size=12), "torus"),
    "uniform torus": ising(12, TORUS, 0.3, 0.0, "uniform torus"),
    "±J torus with fields": ising(12, TORUS, random_signs(TORUS), 0.4 * RNG.normal(size=12), "±J"),
    "cubic ±J": ising(12, CUBIC, random_signs(CUBIC), 0.1, "cubic"),
    "cubic": ising(12, CUBIC, random_couplings(CUBIC), 0.1, "cubic"),
    "Chimera cell": ising(8, CHIMERA, random_couplings(CHIMERA), 0.2, "cell"),
    "six neighbours": ising(7, STAR, random_couplings(STAR), 0.2, "star"),
    "six neighbours ±J": ising(7, STAR, random_signs(STAR), 0.2, "star"),
    "ten neighbours ±J": ising(11, HUB, random_signs(HUB, 0.3), 0.2, "hub"),
    "eight neighbours ±J": ising(10, EIGHT, random_signs(EIGHT, 0.15), 0.2, "matching left out"),
    "diluted ±J torus": ising(12, TORUS, (np.arange(24) % 3 > 0) * random_signs(TORUS), 0.2, "diluted"),
    "isolated and apart": ising(10, [(0, 1), (1, 2), (4, 5), (5, 6), (4, 6)], [0.5, -0.7, 0.3, 0.4, 0.9], 0.3, "parts"),
    "no couplings": PairwiseModel.from_edges([0.3, -2.0, 0.0, 22.0, -21.0], [], [], name="alone"),
}


def tempered(model, beta):
    return PairwiseModel.from_edges(beta * model.biases, model.edges, beta * model.couplings, name=model.name)


def require_law(engine, state, model):
    states = engine.states(state).astype(np.int64)
    counts = np.bincount(2 ** np.arange(len(states)) @ states, minlength=2 ** len(states))
    limits.require_law(f"{model.name}: the law of the chains", counts, enumerate_law(model).probabilities)


def conditionals_of_a_sweep(model, tables, before, after):
    """(N, C) p(s_i = 1 | rest) as of the updates of a sweep, by its states before and after."""
    sweep, order = tables.sweep, tables.order
    bounds = np.cumsum([0, *(len(block.biases) for block in sweep.first + sweep.middle + sweep.last)])
    states, p = before.astype(float), np.empty(before.shape)
    for low, high in pairwise(bounds):
        rows = order[low:high]
        p[rows] = 1 / (1 + np.exp(-(model.biases[rows, None] + model.dense()[rows] @ states)))
        states[rows] = after[rows]
    return p
