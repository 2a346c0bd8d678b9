"""Bad input of the gauged methods: each ends in a verified bound or in one clear sentence."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.errors import ModelError, UnsupportedError
from spinbench.methods.gauge.ascent.linear import BandSolver
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.models.forney import build
from spinbench.models.networks import gauge_complete

METHODS = ["forney_mf", "g_mf", "g_bp", "g_bp_single", "g_bp_multiple", "g_bp_sequential"]


def bound(model, name, **settings):
    """The result of a run to its end, a lower bound in any case."""
    if name == "g_mf":
        settings = {"restarts": 0, "field_starts": 2, **settings}
    result = spinbench.run(model, name, "numpy", "20000 samples", **settings)
    assert result.log_z_kind == "lower"
    assert result.log_z <= spinbench.exact(model, cache=False).log_z + 1e-9
    return result


@pytest.mark.parametrize("name", METHODS)
@pytest.mark.parametrize("graph", ["parallel", "triple"])
def test_parallel_edges(name, graph):
    """Two factors that share two or three variables; merging sums the edges, merge=0 keeps them."""
    model = zoo.random_tables(zoo.GRAPHS[graph], 0.5, np.random.default_rng(1)).to_factor_graph()
    log_z = spinbench.exact(model, cache=False).log_z
    assert log_z - 0.6 < bound(model, name, merge=0).log_z
    assert log_z - 0.6 < bound(model, name).log_z


def test_zeros_at_the_identity():
    """Equality nodes: the identity gauge is infeasible, and a search for an interior point comes first."""
    rng = np.random.default_rng(5)
    scopes = [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)]
    model = FactorGraph.from_log_tables([2] * 4, [(scope, rng.normal(size=(2, 2, 2))) for scope in scopes])
    log_z = spinbench.exact(model, cache=False).log_z
    for name in ("g_mf", "g_bp_sequential"):
        assert log_z - 1.0 < bound(model, name, merge=0).log_z


@pytest.mark.parametrize("name", METHODS)
def test_degree_above_the_limit(name):
    model = PairwiseModel.from_dense(np.zeros(12), np.ones((12, 12)) - np.eye(12))
    with pytest.raises(UnsupportedError, match="degree 11"):
        spinbench.run(model, name, "numpy", "5 samples")


@pytest.mark.parametrize("name", METHODS)
def test_models_without_any_state(name):
    """Two variables that have to be equal and different: arc consistency alone does not see it."""
    equal, apart = np.where(np.eye(2) > 0, 0.0, -np.inf), np.where(np.eye(2) > 0, -np.inf, 0.0)
    ring = [((0, 1), equal), ((1, 2), equal), ((2, 0), apart)]
    model = FactorGraph.from_log_tables([2] * 3, ring)
    with pytest.raises(ModelError, match=r"Z = 0|no state of positive weight"):
        spinbench.run(model, name, "numpy", "5 samples", merge=0)


def test_label_search_that_fails():
    """A parity check that no state passes, on more edges than can be enumerated."""
    n = 16
    equal = np.where(np.eye(2) > 0, 0.0, -np.inf)
    factors = [((k, k + 1), equal) for k in range(n - 1)]
    factors += [((0, 5, n - 1), np.where(np.indices((2, 2, 2)).sum(axis=0) % 3 == 1, 0.0, -np.inf))]
    model = FactorGraph.from_log_tables([2] * n, factors)
    with pytest.raises(ModelError, match=r"no state of positive weight was found|Z = 0"):
        spinbench.run(model, "g_bp", "numpy", "5 samples", merge=0)


@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_infinities(value):
    tables = [np.zeros((2, 2)), np.array([[0.0, value], [0.0, 0.0]])]
    with pytest.raises(ModelError, match="NaN or infinite"):
        FactorGraph.from_log_tables([2, 2], [((0, 1), table) for table in tables])
    with pytest.raises(ModelError, match="NaN or infinite"):
        build.from_log_tables([(0, 1), (0, 1)], tables)


@pytest.mark.parametrize("name", METHODS[1:])
def test_an_optimiser_that_stalls_leaves_a_bound_and_says_so(name, monkeypatch):
    """Every direction goes downhill, so that no step raises the objective."""
    sound = BandSolver.ascent

    def downhill(*arguments):
        direction, shift = sound(*arguments)
        return -direction, shift

    monkeypatch.setattr(BandSolver, "ascent", downhill)
    model = gauge_complete(4, 0.5, seed=4)
    result = bound(model, name)
    mode = max(model.log_weight(np.arange(64)[:, None] >> np.arange(6) & 1))
    assert result.log_z >= mode - 1e-9
    if name == "g_mf":  # mean field, which needs no gauge, may be the best that is found
        assert result.log_z >= bound(model, "forney_mf").log_z - 1e-6
    else:
        assert (result.status, result.diagnostics["stalled"]) == ("not converged", 1.0)


def test_steps_that_are_used_up_say_so(monkeypatch):
    from spinbench.methods.gauge.ascent import point_mass

    start, _, formulas = point_mass.continuation.__defaults__
    monkeypatch.setattr(point_mass.continuation, "__defaults__", (start, 2, formulas))
    result = bound(gauge_complete(4, 0.5, seed=4), "g_bp")
    assert (result.status, result.diagnostics["out_of_steps"], result.diagnostics["stalled"]) == (
        "not converged",
        1.0,
        0.0,
    )
