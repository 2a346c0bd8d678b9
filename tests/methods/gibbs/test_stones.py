"""Gibbs' stepping stones on every backend, against enumeration: fixed seeds, tolerances in claims."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

import spinbench
from spinbench.errors import InvalidResultError
from spinbench.inference import binding
from spinbench.inference.origins import as_taken
from spinbench.mathematics.graphs import rows, sweep_layouts
from spinbench.methods.gibbs import stones
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel
from spinbench.models.convert import merge_groups
from spinbench.models.generators import planar_glass

BACKENDS = ["numpy", "numba", "jax"]
GROUPS = ((0, 3, 4), (1, 2))


def random_model(n: int, density: float, scale: float, seed: int, groups: Any = ()) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    W = np.triu(rng.normal(size=(n, n)) * scale, 1) * (rng.random((n, n)) < density)
    edges = np.argwhere(W)
    couplings = W[edges[:, 0], edges[:, 1]]
    return PairwiseModel.from_edges(scale * rng.normal(size=n), edges, couplings, log_constant=0.7, groups=groups)


MODELS = {
    "dense": random_model(6, 1.0, 1.0, 0),
    "lists": random_model(8, 0.4, 1.0, 1),
    "many blocks": random_model(7, 1.0, 0.7, 7),
    "groups": random_model(10, 0.4, 1.0, 5, GROUPS),
    "many blocks of groups": random_model(10, 1.0, 0.5, 6, GROUPS),
}


@cache
def slopes_and_multiplicities(name: str) -> tuple[np.ndarray, np.ndarray]:
    """The values that log p*, less the constant, takes on states, ascending, and of how many states each."""
    model = MODELS[name]
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    weights = model.log_weight(states) - model.log_constant
    values, counts = np.unique(weights[np.isfinite(weights)].round(9), return_counts=True)
    return values, counts


@cache
def bound(name: str, backend: str, method: Gibbs, precision: str = "float64") -> Any:
    with pytest.MonkeyPatch.context() as patch:
        if name.startswith("many blocks"):
            patch.setattr(sweep_layouts, "MAX_BLOCKS", 4)
        if name == "lists":
            patch.setattr(rows, "DENSE_FACTOR", 0)
            patch.setattr(rows, "MAX_WINDOWS", 0)
        given = as_taken(MODELS[name], method)
        return binding.bind(method, backend, given, method.plan(given), precision=precision).engine


def states_at(name: str, beta: float, count: int) -> np.ndarray:
    """(N, count) exact draws of p*^beta."""
    model = MODELS[name]
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    weights = model.log_weight(states) - model.log_constant
    allowed = np.isfinite(weights)
    law = np.where(allowed, np.exp(beta * np.where(allowed, weights, 0.0)), 0.0)
    draws = states[np.random.default_rng(2).choice(len(law), size=count, p=law / law.sum())]
    if model.groups:  # of the variables that samplers have in place of groups
        origin = merge_groups(model).origin
        assert origin is not None
        draws = origin.lower(draws)
    return draws.T.astype(np.int8)


def p_value(name: str, beta: float, slopes: np.ndarray) -> float:
    """Of a χ² test that slopes are those of draws of p*^beta; each must be one that a state has."""
    values, multiplicities = slopes_and_multiplicities(name)
    nearest = abs(slopes[:, None] - values).argmin(axis=1)
    np.testing.assert_allclose(slopes, values[nearest], atol=1e-4)
    expected = multiplicities * np.exp(beta * values)
    expected *= len(slopes) / expected.sum()
    counts = np.bincount(nearest, minlength=len(values))
    rare = expected < 10
    parts = [np.append(part[~rare], part[rare].sum()) for part in (counts, expected)]
    kept = parts[1] > 0
    return float(stats.chisquare(parts[0][kept], parts[1][kept]).pvalue)


STATIONARY = [
    (backend, name, scan)
    for backend in BACKENDS
    for name in MODELS
    for scan in ("chromatic", "raster", "random")
    if scan == "chromatic" or (backend != "jax" and name in ("dense", "groups"))
]


@pytest.mark.parametrize(("backend", "name", "scan"), STATIONARY)
def test_tempered_sweeps_leave_their_law_as_it_is(backend: str, name: str, scan: Any) -> None:
    engine = bound(name, backend, Gibbs(scan=scan, log_z="stones"))
    state = engine.init(4, states_at(name, 0.6, 20_000))
    state, slopes = engine.climb(state, np.array([0.6]), 3)
    assert slopes.shape == (3, 1, 20_000)
    assert p_value(name, 0.6, slopes[-1, 0]) > 1e-3
    np.testing.assert_allclose(engine.slopes(state)["slope"], slopes[-1, 0], rtol=1e-9)
    _, slopes = engine.climb(state, np.array([0.0]), 1)
    assert p_value(name, 0.0, slopes[0, 0]) > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_at_temperature_infinity_are_independent(backend: str) -> None:
    """Of where the chains were, and of each other."""
    engine = bound("dense", backend, Gibbs(log_z="stones"), "float32")
    state = engine.init(4, np.ones((6, 20_000), dtype=np.int8))
    _, slopes = engine.climb(state, np.zeros(2), 2)
    for now in slopes.reshape(4, -1):
        assert p_value("dense", 0.0, now) > 1e-3
    noise = 1 / np.sqrt(20_000)
    assert abs(np.corrcoef(slopes.reshape(4, -1))[np.triu_indices(4, 1)]).max() < 4 * noise


SETTINGS: dict[str, dict[str, Any]] = {
    "sweeps": {},
    "float32": {"precision": "float32"},
    "raster": {"scan": "raster", "marginals": "empirical"},
    "random": {"scan": "random"},
    "random updates": {"scan": "random", "sample": "update"},
    "updates": {"scan": "raster", "sample": "update"},
}


@pytest.mark.parametrize(
    ("backend", "name", "setting"),
    [
        (backend, name, setting)
        for backend in BACKENDS
        for name in ("dense", "groups", "lists")
        for setting in SETTINGS
        if backend == "numba" or (backend == "numpy" and name == "groups") or (name, setting) == ("groups", "random")
    ],
)
def test_stones_agree_with_enumeration(backend: str, name: str, setting: str) -> None:
    model, options = MODELS[name], SETTINGS[setting]
    samples = (400 if backend == "numpy" else 1500) * (model.num_variables if "sample" in options else 1)
    result = spinbench.run(model, "gibbs", backend, samples, seed=5, log_z="stones", **options)
    values, multiplicities = slopes_and_multiplicities(name)
    log_z = model.log_constant + np.log((multiplicities * np.exp(values)).sum())
    assert result.status == "ok"
    assert list(result.log_z_estimates) == ["stones"]
    assert result.log_z_se is not None
    assert result.log_z_se < 0.15
    assert abs(result.log_z - log_z) <= 4 * result.log_z_se
    assert result.diagnostics["log_z_weight_ess"] > 20
    assert result.diagnostics["log_z_overlap"] > 0.2
    states = spinbench.exact(model).marginals
    unseen = 12 / (16 * samples) if "marginals" in options else 0.0
    assert (abs(result.marginals - states) <= 4 * result.marginals_se + unseen).all()


def test_the_default_climbs_where_the_look_from_both_sides_cannot_see() -> None:
    weak, strong = planar_glass(4, beta=0.2), planar_glass(16, beta=0.4)
    for model, expected in ((weak, "chib_bar"), (strong, "stones")):
        result = spinbench.run(model, "gibbs", "numba", 2000)
        assert list(result.log_z_estimates) == [expected]
        assert result.status == "ok"
        assert result.log_z_se is not None
        assert abs(result.log_z - spinbench.exact(model).log_z) <= 4 * result.log_z_se
        assert result.burn_in <= 1.4 * 400


@pytest.mark.parametrize(("samples", "chains"), [(60, 16), (2000, 4), (2000, 1)])
@pytest.mark.parametrize("asked", ["auto", "stones"])
def test_what_is_too_short_or_of_too_few_chains_is_unresolved(samples: int, chains: int, asked: Any) -> None:
    result = spinbench.run(planar_glass(32, beta=0.4), "gibbs", "numba", samples, chains=chains, log_z=asked)
    assert "log Z unresolved" in result.status
    assert result.log_z_se is None or np.isinf(result.log_z_se)
    if samples == 60:
        assert result.diagnostics["stones_burn_in_needed"] > result.burn_in


def test_nothing_climbs_without_burn_in() -> None:
    result = spinbench.run(planar_glass(16, beta=0.4), "gibbs", "numba", 200, burn_in=0)
    assert result.burn_in == 0
    assert "log Z unresolved" in result.status


def test_a_budget_in_seconds_climbs_within_its_burn_in() -> None:
    result = spinbench.run(planar_glass(16, beta=0.4), "gibbs", "numba", "300 ms")
    assert list(result.log_z_estimates) == ["stones"]
    assert result.log_z_se is not None
    assert abs(result.log_z - spinbench.exact(planar_glass(16, beta=0.4)).log_z) <= 4 * result.log_z_se


def test_a_kernel_without_the_looks_that_log_z_needs_is_told_so() -> None:
    """As one of another distribution may be: `look` has a default, which sees nothing."""
    blind: Any = SimpleNamespace(look=lambda state: {})
    with pytest.raises(InvalidResultError, match="gave nothing; the method needs 'log_t', 'log_r'"):
        stones.overlap(blind, None, 0.0, 8)
