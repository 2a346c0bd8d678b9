"""Compiled bucket elimination and its search for orders, against NumPy's bucket tree and enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

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


def cliques(problem, order):
    """The sizes of the cliques that an order meets, found naively."""
    states = problem.cardinalities
    nearby = [set() for _ in states]
    for scope in problem.network.tables:
        for u, v in itertools.permutations(scope, 2):
            nearby[u].add(v)
    met = []
    for v in order.tolist():
        met.append((len(nearby[v]), int(np.prod([states[u] for u in nearby[v]], dtype=float) * states[v])))
        for u in nearby[v]:
            nearby[u] = (nearby[u] | nearby[v]) - {u, v}
    return met


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


@pytest.mark.parametrize("name", ["uai14/Segmentation_12", "uai14/CSP_12", "uai14/Promedus_24", "libdai/alarm"])
def test_order_is_what_it_says(name):
    problem = Problem(catalogue.load(name))
    found = problem.order
    assert sorted(found.order.tolist()) == list(range(len(problem.cardinalities)))
    met = cliques(problem, found.order)
    assert found.width == max(width for width, _ in met)
    assert 2**found.log2_largest == pytest.approx(max(entries for _, entries in met), rel=1e-5)
    assert 2**found.log2_total == pytest.approx(sum(entries for _, entries in met), rel=1e-5)


def test_trees_get_width_one_and_rings_two():
    rng = np.random.default_rng(0)
    n = 1200
    tree = [(int(rng.integers(v)), v) for v in range(1, n)]
    ring = [(v, (v + 1) % n) for v in range(n)]
    star = [(0, v) for v in range(1, n)]
    double = [(hub, v) for v in range(2, n) for hub in (0, 1)]
    for edges, width in ((tree, 1), (star, 1), (ring, 2), (double, 2)):
        model = PairwiseModel.from_edges(rng.normal(size=n), edges, rng.normal(size=len(edges)))
        answer = solved(model)
        assert answer.width == width
        assert_same(answer, reference.solve(model, method="bucket_tree", cache=False), 1e-9)


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
        cards = model.cardinalities
        grid = np.array(list(itertools.product(*map(range, cards))))
        p = np.exp(model.log_weight(grid) - reference.solve(model, method="enumeration", cache=False).log_z)
        seen = np.bincount(np.ravel_multi_index(states.T, cards), minlength=len(p))
        assert not seen[p == 0].any()
        rare = p * draws < 10
        expected, counted = np.append(p[~rare], p[rare].sum()) * draws, np.append(seen[~rare], seen[rare].sum())
        some = expected > 5
        chi2 = ((counted - expected)[some] ** 2 / expected[some]).sum()
        assert chi2 < some.sum() + 5 * np.sqrt(2 * some.sum())


def test_only_what_pays_is_compiled(monkeypatch, random_pairwise):
    """By default a small model does without Numba, and a wide one is worth its loading."""
    monkeypatch.setattr(CompiledTree, "build", None)
    small = random_pairwise(14, 0.9, 1.0, 0)
    assert answers.solve(small, method="bucket_tree", cache=False).method == "bucket_tree"
    wide = random_pairwise(30, 1.0, 1.0, 0)
    with pytest.raises(TypeError):
        answers.solve(wide, method="bucket_tree", cache=False)
