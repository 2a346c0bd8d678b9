"""Blocks against enumeration, on each backend: exact where one block holds all, exact in law where several do."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding
from spinbench.inference.kernels import Wish
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.methods.blocks.blocks import Blocks
from spinbench.methods.blocks.planning import cover, partition
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.reference.orders.order import pairs_of
from spinbench.testing.laws.cases import enumerate_graph

BACKENDS = ["numpy", "jax", "numba"]
CHAINS, GROUPS = 4096, 64
SIZE = 12
"""Entries of a table with which 7 variables take several blocks."""


def graph(seed: int, zeros: bool, scale: float = 1.3) -> FactorGraph:
    """7 variables of 2 and 3 states, factors of 1 to 3 in any order of their variables, two over the same scope."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(2, 4, size=7)
    scopes = [rng.permutation(7)[: rng.integers(1, 4)] for _ in range(12)]
    scopes += [np.array([4, 0, 2]), np.array([2, 4, 0])]
    tables = [scale * rng.normal(size=cards[scope]) for scope in scopes]
    for table in tables if zeros else ():
        if table.ndim > 1:
            table.flat[rng.integers(table.size)] = -np.inf
    return FactorGraph.from_log_tables(cards, list(zip(scopes, tables, strict=True)), log_constant=0.3)


def law(model: FactorGraph) -> tuple[np.ndarray, np.ndarray]:
    """All states (M, N), and their probabilities."""
    axes = (np.arange(k) for k in model.cardinalities)
    states = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, model.num_variables)
    weights = model.log_weight(states)
    p = np.exp(weights - weights.max())
    return states, p / p.sum()


def engine(model: FactorGraph, method: Blocks, backend: str) -> Any:
    bound = binding.bind(
        method, backend, model, method.plan(model), precision="float64", device="cpu", wish=Wish(None, None)
    )
    return bound.engine


def close(rows: np.ndarray, expected: np.ndarray) -> bool:
    """Whether means over chains (R, C) of independent draws are the expected ones."""
    groups = rows.reshape(len(rows), GROUPS, -1).mean(axis=-1)
    limit = 5 * groups.std(axis=1, ddof=1) / np.sqrt(GROUPS) + 1e-9
    return bool((np.abs(groups.mean(axis=1) - expected) < limit).all())


@pytest.mark.parametrize("backend", BACKENDS)
def test_one_block_is_exact(backend: str) -> None:
    model = graph(1, zeros=True)
    log_z, marginals = enumerate_graph(model)
    found = spinbench.run(model, Blocks(size=4096), backend, budget=8, chains=3)
    assert (found.status, found.log_z_kind) == ("ok", "exact")
    assert found.log_z == pytest.approx(log_z, abs=1e-12)
    np.testing.assert_allclose(np.hstack(found.marginals), np.hstack(marginals), rtol=0, atol=1e-12)


@pytest.mark.parametrize("backend", BACKENDS)
def test_exact_draws_stay_exact(backend: str) -> None:
    model = graph(2, zeros=True, scale=0.5)
    states, p = law(model)
    start = states[np.random.default_rng(0).choice(len(p), size=CHAINS, p=p)].T.astype(np.int8)
    bound = engine(model, Blocks(size=SIZE), backend)
    _, seen = bound.advance(bound.init(0, start), 3)
    assert close(seen["p"] / 3, np.hstack(enumerate_graph(model)[1]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_zeros_have_a_floor_at_higher_temperatures(backend: str) -> None:
    """The law at β = .1, where a zero is the lowest finite entry less 25: p(feasible), and E[log p*] there."""
    model, beta = graph(2, zeros=True), 0.1
    tables = factor_tables(model)
    states, _ = law(model)
    entries = tables.positions(states.T)
    ends = zip(tables.offsets[:-1], tables.offsets[1:], strict=True)
    parts = [tables.values[a:b] for a, b in ends]
    floors = np.array([part[part > -np.inf].min() for part in parts]) - 25
    weights = beta * np.maximum(tables.values[entries], floors[:, None]).sum(axis=0)
    p = np.exp(weights - np.logaddexp.reduce(weights))
    slopes = tables.values[entries].sum(axis=0)
    feasible = np.isfinite(slopes)
    assert 0.02 < p[feasible].sum() < 0.98
    start = np.zeros((7, CHAINS), dtype=np.int8)
    bound = engine(model, Blocks(size=SIZE), backend)
    _, seen = bound.climb(bound.init(0, start), np.array([0.0, beta]), 10)
    last = seen[-1, 1]
    there = np.isfinite(last)
    found = np.stack([there, np.where(there, last, 0.0)])
    assert close(found, np.array([p[feasible].sum(), (p * np.where(feasible, slopes, 0.0)).sum()]))


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_weights_beyond_what_floating_point_holds(backend: str) -> None:
    model = graph(3, zeros=True, scale=400.0)
    log_z, marginals = enumerate_graph(model)
    found = spinbench.run(model, Blocks(size=4096), backend, budget=8, chains=3)
    assert found.log_z == pytest.approx(log_z, rel=1e-12)
    np.testing.assert_allclose(np.hstack(found.marginals), np.hstack(marginals), rtol=0, atol=1e-9)


PAIRS = [(i, j) for i in range(5) for j in range(i)]
FRUSTRATED = FactorGraph.from_log_tables([2] * 5, [(e, np.where(np.eye(2), -263.3, 0.1 * sum(e))) for e in PAIRS])
TORN = PairwiseModel.from_edges([0.58, -0.15, -0.73, -0.04], [(0, 1), (1, 3), (2, 3)], [94.08, -752.06, 1.32])


@pytest.mark.parametrize(("model", "precision"), [(FRUSTRATED, "float64"), (TORN, "float32")])
def test_what_sums_lose_is_not_what_later_factors_leave(
    model: FactorGraph | PairwiseModel, precision: Literal["float32", "float64"]
) -> None:
    """No sum of a bucket is small, but all that one of them holds for next to nothing is all that is possible."""
    found = spinbench.run(model, "blocks", "numba", budget=8, chains=3, precision=precision)
    exact = spinbench.exact(model, cache=False)
    assert found.log_z == pytest.approx(exact.log_z, abs=1e-9)  # in float64, with which a bound is one
    np.testing.assert_allclose(found.marginals, exact.marginals, rtol=0, atol=1e-5)


@pytest.mark.parametrize("log_z", ["chib_bar", "stones"])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_log_z_of_several_blocks(backend: str, log_z: str) -> None:
    model = graph(4, zeros=False)
    exact, marginals = enumerate_graph(model)
    found = spinbench.run(model, Blocks(size=SIZE, log_z=log_z), backend, budget=400, chains=16)
    assert (found.status, list(found.log_z_estimates)) == ("ok", [log_z])
    assert 0 < found.log_z_se < 0.2
    assert abs(found.log_z - exact) < 5 * found.log_z_se
    error = np.hstack(found.marginals) - np.hstack(marginals)
    assert (np.abs(error) < 5 * np.hstack(found.marginals_se)).all()


def test_states_from_which_the_mode_cannot_be_reached() -> None:
    """x0 = x1 with a third variable that is 0 in both or free: T(s* <- s) is 0 from some states; log Z holds."""
    equal = np.where(np.eye(2), 0.0, -np.inf)
    tables = [((v, v + 1), equal) for v in range(3)] + [((0, 4), np.array([[0.3, -np.inf], [0.2, 1.0]]))]
    tables += [((v, 4), np.array([[0.0, 0.4], [-0.2, 0.1]])) for v in (1, 2, 3)]
    model = FactorGraph.from_log_tables([2] * 5, tables)
    log_z, _ = enumerate_graph(model)
    found = spinbench.run(model, Blocks(size=4), "numpy", budget=200, chains=16)
    assert "log Z unresolved" in found.status or abs(found.log_z - log_z) < 5 * found.log_z_se


@pytest.mark.parametrize("size", [4, 9, 30])
def test_plans_cover_all_with_bounded_buckets(size: int) -> None:
    model = graph(5, zeros=False)
    tables = Blocks(size=size).plan(model)
    assert tables.cards.prod(axis=1).max() <= size
    cards, pairs = np.array(model.cardinalities), pairs_of(factor.scope for factor in model.factors)
    blocks = cover(cards, pairs, size, 2)
    assert set().union(*blocks) == set(range(7))
    assert sorted(v for block in partition(cards, pairs, size, blocks[0]) for v in block) == list(range(7))
    assert tables.share[: tables.starts[len(blocks)]].sum() == pytest.approx(7)


def test_refusals() -> None:
    with pytest.raises(UnsupportedError, match="3 states; size=2 takes at most 2"):
        Blocks(size=2).plan(graph(1, zeros=False))
    for settings in ({"size": 1}, {"blocks": 1}, {"log_z": "chib"}):
        with pytest.raises(SpinbenchError, match="was given"):
            Blocks(**settings)
