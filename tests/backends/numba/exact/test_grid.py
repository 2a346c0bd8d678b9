"""Frontier elimination on grids against enumeration and against the bucket tree."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from spinbench import reference
from spinbench.backends.numba.exact.kernel import Grid
from spinbench.errors import UnsupportedError
from spinbench.inference import answers
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.reference.problem import Problem, grid_sites
from spinbench.reference.solver import PrecisionError


def grid_edges(rows: int, columns: int) -> np.ndarray:
    site = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([site[:, :-1], site[:, 1:]], axis=-1).reshape(-1, 2)
    down = np.stack([site[:-1], site[1:]], axis=-1).reshape(-1, 2)
    return np.concatenate([across, down])


def grid(rows: int, columns: int, scale: float, seed: int = 0, *, keep: float = 1.0) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    edges = grid_edges(rows, columns)
    edges = edges[rng.random(len(edges)) < keep]
    biases, couplings = scale * rng.normal(size=rows * columns), scale * rng.normal(size=len(edges))
    return PairwiseModel.from_edges(biases, edges, couplings, log_constant=1.25, name=f"grid{rows}x{columns}")


def relabelled(model: PairwiseModel, seed: int) -> PairwiseModel:
    new = np.random.default_rng(seed).permutation(model.num_variables)
    biases = np.empty(model.num_variables)
    biases[new] = model.biases
    return PairwiseModel.from_edges(biases, new[model.edges], model.couplings, log_constant=model.log_constant)


def assert_as_enumerated(model, **options):
    answer = answers.solve(model, method="grid", cache=False, **options)
    expected = reference.solve(model, method="enumeration", cache=False)
    assert answer.log_z == pytest.approx(expected.log_z, rel=1e-13, abs=1e-12)
    np.testing.assert_allclose(answer.probabilities, expected.probabilities, rtol=0, atol=1e-12)


@pytest.mark.parametrize("shape", [(2, 2), (2, 5), (5, 2), (3, 4), (4, 3), (4, 4)])
@pytest.mark.parametrize("scale", [0.0001, 1.0, 10.0, 100.0, 3000.0])
def test_any_couplings(shape, scale):
    """At 100 and beyond, plain sums underflow, and bucket elimination answers."""
    assert_as_enumerated(grid(*shape, scale, seed=1))


@pytest.mark.parametrize("coupling", [100.0, -100.0, 400.0])
@pytest.mark.parametrize("seed", range(3))
def test_huge_couplings_of_both_signs(coupling, seed):
    """±J with the field at zero: exponentially many states tie, and rounding shows."""
    signs = np.random.default_rng(seed).choice([-1, 1], size=len(grid_edges(4, 4)))
    model = PairwiseModel.from_spins(np.zeros(16), grid_edges(4, 4), coupling * signs)
    answer = answers.solve(model, method="grid", cache=False)
    expected = reference.solve(model, method="enumeration", cache=False)
    assert answer.log_z == pytest.approx(expected.log_z, rel=1e-13)
    np.testing.assert_allclose(answer.probabilities, 0.5, rtol=0, atol=1e-11)


def test_underflow_is_noticed():
    """12 columns of couplings of 100: the plain frontier must be refused, not trusted."""
    solver = Grid.build(Problem(grid(12, 12, 100.0)))
    with pytest.raises(PrecisionError):
        solver.solve(marginals=True)


def test_bucket_elimination_answers_where_the_grid_cannot():
    model = grid(12, 12, 100.0)
    answer = answers.solve(model, method="grid", cache=False)
    expected = reference.solve(model, method="bucket_tree", cache=False)
    assert answer.method == "bucket_tree"
    assert answer.log_z == pytest.approx(expected.log_z, rel=1e-14)
    np.testing.assert_allclose(answer.probabilities, expected.probabilities, rtol=0, atol=1e-12)
    auto = answers.solve(model, cache=False)
    assert auto.log_z == pytest.approx(expected.log_z, rel=1e-14)


@pytest.mark.parametrize("seed", range(6))
def test_missing_edges_and_zero_couplings(seed):
    assert_as_enumerated(grid(4, 4, 1.0, seed, keep=0.8))
    whole = grid(3, 5, 1.0, seed)
    couplings = np.where(np.random.default_rng(seed).random(whole.num_edges) < 0.2, 0.0, whole.couplings)
    assert_as_enumerated(PairwiseModel.from_edges(whole.biases, whole.edges, couplings))


@pytest.mark.parametrize("shape", [(2, 2), (2, 6), (3, 3), (3, 5), (4, 4)])
@pytest.mark.parametrize("seed", range(3))
def test_any_numbering_of_a_complete_grid(shape, seed):
    assert_as_enumerated(relabelled(grid(*shape, 1.0, seed), seed))


def test_the_shorter_side_is_the_frontier():
    for model in (grid(3, 30, 1.0), grid(30, 3, 1.0), relabelled(grid(3, 30, 1.0), 5)):
        answer = answers.solve(model, method="grid", cache=False)
        tree = reference.solve(model, method="bucket_tree", cache=False)
        assert answer.width == 3
        assert answer.log_z == pytest.approx(tree.log_z, rel=1e-13)
        np.testing.assert_allclose(answer.probabilities, tree.probabilities, rtol=0, atol=1e-12)


def test_factor_graph_grids_are_recognised():
    """Tables over pairs without zeros, as in the UAI grids."""
    rng = np.random.default_rng(3)
    pairs = [(tuple(edge), rng.normal(size=(2, 2))) for edge in grid_edges(4, 4).tolist()]
    model = FactorGraph.from_log_tables([2] * 16, [*pairs, ((3,), rng.normal(size=2))], log_constant=0.5)
    assert_as_enumerated(model)


def test_factor_graph_grids_in_any_form():
    """Pairs the other way round, twice, and in any order; tables over one variable twice, and over none."""
    rng = np.random.default_rng(4)
    scopes = [*(tuple(edge) for edge in grid_edges(3, 4).tolist()), (1, 0), (2, 6), (5,), (5,), (), ()]
    turned = [scope[::-1] if rng.random() < 0.5 else scope for scope in scopes]
    factors = [(turned[k], rng.normal(size=(2,) * len(turned[k]))) for k in rng.permutation(len(turned))]
    assert_as_enumerated(FactorGraph.from_log_tables([2] * 12, factors, log_constant=-0.25))


def test_other_graphs_are_told_apart():
    square = [(0, 1), (1, 2), (2, 3), (0, 3)]
    crossed = [*grid_edges(3, 3).tolist(), (0, 4)]
    wrapped = [*grid_edges(3, 3).tolist(), (2, 3)]  # joins two rows
    swapped = [e for e in grid_edges(3, 4).tolist() if e != [0, 1]] + [[0, 6]]
    torus = [*grid_edges(3, 3).tolist(), (0, 2), (3, 5), (6, 8), (0, 6), (1, 7), (2, 8)]
    others = [(9, crossed), (9, wrapped), (12, swapped), (9, torus)]
    for n, edges, is_grid in [(4, square, True), *((n, edges, False) for n, edges in others)]:
        model = PairwiseModel.from_edges(np.zeros(n), edges, np.ones(len(edges)))
        assert (grid_sites(Problem(model).pairwise) is not None) == is_grid
        if not is_grid:
            with pytest.raises(UnsupportedError, match="open-boundary grid"):
                answers.solve(model, method="grid", cache=False)


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_twenty_by_twenty_below_a_gibibyte():
    """The interpreter's own memory included."""
    script = """
import numpy as np
from spinbench.inference import answers
from spinbench.models import PairwiseModel
site = np.arange(400).reshape(20, 20)
edges = [*zip(site[:, :-1].ravel(), site[:, 1:].ravel()), *zip(site[:-1].ravel(), site[1:].ravel())]
rng = np.random.default_rng(0)
model = PairwiseModel.from_edges(rng.normal(size=400), edges, 2 * rng.normal(size=760))
small = PairwiseModel.from_edges(np.ones(100), [(k, k + 1) for k in range(99) if k % 10 != 9]
                                 + [(k, k + 10) for k in range(90)], np.ones(180))
answers.solve(small, method="grid", cache=False)
answer = answers.solve(model, cache=False)
# of this program alone: the peak that getrusage gives starts with that of the process that forked it
with open("/proc/self/status") as status:
    print(answer.method, next(line.split()[1] for line in status if line.startswith("VmHWM")))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    method, kibibytes = done.stdout.split()
    assert method == "grid"
    assert int(kibibytes) < 2**20
