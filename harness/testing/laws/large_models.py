"""Larger models whose answers are known by their form, and the names of all whose answers are known."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.models import PairwiseModel
from spinbench.testing.laws import graphs
from spinbench.testing.laws.cases import (
    CASES,
    START_STREAM,
    FloatArray,
    SolvedModel,
    enumerate_law,
    higher_order_model,
    law,
    ring_model,
    three_state_model,
)

# Variables of a very large model are in random order within windows of this size.
WINDOW = 4000
# Coupling of a variable with n neighbours, times √n.
HUB_COUPLING = 3.5
# Numbers of rungs and leaves for which variables, and one variable's neighbours, exactly fill vectors or just miss it.
ODD = {
    f"{rungs} rungs, {leaves} leaves": (rungs, leaves)
    for rungs, leaves in (
        *((2, 5), (4, 6), (3, 8), (3, 16), (9, 8), (10, 10), (8, 15), (11, 12), (13, 9), (15, 33), (23, 16), (20, 24)),
        *((30, 31), (31, 32)),
    )
}
SETTLED = "ring, the last settled early"
# States of a rung's two variables.
SIDE = ((0, 0), (0, 1), (1, 0), (1, 1))


class _Part(NamedTuple):
    """A model apart from the others, with its answers.

    Attributes:
        fields: (n,).
        edges: (e, 2) int64; couplings: (e,).
        log_z: of it alone.
        marginals: (n,) p(s_i = 1).
    """

    fields: FloatArray
    edges: npt.NDArray[np.int64]
    couplings: FloatArray
    log_z: float
    marginals: FloatArray


@cache
def find_solved_model(name: str) -> SolvedModel:
    """The model of this name, one of `CASES` and `MODELS`."""
    return law(name) if name in CASES else MODELS[name]()


def _ladder_and_star_model(rungs: int, leaves: int, name: str) -> SolvedModel:
    """A ladder and a star in random order: loops, and a variable with more neighbours than tables of rows hold.

    Without leaves the star is one variable apart.
    """
    rng = np.random.default_rng(17)
    parts = [_ladder_part(rungs, rng), _star_part(leaves, rng)]
    first = np.cumsum([0, *(part.fields.size for part in parts)])
    place = rng.permutation(first[-1])
    fields, marginals = np.empty(first[-1]), np.empty(first[-1])
    fields[place] = np.concatenate([part.fields for part in parts])
    marginals[place] = np.concatenate([part.marginals for part in parts])
    edges = np.concatenate([place[part.edges + at] for part, at in zip(parts, first, strict=False)])
    model = PairwiseModel.from_edges(fields, edges, np.concatenate([part.couplings for part in parts]), name=name)
    return SolvedModel(model, sum(part.log_z for part in parts), marginals)


def _ladder_part(rungs: int, rng: np.random.Generator) -> _Part:
    """Two rails, the variables 0, 2, … and 1, 3, …, and their rungs; messages go from rung to rung."""
    biases, rung = 0.5 * rng.normal(size=(rungs, 2)), 0.7 * rng.normal(size=rungs)
    rails = 0.7 * rng.normal(size=(rungs - 1, 2))
    states = np.array(SIDE, dtype=np.float64)
    rung_weights = biases @ states.T + rung[:, None] * states.prod(axis=1)
    between = np.einsum("tr,ir,jr->tij", rails, states, states)
    ahead, back = np.zeros((rungs, 4)), np.zeros((rungs, 4))
    for t in range(1, rungs):
        ahead[t] = np.logaddexp.reduce((ahead[t - 1] + rung_weights[t - 1])[:, None] + between[t - 1], axis=0)
        u = rungs - 1 - t
        back[u] = np.logaddexp.reduce((back[u + 1] + rung_weights[u + 1])[None, :] + between[u], axis=1)
    joint = ahead + rung_weights + back
    log_z = float(np.logaddexp.reduce(joint[0]))
    left = np.arange(0, 2 * rungs, 2)
    sides = (left, left + 1), (left[:-1], left[1:]), (left[:-1] + 1, left[1:] + 1)
    edges = np.concatenate([np.column_stack(ends) for ends in sides])
    couplings = np.concatenate([rung, rails[:, 0], rails[:, 1]])
    return _Part(biases.ravel(), edges, couplings, log_z, (np.exp(joint - log_z) @ states).ravel())


def _star_part(leaves: int, rng: np.random.Generator) -> _Part:
    """Variable 0 with many neighbours, of which together it knows as much as of a few; 1 four times out of five."""
    leaf_fields, odds = 0.3 * rng.normal(size=leaves) - 0.4, 4.0
    couplings = np.full(leaves, HUB_COUPLING / max(leaves, 1) ** 0.5)
    log_sum_without_hub, log_sum_with_hub = np.logaddexp(0, leaf_fields), np.logaddexp(0, leaf_fields + couplings)
    fields = np.array([np.log(odds) - (log_sum_with_hub - log_sum_without_hub).sum(), *leaf_fields])
    p = np.exp(leaf_fields - log_sum_without_hub) / (1 + odds) + np.exp(
        leaf_fields + couplings - log_sum_with_hub
    ) * odds / (1 + odds)
    edges = np.column_stack([np.zeros(leaves, dtype=np.int64), np.arange(1, leaves + 1)])
    return _Part(
        fields, edges, couplings, float(log_sum_without_hub.sum() + np.log1p(odds)), np.array([odds / (1 + odds), *p])
    )


def _complete_model(size: int) -> SolvedModel:
    """All pairs alike, of variables of two kinds: the law depends on two counts."""
    biases, coupling = np.array([0.9, -0.3]), -0.08
    counts = np.arange(size + 1)
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(counts[1:]))])
    ways = log_factorials[size] - log_factorials[counts] - log_factorials[size - counts]
    ones = counts[:, None] + counts[None, :]
    weights = ways[:, None] + ways[None, :] + coupling * ones * (ones - 1) / 2
    weights = weights + biases[0] * counts[:, None] + biases[1] * counts[None, :]
    log_z = float(np.logaddexp.reduce(weights, axis=None))
    p = np.exp(weights - log_z)
    means = np.array([p.sum(axis=1) @ counts, p.sum(axis=0) @ counts]) / size
    kinds = np.arange(2 * size) % 2
    edges = np.argwhere(np.triu(np.ones((2 * size, 2 * size)), 1))
    model = PairwiseModel.from_edges(biases[kinds], edges, np.full(len(edges), coupling), name=f"{2 * size}, dense")
    return SolvedModel(model, log_z, means[kinds])


def _independent_pairs_model(count: int) -> SolvedModel:
    """Pairs alike, in random order, that know nothing of each other."""
    bias, coupling = -0.2, 0.4
    place = np.random.default_rng(31).permutation(2 * count).reshape(count, 2)
    log_z = float(np.logaddexp.reduce([0, bias, bias, 2 * bias + coupling]))
    p = np.exp(np.logaddexp(bias, 2 * bias + coupling) - log_z)
    fields, couplings = np.full(2 * count, bias), np.full(count, coupling)
    model = PairwiseModel.from_edges(fields, np.sort(place), couplings, name=f"{count} pairs")
    return SolvedModel(model, count * log_z, np.full(2 * count, p))


def _independent_paths_model(count: int, length: int, kinds: int) -> SolvedModel:
    """Paths of a few kinds that know nothing of each other, in random order within windows, so that a wrong index makes
    a window wrong; 80,000 variables have more than 2^31 pairs, and more than 2^16 edges."""
    rng = np.random.default_rng(37)
    fields, couplings = 0.5 * rng.normal(size=(kinds, length)), 0.7 * rng.normal(size=(kinds, length - 1))
    states = ((np.arange(2**length)[:, None] >> np.arange(length)) & 1).astype(np.float64)
    weights = fields @ states.T + couplings @ (states[:, 1:] * states[:, :-1]).T
    log_z = np.logaddexp.reduce(weights, axis=1)
    marginals = np.exp(weights - log_z[:, None]) @ states
    kind, every = np.arange(count) % kinds, np.arange(count * length).reshape(-1, WINDOW)
    place = rng.permuted(every, axis=1).reshape(count, length)
    biases, exact = np.empty(count * length), np.empty(count * length)
    biases[place], exact[place] = fields[kind], marginals[kind]
    edges = np.stack([place[:, 1:], place[:, :-1]], axis=-1).reshape(-1, 2)
    model = PairwiseModel.from_edges(biases, edges, couplings[kind].ravel(), name=f"{count * length} variables")

    def draw(chains: int, seed: int) -> npt.NDArray[np.int8]:
        shares = np.cumsum(np.exp(weights - log_z[:, None]), axis=1)[kind]
        u = np.random.default_rng((seed, START_STREAM)).random((chains, count, 1)) * shares[:, -1:]
        states_of_chains = np.empty((count * length, chains), dtype=np.int8)
        states_of_chains[place] = states[(u > shares).sum(axis=-1)].transpose(1, 2, 0)
        return states_of_chains

    return SolvedModel(model, float(log_z[kind].sum()), exact, draw)


def _slow_pair_model() -> SolvedModel:
    """Two variables that are hardly ever unlike, and more often 1 than 0: at another temperature not as often."""
    return enumerate_law(PairwiseModel.from_edges([-1.5, -1.5], [(0, 1)], [4.0], name="slow pair"))


def _strong_fields_model() -> SolvedModel:
    """Pairs in one state, but for e^-100: of the first twelve both are 1, of the others both 0. What leaves it draws
    its neighbour after it, and both stay there."""
    biases = np.repeat([-100.0, -200.0], [24, 8])
    model = PairwiseModel.from_edges(biases, np.arange(32).reshape(-1, 2), np.full(16, 300.0), name="pinned")
    return SolvedModel(model, 12 * 100.0, np.repeat([1.0, 0.0], [24, 8]))


def _tree_model() -> SolvedModel:
    """Two trees of variables of two states, one with a long branch along which what is known fades slowly."""
    rng = np.random.default_rng(21)
    edges = [(0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (6, 7), *((k, k + 1) for k in range(7, 13))]
    return enumerate_law(
        PairwiseModel.from_edges(0.8 * rng.normal(size=14), edges, 1.4 * rng.normal(size=len(edges)), name="tree")
    )


def _early_end_model() -> SolvedModel:
    """A ring around which messages go many times, and behind it a pair and a variable whose states are all alike, so
    that they are done at the start. Naive mean field has one fixed point, too."""
    rng = np.random.default_rng(3)
    edges = np.array([(0, 1), (1, 2), (2, 3), (3, 4), (0, 4), (5, 6)])
    couplings = np.array([*[3.2] * 5, 1.0])
    fields = np.append(0.6 * rng.normal(size=5), np.zeros(3)) - 0.5 * np.bincount(
        edges.ravel(), np.repeat(couplings, 2), minlength=8
    )
    return enumerate_law(PairwiseModel.from_edges(fields, edges, couplings, name=SETTLED))


def _long_path_model() -> SolvedModel:
    """A path along which what is known of its first variable hardly fades: m_i = tanh(h) tanh(J)^i of spins ±1."""
    n, field, coupling = 60, 1.0, 3.0
    biases = np.full(n, -4 * coupling)
    biases[[0, -1]] += 2 * coupling
    biases[0] += 2 * field
    edges = [(k, k + 1) for k in range(n - 1)]
    model = PairwiseModel.from_edges(biases, edges, np.full(n - 1, 4 * coupling), name="long tree")
    spins = np.log(2 * np.cosh(field)) + (n - 1) * np.log(2 * np.cosh(coupling))
    marginals = (1 + np.tanh(field) * np.tanh(coupling) ** np.arange(n)) / 2
    return SolvedModel(model, float(spins + field - (n - 1) * coupling), marginals)


MODELS: dict[str, Callable[[], SolvedModel]] = {
    "101 variables": lambda: _ladder_and_star_model(50, 0, "101 variables"),
    "1001 variables": lambda: _ladder_and_star_model(350, 300, "1001 variables"),
    **{name: partial(_ladder_and_star_model, *counts, name) for name, counts in ODD.items()},
    "80 variables, dense": lambda: _complete_model(40),
    "20 variables, dense": lambda: _complete_model(10),
    "88 variables of several states": lambda: graphs.rings_model(22, "88 variables of several states"),
    "three states": lambda: enumerate_law(three_state_model()),
    "one to nine states": graphs.one_to_nine_states_model,
    "orders three and five": lambda: enumerate_law(higher_order_model()),
    "ring of five": lambda: enumerate_law(ring_model()),
    "three states, apart": graphs.two_modes_model,
    "orders three and four": graphs.orders_three_and_four_model,
    "zeros": graphs.zeros_model,
    "a state of no weight": graphs.weightless_state_model,
    "wide tables": graphs.huge_log_tables_model,
    "eleven neighbours": graphs.complete_model,
    "4000 variables": lambda: _independent_paths_model(500, 8, 4),
    "80000 variables": lambda: _independent_paths_model(10_000, 8, 4),
    "pinned": _strong_fields_model,
    "111 pairs": lambda: _independent_pairs_model(111),
    "slow pair": _slow_pair_model,
    "tree": _tree_model,
    "long tree": _long_path_model,
    SETTLED: _early_end_model,
    "tree of factors": graphs.factor_tree_model,
    "tree with zeros": graphs.tree_model_with_zeros,
}
SIZES = ("80 variables, dense", "101 variables", "1001 variables", "88 variables of several states")
