"""What a solver says beforehand that it will take, against what it takes."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from spinbench.backends.numba.exact.kernel import Grid
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.elimination.matrix_tree import MatrixTree
from spinbench.reference.enumeration import Bipartite, Enumeration
from spinbench.reference.exchangeable.counting import Exchangeable
from spinbench.reference.problem import Problem


def pairwise(n: int, density: float) -> PairwiseModel:
    rng = np.random.default_rng(n)
    edges = np.argwhere(np.triu(rng.random((n, n)) < density, 1))
    return PairwiseModel.from_edges(rng.normal(size=n), edges, rng.normal(size=len(edges)))


def layers(left: int, right: int) -> PairwiseModel:
    rng = np.random.default_rng(0)
    edges = [(i, left + j) for i in range(left) for j in range(right)]
    return PairwiseModel.from_edges(rng.normal(size=left + right), edges, rng.normal(size=len(edges)))


def grid(side: int) -> PairwiseModel:
    rng = np.random.default_rng(0)
    edges = [(k, k + 1) for k in range(side * side) if k % side != side - 1]
    edges += [(k, k + side) for k in range(side * side - side)]
    return PairwiseModel.from_edges(rng.normal(size=side * side), edges, rng.normal(size=len(edges)))


def strip(states: int) -> FactorGraph:
    """A ladder of width 3 with many states: few large tables."""
    rng = np.random.default_rng(0)
    edges = [(k, k + 1) for k in range(14) if k % 3 != 2] + [(k, k + 3) for k in range(12)]
    return FactorGraph.from_log_tables([states] * 15, [(e, rng.normal(size=(states, states))) for e in edges])


def equal_layers(left: int, right: int) -> PairwiseModel:
    edges = [(i, left + j) for i in range(left) for j in range(right)]
    return PairwiseModel.from_edges(np.zeros(left + right), edges, np.full(len(edges), 0.01))


def colourings(n: int, colours: int) -> FactorGraph:
    """Of a complete graph, with weights for the pairs that are alike."""
    edges = np.argwhere(np.triu(np.ones((n, n)), 1))
    return FactorGraph.from_log_tables([colours] * n, [(edge, -0.5 * np.eye(colours)) for edge in edges.tolist()])


@pytest.mark.parametrize("marginals", [False, True])
@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (Enumeration, pairwise(17, 0.5)),
        (BucketTree, pairwise(19, 0.8)),
        (BucketTree, pairwise(40, 0.2)),
        (BucketTree, layers(14, 30)),
        (MatrixTree, pairwise(19, 0.8)),
        (MatrixTree, layers(14, 30)),
        (MatrixTree, colourings(6, 7)),
        (BucketTree, strip(14)),
        (Bipartite, layers(15, 30)),
        (Exchangeable, equal_layers(500, 400)),
        (Exchangeable, colourings(20, 5)),
        (Grid, grid(13)),
    ],
)
def test_estimate_bounds_the_peak(kind, model, marginals):
    """Within it, and no wilder guess than 2.5 times."""
    problem = Problem(model)
    solver = kind.build(problem)
    solver.solve(marginals=marginals)  # what is compiled or imported on first use is not the solver's
    promised = solver.memory(marginals=marginals)
    tracemalloc.start()
    try:
        solver.solve(marginals=marginals)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    overhead = 2**18  # Python objects
    assert peak <= promised + overhead
    assert promised <= 2.5 * peak + overhead


@pytest.mark.parametrize(
    ("kind", "model"),
    [
        (Enumeration, pairwise(17, 0.5)),
        (BucketTree, pairwise(19, 0.8)),
        (MatrixTree, colourings(6, 7)),
    ],
)
def test_samples_take_no_more(kind, model):
    solver = kind.build(Problem(model))
    solver.sample(10, np.random.default_rng(0))
    tracemalloc.start()
    try:
        solver.sample(10, np.random.default_rng(0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= solver.memory(marginals=True) + 2**18
