"""Half of the chains of a sampler start from states that grow from hubs, each of which chooses a side for itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, softmax

import spinbench
from spinbench.inference.initial_states import random_start, spread_starts
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.starts import grow, parity_starts
from spinbench.models import FactorGraph, PairwiseModel, generators
from spinbench.models.convert import to_pairwise
from tests.helpers.planted_parities import planted_parities

CHAINS = 20_000
# Five standard errors of a frequency of so many draws, at most; more where some of them are looked at.
MOST = 5 * 0.5 / np.sqrt(CHAINS)


def grown(model: PairwiseModel | FactorGraph) -> np.ndarray:
    start = random_start(model, CHAINS, seed=3)
    grow(model, start, np.random.default_rng(4))
    return start


def test_leaves_are_drawn_given_their_hub_and_the_hub_is_uniform() -> None:
    biases, couplings = np.array([3.0, 0.5, -1.0, 2.0, 0.0]), np.array([1.0, -2.0, 3.0, -1.0])
    star = PairwiseModel.from_edges(biases, [(0, 1), (0, 2), (0, 3), (0, 4)], couplings)
    start = grown(star)
    assert abs(start[0].mean() - 0.5) <= MOST
    for hub in (0, 1):
        found = start[1:, start[0] == hub].mean(axis=1)
        assert np.abs(found - expit(biases[1:] + hub * couplings)).max() <= 1.5 * MOST


def test_what_is_farther_is_drawn_given_what_has_grown_in_every_part() -> None:
    """Two chains, and a variable alone: each part begins somewhere; all neighbours agree with what was before them."""
    edges = [(0, 1), (1, 2), (2, 3), (4, 5)]
    start = grown(PairwiseModel.from_edges(np.full(7, -20.0), edges, np.full(4, 40.0)))
    for i, j in edges:
        assert (start[i] == start[j]).all()
    assert np.abs(start[[0, 4, 6]].mean(axis=1) - 0.5).max() <= MOST
    assert abs((start[0] == start[4]).mean() - 0.5) <= MOST


def test_states_of_a_factor_graph_are_drawn_given_the_hub_what_comes_later_summed_out() -> None:
    rng = np.random.default_rng(5)
    pair, own, three = rng.normal(size=(4, 3)), rng.normal(size=4), rng.normal(size=(2, 3, 2))
    tables = [((1, 0), pair), ((1,), own), ((2, 0, 3), three), ((0, 4), np.zeros((3, 2))), ((0, 5), np.zeros((3, 2)))]
    start = grown(FactorGraph.from_log_tables([3, 4, 2, 2, 2, 2], tables))
    for hub in range(3):
        here = start[:, start[0] == hub]
        assert abs(here.shape[1] / CHAINS - 1 / 3) <= MOST
        law = softmax(pair[:, hub] + own)
        assert np.abs(np.bincount(here[1], minlength=4) / here.shape[1] - law).max() <= 2 * MOST
        assert abs(here[2].mean() - np.exp(three[1, hub]).sum() / np.exp(three[:, hub]).sum()) <= 2 * MOST
        assert abs(here[3].mean() - np.exp(three[:, hub, 1]).sum() / np.exp(three[:, hub]).sum()) <= 2 * MOST


def test_groups_keep_one_member_which_is_drawn_given_the_hub() -> None:
    """The hub among three bits each: the law of the second variable is the softmax of its members' fields."""
    table = np.random.default_rng(6).normal(size=(3, 3))
    graph = FactorGraph.from_log_tables([3] * 4, [((0, 1), table), ((0, 2), table), ((0, 3), table)])
    model = to_pairwise(graph)
    start = grown(model)
    members = np.array(model.groups)
    assert (start[members].sum(axis=1) == 1).all()
    states = start[members].argmax(axis=1)
    for hub in range(3):
        found = np.bincount(states[2, states[0] == hub], minlength=3)
        assert np.abs(found / found.sum() - softmax(table[hub])).max() <= 2 * MOST


def test_every_other_chain_has_grown_and_methods_without_chains_start_as_before() -> None:
    model = generators.grid(5, 5)
    uniform, mixed = random_start(model, 9, 1), spread_starts(model, 9, 1, sampler=True)
    np.testing.assert_array_equal(mixed[:, ::2], uniform[:, ::2])
    assert (mixed[:, 1::2] != uniform[:, 1::2]).any(axis=0).all()
    np.testing.assert_array_equal(spread_starts(model, 9, 1, sampler=False), uniform)


@pytest.mark.parametrize("scan", ["raster", "chromatic"])
def test_the_wells_of_a_hub_show(scan: str) -> None:
    """From uniform leaves all chains fall into one well of the hub, which is not the heavier one."""
    rng = np.random.default_rng(92)
    n, couplings = 150, 3 * rng.normal(size=149)
    couplings -= 2 * (couplings.sum() + 3.8 * np.sqrt((couplings**2).sum())) / (2 * 149)
    star = PairwiseModel.from_edges(rng.normal(size=n), [(0, i) for i in range(1, n)], couplings)
    for samples in (20, 200):
        for seed in range(3):
            found = spinbench.run(star, budget=samples, seed=seed, chains=16, log_z="none", scan=scan)
            assert found.status == "marginals not mixed"


@pytest.mark.parametrize(("variables", "triples"), [(80, 96), (60, 40)])
def test_planted_parities_all_hold(variables: int, triples: int) -> None:
    flat = factor_tables(planted_parities(variables, triples, 1.1))
    x = parity_starts(flat, 3, np.random.default_rng(0))
    assert x.shape == (variables, 3)
    np.testing.assert_allclose(flat.values[flat.positions(x)].sum(axis=0), 1.1 * triples)
    assert (x[:, 0] == x[:, 1]).all() == (triples > variables)  # what is not settled is random


@pytest.mark.parametrize(("broken", "field"), [(6, 0.0), (0, 1.4), (3, 0.4)])
def test_a_planted_state_is_found_that_some_parities_and_fields_contradict(broken: int, field: float) -> None:
    """Each start is at least as likely as the planted state, of which all triples but the first few hold."""
    variables, triples, beta = 70, 110, 1.4
    whole = planted_parities(variables, triples, beta)
    planted = parity_starts(factor_tables(whole), 1, np.random.default_rng(0))[:, 0]
    fields = field * np.random.default_rng(1).normal(size=variables)
    factors = [(f.scope, -f.log_table if k < broken else f.log_table) for k, f in enumerate(whole.factors)]
    factors += [([v], [0.0, h]) for v, h in enumerate(fields)]
    model = FactorGraph.from_log_tables([2] * variables, factors)
    x = parity_starts(factor_tables(model), 4, np.random.default_rng(0))
    assert (model.log_weight(x.T) >= model.log_weight(planted) - 1e-9).all()


def test_of_parities_that_contradict_each_other_the_strongest_hold() -> None:
    differ, same = np.array([[0.0, 1.0], [1.0, 0.0]]), np.eye(2)
    triangle = [([0, 1], 3 * differ), ([2, 1], 2 * differ), ([0, 2], 5 * differ), ([3, 0], same), ([3], [0.0, 9.0])]
    x = parity_starts(factor_tables(FactorGraph.from_log_tables([2] * 4, triangle)), 8, np.random.default_rng(0))
    np.testing.assert_array_equal(x, np.repeat([[1], [0], [0], [1]], 8, axis=1))
