"""Chains that begin at draws of another method: chosen by weight, different ones, and not forgotten on the way."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.inference import initial_states
from spinbench.models import FactorGraph
from spinbench.models.generators import grid, torus


def test_draws_are_chosen_by_their_weights_and_none_twice() -> None:
    model, states = grid(2, 2), np.arange(4 * 50).reshape(4, 50)
    logs = np.where(np.arange(50) < 10, 0.0, -np.inf)
    logs[3] = 40.0
    found = initial_states.resample_draws((states, logs), model, 8, 0, "wmb")
    assert len(set(found[0])) == 8
    assert states[0, 3] in found[0]
    assert set(found[0]) <= set(states[0, :10])
    logs = np.log1p(np.arange(50.0))
    often = np.concatenate([initial_states.resample_draws((states, logs), model, 1, k, "wmb")[0] for k in range(900)])
    mean = np.arange(1, 51) @ np.arange(50) / np.arange(1, 51).sum()
    assert abs(often.mean() - mean) < 4 * 12 / 30


def test_where_no_draw_weighs_anything_it_says_so() -> None:
    for draws in (None, (np.zeros((4, 3)), np.full(3, -np.inf))):
        with pytest.raises(UnsupportedError, match="none of its draws of grid has positive weight"):
            initial_states.resample_draws(draws, grid(2, 2), 4, 0, "wmb")


def test_sides_that_chains_do_not_change_are_weighed_right() -> None:
    """Two phases of a ferromagnet, .79 and .21 of the weight, which sweeps do not leave."""
    model = torus(8, 8, 0.7, 0.01)
    true = np.mean(spinbench.exact(model).marginals)
    cold = spinbench.run(model, "gibbs", "numpy", 100, chains=512, seed=3, start="wmb")
    assert abs(np.mean(cold.marginals) - true) < 4 * np.sqrt(0.25 / 512)
    again = spinbench.run(model, "gibbs", "numpy", 100, chains=512, seed=3, start="wmb")
    assert np.array_equal(cold.marginals, again.marginals)


def test_chains_of_a_simplified_graph_begin_in_its_own_terms() -> None:
    """Of a variable that sums out, of one that a zero determines, of K-ary ones that become units."""
    rng = np.random.default_rng(0)
    tables = [((0, 1), rng.normal(size=(3, 2))), ((1, 2), rng.normal(size=(2, 3))), ((2, 3), rng.normal(size=(3, 2)))]
    tables += [((4,), np.array([0.0, -np.inf])), ((0, 2), rng.normal(size=(3, 3)))]
    model = FactorGraph.from_log_tables([3, 2, 3, 2, 2], tables)
    exact = np.concatenate(spinbench.exact(model).marginals)
    for method in ("gibbs", "block_gibbs"):
        found = spinbench.run(model, method, "numpy", 1000, chains=32, seed=1, start="wmb")
        np.testing.assert_allclose(np.concatenate(found.marginals), exact, atol=0.03)


def test_variables_of_one_state_start_in_it() -> None:
    """As what stands for a model that is all observed, also beside binary variables."""
    for sizes in ([1], [2, 1, 2], [3, 1]):
        graph = FactorGraph.from_log_tables(sizes, [((0,), np.zeros(sizes[0]))])
        found = initial_states.spread_starts(graph, 32, 0, sampler=True)
        assert (found < np.array(sizes)[:, None]).all()
        assert all(len(set(row)) == size for row, size in zip(found, sizes, strict=True))
