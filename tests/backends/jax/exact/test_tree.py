"""Elimination in JAX against elimination in NumPy: log Z, marginals, joint tables and draws."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import spinbench
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.exact.layout import SMALLEST, child, padded, piece
from spinbench.backends.jax.exact.tree import JaxTree
from spinbench.errors import ModelError
from spinbench.models import FactorGraph, generators
from spinbench.reference.bucket_tree import BucketTree
from spinbench.reference.problem import Problem

SHAPES = [(2,) * 9, (2, 3, 1, 4, 2, 3), (3,) * 5, (7, 2, 2), (2,)]


@pytest.fixture
def doubles() -> Iterator[None]:
    with JaxBackend(precision="float64").scope():
        yield


def drawn(cardinalities: tuple[int, ...], seed: int) -> FactorGraph:
    """Tables of one to three variables in any order, a tenth of whose entries are zeros; some variable has none."""
    rng = np.random.default_rng(seed)
    tables = []
    for _ in range(len(cardinalities) + 2):
        scope = rng.permutation(len(cardinalities))[: rng.integers(1, 4)]
        table = 2 * rng.normal(size=[cardinalities[v] for v in scope])
        table[rng.random(table.shape) < 0.1] = -np.inf
        table.flat[0] = 0.0
        tables.append((scope.tolist(), table))
    return FactorGraph.from_log_tables(cardinalities, tables)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cardinalities", SHAPES)
def test_it_agrees_with_numpy(doubles: None, cardinalities: tuple[int, ...], seed: int) -> None:
    problem = Problem(drawn(cardinalities, seed))
    here, there = JaxTree.build(problem), BucketTree.build(problem)
    (log_z, flat), (expected, marginals) = here.solve(marginals=True), there.solve(marginals=True)
    assert log_z == pytest.approx(expected, rel=1e-13, abs=1e-13)
    assert flat is not None
    np.testing.assert_allclose(flat, marginals, rtol=0, atol=1e-14)
    assert here.solve(marginals=False) == (log_z, None)
    for scope, table in there.joint_tables().items():
        np.testing.assert_allclose(here.joint_tables()[scope], table, rtol=0, atol=1e-14)
    draws = [solver.sample(50, np.random.default_rng(seed)) for solver in (here, there)]
    np.testing.assert_array_equal(*draws)


def test_no_state_of_weight_is_said() -> None:
    no = [[0.0, -np.inf], [-np.inf, 0.0]]
    yes = [[-np.inf, 0.0], [0.0, -np.inf]]
    model = FactorGraph.from_log_tables((2, 2, 2), [((0, 1), no), ((1, 2), no), ((0, 2), yes)])
    with pytest.raises(ModelError, match="Z = 0"):
        spinbench.run(model, "exact", "jax", 1, solver="bucket_tree")


def test_elimination_is_taken_and_said() -> None:
    """Where NumPy would enumerate; the answer is the same."""
    model = generators.grid(3, 4)
    found, expected = (spinbench.run(model, "exact", backend, 1) for backend in ("jax", "numpy"))
    assert found.tier == "native"
    assert found.log_z == pytest.approx(expected.log_z, rel=1e-14)
    np.testing.assert_allclose(np.asarray(found.marginals), np.asarray(expected.marginals), rtol=0, atol=1e-14)
    assert spinbench.run(model, "exact", "jax", 1, solver="enumeration").log_z == pytest.approx(expected.log_z)


def test_rows_find_the_entries_of_a_table() -> None:
    """Each entry (j, s) of a clique of four variables, against NumPy's own indices."""
    sizes, clique, scope = (3, 2, 4, 5), (2, 0, 3, 1), (2, 3, 1)
    row = piece(clique, sizes, scope, 100)
    for j, a, b, c in np.ndindex(4, 3, 5, 2):
        s = np.ravel_multi_index((a, b, c), (3, 5, 2))
        assert row[0] + row[1] * j + _found(s, row[3:]) == 100 + np.ravel_multi_index((j, b, c), (4, 5, 2))
    assert row[2] == 1  # two neighbours are one digit
    assert len(row) == 3 + 3


@pytest.mark.parametrize("separator", [(2, 0, 3, 1), (0, 2), (3, 2), (1,), (1, 3, 0)])
def test_rows_of_children_find_what_their_separators_share(separator: tuple[int, ...]) -> None:
    """Sums of a clique's table over what a separator lacks, in the separator's own order, against NumPy's."""
    sizes, clique = (3, 2, 4, 5), (2, 0, 3, 1)
    belief = np.zeros((4, padded(30)))
    belief[:, :30] = np.random.default_rng(1).random((4, 30))
    place, own, others, halvings, mine, theirs, *digits = child(clique, sizes, separator, 7)
    assert place == 7
    assert own * others == 120
    assert 2**halvings >= others > 2**halvings / 2
    sums = [
        sum(belief.flat[_found(t, digits[: 3 * mine]) + _found(e, digits[3 * mine :])] for e in range(others))
        for t in range(own)
    ]
    assert len(digits) == 3 * (mine + theirs)
    whole = belief[:, :30].reshape(4, 3, 5, 2)
    expected = np.einsum(whole, [2, 0, 3, 1], list(separator))
    np.testing.assert_allclose(sums, expected.ravel(), rtol=1e-14)


def _found(number: int, digits: list[int]) -> int:
    return sum((number // div) % size * stride for div, size, stride in np.reshape(digits, (-1, 3)))


def test_sizes_are_powers_of_two() -> None:
    assert [padded(size) for size in (1, SMALLEST, SMALLEST + 1, 1000, 1024)] == [SMALLEST, SMALLEST, 64, 1024, 1024]
