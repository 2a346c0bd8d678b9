"""Joint probabilities of edges and factors against sums over all states."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import random_models
from random_models import many, tree

import spinbench
from spinbench import reference
from spinbench.errors import IntractableError, ModelError
from spinbench.models import FactorGraph, Model, PairwiseModel, condition, generators, to_pairwise
from spinbench.reference.heaviest import heaviest

MODELS = many(40, 5) + [tree(np.random.default_rng(seed), 6, 0.3) for seed in range(10)]


def enumerated(model: PairwiseModel | FactorGraph) -> list[np.ndarray]:
    """By the model's own log weights."""
    cards = model.cardinalities
    states = np.stack(np.unravel_index(np.arange(int(np.prod(cards))), cards), axis=1)
    log = model.log_weight(states)
    p = np.exp(log - log.max())
    p /= p.sum()
    if isinstance(model, PairwiseModel):
        return [np.array([p[(states[:, i] == 1) & (states[:, j] == 1)].sum() for i, j in model.edges])]
    found = []
    for factor in model.factors:
        place = np.zeros(len(p), dtype=np.int64)
        for v in factor.scope:
            place = place * cards[v] + states[:, v]
        found.append(np.bincount(place, p, minlength=factor.log_table.size))
    return found


def check(model: PairwiseModel | FactorGraph, *, atol: float = 1e-13) -> None:
    found = reference.pairs(model)
    tables = found if isinstance(model, FactorGraph) else [found]
    expected = enumerated(model)
    assert len(tables) == len(expected)
    for table, wanted in zip(tables, expected, strict=True):
        assert table.shape == wanted.shape
        np.testing.assert_allclose(table, wanted, atol=atol)


def random_graph(seed: int, *, zeros: float = 0.0) -> FactorGraph:
    rng = np.random.default_rng(seed)
    return random_models.graph(rng, 6, int(rng.integers(1, 9)), zeros)


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("zeros", [0.0, 0.4, 0.8])
def test_factors(seed: int, zeros: float) -> None:
    check(random_graph(seed, zeros=zeros))


@pytest.mark.parametrize(
    "model",
    [
        generators.grid(3, 4, seed=1),
        generators.complete(7, seed=2),
        PairwiseModel.from_edges([1.0, -2.0, 0.5], [[0, 2], [1, 2]], [0.0, 1.5]),
        PairwiseModel.from_edges([1.0], [], []),
        PairwiseModel.from_edges([0.3, 0.1, -1.0, 0.2, 0.7], [[0, 1], [1, 2], [0, 4], [2, 3], [3, 4]], [1.0] * 5,
                                 groups=[(0, 1, 2), (3,)]),
        to_pairwise(FactorGraph.from_log_tables([3, 2], [((0, 1), [[0.1, 1.0], [-1.0, 0.3], [0.0, 2.0]])])),
        condition(generators.grid(3, 4, seed=1), {5: 1, 0: 0}),
    ],
    ids=["grid", "complete", "a coupling of 0", "no edges", "groups", "1-of-K", "evidence"],
)  # fmt: skip
def test_edges(model: PairwiseModel) -> None:
    check(model)


def test_edges_are_the_derivatives_of_log_z() -> None:
    model, step = generators.grid(4, 5, seed=4), 1e-5
    found = spinbench.exact(model, pairs=True).pairs
    for e in (0, 7, 30):
        shifted = [
            PairwiseModel.from_edges(model.biases, model.edges, model.couplings + sign * step * (np.arange(31) == e))
            for sign in (1, -1)
        ]
        above, below = (spinbench.exact(each, cache=False).log_z for each in shifted)
        assert found[e] == pytest.approx((above - below) / (2 * step), abs=1e-8)


def test_refusals() -> None:
    with pytest.raises(IntractableError, match="bucket_tree"):
        reference.pairs(generators.complete(40, seed=1), max_bytes=2**20)
    even = np.where(np.indices((2,) * 4).sum(axis=0) % 2, -np.inf, 0.0)  # what zeros leave could be eliminated
    wide = FactorGraph.from_log_tables([2] * 16, [((i, i + 1, i + 5, i + 8), even) for i in range(8)])
    with pytest.raises(IntractableError, match=r"bucket_tree meets width \d+ and would take"):
        reference.pairs(wide, max_bytes=2**10)
    nothing = FactorGraph.from_log_tables(
        [2, 2], [((0, 1), [[0, -np.inf], [-np.inf, 0]]), ((0, 1), [[-np.inf, 0], [0, -np.inf]])]
    )
    with pytest.raises(ModelError, match="Z = 0"):
        reference.pairs(nothing)


def test_the_method_gives_pairs_and_draws_where_it_is_asked() -> None:
    for backend in ("numpy", "numba"):
        for model in (generators.grid(3, 3, seed=1), random_graph(5, zeros=0.3)):
            plain = spinbench.run(model, "exact", backend)
            assert plain.pairs is None
            assert plain.draws is None
            asked = spinbench.run(model, "exact", backend, pairs=True, draws=4000, seed=2)
            assert asked.log_z == plain.log_z
            expected = enumerated(model)
            for table, wanted in zip(
                asked.pairs if isinstance(model, FactorGraph) else [asked.pairs], expected, strict=True
            ):
                np.testing.assert_allclose(table, wanted, atol=1e-13)
            states, log_weights = asked.draws
            assert log_weights is None
            assert states.shape == (model.num_variables, 4000)
            shares = np.stack([(states == k).mean(axis=1) for k in range(max(model.cardinalities))], axis=1)
            for v, share in enumerate(shares):
                marginal = np.atleast_1d(asked.marginals[v])
                p = (
                    np.array([1 - marginal[0], marginal[0]])
                    if model.cardinalities.count(2) == model.num_variables
                    else marginal
                )
                error = 5 * np.sqrt(p * (1 - p) / 4000) + 1e-9
                assert (abs(share[: len(p)] - p) <= error).all()


def test_draws_are_of_the_variables_that_were_given() -> None:
    model = condition(generators.grid(3, 3, seed=1), {4: 1, 0: 0})
    states, _ = spinbench.run(model, "exact", "numpy", draws=7).draws
    assert states.shape == (9, 7)
    assert (states[4] == 1).all()
    assert (states[0] == 0).all()


def enumerated_weights(model: Model) -> np.ndarray:
    """Log weights of all states."""
    return model.log_weight(np.array(list(itertools.product(*(range(k) for k in model.cardinalities)))))


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_no_state_is_heavier(model: Model) -> None:
    state, weight = heaviest(model)
    assert state.shape == (model.num_variables,)
    assert state.dtype == np.int64
    assert weight == model.log_weight(state)
    assert weight == pytest.approx(enumerated_weights(model).max(), rel=1e-12, abs=1e-12)


def test_evidence_changes_it_as_it_should() -> None:
    model = generators.grid(3, 3, seed=2)
    state, _ = heaviest(model)
    other = condition(model, {4: 1 - int(state[4])})
    assert heaviest(other)[1] == pytest.approx(enumerated_weights(other).max(), rel=1e-12)


def test_a_wide_model_names_its_width_and_a_contradiction_is_refused() -> None:
    with pytest.raises(IntractableError, match=r"bucket_tree meets width 6 and would take .* is allowed"):
        heaviest(generators.grid(6, 6, seed=1), max_bytes=1000)
    tables = [((0,), [1.0, 0.0]), ((0, 1), [[0.0, 0.0], [1.0, 1.0]])]
    with pytest.raises(ModelError, match="Z = 0"):
        heaviest(FactorGraph.from_tables((2, 2), tables))
