"""What comes in through the doors suffices for a method and a family of models."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import spinbench
from spinbench.api import messages, relaxation
from spinbench.errors import UnsupportedError
from spinbench.models import build, generators
from spinbench.testing.laws.cases import three_state_model

SOURCE = Path(__file__).with_name("host_tables_plugin.py").read_text(encoding="utf-8")
SWEEPS = Path(__file__).with_name("heat_bath_plugin.py").read_text(encoding="utf-8")


@pytest.fixture
def plugin(install_plugin: Callable[..., Path]) -> None:
    install_plugin("spinbench_colours", SOURCE, {"methods": {"colours": "Colours"}, "models": {"star": "star"}})


@pytest.mark.usefixtures("plugin")
@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_a_method_of_a_third_party_samples_its_familys_models(backend: str) -> None:
    model = build({"name": "star", "leaves": 4, "sign": "minus"})
    result = spinbench.run(model, "colours", backend, 2000, chains=16, seed=3)
    exact = spinbench.exact(model, cache=False).marginals
    assert result.tier == "generic"
    assert np.abs((result.marginals - exact) / result.marginals_se).max() < 4
    assert result.ess.min() > 5000


@pytest.mark.usefixtures("plugin")
def test_tables_lead_to_a_model_and_back() -> None:
    model = build({"name": "star", "leaves": 3})
    graph = messages.lower(model)
    assert np.shape(messages.incidence(graph).target) == (2 * model.num_edges,)
    states = np.tile([0.25, 0.75], model.num_variables)
    np.testing.assert_allclose(messages.marginals(graph, model, states), 0.75)
    relaxed = relaxation.relax(model, "dd")
    x = np.random.default_rng(0).standard_normal((model.num_variables, 5))
    assert relaxed.log_density(x).shape == (5,)


@pytest.mark.parametrize("backend", ["numpy", "jax"])
@pytest.mark.parametrize("blocks", [True, False])
def test_sweeps_are_a_building_block(install_plugin: Callable[..., Path], backend: str, blocks: bool) -> None:
    install_plugin("spinbench_turns", SWEEPS, {"methods": {"turns": "Turns"}})
    model = generators.grid(4, 4, c2=0.6)
    found = spinbench.run(model, "turns", backend, 600, chains=32, seed=2, blocks=blocks)
    marginals, errors = np.hstack(found.marginals), np.hstack(found.marginals_se)
    exact = np.hstack(spinbench.exact(model, cache=False).marginals)
    assert (np.abs(marginals - exact) <= 4.5 * errors).all()
    assert errors.max() < 0.02
    with pytest.raises(UnsupportedError, match="has 1-of-K groups"):
        spinbench.run(three_state_model(), "turns", backend, 10, blocks=blocks)
