"""Compiled bucket elimination and its search for orders, against NumPy's bucket tree and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from small_graphs import keeps_law

from spinbench import reference
from spinbench.backends.numba.exact.tree import CompiledTree
from spinbench.errors import IntractableError, ModelError
from spinbench.inference import answers
from spinbench.models import FactorGraph, PairwiseModel, catalogue
from spinbench.reference.problem import Problem
from spinbench.reference.solver import PrecisionError

LONG = {f"uai14hard/{stem}" for stem in ("CSP_11", "Grids_15", "linkage_16", "linkage_21")}
# Solved within two seconds and a gigabyte.
QUICK = [name for name in catalogue.names() if name not in {*LONG, catalogue.UNANSWERED}]


def assert_same(answer, expected, tolerance=1e-12):
    assert answer.log_z == pytest.approx(expected.log_z, rel=tolerance, abs=tolerance)
    for got, want in zip(answer.marginals, expected.marginals, strict=True):
        np.testing.assert_allclose(got, want, rtol=0, atol=tolerance)


def solved(model, **options):
    return reference.solve(model, method="bucket_tree", solvers=answers.numba_solvers(), cache=False, **options)


def test_agrees_with_enumeration(small_model):
    assert_same(solved(small_model), reference.solve(small_model, method="enumeration", cache=False))


@pytest.mark.parametrize("seed", range(25))
def test_random_models(random_pairwise, random_graph, seed):
    """Wider ones too, of which a table is more than one block."""
    for model in (
        random_pairwise(22, 0.8, 1.0, seed),
        random_pairwise(30, 0.15, 2.0, seed),
        random_graph(14, 26, 0.2 if seed % 2 else 0.0, seed),
    ):
        expected = reference.solve(model, method="bucket_tree", cache=False)
        assert_same(solved(model), expected)
        bare = solved(model, marginals=False)
        assert bare.log_z == pytest.approx(expected.log_z, rel=1e-12, abs=1e-12)
        assert bare.marginals == ()


@pytest.mark.parametrize("states", [3, 13, 50, 3000])
def test_many_states(states):
    """Blocks of one axis that has more states than a block should hold, too."""
    rng = np.random.default_rng(states)
    cards = [2, states, 3, 2, 4] if states > 100 else [states, 2, states, 3, states, 2]
    pairs = list(itertools.combinations(range(len(cards)), 2))[: 12 if states < 20 else 7]
    model = FactorGraph.from_log_tables(cards, [(e, rng.normal(size=[cards[v] for v in e])) for e in pairs])
    assert_same(solved(model), reference.solve(model, method="bucket_tree", cache=False))


def test_factors_of_many_variables_in_any_order():
    rng = np.random.default_rng(3)
    for _ in range(5):
        scopes = [rng.permutation(16)[:6].tolist() for _ in range(8)]
        model = FactorGraph.from_log_tables([2] * 16, [(s, rng.normal(size=(2,) * 6)) for s in scopes])
        assert_same(solved(model), reference.solve(model, method="enumeration", cache=False))


@pytest.mark.parametrize("name", QUICK)
def test_shipped_models(name):
    model, trusted = catalogue.load(name), catalogue.reference(name)
    answer = solved(model)
    assert answer.log_z == pytest.approx(trusted.log_z, rel=1e-9, abs=1e-12)
    if trusted.marginals is not None:
        got = np.concatenate([np.atleast_1d(p) for p in model.original_marginals(
            answer.probabilities if isinstance(model, PairwiseModel) else answer.marginals
        )])  # fmt: skip
        want = np.concatenate([np.atleast_1d(p) for p in trusted.marginals])
        np.testing.assert_allclose(got, want, rtol=0, atol=1e-9)


def test_long_loops():
    """A chain of messages that long keeps its scale; logarithms give the same answer."""
    n = 20_000
    rng = np.random.default_rng(1)
    model = PairwiseModel.from_edges(rng.normal(size=n), [(v, (v + 1) % n) for v in range(n)], rng.normal(size=n))
    answer, expected = solved(model), reference.solve(model, method="bucket_tree", cache=False)
    assert answer.log_z == pytest.approx(expected.log_z, rel=1e-12)
    np.testing.assert_allclose(answer.probabilities, expected.probabilities, rtol=0, atol=1e-11)


def test_underflow_turns_to_logarithms():
    """Couplings whose product leaves the range of float64."""
    rng = np.random.default_rng(0)
    edges = list(itertools.combinations(range(16), 2))
    model = PairwiseModel.from_edges(300 * rng.normal(size=16), edges, 300 * rng.normal(size=len(edges)))
    with pytest.raises(PrecisionError):
        CompiledTree.build(Problem(model)).solve(marginals=True)
    assert_same(solved(model), reference.solve(model, method="enumeration", cache=False))
    with pytest.raises(IntractableError, match="bucket_tree meets width 15 and would take"):
        solved(model, max_bytes=CompiledTree.build(Problem(model)).memory(marginals=True))
    states = reference.sample(model, 50, method="bucket_tree", solvers=answers.numba_solvers())
    log_z = reference.solve(model, method="enumeration", cache=False).log_z
    assert (model.log_weight(states) > log_z - 30).all()


def test_no_weight_is_refused():
    model = FactorGraph.from_log_tables(
        [2, 2, 2], [(e, [[-np.inf, 0.0], [0.0, -np.inf]]) for e in ((0, 1), (1, 2), (0, 2))]
    )
    with pytest.raises(ModelError, match="Z = 0"):
        solved(model)


def test_samples_have_the_distribution(random_graph, random_pairwise):
    """Chi-square over all joint states."""
    for model in (random_graph(6, 8, 0.3, 4), random_pairwise(7, 0.6, 1.0, 4)):
        draws = 40_000
        states = reference.sample(model, draws, seed=1, method="bucket_tree", solvers=answers.numba_solvers())
        again = reference.sample(model, draws, seed=1, method="bucket_tree", solvers=answers.numba_solvers())
        np.testing.assert_array_equal(states, again)
        assert keeps_law(model, states.T)
