"""Tree-reweighted sum-product: an upper bound wherever it stops, the spanning trees' optimum where it has ended."""

from __future__ import annotations

import numpy as np
import pytest
from random_models import enumerate_all, error, pairwise

from spinbench.inference import registry, runner
from spinbench.inference.result import Result
from spinbench.methods.messages.spanning_trees import covering_forests, forest_log_z
from spinbench.methods.messages.trw import TreeReweighted
from spinbench.methods.messages.trw_kernels import ArrayTRWKernel
from spinbench.models import FactorGraph, Model, PairwiseModel, catalogue, lattices

BACKENDS = ("numpy", "numba")


def run(model: Model, backend: str = "numba", budget: int = 3000, **settings: object) -> Result:
    return runner.run(model, "trw", backend, budget, **{"chains": 1, "checkpoints": 1} | settings)


def test_optimised_probabilities_lower_the_bound() -> None:
    rng = np.random.default_rng(3)
    edges = lattices.grid_edges(5, 5)
    model = PairwiseModel.from_edges(rng.normal(size=25), edges, 2 * rng.normal(size=len(edges)))
    log_z = runner.exact(model, cache=False).log_z
    values = [run(model, rounds=rounds).log_z - log_z for rounds in (0, 5, 30, 100)]
    assert (np.diff(values) < 1e-9).all()
    assert values[2] < 0.4 * values[0]
    last = run(model, rounds=100)
    assert values[3] - last.diagnostics["gap"] < values[3]
    assert last.diagnostics["gap"] < 0.05


def test_the_bound_is_the_primal_optimum() -> None:
    """On a single loop of equal couplings, ρ = (n - 1) / n by symmetry: a maximisation over pseudo-marginals."""
    from scipy.optimize import minimize_scalar

    n, coupling = 4, 1.5
    model = PairwiseModel.from_spins(np.zeros(n), lattices.ring_edges(n), np.full(n, coupling))
    rho = (n - 1) / n

    def negative(c: float) -> float:
        """c = E σ_i σ_j; means are 0."""
        p = np.array([1 + c, 1 - c, 1 - c, 1 + c]) / 4
        information = float((p * np.log(4 * p)).sum())
        return -(n * coupling * c + n * np.log(2) - n * rho * information)

    best = -minimize_scalar(negative, bounds=(-1 + 1e-9, 1 - 1e-9), method="bounded", options={"xatol": 1e-12}).fun
    for backend in BACKENDS:
        value = run(model, backend, rounds=100, budget=20_000).log_z
        assert best - 1e-6 <= value <= best + 5e-3
    assert best > runner.exact(model, cache=False).log_z


def test_zeros_of_products_of_parallel_factors() -> None:
    """Each of the factors allows every state of variable 0, their product does not."""
    one, two = np.zeros((2, 2)), np.zeros((2, 2))
    one[1, 0] = two[1, 1] = -np.inf
    parallel = [((0, 1), one), ((1, 0), two.T), ((1, 2), [0.0, 1.0, 2.0, -np.inf])]
    # the last factor has order 2 once variable 3 is known to be 1
    known = [((3,), [-np.inf, 0.0]), ((1, 3, 2), np.arange(8.0))]
    model = FactorGraph.from_log_tables([2, 2, 2, 2], [*parallel, *known])
    log_z, exact = enumerate_all(model)
    for backend in BACKENDS:
        result = run(model, backend)
        assert result.log_z == pytest.approx(log_z, abs=1e-9)  # what is left is a tree
        assert error(result.marginals, exact) < 1e-9


def test_shipped_models_are_bracketed() -> None:
    for name in ("uai14/Segmentation_12", "uai14/ObjectDetection_11", "libdai/testfast"):
        reference = catalogue.reference(name)
        result = run(catalogue.load(name), budget=500)
        assert reference.log_z <= result.log_z <= reference.log_z + 4


def test_log_z_of_forests_is_exact_in_both_implementations() -> None:
    rng = np.random.default_rng(7)
    n, edges = 6, lattices.complete_edges(6)
    cards = rng.integers(1, 4, size=n)
    nodes = np.where(np.arange(3) < cards[:, None], rng.normal(size=(n, 3)), -np.inf)
    tables = rng.normal(size=(len(edges), 3, 3))
    tables[rng.random(tables.shape) < 0.1] = -np.inf
    tables[:, 0, 0] = 0.0
    forests = covering_forests(n, edges)
    expected = []
    for forest in forests:
        factors = [((v,), nodes[v, : cards[v]]) for v in range(n)]
        for e in forest.edges.tolist():
            i, j = edges[e].tolist()
            factors.append(((i, j), tables[e, : cards[i], : cards[j]]))
        expected.append(enumerate_all(FactorGraph.from_log_tables(cards.tolist(), factors))[0])
    np.testing.assert_allclose(forest_log_z(edges, forests, nodes, tables), expected, atol=1e-10)
    from spinbench.backends.numba.messages.trw import _forest_log_z

    found = [_forest_log_z(edges, f.order, f.parent, f.edge, nodes.copy(), tables) for f in forests]
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_the_bound_holds_for_arbitrary_messages() -> None:
    """Not only for those that the iteration passes through."""
    rng = np.random.default_rng(8)
    model = pairwise(rng, 7, 0.7, 1.5)
    log_z, _ = enumerate_all(model)
    method = TreeReweighted()
    tables = method.plan(model)
    kernel = ArrayTRWKernel(method, registry.backend_class("numpy")(), model, tables)
    state = kernel.init(0, np.zeros((7, 1), dtype=np.int8))
    count = len(tables.incidence.target)
    values = [kernel._bound(state, scale * rng.normal(size=count)) for scale in (0.0, 0.1, 1.0, 10.0) for _ in range(9)]
    assert min(values) >= log_z - 1e-9
    assert max(values) > log_z + 1
