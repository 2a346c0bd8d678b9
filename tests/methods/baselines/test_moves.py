"""Metropolis steps, locally balanced jumps and tempered transitions on factor graphs: as in the papers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from small_graphs import MODELS, bound, exact_start, law

from spinbench.api.trace import Trace
from spinbench.methods.baselines.metropolis import Metropolis, Proposal
from spinbench.methods.baselines.tempered_transitions import TemperedTransitions
from spinbench.methods.baselines.zanella import Zanella
from spinbench.methods.weighted_means import importance_means
from spinbench.models import FactorGraph


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("p", [np.array([0.6, 0.3, 0.1]), np.array([0.3, 0.7])], ids=["three", "two"])
@pytest.mark.parametrize("proposal", ["uniform", "metropolised_gibbs"])
def test_outcomes_are_those_of_the_papers(proposal: Proposal, p: npt.NDArray[np.float64], backend: str) -> None:
    """One step of one variable, with its transition probabilities by hand."""
    model = FactorGraph.from_log_tables([len(p)], [([0], np.log(p))])
    engine = bound(model, backend, Metropolis(proposal, marginals="empirical"))[1]
    for k in range(len(p)):
        _, statistics = engine.advance(engine.init(4, np.full((1, 20000), k, dtype=np.int8)), 1)
        if proposal == "uniform":
            expected = np.minimum(1, p / p[k]) / (len(p) - 1)
        else:
            expected = p / (1 - p[k]) * np.minimum(1, (1 - p[k]) / (1 - p))
        expected[k] = 0.0
        expected[k] = 1 - expected.sum()
        error = np.sqrt(expected * (1 - expected) / 20000)
        frequencies = (
            statistics["s"].mean(axis=1) if len(p) > 2 else [1 - statistics["s"].mean(), statistics["s"].mean()]
        )
        np.testing.assert_array_less(np.abs(frequencies - expected), 4.5 * error + 1e-9)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_variable_alone_waits_as_barker_has_it(backend: str) -> None:
    """Between two states of weights 1 and 3 rates are 3/4 and 1/4: chains jump each time, and wait 4/3 and 4."""
    model = FactorGraph.from_log_tables([2], [([0], np.log([1.0, 3.0]))])
    engine = bound(model, backend, Zanella())[1]
    state = engine.init(1, np.array([[0, 1]], dtype=np.int8))
    for w, s in (([4 / 3, 4], [[0, 4]]), ([4, 4 / 3], [[4, 0]])):
        state, statistics = engine.advance(state, 1)
        np.testing.assert_allclose(statistics["w"], w)
        np.testing.assert_allclose(statistics["s"], s)


def test_errors_are_those_of_ratios() -> None:
    """Of weights that vary by a lot, with what they weigh: the mean square of z is 1."""
    rng, z = np.random.default_rng(7), []
    for _ in range(200):
        trace = Trace(Zanella().reductions)
        for _ in range(20):
            w = rng.exponential(size=16)
            s = w * (rng.random(16) < 0.3 + 0.2 * (w > 1))
            trace.add({"s": s[None], "w": w, "stuck": 0 * w}, 1)
        means = importance_means((2,), trace)
        truth = 0.3 + 0.2 * 2 * np.exp(-1)  # E[w; w > 1] = 2 / e
        z.append((means.means[0] - truth) / (means.series.std() / np.sqrt(means.series.size)))
        np.testing.assert_allclose(means.series.mean(), means.means[0])
        assert 0.4 < means.share < 0.65  # of exponential weights one half
    assert abs(np.mean(np.square(z)) - 1) < 0.35


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(("name", "ways"), [("zeros", {"down": 1}), ("bits", {"down": 1, "up": -1})])
def test_products_have_the_means_of_z_over_z_0(name: str, ways: dict[str, int], backend: str) -> None:
    """And, but for zeros, of Z_0 / Z, though much is accepted."""
    tables, engine = bound(MODELS[name], backend, TemperedTransitions(temperatures=3))
    state, statistics = engine.advance(engine.init(2, exact_start(MODELS[name], 4096)), 3)
    assert statistics["accepted"].mean() > 0.6
    looks = engine.look(state)
    for way, sign in ways.items():
        products = np.exp(looks[way] - sign * (law(MODELS[name])[2] - float(tables.base)))
        assert abs(products.mean() - 1) < 4.5 * products.std() / np.sqrt(4096)
        assert products.std() > 0.1
