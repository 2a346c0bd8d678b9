"""Nested sampling of factor graphs: sweeps above a level, Z without bias, and what it does not vouch for."""

from __future__ import annotations

import numpy as np
import pytest
from small_graphs import MODELS, bound, law

from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.methods.baselines import nested
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
    assert (method.estimate(MODELS[name], method.plan(MODELS[name]), trace).status == "ok") == agree


def test_too_many_levels_are_refused_before_anything_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nested, "MAX_PILOT_UPDATES", 1000)
    many = FactorGraph.from_log_tables([32] * 100, [((v,), 20 * np.eye(32)[0]) for v in range(100)])
    with pytest.raises(UnsupportedError, match="after 11 levels of 100 variables"):
        NestedSampling().plan(many)
    assert len(NestedSampling(levels=3).plan(many).levels) == 3
