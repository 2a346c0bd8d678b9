"""Gibbs' stepping stones on every backend, against enumeration: fixed seeds, tolerances in claims."""

from __future__ import annotations

from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from small_graphs import chi_square, random_pairs

import spinbench
from spinbench.errors import InvalidResultError
from spinbench.inference import binding
from spinbench.inference.origins import model_for_method
from spinbench.mathematics.graphs import rows, sweep_layouts
from spinbench.methods.gibbs import stones
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import generators
from spinbench.models.generators import planar_glass
from spinbench.models.groups import merge_groups

BACKENDS = ["numpy", "numba", "jax"]
GROUPS = ((0, 3, 4), (1, 2))


MODELS = {
    "dense": random_pairs(6, 1.0, 1.0, 0),
    "lists": random_pairs(8, 0.4, 1.0, 1),
    "many blocks": random_pairs(7, 1.0, 0.7, 7),
    "groups": random_pairs(10, 0.4, 1.0, 5, groups=GROUPS),
    "many blocks of groups": random_pairs(10, 1.0, 0.5, 6, groups=GROUPS),
}


@cache
def states_and_log_weights(name: str) -> tuple[np.ndarray, np.ndarray]:
    """States (S, N) of positive weight, and log p* of each, less the constant."""
    model = MODELS[name]
    states = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    weights = model.log_weight(states) - model.log_constant
    return states[np.isfinite(weights)], weights[np.isfinite(weights)]


@cache
def bind_engine(name: str, backend: str, method: Gibbs, precision: Any = "float64") -> Any:
    with pytest.MonkeyPatch.context() as patch:
        if name.startswith("many blocks"):
            patch.setattr(sweep_layouts, "MAX_BLOCKS", 4)
        if name == "lists":
            patch.setattr(rows, "DENSE_FACTOR", 0)
            patch.setattr(rows, "MAX_WINDOWS", 0)
        bound_model = model_for_method(MODELS[name], method)
        return binding.bind(method, backend, bound_model, method.plan(bound_model), precision=precision).engine


def draw_states(name: str, beta: float, count: int) -> np.ndarray:
    """(N, count) exact draws of p*^beta, of the variables that samplers have in place of groups."""
    states, weights = states_and_log_weights(name)
    law = np.exp(beta * weights)
    draws = states[np.random.default_rng(2).choice(len(law), size=count, p=law / law.sum())]
    if MODELS[name].groups:
        origin = merge_groups(MODELS[name]).origin
        assert origin is not None
        draws = origin.lower(draws)
    return draws.T.astype(np.int8)


def p_value(name: str, beta: float, slopes: np.ndarray) -> float:
    """Of a χ² test that slopes are those of draws of p*^beta; each must be one that a state has."""
    values, number = np.unique(states_and_log_weights(name)[1].round(9), return_counts=True)
    nearest = abs(slopes[:, None] - values).argmin(axis=1)
    np.testing.assert_allclose(slopes, values[nearest], atol=1e-4)
    law = number * np.exp(beta * values)
    return chi_square(np.bincount(nearest, minlength=len(values)), law / law.sum())


STATIONARY = [
    (backend, name, scan)
    for backend in BACKENDS
    for name in MODELS
    for scan in ("chromatic", "raster", "random")
    if scan == "chromatic" or (backend != "jax" and name in ("dense", "groups"))
]


@pytest.mark.parametrize(("backend", "name", "scan"), STATIONARY)
def test_tempered_sweeps_leave_their_law_as_it_is(backend: str, name: str, scan: Any) -> None:
    engine = bind_engine(name, backend, Gibbs(scan=scan, log_z="stones"))
    state = engine.init(4, draw_states(name, 0.6, 20_000))
    state, slopes = engine.temper(state, np.array([0.6]), 3)
    assert slopes.shape == (3, 1, 20_000)
    assert p_value(name, 0.6, slopes[-1, 0]) > 1e-3
    np.testing.assert_allclose(engine.slope(state)["slope"], slopes[-1, 0], rtol=1e-9)
    _, slopes = engine.temper(state, np.array([0.0]), 1)
    assert p_value(name, 0.0, slopes[0, 0]) > 1e-3


@pytest.mark.parametrize("backend", BACKENDS)
def test_draws_at_temperature_infinity_are_independent(backend: str) -> None:
    """Of where the chains were, and of each other."""
    engine = bind_engine("dense", backend, Gibbs(log_z="stones"), "float32")
    state = engine.init(4, np.ones((6, 20_000), dtype=np.int8))
    _, slopes = engine.temper(state, np.zeros(2), 2)
    for now in slopes.reshape(4, -1):
        assert p_value("dense", 0.0, now) > 1e-3
    noise = 1 / np.sqrt(20_000)
    assert abs(np.corrcoef(slopes.reshape(4, -1))[np.triu_indices(4, 1)]).max() < 4 * noise


def test_the_default_climbs_where_the_look_from_both_sides_cannot_see() -> None:
    weak, strong = planar_glass(4, beta=0.2), planar_glass(16, beta=0.4)
    for model, expected in ((weak, "chib_bar"), (strong, "stones")):
        result = spinbench.run(model, "gibbs", "numba", 2000)
        assert list(result.log_z_estimates) == [expected]
        assert result.status == "ok"
        assert result.log_z_se is not None
        assert abs(result.log_z - spinbench.exact(model).log_z) <= 4 * result.log_z_se
        assert result.burn_in <= 1.4 * 400


@pytest.mark.parametrize("seed", [1, 2])
def test_chains_that_were_cooled_too_fast_resolve_no_log_z(seed: int) -> None:
    """Each is stuck where it came to; log p* along the way differs less between them than marginals do."""
    model = planar_glass(24, beta=1.5)
    result = spinbench.run(model, "gibbs", "numba", 2000, seed=seed)
    assert result.log_z < spinbench.exact(model).log_z - 3
    assert result.status == "marginals not mixed, log Z unresolved"
    assert result.evidence["log_z"].level == "doubtful"


def test_a_budget_in_seconds_climbs_within_its_burn_in() -> None:
    result = spinbench.run(planar_glass(16, beta=0.4), "gibbs", "numba", "300 ms")
    assert list(result.log_z_estimates) == ["stones"]
    assert result.log_z_se is not None
    assert abs(result.log_z - spinbench.exact(planar_glass(16, beta=0.4)).log_z) <= 4 * result.log_z_se


def test_a_kernel_without_the_looks_that_log_z_needs_is_told_so() -> None:
    """As one of another distribution may be: `look` has a default, which sees nothing."""
    blind: Any = SimpleNamespace(look=lambda state: {})
    with pytest.raises(InvalidResultError, match="gave nothing; the method needs 'log_t', 'log_r'"):
        stones.measure_overlap(blind, None, 0.0, 8)


@pytest.mark.parametrize(
    ("backend", "samples", "max_ratio"), [("numba", (4_000, 64_000), 0.45), ("numpy", (500, 8_000), 0.7)]
)
def test_the_error_falls_with_the_length_of_the_run(backend: str, samples: tuple[int, int], max_ratio: float) -> None:
    """Though burn-in is as long, in which the shorter run climbs more than what a twentieth of its steps allows."""
    model = generators.grid(6, 6, c2=0.4, seed=3)
    exact = spinbench.exact(model).log_z
    options = {"burn_in": 300, "log_z": "stones", "seed": 2, "chains": 32, "simplify": False}
    short, long = (spinbench.run(model, "gibbs", backend, n, **options) for n in samples)
    assert long.log_z_se < max_ratio * short.log_z_se
    assert all(abs(run.log_z - exact) < 4 * run.log_z_se for run in (short, long))
