"""Rungs that look probabilities up: D of the states, the law of every rung, and which models and ladders they take."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.backends.numba.tempering.looked_up import LookedUp
from spinbench.backends.numba.tempering.rung_tables import fit_layout
from spinbench.inference import binding
from spinbench.methods.tempering.pt import ParallelTempering
from spinbench.models import PairwiseModel

RUNGS = 5


def ring(n: int, apart: int) -> PairwiseModel:
    """Each variable with its next ones up to `apart` away, so that it has twice as many neighbours."""
    rng = np.random.default_rng(n)
    edges = np.array([sorted((i, (i + k) % n)) for i in range(n) for k in range(1, apart + 1)])
    return PairwiseModel.from_edges(rng.normal(size=n), edges, 1.5 * rng.normal(size=len(edges)), log_constant=0.3)


@pytest.mark.parametrize(("apart", "ladders", "precision"), [(2, 7, "float32"), (3, 40, "float64")])
def test_every_rung_keeps_its_law(apart: int, ladders: int, precision: str) -> None:
    """With 4 rungs to a vector, and with vectors beside each other; D is that of the states that have swapped."""
    model, steps = ring(9, apart), 1500
    method = ParallelTempering(rungs=RUNGS)
    tables = method.plan(model)
    engine = binding.bind(method, "numba", model, tables, precision=precision).engine
    states = (np.arange(2**9)[:, None] >> np.arange(9)) & 1
    weights = model.log_weight(states) - model.log_constant
    state = engine.warm(engine.init(3, states[np.arange(ladders) * 11 % 512].T.astype(np.int8)), 100)
    form = engine._form_for(ladders)
    assert isinstance(form, LookedUp)

    state = engine.adapt(state, True)
    state = engine.warm(state, 1)
    share, groups, columns, _ = form._layout
    for k in range(ladders):
        of = [(r % columns * groups + k // share, r // columns * share + k % share) for r in range(RUNGS)]
        found = np.array([state.replicas.x[v, :-1, c] > 0 for v, c in of])[:, np.argsort(tables.replicas.order)]
        expected = model.log_weight(found.astype(np.int8)) - model.log_constant
        np.testing.assert_allclose(np.sort(state.sums.at[:, k]), np.sort(expected), atol=2e-5)

    state = engine.adapt(state, True)
    state = engine.warm(state, steps)
    seen = state.sums.at / steps
    for r, beta in enumerate(state.ladder.betas):
        law = np.exp(beta * weights - np.logaddexp.reduce(beta * weights))
        error = seen[r].std(ddof=1) / np.sqrt(ladders)
        assert abs(seen[r].mean() - law @ weights) < 4.5 * error


def test_marginals_and_log_z() -> None:
    model = ring(12, 2)
    exact = spinbench.exact(model, cache=False)
    found = spinbench.run(model, "pt", "numba", 1000, chains=16, sweeps=3, seed=2)
    assert found.status == "ok"
    assert found.marginals_se.max() < 0.01
    assert (np.abs(found.marginals - exact.marginals) < 4 * found.marginals_se).all()
    assert abs(found.log_z - exact.log_z) < 4 * found.log_z_se


@pytest.mark.parametrize(
    ("widest", "chains", "expected"),
    [(4, 3, 8), (4, 16, 16), (2, 17, 32), (5, 20, 32), (5, 16, None), (7, 64, None), (4, 100, 32)],
)
def test_what_has_room(widest: int, chains: int, expected: int | None) -> None:
    layout = fit_layout(widest, RUNGS, chains)
    assert (None if layout is None else layout.share) == expected
    if layout is not None:
        assert layout.share * layout.groups >= chains
        assert layout.columns * 32 // layout.share >= RUNGS
        assert layout.width + layout.bits <= 6
