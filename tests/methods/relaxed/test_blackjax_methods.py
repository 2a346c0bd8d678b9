"""BlackJAX's samplers on the relaxation: their density, their answers, and what is said where BlackJAX is missing."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.backends.numpy import NumpyBackend
from spinbench.errors import UnavailableError
from spinbench.inference import registry
from spinbench.mathematics.relaxation.density import Relaxation
from spinbench.methods.relaxed.blackjax_method import BlackJAXProgram
from spinbench.methods.relaxed.elliptical_slice import EllipticalSlice, EllipticalSliceProgram
from spinbench.methods.relaxed.langevin_and_nuts import AdaptiveStepMethod, BlackJAXForm, Langevin, NoUTurn
from spinbench.methods.relaxed.tables import unit_log_odds
from spinbench.models import Factor, FactorGraph, PairwiseModel, generators

METHODS = ("elliptical_slice", "mala", "nuts")
MISSING = "needs blackjax, not installed here: pip install blackjax"


def random_model() -> PairwiseModel:
    rng = np.random.default_rng(1)
    pairs = [(0, 3), (1, 4), (2, 5), (0, 5), (2, 4)]
    return PairwiseModel.from_edges(rng.normal(size=6), pairs, 1.5 * rng.normal(size=5), groups=((4, 0, 1),))


def states() -> FactorGraph:
    """Of two and three states, couplings of both signs."""
    rng = np.random.default_rng(3)
    scopes = [(0,), (1, 0), (2, 1), (3, 2), (0, 3)]
    cards = (3, 2, 3, 2)
    return FactorGraph(cards, [Factor(s, rng.normal(size=[cards[i] for i in s])) for s in scopes])


@pytest.mark.parametrize("form", BlackJAXForm.__args__)
def test_the_density_is_that_of_the_relaxation(form: Any) -> None:
    model, method = random_model(), NoUTurn(form=form)
    tables, density = method.plan(model), BlackJAXProgram(NumpyBackend())
    x = np.random.default_rng(2).normal(size=(6, 7))
    differences = density.log_density(tables, x) - Relaxation(model, tables.d).log_density(x, form)
    np.testing.assert_allclose(differences, differences[0], atol=1e-12)
    positions = density.draw_positions(NumpyBackend().key(1), tables, np.ones((6, 4000)))
    expected = Relaxation(model, tables.d).gram @ np.ones(6)
    alpha = unit_log_odds(np, tables, positions) - tables.bias[:, None]
    errors = np.sqrt(np.diag(Relaxation(model, tables.d).gram) / 4000)
    assert (np.abs(alpha.mean(axis=1) - expected) < 5 * errors).all()


def test_every_ellipse_has_the_same_target() -> None:
    pytest.importorskip("blackjax")
    model, method = random_model(), EllipticalSlice()
    backend, tables = NumpyBackend(), method.plan(random_model())
    ellipses, z = EllipticalSliceProgram(method, backend), np.random.default_rng(2).normal(size=(6, 7))
    for m in (np.full((6, 1), 0.5), np.linspace(0, 1, 6)[:, None]):
        prior = -0.5 * np.sum((z - tables.root.T @ m) ** 2, axis=0)
        differences = (
            prior
            + ellipses._tilted_log_likelihood(tables, m, z)
            - Relaxation(model, tables.d).log_density(z, "harmonium")
        )
        np.testing.assert_allclose(differences, differences[0], atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_answers_agree_with_enumeration(name: str) -> None:
    pytest.importorskip("blackjax")
    graph = states()
    exact = spinbench.exact(graph)
    result = spinbench.run(graph, name, "jax", budget=1500, burn_in=300, chains=32, seed=1)
    assert result.status == "ok"
    for got, error, want in zip(result.marginals, result.marginals_error_bound, exact.marginals, strict=True):
        assert (np.abs(got - want) < 4 * error + 1e-9).all()
        assert (error < 0.05).all()
    assert result.log_z_se is not None
    assert abs(result.log_z - exact.log_z) < 4 * result.log_z_se < 0.5
    acceptance = {"mala": 0.574, "nuts": 0.8, "elliptical_slice": 1.0}[name]
    assert result.diagnostics["acceptance"] == pytest.approx(acceptance, abs=0.12)
    assert result.diagnostics["evaluations"] >= 1


@pytest.mark.parametrize("name", METHODS)
def test_without_blackjax_a_sentence_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None if module == "blackjax" else find(module))
    assert registry.support(name, "jax").tier == "unavailable"
    with pytest.raises(UnavailableError, match=f"^method {name} {MISSING}$"):
        spinbench.run(random_model(), name, "jax", budget=10)
    assert registry.support(name, "numpy").reason.startswith("numpy does not provide jax")


def test_defaults_are_those_of_the_literature() -> None:
    assert isinstance(Langevin(), AdaptiveStepMethod)
    assert (NoUTurn().target_acceptance, Langevin().target_acceptance) == (0.8, 0.574)


def test_short_burn_in_finds_a_step_size_of_use() -> None:
    pytest.importorskip("blackjax")
    grid = generators.grid(rows=6, cols=6, seed=0)
    result = spinbench.run(grid, "mala", "jax", budget=100, burn_in=50, seed=1, log_z="none", checkpoints=1)
    assert 0.4 < result.diagnostics["acceptance"] < 0.85
