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
from spinbench.methods.relaxed.elliptical_slice import Ellipses, EllipticalSlice
from spinbench.methods.relaxed.langevin_and_nuts import Langevin, NoUTurn, OutsideForm, Stepping
from spinbench.methods.relaxed.outside import OutsideProgram
from spinbench.methods.relaxed.tables import fields
from spinbench.models import Factor, FactorGraph, PairwiseModel, generators

METHODS = ("elliptical_slice", "mala", "nuts")
MISSING = "needs blackjax, not installed here: pip install 'spinbench\\[blackjax\\]'"


def model() -> PairwiseModel:
    rng = np.random.default_rng(1)
    pairs = [(0, 3), (1, 4), (2, 5), (0, 5), (2, 4)]
    return PairwiseModel.from_edges(rng.normal(size=6), pairs, 1.5 * rng.normal(size=5), groups=((4, 0, 1),))


def states() -> FactorGraph:
    """Of two and three states, couplings of both signs."""
    rng = np.random.default_rng(3)
    scopes = [(0,), (1, 0), (2, 1), (3, 2), (0, 3)]
    cards = (3, 2, 3, 2)
    return FactorGraph(cards, [Factor(s, rng.normal(size=[cards[i] for i in s])) for s in scopes])


@pytest.mark.parametrize("form", OutsideForm.__args__)
def test_the_density_is_that_of_the_relaxation(form: Any) -> None:
    one, method = model(), NoUTurn(form=form)
    tables, density = method.plan(one), OutsideProgram(NumpyBackend())
    x = np.random.default_rng(2).normal(size=(6, 7))
    found = density.log_density(tables, x) - Relaxation(one, tables.d).log_density(x, form)
    np.testing.assert_allclose(found, found[0], atol=1e-12)
    drawn = density.draw(NumpyBackend().key(1), tables, np.ones((6, 4000)))
    wanted = Relaxation(one, tables.d).gram @ np.ones(6)
    alpha = fields(np, tables, drawn) - tables.bias[:, None]
    errors = np.sqrt(np.diag(Relaxation(one, tables.d).gram) / 4000)
    assert (np.abs(alpha.mean(axis=1) - wanted) < 5 * errors).all()


def test_every_ellipse_has_the_same_target() -> None:
    pytest.importorskip("blackjax")
    one, method = model(), EllipticalSlice()
    backend, tables = NumpyBackend(), method.plan(model())
    ellipses, z = Ellipses(method, backend), np.random.default_rng(2).normal(size=(6, 7))
    for m in (np.full((6, 1), 0.5), np.linspace(0, 1, 6)[:, None]):
        prior = -0.5 * np.sum((z - tables.root.T @ m) ** 2, axis=0)
        found = prior + ellipses._tilted(tables, m, z) - Relaxation(one, tables.d).log_density(z, "harmonium")
        np.testing.assert_allclose(found, found[0], atol=1e-12)


@pytest.mark.parametrize("name", METHODS)
def test_answers_agree_with_enumeration(name: str) -> None:
    pytest.importorskip("blackjax")
    graph = states()
    exact = spinbench.exact(graph)
    found = spinbench.run(graph, name, "jax", budget=1500, burn_in=300, chains=32, seed=1)
    assert found.status == "ok"
    for got, error, want in zip(found.marginals, found.marginals_error_bound, exact.marginals, strict=True):
        assert (np.abs(got - want) < 4 * error + 1e-9).all()
        assert (error < 0.05).all()
    assert found.log_z_se is not None
    assert abs(found.log_z - exact.log_z) < 4 * found.log_z_se < 0.5
    wanted = {"mala": 0.574, "nuts": 0.8, "elliptical_slice": 1.0}[name]
    assert found.diagnostics["acceptance"] == pytest.approx(wanted, abs=0.12)
    assert found.diagnostics["evaluations"] >= 1


@pytest.mark.parametrize("name", METHODS)
def test_without_blackjax_a_sentence_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda module: None if module == "blackjax" else find(module))
    assert registry.support(name, "jax").tier == "unavailable"
    with pytest.raises(UnavailableError, match=f"^method {name} {MISSING}$"):
        spinbench.run(model(), name, "jax", budget=10)
    assert registry.support(name, "numpy").reason.startswith("numpy does not provide jax")


def test_defaults_are_those_of_the_literature() -> None:
    assert isinstance(Langevin(), Stepping)
    assert (NoUTurn().target_acceptance, Langevin().target_acceptance) == (0.8, 0.574)


def test_short_burn_in_finds_a_step_size_of_use() -> None:
    pytest.importorskip("blackjax")
    grid = generators.grid(rows=6, cols=6, seed=0)
    found = spinbench.run(grid, "mala", "jax", budget=100, burn_in=50, seed=1, log_z="none", checkpoints=1)
    assert 0.4 < found.diagnostics["acceptance"] < 0.85
