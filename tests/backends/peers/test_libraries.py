"""Other libraries against exact answers, each where it is installed: pip install 'spinbench[peers]'."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.inference import binding, registry
from spinbench.models import FactorGraph, Model, PairwiseModel, generators, to_factor_graph

pytestmark = pytest.mark.filterwarnings("ignore")  # of the libraries, at import
SAMPLERS = {
    "gibbs.dwave": {"budget": 2000},
    "gibbs.thrml": {"budget": 2000},
    "gibbs.pgmpy": {"budget": 100, "chains": 4},
    "metropolis.openjij": {"budget": 2000},
    "dhmc.blackjax": {"budget": 2000},
    "dhmc.numpyro": {"budget": 2000},
}
GENERAL = ("cotengra", "ganak", "pgmpy", "pyagrum")
PAIRS = ("dwave", "pygms")
NO_LOG_Z = {"pyagrum"}


def needed(backend: str) -> None:
    if lacking := registry.missing(registry.backend_class(backend)):
        pytest.skip(f"{', '.join(lacking)} is not installed: pip install 'spinbench[peers]'")


def flat(marginals: Any) -> np.ndarray:
    return np.concatenate([np.ravel(table) for table in marginals])


def ternary() -> FactorGraph:
    """Two and three states, a factor of three variables, a field, and hard zeros in one table."""
    rng = np.random.default_rng(3)
    sizes = [2, 3, 3, 2, 3]
    scopes = [(0, 1, 2), (2, 3), (3, 4), (4, 0), (1,)]
    tables = [rng.normal(size=[sizes[v] for v in scope]) for scope in scopes]
    tables[1][0, 1] = -np.inf
    return FactorGraph.from_log_tables(sizes, list(zip(scopes, tables, strict=True)), log_constant=0.7)


def potts() -> FactorGraph:
    """A ring of four variables of three states."""
    return FactorGraph.from_log_tables([3] * 4, [((v, (v + 1) % 4), np.eye(3)) for v in range(4)])


@pytest.mark.parametrize("pair", SAMPLERS)
def test_marginals_of_samplers_are_within_their_errors(pair: str) -> None:
    method, _, backend = pair.partition(".")
    needed(backend)
    settings: dict[str, Any] = {"chains": 16, **SAMPLERS[pair]}
    model = generators.grid(3, 3, c1=0.5, c2=0.5, seed=1)
    exact = spinbench.exact(model)
    for more in ({},) if method == "dhmc" else ({"marginals": "rao_blackwell"}, {"marginals": "empirical"}):
        settings |= more
        found = spinbench.run(model, method, backend, seed=3, **settings)
        assert found.tier == "native"
        assert (np.abs(found.marginals - exact.marginals) < 5 * found.marginals_se).all()
        assert found.r_hat.max() < 1.2
        if found.log_z is not None and np.isfinite(found.log_z_se):
            assert found.log_z == pytest.approx(exact.log_z, abs=5 * found.log_z_se)
        if backend == "pgmpy":
            break  # it makes two thousand updates a second
        again = spinbench.run(model, method, backend, seed=3, **settings)
        np.testing.assert_array_equal(again.marginals, found.marginals)
        other = spinbench.run(model, method, backend, seed=4, **settings)
        assert np.abs(other.marginals - found.marginals).max() > 0


@pytest.mark.parametrize("pair", ["gibbs.dwave", "gibbs.thrml", "metropolis.openjij"])
def test_fields_and_couplings_belong_to_their_variables(pair: str) -> None:
    """Strong fields of both signs and an order of the colours that is none of the numbers."""
    method, _, backend = pair.partition(".")
    needed(backend)
    edges = np.array([[0, 5], [5, 2], [2, 3], [3, 1], [1, 4], [0, 3]])
    model = PairwiseModel.from_edges(np.array([-2.0, 2, 0.5, -1, 1, -3]), edges, np.array([2.0, -2, 1, -1, 3, 2]))
    exact = np.asarray(spinbench.exact(model).marginals)
    found = spinbench.run(model, method, backend, 1000, chains=16, seed=2, keep=100)
    assert (np.abs(found.marginals - exact) < 5 * found.marginals_se).all()
    means = found.states.reshape(-1, 6).mean(axis=0)
    np.testing.assert_allclose(means, exact, atol=5 * np.sqrt(0.25 / 400))


def test_batches_of_thrml_change_nothing() -> None:
    """Its steps have random numbers of their own; those of the others depend on the batches, as their notes say."""
    needed("thrml")
    model = generators.grid(3, 3, seed=1)
    method = registry.make_method("gibbs", {"marginals": "empirical", "log_z": "none"})
    engine = binding.bind(method, "thrml", model, method.plan(model), precision="float32").engine
    start = np.zeros((9, 4), dtype=np.int8)
    _, whole = engine.advance(engine.warm(engine.init(5, start), 3), 7)
    state, first = engine.advance(engine.warm(engine.warm(engine.init(5, start), 1), 2), 3)
    _, second = engine.advance(state, 4)
    np.testing.assert_array_equal(first["s"] + second["s"], whole["s"])
    assert np.ptp(whole["s"]) > 0


@pytest.mark.parametrize("backend", [*GENERAL, *PAIRS])
def test_exact_answers_are_exact(backend: str) -> None:
    needed(backend)
    models: list[Model] = [generators.grid(4, 3, c1=1.0, c2=2.0, seed=2), generators.tree(7, c1=1.0, c2=1.0, seed=1)]
    models.append(to_factor_graph(models[0]))
    for model in [*models, *([ternary()] if backend in GENERAL else [])]:
        exact, found = spinbench.exact(model), spinbench.run(model, "exact", backend)
        np.testing.assert_allclose(flat(found.marginals), flat(exact.marginals), atol=1e-9)
        if backend in NO_LOG_Z:
            assert (found.log_z, found.bounds) == (None, ())
            assert "the library gives no log Z" in found.notes
        else:
            assert found.log_z == pytest.approx(exact.log_z, abs=1e-9)


@pytest.mark.parametrize(
    ("pair", "sentence"),
    [
        ("exact.dwave", "dwave takes binary variables in pairs without hard zeros"),
        ("exact.pygms", "pygms answers NaN where tables hold zeros"),
        ("metropolis.openjij", "openjij takes binary variables in pairs without hard zeros"),
        ("bp.pgmax", "pgmax is asked for binary variables in pairs alone"),
        ("dhmc.blackjax", "blackjax takes binary variables"),
    ],
)
def test_other_models_are_refused(pair: str, sentence: str) -> None:
    method, _, backend = pair.partition(".")
    needed(backend)
    with pytest.raises(UnsupportedError, match=sentence):
        spinbench.run(ternary() if method != "dhmc" else potts(), method, backend, 10, chains=2)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("damping", [0.0, 0.3])
def test_belief_propagation_is_the_same_iteration(precision: Any, damping: float) -> None:
    needed("pgmax")
    model, options = generators.grid(4, 4, c1=0.5, c2=0.5, seed=1), {"precision": precision, "damping": damping}
    found = spinbench.run(model, "bp", "pgmax", 200, **options)
    ours = spinbench.run(model, "bp", "numpy", 200, schedule="parallel", **options)
    close = 1e-12 if precision == "float64" else 2e-6
    np.testing.assert_allclose(found.marginals, ours.marginals, atol=close)
    assert found.log_z == pytest.approx(ours.log_z, abs=100 * close)
    assert (found.status, found.diagnostics["iterations"]) == ("ok", ours.diagnostics["iterations"])


@pytest.mark.parametrize("backend", ["blackjax", "numpyro"])
def test_trajectories_have_the_density_and_the_step_that_are_asked_for(backend: str) -> None:
    needed(backend)
    model = generators.grid(3, 3, c1=0.5, c2=0.5, seed=1)
    fixed = spinbench.run(model, "dhmc", backend, 500, chains=8, step_size=0.3, log_z="none", precision="float32")
    ours = spinbench.run(model, "dhmc", "numpy", 500, chains=8, step_size=0.3, log_z="none")
    assert fixed.diagnostics["step_size"] == pytest.approx(0.3)
    assert fixed.diagnostics["acceptance"] == pytest.approx(ours.diagnostics["acceptance"], abs=0.02)
    with pytest.raises(UnsupportedError, match=f"{backend} does form=identity, not form=sparse"):
        spinbench.run(model, "dhmc", backend, 10, form="sparse", diagonal="dd")


def test_what_no_library_does_is_refused() -> None:
    needed("dwave")
    model = generators.grid(3, 3)
    for settings, sentence in (
        ({"draws": 3}, "dwave does draws=0, not draws=3"),
        ({"pairs": True}, "dwave does pairs=False, not pairs=True"),
        ({"max_gib": 2.0**-23}, "order of width 3 tables take more than max_gib=1.19209e-07"),
    ):
        with pytest.raises(UnsupportedError, match=sentence):
            spinbench.run(model, "exact", "dwave", **settings)


def test_pgmpy_is_asked_for_samples_of_small_models_alone() -> None:
    needed("pgmpy")
    with pytest.raises(UnsupportedError, match="12 variables at most; grid has 16"):
        spinbench.run(generators.grid(4, 4), "gibbs", "pgmpy", 10)
