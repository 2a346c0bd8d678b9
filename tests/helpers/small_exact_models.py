"""Small models of every kind, on which the exact solvers are compared with enumeration."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from spinbench.inference import answers
from spinbench.models import FactorGraph, Model, PairwiseModel
from spinbench.reference import NUMPY_SOLVERS, Solvers


def ladder(seed: int = 0) -> PairwiseModel:
    """2 x 20, too many states to enumerate."""
    rng = np.random.default_rng(seed)
    edges = [(k, k + 1) for k in range(0, 40, 2)] + [(k, k + 2) for k in range(38)]
    return PairwiseModel.from_edges(rng.normal(size=40), edges, rng.normal(size=len(edges)), name="ladder")


def _pairwise(n: int, density: float, scale: float, seed: int, **kwargs: object) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    edges = np.argwhere(np.triu(rng.random((n, n)) < density, 1))
    biases, couplings = scale * rng.normal(size=n), scale * rng.normal(size=len(edges))
    return PairwiseModel.from_edges(biases, edges, couplings, name=f"pairwise{seed}", **kwargs)


def _graph(n: int, factors: int, zeros: float, seed: int) -> FactorGraph:
    """Cardinalities 1..4, arities 0..3, repeated scopes, hard zeros; one state always has weight."""
    rng = np.random.default_rng(seed)
    cards = rng.integers(1, 5, size=n)
    alive = [int(rng.integers(k)) for k in cards]
    tables = []
    for _ in range(factors):
        scope = rng.permutation(n)[: rng.integers(0, 4)].tolist()
        table = 2 * rng.normal(size=[cards[v] for v in scope])
        table = np.where(rng.random(table.shape) < zeros, -np.inf, table)
        table[tuple(alive[v] for v in scope)] = rng.normal()
        tables.append((scope, table))
    constant = float(rng.normal())
    return FactorGraph.from_log_tables(cards.tolist(), tables, log_constant=constant, name=f"graph{seed}")


def _zero_couplings() -> PairwiseModel:
    edges = [(0, 1), (1, 2), (0, 3)]
    return PairwiseModel.from_edges([0.3, -2.0, 0.0, 5.0], edges, [0.0, 0.0, 0.0], name="zero couplings")


def _cardinality_one() -> FactorGraph:
    tables = [((0,), [0.7]), ((1, 0), [[0.2]])]
    return FactorGraph.from_log_tables([1, 1], tables, name="one state")


SMALL_MODELS: dict[str, Callable[[], Model]] = {
    "one variable": lambda: PairwiseModel.from_edges([-0.4], [], [], log_constant=2.0),
    "no edges": lambda: _pairwise(6, 0.0, 1.0, 1),
    "zero couplings": _zero_couplings,
    "dense": lambda: _pairwise(10, 1.0, 0.7, 2, log_constant=-3.0),
    "sparse": lambda: _pairwise(12, 0.25, 1.5, 3),
    "disconnected": lambda: _pairwise(12, 0.1, 1.0, 4),
    "strong": lambda: _pairwise(10, 0.5, 30.0, 5),
    "huge couplings": lambda: _pairwise(9, 0.5, 300.0, 6),
    "groups": lambda: _pairwise(9, 0.6, 1.0, 7, groups=((0, 4, 7), (2,), (5, 8)), log_constant=0.7),
    "all grouped": lambda: _pairwise(7, 1.0, 1.0, 8, groups=((0, 1, 2), (3, 4, 5, 6))),
    "no factors": lambda: FactorGraph.from_log_tables([2, 3, 1], [], log_constant=1.5),
    "one state": _cardinality_one,
    "graph without zeros": lambda: _graph(6, 8, 0.0, 9),
    "graph with zeros": lambda: _graph(7, 9, 0.4, 10),
    "graph with more zeros": lambda: _graph(6, 12, 0.6, 11),
    "sparse graph": lambda: _graph(8, 4, 0.3, 12),
}


@pytest.fixture(params=list(SMALL_MODELS))
def small_model(request: pytest.FixtureRequest) -> Model:
    return SMALL_MODELS[request.param]()


@pytest.fixture(params=["numpy", "compiled", "all"])
def solvers(request: pytest.FixtureRequest) -> Solvers:
    """Each table of solvers that there is."""
    if request.param == "all":
        return answers.ALL_SOLVERS
    return answers.numba_solvers() if request.param == "compiled" else NUMPY_SOLVERS


@pytest.fixture
def random_pairwise() -> Callable[..., PairwiseModel]:
    """(n, density, scale, seed) -> model."""
    return _pairwise


@pytest.fixture
def random_graph() -> Callable[..., FactorGraph]:
    """(n, factors, share of zeros, seed) -> model."""
    return _graph


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path / "cache"))
