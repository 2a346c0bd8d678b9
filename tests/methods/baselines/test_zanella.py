"""Locally balanced jumps on factor graphs: how long chains wait, and the errors of weighted means."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import bound

from spinbench.api.trace import Trace
from spinbench.methods.baselines.weighing import ratio_means
from spinbench.methods.baselines.zanella import Zanella
from spinbench.models import FactorGraph


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
        means = ratio_means((2,), trace)
        truth = 0.3 + 0.2 * 2 * np.exp(-1)  # E[w; w > 1] = 2 / e
        z.append((means.means[0] - truth) / (means.series.std() / np.sqrt(means.series.size)))
        np.testing.assert_allclose(means.series.mean(), means.means[0])
        assert 0.4 < means.share < 0.65  # of exponential weights one half
    assert abs(np.mean(np.square(z)) - 1) < 0.35
