"""The gauged methods on NumPy, Numba and JAX: one kernel, the same bounds."""

from __future__ import annotations

import gauge_models as zoo
import numpy as np
import pytest

import spinbench
from spinbench.backends.jax import JaxBackend
from spinbench.methods.gauge.ascent.newton import Ascents, Maximisation
from spinbench.methods.gauge.ascent.objectives import formulas_of
from spinbench.models.forney import convert
from spinbench.models.networks import gauge_complete, gauge_regular

ENGINES = ["numpy", "numba", "jax"]
# Edges between the same two nodes.
PARALLEL = [(0, 1), (0, 1), (0, 1), (1, 2), (2, 3), (2, 3), (0, 3)]
RULES = Maximisation(0.05, 0.1, 1e-9, 40, 41)


def models():
    """Nodes of three to five edges, parallel edges, two components, and a 3-regular graph."""
    rng = np.random.default_rng(7)
    apart = zoo.side_by_side([zoo.random_tables(zoo.complete(n), 0.3, rng) for n in (4, 5)])
    regular = convert.to_forney(gauge_regular(nodes=24, degree=3, beta=0.3, seed=1), 0)
    return [zoo.random_tables(zoo.complete(6), 0.3, rng), zoo.random_tables(PARALLEL, 0.3, rng), apart, regular]


@pytest.mark.parametrize(("which", "joint"), [(0, False), (1, True), (2, True), (3, False)])
def test_steps_on_jax_are_those_on_numpy(which, joint):
    model = models()[which]
    backend = JaxBackend()
    ascents = [Ascents(model, joint), Ascents(model, joint, formulas_of(backend.xp, backend.compile))]
    z = np.random.default_rng(0).normal(scale=0.02, size=ascents[0].size)
    plain, compiled = (each.newton(z, RULES) for each in ascents)
    assert plain.end == compiled.end == ""
    for _ in range(6):
        plain.step()
        compiled.step()
        assert compiled.residual == pytest.approx(plain.residual, rel=1e-8, abs=1e-12)
        assert compiled.z == pytest.approx(plain.z, abs=1e-8)
        assert compiled.end == plain.end
    assert np.abs(plain.z - z).max() > 0.01


def test_far_logits_that_are_pushed_outwards_stay():
    model = zoo.random_tables(zoo.complete(4), 20.0, np.random.default_rng(0))
    z = np.zeros(3 * model.num_edges)
    z[2 * model.num_edges :] = np.where(np.arange(model.num_edges) % 2, 17.0, -17.0)
    z[2 * model.num_edges] = 0.3
    newton = Ascents(model, joint=True).newton(z, RULES)
    for _ in range(3):
        newton.step()
    assert (newton.z[2 * model.num_edges :] == z[2 * model.num_edges :]).any()
    assert newton.z[2 * model.num_edges] != 0.3


def test_results_say_what_numpy_computes():
    model = gauge_complete(4, 0.5, seed=0)
    found = {backend: spinbench.run(model, "g_bp_sequential", backend, "5 samples").notes for backend in ENGINES}
    assert found["numpy"] == ()
    assert any("NumPy's" in note for note in found["numba"])
    assert any("bounded in NumPy" in note for note in found["jax"])
