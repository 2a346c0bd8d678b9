"""Nested and multicanonical sampling of factor graphs: levels, weights, Z without bias, and what they doubt."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import MODELS, bound, exact_start, law, marginals

import spinbench
from spinbench.api.estimate import verdict
from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.methods.baselines import nested
from spinbench.methods.baselines.flat import FlatHistogramProgram
from spinbench.methods.baselines.multicanonical import Multicanonical, initial_levels
from spinbench.methods.baselines.nested import NestedSampling, halves_distance
from spinbench.methods.baselines.shells import Points, Shells, label_share_above
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.models import FactorGraph


@pytest.mark.parametrize("name", ["zeros", "bits"])
def test_sweeps_keep_the_law_above_a_level(name: str) -> None:
    """States with so much weight as they leave labels room, drawn exactly, stay so."""
    method, count = NestedSampling(), 20_000
    tables, rng = method.plan(MODELS[name]), np.random.default_rng(2)
    shells, states = Shells(HostArrays()), law(MODELS[name])[0].astype(np.int32)
    d = shells.log_weights(tables.sweep.entries, states)
    level = float(np.quantile(d, 0.8))
    p = label_share_above(np, d, np.array(level))
    p /= p.sum()
    columns = rng.choice(len(p), size=count, p=p)
    moved = shells.sweep(rng, tables, Points(states[:, columns], d[columns], np.zeros(1)), np.array(level))
    strides = np.append(np.cumprod(np.array(MODELS[name].cardinalities)[::-1])[-2::-1], 1)
    frequencies = np.bincount(strides @ moved.x, minlength=len(p)) / count
    assert (moved.x != states[:, columns]).any(axis=0).mean() > 0.3
    np.testing.assert_array_less(np.abs(frequencies - p), 5 * np.sqrt(p * (1 - p) / count) + 1e-12)
    np.testing.assert_allclose(moved.d, shells.log_weights(tables.sweep.entries, moved.x), atol=1e-9)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", ["zeros", "bits"])
def test_z_is_unbiased_with_few_points_and_sweeps(name: str, backend: str) -> None:
    """Over 2560 runs of 4 points: where levels are those of the run itself, copies together make it biased."""
    tables, engine = bound(MODELS[name], backend, NestedSampling(points=4, sweeps=1))
    _, statistics = engine.advance(engine.init(5, np.zeros((6, 2560), dtype=np.int8)), 1)
    ratios = np.exp(statistics["z"] + float(tables.base) - law(MODELS[name])[2])
    assert 0.1 < ratios.std() < 3
    assert abs(ratios.mean() - 1) < 4 * ratios.std() / np.sqrt(len(ratios))


@pytest.mark.parametrize(("shift", "agree"), [(0.0, True), (0.5, False)])
def test_halves_of_the_chains_have_to_agree(shift: float, agree: bool) -> None:
    rng, method, name = np.random.default_rng(3), NestedSampling(), "bits"
    trace = Trace(method.reductions)
    for _ in range(20):
        z = 0.3 * rng.normal(size=16) + shift * (np.arange(16) >= 8)
        trace.add({"z": z, "square": 2 * z, "p": z + np.log(np.full((6, 1), 0.5))}, 1)
    assert (halves_distance(trace) < 3) == agree
    assert (verdict(method.estimate(MODELS[name], method.plan(MODELS[name]), trace)) == "ok") == agree


def test_too_many_levels_are_refused_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested, "MAX_PILOT_UPDATES", 1000)
    many = FactorGraph.from_log_tables([32] * 100, [((v,), 20 * np.eye(32)[0]) for v in range(100)])
    with pytest.raises(UnsupportedError, match="after 11 levels of 100 variables"):
        NestedSampling().plan(many)
    assert len(NestedSampling(levels=3).plan(many).levels) == 3


CHAINS = 4096


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("name", ["zeros", "bits"])
def test_reweighted_states_have_the_law(name: str, backend: str) -> None:
    """Of many chains that have been burnt in: marginals, and both means whose ratio is Z / Z_0."""
    model = MODELS[name]
    tables, engine = bound(model, backend, Multicanonical())
    state = engine.adapt(engine.warm(engine.init(2, exact_start(model, CHAINS)), 40), True)
    _, statistics = engine.advance(state, 1)
    s = (
        statistics["s"]
        if name != "bits"
        else np.stack([statistics["w"] - statistics["s"], statistics["s"]], axis=1).reshape(-1, CHAINS)
    )
    w, p = statistics["w"], s.sum(axis=1) / statistics["w"].sum()
    error = (s - p[:, None] * w).std(axis=1) / w.mean() / np.sqrt(CHAINS)
    np.testing.assert_array_less(np.abs(p - marginals(model)), 4.5 * error + 1e-9)
    assert error.max() < 0.03
    np.testing.assert_allclose(statistics["up"][0], w)
    a, b = statistics["up"][0], statistics["down"][0]
    log_z = float(tables.base) + statistics["levels"][0, 0] + np.log(a.mean() / b.mean())
    assert abs(log_z - law(model)[2]) < 4.5 * (a / a.mean() - b / b.mean()).std() / np.sqrt(CHAINS) < 0.3


def test_histograms_become_flat() -> None:
    """Of D, what lies beyond the end knots being counted there, from levels that are all 0."""
    tables = Multicanonical(bins=4).plan(MODELS["bits"])._replace(levels=np.zeros(5))
    program, rng = FlatHistogramProgram(HostArrays()), np.random.default_rng(3)
    state = program.init(rng, tables, exact_start(MODELS["bits"], 256).astype(float))
    for index in range(1, 201):
        state = program.warm(rng, tables, state, index)
    log_weights = []
    for _ in range(40):
        state = program.step(rng, tables, state)
        log_weights.append(state.d)
    shares = np.array([np.interp(np.concatenate(log_weights), tables.knots, unit).mean() for unit in np.eye(5)])
    assert (np.abs(5 * shares - 1) < 0.3).all()
    assert np.ptp(state.theta) > 0.5


def test_compiled_code_learns_the_levels_that_the_program_does() -> None:
    """θ after burn-in, of as many chains that start alike; both flatten the same histogram."""
    learnt = []
    for backend in ("numpy", "numba"):
        engine = bound(MODELS["bits"], backend, Multicanonical(bins=4))[1]
        state = engine.adapt(engine.warm(engine.init(2, exact_start(MODELS["bits"], CHAINS)), 60), True)
        _, statistics = engine.advance(state, 1)
        learnt.append(statistics["levels"][0, 0])
    assert abs(learnt[0] - learnt[1]) < 0.1


def test_levels_are_the_integral_of_beta() -> None:
    betas = np.linspace(0, 1, 11)
    knots, levels = initial_levels(betas, 10 * betas, 20)  # the mean of D is 10 β
    np.testing.assert_allclose(levels, knots**2 / 20, atol=1e-9)
    knots, levels = initial_levels(betas, np.full(11, 3.0), 4)
    assert (np.diff(knots) > 0).all()
    assert np.isfinite(levels).all()


@pytest.mark.parametrize("size", [1e-200, 1e305, np.inf])
def test_weights_that_no_square_holds_end_in_a_verdict(size: float) -> None:
    """Steep steps of θ that few visits have left make weights as small and as large as these."""
    method, model = Multicanonical(), MODELS["bits"]
    tables, trace = method.plan(model), Trace(method.reductions)
    rng = np.random.default_rng(5)
    for _ in range(8):
        w = size * rng.random(16)
        s = w * (rng.random((6, 16)) < 0.5) if np.isfinite(size) else np.full((6, 16), np.inf)
        trace.add(
            {"s": s, "w": w, "up": w[None], "down": np.ones((1, 16)), "levels": np.zeros((1, 16)), "trips": w}, 40
        )
    estimate = method.estimate(model, tables, trace)
    assert np.isfinite(estimate.marginals).all()
    assert verdict(estimate) != "ok" or size < 1


PARITY = np.array([[40.0, -40.0], [-40.0, 40.0], [40.0, -40.0], [-40.0, 40.0]])
STEEP = [((0, 1), 2 * PARITY), ((1,), np.array([-11.4, 14.8]))]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(
    ("model", "samples", "chains", "bins"),
    [
        # half of all states lie 80 nats below the others, and a fourth between: θ is linear there, and far too low
        pytest.param(FactorGraph.from_log_tables([4, 2], STEEP), 400, 100, 2, id="states that chains miss"),
        # levels of 300 bins that short burn-in leaves hold every chain where it has come to
        pytest.param(
            FactorGraph.from_log_tables([2] * 4, [((2,), [-105.69, -100.46])]), 60, 17, 300, id="a single way up"
        ),
    ],
)
def test_what_was_not_seen_of_the_hot_end_is_claimed(
    model: FactorGraph, samples: int, chains: int, bins: int, backend: str
) -> None:
    exact = spinbench.exact(model, cache=False).log_z
    for seed in range(5):
        result = spinbench.run(
            model, "multicanonical", backend, samples, chains=chains, seed=seed, bins=bins, simplify=False
        )
        assert abs(result.log_z - exact) < 4 * result.log_z_se
