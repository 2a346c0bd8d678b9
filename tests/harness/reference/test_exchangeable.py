"""Sums over counts of exchangeable variables against enumeration, elimination and sums by hand."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

from spinbench import reference
from spinbench.errors import IntractableError, ModelError, UnsupportedError
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.reference.exchangeable.counting import Exchangeable, classes_of
from spinbench.reference.exchangeable.symmetry import Tables, exchangeable_classes, tables_by_shape
from spinbench.reference.problem import NotApplicableError, Problem


def complete(n: int) -> np.ndarray:
    return np.argwhere(np.triu(np.ones((n, n)), 1))


def log_binomial(n, k):
    return gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)


class Planted:
    """A factor graph of random classes, numbered at random, its factors turned and in random order."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = np.random.default_rng(seed)
        self.binary = rng.random() < 0.3
        while True:
            sizes = rng.integers(1, 6, size=rng.integers(1, 5))
            states = np.full(len(sizes), 2) if self.binary else rng.integers(2, 5, size=len(sizes))
            if 1 < sizes @ np.log2(states) <= 12:
                break
        self.zeros = 0.0 if self.binary else rng.choice([0.0, 0.1, 0.3])
        self.scale = rng.choice([0.3, 1.0, 4.0])
        label = np.repeat(np.arange(len(sizes)), sizes)
        self.members = [np.flatnonzero(label == c).tolist() for c in range(len(sizes))]
        self.states, self.cards = states.tolist(), states[label].tolist()
        self.factors: list[tuple[tuple[int, ...], np.ndarray]] = []
        for c, k in enumerate(self.states):
            if rng.random() < 0.8:
                self._add(itertools.product(self.members[c]), self._table(k))
            if rng.random() < 0.6:
                table = self._table(k, k)
                self._add(itertools.combinations(self.members[c], 2), table + table.T)
        for order, probability in ((2, 0.6), (3, 0.0 if self.binary else 0.3)):
            for classes in itertools.combinations(range(len(sizes)), order):
                if rng.random() < probability:
                    tuples = itertools.product(*(self.members[c] for c in classes))
                    self._add(tuples, self._table(*(self.states[c] for c in classes)))
        if rng.random() < 0.4:
            self._bridge(*rng.integers(0, len(sizes), 2).tolist())

    def _table(self, *shape: int) -> np.ndarray:
        logs = self.scale * self.rng.normal(size=shape)
        table = np.where(self.rng.random(shape) < self.zeros, -np.inf, logs)
        table.flat[0] = logs.flat[0]
        return table

    def _add(self, scopes, table: np.ndarray) -> None:
        self.factors += [(scope, table) for scope in scopes]

    def _bridge(self, a: int, b: int) -> None:
        """A variable of its own between each two of two classes, by one factor or by two."""
        if a == b:
            pairs = list(itertools.combinations(self.members[a], 2))
        else:
            pairs = list(itertools.product(self.members[a], self.members[b]))
        k = 2 if self.binary else int(self.rng.integers(2, 4))
        if np.log2(self.cards).sum() + len(pairs) * np.log2(k) > 14:
            return
        own, left, triple = (
            self._table(k),
            self._table(self.states[a], k),
            self._table(self.states[a], k, self.states[b]),
        )
        right = left if a == b else self._table(self.states[b], k)
        as_one = not self.binary and self.rng.random() < 0.5
        for u, v in pairs:
            bridge = len(self.cards)
            self.cards.append(k)
            self._add([(bridge,)], own)
            if as_one:
                self._add([(u, bridge, v)], triple + triple.transpose(2, 1, 0) if a == b else triple)
            else:
                self._add([(u, bridge)], left)
                self._add([(v, bridge)], right)

    def model(self) -> FactorGraph:
        new = self.rng.permutation(len(self.cards))
        tables = []
        for k in self.rng.permutation(len(self.factors)):
            scope, table = self.factors[k]
            turn = self.rng.permutation(len(scope))
            tables.append(([int(new[scope[axis]]) for axis in turn], table.transpose(turn)))
        for v, k in enumerate(self.cards):
            if self.rng.random() < 0.05:  # evidence
                tables.append(([int(new[v])], np.where(np.arange(k) == self.rng.integers(k), 0.0, -np.inf)))
        cards = np.empty(len(new), dtype=np.int64)
        cards[new] = self.cards
        return FactorGraph.from_log_tables(cards.tolist(), tables, log_constant=float(self.rng.normal()))


def outcome(model, method, **options):
    """The answer; None where Z = 0."""
    try:
        return reference.solve(model, method=method, cache=False, **options)
    except ModelError:
        return None


def test_random_classes_against_enumeration_and_elimination():
    compared = impossible = 0
    for seed in range(260):
        model = Planted(seed).model()
        try:
            counted = outcome(model, "exchangeable")
        except UnsupportedError:
            continue  # classes of one, or only variables of at most two neighbours
        enumerated, tree = outcome(model, "enumeration"), outcome(model, "bucket_tree")
        assert (counted is None) == (enumerated is None), seed
        if counted is None:
            impossible += 1
            continue
        for other in (enumerated, tree, outcome(model, "exchangeable", marginals=False)):
            assert counted.log_z == pytest.approx(other.log_z, rel=1e-12, abs=1e-12), seed
        for other in (enumerated, tree):
            np.testing.assert_allclose(counted.flat, other.flat, rtol=0, atol=1e-11, err_msg=str(seed))
        compared += 1
    assert compared > 160
    assert impossible > 1


def test_classes_are_found_whatever_the_numbering():
    """Sizes 4 and 3 of which the first has tables within, and two variables that are like no other."""
    label = np.array([0, 0, 0, 0, 1, 1, 1, 2, 3])
    edges = complete(9)
    value = np.array([[0.5, 0.2, 0.3, 0.4], [0.2, 0.0, 0.7, 0.1], [0.3, 0.7, 0.0, 0.9], [0.4, 0.1, 0.9, 0.0]])
    new = np.random.default_rng(1).permutation(9)
    model = PairwiseModel.from_edges(np.zeros(9), new[edges], value[label[edges[:, 0]], label[edges[:, 1]]])
    flat = Problem(model).flat
    classes = exchangeable_classes(tables_by_shape(flat), flat.states)
    assert {tuple(np.flatnonzero(classes == c)) for c in range(4)} == {
        tuple(sorted(new[label == c].tolist())) for c in range(4)
    }


def test_regular_graphs_are_not_exchangeable():
    """Colour refinement gives all variables of a cycle one colour; where tables are not symmetric, no two may swap."""
    cycle = [((v, (v + 1) % 7), np.eye(3)) for v in range(7)]
    oriented = [((u, v), np.array([[0.0, 1.0], [2.0, 0.0]])) for u, v in complete(5).tolist()]
    for factors, k in ((cycle, 3), (oriented, 2)):
        n = 1 + max(max(scope) for scope, _ in factors)
        # a hard zero, lest tables of binary variables be brought to one form
        model = FactorGraph.from_log_tables([k] * n, [*factors, ((0, 2), np.where(np.eye(k) > 0, -np.inf, 0.0))])
        with pytest.raises(UnsupportedError, match="exchangeable variables, and this model has none"):
            reference.solve(model, method="exchangeable", cache=False)


@pytest.mark.parametrize("n", [4, 200])
def test_complete_graph_with_some_odd_variables(n):
    """Against the sum over the states of three of them and the number of ones of the others."""
    odd, coupling = np.array([0.7, -0.2, 1.5]), 1.5 / n
    biases = np.concatenate([odd, np.full(n, -0.6)])
    edges = complete(n + 3)
    answer = reference.solve(
        PairwiseModel.from_edges(biases, edges, np.full(len(edges), coupling)), method="exchangeable"
    )
    k = np.arange(n + 1)
    logs = []
    for state in itertools.product([0, 1], repeat=3):
        ones = k + sum(state)
        logs.append(odd @ state - 0.6 * k + log_binomial(n, k) + coupling * ones * (ones - 1) / 2)
    log_z = logsumexp(logs)
    assert answer.log_z == pytest.approx(log_z, rel=1e-12)
    assert answer.probabilities[-1] == pytest.approx(np.sum(np.exp(np.array(logs) - log_z) @ k) / n, rel=1e-11)


@pytest.mark.parametrize(("n", "states"), [(7, 8), (6, 14)])
def test_few_variables_of_many_states_are_counted(n, states):
    """Before an order is searched for, though each has few neighbours."""
    rng = np.random.default_rng(n)
    table, field = rng.normal(size=(states, states)), rng.normal(size=states)
    factors = [(edge, table + table.T) for edge in complete(n).tolist()] + [((v,), field) for v in range(n)]
    model = FactorGraph.from_log_tables([states] * n, factors)
    answer = reference.solve(model, cache=False)
    assert answer.method == "exchangeable"
    eliminated = reference.solve(model, method="bucket_tree", cache=False, marginals=False)
    assert answer.log_z == pytest.approx(eliminated.log_z, rel=1e-12)


def test_hard_zeros_within_a_class():
    """5! colourings of the complete graph of 5, none with 4 colours; independent sets of a complete graph."""

    def colourings(colours):
        table = np.where(np.eye(colours) > 0, -np.inf, 0.0)
        return FactorGraph.from_log_tables([colours] * 5, [(scope, table) for scope in complete(5).tolist()])

    assert outcome(colourings(5), "exchangeable").log_z == pytest.approx(math.log(120), rel=1e-14)
    assert outcome(colourings(4), "exchangeable") is None
    zero = np.array([[0.0, 0.0], [0.0, -np.inf]])
    sets = FactorGraph.from_log_tables([2] * 60, [(scope, zero) for scope in complete(60).tolist()])
    answer = reference.solve(sets, cache=False)
    assert answer.log_z == pytest.approx(math.log(61), rel=1e-12)
    np.testing.assert_allclose(answer.probabilities, 1 / 61, rtol=1e-10)


@pytest.mark.parametrize(("difference", "exchangeable"), [(1e-14, True), (1e-12, False)])
def test_values_that_differ_by_rounding_are_taken_as_equal(difference, exchangeable):
    """As far as log Z stays within 1e-9: of 4950 couplings, not 1e-12 each."""
    edges = complete(100)
    jitter = difference * np.random.default_rng(0).random(len(edges))
    model = PairwiseModel.from_edges(np.zeros(100), edges, 0.01 + jitter)
    if exchangeable:
        bare = PairwiseModel.from_edges(np.zeros(100), edges, np.full(len(edges), 0.01))
        expected = reference.solve(bare, cache=False).log_z
        assert reference.solve(model, cache=False).log_z == pytest.approx(expected, abs=1e-9)
    else:
        with pytest.raises(IntractableError):
            reference.solve(model, cache=False)


def cliques(count: int, size: int = 9) -> PairwiseModel:
    edges = (complete(size) + size * np.arange(count)[:, None, None]).reshape(-1, 2)
    return PairwiseModel.from_edges(np.full(count * size, -0.3), edges, np.full(len(edges), 0.1))


def test_many_classes():
    """A thousand cliques are as many classes; of many more, no order is searched for."""
    single = reference.solve(cliques(1), method="enumeration", cache=False).log_z
    answer = reference.solve(cliques(1000), cache=False)
    assert answer.method == "exchangeable"
    assert answer.log_z == pytest.approx(1000 * single, rel=1e-12)
    with pytest.raises(NotApplicableError, match="at most 2000 classes"):
        Exchangeable.build(Problem(cliques(2001, 4)))


def test_sparse_and_asymmetric_models_are_left_to_others():
    site = np.arange(100).reshape(10, 10)
    edges = np.concatenate(
        [np.stack([site[:, :-1], site[:, 1:]], -1).reshape(-1, 2), np.stack([site[:-1], site[1:]], -1).reshape(-1, 2)]
    )
    assert Exchangeable.passed_by(Problem(PairwiseModel.from_edges(np.zeros(100), edges, np.ones(180))))
    star = PairwiseModel.from_edges(np.zeros(40), [(0, v) for v in range(1, 40)], np.ones(39))
    assert Exchangeable.passed_by(Problem(star))
    # two hubs, bridged by variables of two neighbours: one pair is left
    spread = [(end, v) for v in range(2, 40) for end in (0, 1)]
    assert Exchangeable.passed_by(Problem(PairwiseModel.from_edges(np.zeros(40), spread, np.ones(len(spread)))))
    glass = PairwiseModel.from_edges(np.zeros(60), complete(60), np.random.default_rng(0).normal(size=1770))
    assert not Exchangeable.passed_by(Problem(glass))
    with pytest.raises(UnsupportedError, match="exchangeable variables, and this model has none"):
        reference.solve(glass, method="exchangeable", cache=False)


def test_counts_beyond_all_memory_are_refused():
    factors = [((u, v), np.eye(40)) for u, v in complete(30).tolist()]
    with pytest.raises(IntractableError, match="exchangeable"):
        reference.solve(FactorGraph.from_log_tables([40] * 30, factors), method="exchangeable", cache=False)


def test_incomplete_classes_are_refused():
    labels, states = np.array([0, 0, 1, 1]), np.full(4, 2)
    scopes = np.array([(0, 2), (1, 3), (0, 3)])
    with pytest.raises(NotApplicableError, match="between all variables of two classes or between none"):
        classes_of(labels, [Tables(scopes, np.zeros((3, 2, 2)))], states)
