"""Locally balanced jumps on factor graphs, against enumeration."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import MODELS, bound, check_run, exact_start, marginals, parted

import spinbench
from spinbench.api.trace import Trace
from spinbench.inference import binding
from spinbench.methods.baselines.weighing import weighed
from spinbench.methods.baselines.zanella import Zanella
from spinbench.models import FactorGraph

CHAINS = 4096


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", MODELS)
def test_time_in_states_is_their_probability(name: str, backend: str) -> None:
    """Over many chains that have run for a while, and whose rates were changed jump by jump."""
    engine = bound(name, backend, Zanella())[1]
    state = engine.warm(engine.init(2, exact_start(name, CHAINS)), 12)
    _, seen = engine.advance(state, 3)
    s = seen["s"] if name != "bits" else np.stack([seen["w"] - seen["s"], seen["s"]], axis=1).reshape(-1, CHAINS)
    p = s.sum(axis=1) / seen["w"].sum()
    error = (s - p[:, None] * seen["w"]).std(axis=1) / seen["w"].mean() / np.sqrt(CHAINS)
    np.testing.assert_array_less(np.abs(p - marginals(name)), 4.5 * error + 1e-9)
    assert error.max() < 0.01
    assert not seen["stuck"].any()


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_a_variable_alone_waits_as_barker_has_it(backend: str) -> None:
    """Between two states of weights 1 and 3 rates are 3/4 and 1/4: chains jump each time, and wait 4/3 and 4."""
    model = FactorGraph.from_log_tables([2], [([0], np.log([1.0, 3.0]))])
    method = Zanella()
    engine = binding.bind(method, backend, model, method.plan(model), precision="float64").engine
    state = engine.init(1, np.array([[0, 1]], dtype=np.int8))
    for w, s in (([4 / 3, 4], [[0, 4]]), ([4, 4 / 3], [[4, 0]])):
        state, seen = engine.advance(state, 1)
        np.testing.assert_allclose(seen["w"], w)
        np.testing.assert_allclose(seen["s"], s)


@pytest.mark.parametrize(
    ("name", "backend"), [("zeros", "numpy"), ("bits", "numpy"), ("zeros", "numba"), ("bits", "numba")]
)
def test_runs_are_right_within_what_they_claim(name: str, backend: str) -> None:
    found = check_run(name, "zanella", backend, 1500)
    assert found.log_z is None
    assert 0.5 < found.diagnostics["effective_share"] <= 1


def test_errors_are_those_of_ratios() -> None:
    """Of weights that vary by a lot, with what they weigh: the mean square of z is 1."""
    rng, z = np.random.default_rng(7), []
    for _ in range(200):
        trace = Trace(Zanella().reductions)
        for _ in range(20):
            w = rng.exponential(size=16)
            s = w * (rng.random(16) < 0.3 + 0.2 * (w > 1))
            trace.add({"s": s[None], "w": w, "stuck": 0 * w}, 1)
        found = weighed((2,), trace)
        truth = 0.3 + 0.2 * 2 * np.exp(-1)  # E[w; w > 1] = 2 / e
        z.append((found.means[0] - truth) / (found.series.std() / np.sqrt(found.series.size)))
        np.testing.assert_allclose(found.series.mean(), found.means[0])
        assert 0.4 < found.share < 0.65  # of exponential weights one half
    assert abs(np.mean(np.square(z)) - 1) < 0.35


def test_chains_that_cannot_leave_are_doubted() -> None:
    even = np.where(np.indices((2, 2, 2)).sum(axis=0) % 2, -np.inf, 0.0)
    alone = spinbench.run(
        FactorGraph.from_log_tables([2, 2, 2], [([0, 1, 2], even)]), "zanella", "numpy", 100, chains=16
    )
    assert alone.diagnostics["stuck"] == 1
    for found in (alone, spinbench.run(parted(), "zanella", "numpy", 200, chains=16)):
        assert "marginals not mixed" in found.status
    assert "too short" in spinbench.run(MODELS["bits"], "zanella", "numpy", 5, chains=16).status
