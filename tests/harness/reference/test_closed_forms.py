"""Closed forms against enumeration, against each other and against published and recorded figures."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import reference
from spinbench.errors import IntractableError, UnsupportedError
from spinbench.inference import answers
from spinbench.models import PairwiseModel

CRITICAL = 0.5 * np.log(1 + np.sqrt(2))


def spins(n, edges, couplings, fields=0.0, **options) -> PairwiseModel:
    return PairwiseModel.from_spins(np.broadcast_to(fields, n), edges, couplings, **options)


def torus(rows: int, columns: int, coupling: float) -> PairwiseModel:
    site = np.arange(rows * columns).reshape(rows, columns)
    pairs = [np.stack([site, np.roll(site, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)]
    return spins(rows * columns, np.concatenate(pairs), np.full(2 * rows * columns, coupling), log_constant=-0.5)


def open_grid(rows: int, columns: int) -> np.ndarray:
    site = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([site[:, :-1], site[:, 1:]], axis=-1).reshape(-1, 2)
    return np.concatenate([across, np.stack([site[:-1], site[1:]], axis=-1).reshape(-1, 2)])


def two_layers(left: int, right: int) -> np.ndarray:
    return np.array([(i, left + j) for i in range(left) for j in range(right)])


def assert_as_enumerated(model, method, tolerance=1e-12):
    answer = reference.solve(model, method=method, cache=False)
    expected = reference.solve(model, method="enumeration", cache=False)
    assert answer.method == method
    assert answer.log_z == pytest.approx(expected.log_z, rel=tolerance, abs=tolerance)
    np.testing.assert_allclose(answer.probabilities, expected.probabilities, rtol=0, atol=max(tolerance, 1e-12))
    bare = reference.solve(model, method=method, marginals=False, cache=False)
    assert bare.log_z == pytest.approx(answer.log_z, rel=1e-14)
    assert bare.marginals == ()


@pytest.mark.parametrize("shape", [(3, 3), (3, 5), (4, 3), (4, 4)])
@pytest.mark.parametrize("coupling", [1e-320, 1e-200, 1e-6, 0.05, 0.2, CRITICAL, 1.0, 20.0, 300.0, 500.0])
def test_torus(shape, coupling):
    assert_as_enumerated(torus(*shape, coupling), "torus")


def test_torus_of_antiferromagnets():
    assert_as_enumerated(torus(4, 4, -0.7), "torus")
    with pytest.raises(UnsupportedError, match="even sides"):
        reference.solve(torus(3, 4, -0.7), method="torus", cache=False)


@pytest.mark.parametrize(("side", "log_z"), [(16, 238.6422566351), (64, 3808.6722834198)])
def test_torus_at_the_critical_coupling(side, log_z):
    """Figures recorded from independent sums."""
    answer = reference.solve(torus(side, side, CRITICAL), cache=False)
    assert answer.method == "torus"
    assert answer.log_z + 0.5 == pytest.approx(log_z, abs=1e-9)
    np.testing.assert_array_equal(answer.probabilities, 0.5)


def test_torus_where_signed_log_sums_fail():
    """K near 0.2 and L = 64: two pairs of terms agree to all digits. Expanded at high temperature instead."""
    side, coupling = 64, 0.2
    n = side * side
    t = np.tanh(coupling)
    # per site, closed loops on the square lattice: log(1 + ...) = t^4 + 2 t^6 + 9/2 t^8 + 12 t^10 + 112/3 t^12 + ...
    series = t**4 + 2 * t**6 + 9 / 2 * t**8 + 12 * t**10 + 112 / 3 * t**12 + 130 * t**14
    expected = n * (np.log(2) + 2 * np.log(np.cosh(coupling)) + series)
    answer = reference.solve(torus(side, side, coupling), cache=False)
    assert answer.log_z + 0.5 == pytest.approx(expected, rel=1e-8)


def test_torus_refuses_others():
    edges = open_grid(4, 4)
    for model in (
        spins(16, edges, np.ones(len(edges))),
        PairwiseModel.from_edges(np.zeros(16), torus(4, 4, 0.3).edges, torus(4, 4, 0.3).couplings),
    ):
        with pytest.raises(UnsupportedError, match="torus numbered row by row"):
            reference.solve(model, method="torus", cache=False)


def test_ring_without_field():
    """2^n (Π cosh J + Π sinh J)."""
    J = np.random.default_rng(0).normal(size=1001)
    edges = np.stack([np.arange(1001), (np.arange(1001) + 1) % 1001], axis=1)
    expected = 1001 * np.log(2) + np.log(np.cosh(J)).sum() + np.log1p(np.prod(np.tanh(J)))
    answer = reference.solve(spins(1001, edges, J), cache=False)
    assert answer.log_z == pytest.approx(expected, rel=1e-13)


def test_tree_without_field():
    """2^n Π cosh J."""
    rng = np.random.default_rng(1)
    edges = [(int(rng.integers(v)), v) for v in range(1, 400)]
    J = 2 * rng.normal(size=399)
    answer = reference.solve(spins(400, edges, J), cache=False)
    assert answer.log_z == pytest.approx(400 * np.log(2) + np.log(np.cosh(J)).sum(), rel=1e-13)
    np.testing.assert_allclose(answer.probabilities, 0.5, rtol=0, atol=1e-12)


@pytest.mark.parametrize(("bias", "coupling"), [(0.3, -0.5), (-2.0, 0.7), (1.0, 40.0), (0.0, -40.0)])
def test_a_complete_graph_of_one_coupling(bias, coupling):
    edges = np.argwhere(np.triu(np.ones((9, 9)), 1))
    model = PairwiseModel.from_edges(np.full(9, bias), edges, np.full(36, coupling), log_constant=-1.0)
    assert_as_enumerated(model, "exchangeable")


def test_a_complete_graph_of_three_hundred():
    """Against the sum over the number of ones in Python integers and exact logarithms of binomials."""
    from math import comb, log

    edges = np.argwhere(np.triu(np.ones((300, 300)), 1))
    model = PairwiseModel.from_edges(np.full(300, -1.0), edges, np.full(len(edges), 0.01))
    logs = np.array([log(comb(300, k)) - k + 0.01 * k * (k - 1) / 2 for k in range(301)])
    answer = reference.solve(model, cache=False)
    assert answer.method == "exchangeable"
    assert answer.log_z == pytest.approx(logs.max() + np.log(np.exp(logs - logs.max()).sum()), rel=1e-12)


@pytest.mark.parametrize("shape", [(1, 5), (3, 8), (6, 4)])
@pytest.mark.parametrize("scale", [0.1, 1.0, 50.0])
def test_two_layers(shape, scale):
    rng = np.random.default_rng(5)
    left, right = shape
    names = rng.permutation(left + right)
    edges = [(names[i], names[left + j]) for i in range(left) for j in range(right) if rng.random() < 0.8]
    biases = scale * rng.normal(size=left + right)
    assert_as_enumerated(PairwiseModel.from_edges(biases, edges, scale * rng.normal(size=len(edges))), "rbm")


def test_two_layers_beyond_one_block_of_states():
    """2^15 states of the smaller layer in several blocks, with rescaling between them."""
    rng = np.random.default_rng(6)
    edges = two_layers(15, 16)
    model = PairwiseModel.from_edges(3 * rng.normal(size=31), edges, 2 * rng.normal(size=240))
    answer = reference.solve(model, method="rbm", cache=False)
    tree = reference.solve(model, method="bucket_tree", cache=False)
    assert answer.width == 15
    assert answer.log_z == pytest.approx(tree.log_z, rel=1e-13)
    np.testing.assert_allclose(answer.probabilities, tree.probabilities, rtol=0, atol=1e-12)


def test_two_layers_refuses_others():
    with pytest.raises(UnsupportedError, match="odd loops"):
        reference.solve(spins(3, [(0, 1), (1, 2), (0, 2)], np.ones(3)), method="rbm", cache=False)
    edges = two_layers(25, 25)
    with pytest.raises(UnsupportedError, match="at most 24"):
        reference.solve(spins(50, edges, np.ones(625)), method="rbm", cache=False)


@pytest.mark.parametrize("scale", [0.05, 1.0, 4.0])
def test_kac_ward_on_grids(scale):
    edges = open_grid(4, 4)[:, ::-1]
    J = scale * np.random.default_rng(2).normal(size=len(edges))
    assert_as_enumerated(spins(16, edges, J, log_constant=2.0), "kac_ward", 1e-10)


@pytest.mark.parametrize("seed", range(12))
def test_kac_ward_on_planar_graphs(seed):
    """Random triangulations with edges taken out: bridges, separate parts and lone nodes among them."""
    from scipy.spatial import Delaunay

    rng = np.random.default_rng(seed)
    triangles = Delaunay(rng.random((11, 2))).simplices
    edges = np.unique(
        np.sort(np.concatenate([triangles[:, [0, 1]], triangles[:, [1, 2]], triangles[:, [0, 2]]])), axis=0
    )
    edges = edges[rng.random(len(edges)) < rng.choice([1.0, 0.7, 0.4])]
    assert_as_enumerated(spins(11, edges, rng.normal(size=len(edges))), "kac_ward", 1e-10)


def test_kac_ward_on_a_glass_of_4096_spins():
    """Chosen by itself; and with one row of couplings cut, log Z is the sum of those of the halves."""
    rng = np.random.default_rng(3)
    edges = open_grid(64, 64)
    J = rng.normal(size=len(edges))
    answer = reference.solve(spins(4096, edges, J), cache=False)
    assert answer.method == "kac_ward"
    cut = (edges[:, 0] // 64 == 31) & (edges[:, 1] // 64 == 32)
    upper, lower = (edges.max(axis=1) < 2048), (edges.min(axis=1) >= 2048)
    whole = reference.solve(spins(4096, edges, np.where(cut, 0.0, J)), method="kac_ward", cache=False)
    halves = [
        reference.solve(spins(2048, edges[part] - first, J[part]), method="kac_ward", cache=False)
        for part, first in ((upper, 0), (lower, 2048))
    ]
    assert whole.log_z == pytest.approx(halves[0].log_z + halves[1].log_z, rel=1e-12)


def test_kac_ward_refuses_what_it_cannot_do():
    edges = open_grid(3, 3)
    with pytest.raises(UnsupportedError, match=r"variable 0 has the field 0\.1"):
        reference.solve(spins(9, edges, np.ones(12), 0.1), method="kac_ward", cache=False)
    complete = np.argwhere(np.triu(np.ones((6, 6)), 1))
    with pytest.raises(UnsupportedError, match="planar"):
        reference.solve(spins(6, complete, np.ones(15)), method="kac_ward", cache=False)
    thirds = two_layers(3, 3)
    with pytest.raises(UnsupportedError, match="planar"):
        reference.solve(spins(6, thirds, np.ones(9)), method="kac_ward", cache=False)


@pytest.mark.parametrize("scale", [10, 1e12])
def test_kac_ward_notices_lost_digits(scale):
    """A strong glass: the determinant is below rounding error, however large log Z is. "auto" takes another way."""
    edges = open_grid(12, 12)
    model = spins(144, edges, scale * np.random.default_rng(0).normal(size=len(edges)))
    with pytest.raises(IntractableError, match="too strong"):
        reference.solve(model, method="kac_ward", cache=False)
    assert answers.solve(model, cache=False).method in {"grid", "bucket_tree"}


@pytest.mark.parametrize("method", ["torus", "kac_ward"])
def test_forms_without_samples_say_so(method):
    with pytest.raises(UnsupportedError, match="gives no samples"):
        reference.sample(torus(3, 3, 0.2), 5, method=method)


@pytest.mark.parametrize("left", [1, 7, 8, 11])
@pytest.mark.parametrize("scale", [0.5, 3.0, 40.0, 400.0])
def test_products_over_the_larger_layer(left, scale):
    """Against elimination, also where one product over all of it would leave float64."""
    rng = np.random.default_rng(left)
    edges = two_layers(left, 14)
    model = PairwiseModel.from_edges(
        scale * rng.normal(size=left + 14), edges, scale * rng.normal(size=len(edges)), log_constant=1.5
    )
    answer = reference.solve(model, method="rbm", cache=False)
    tree = reference.solve(model, method="bucket_tree", cache=False)
    assert answer.log_z == pytest.approx(tree.log_z, rel=1e-13)
    np.testing.assert_allclose(answer.probabilities, tree.probabilities, rtol=0, atol=1e-12)
    bare = reference.solve(model, method="rbm", marginals=False, cache=False)
    assert bare.log_z == pytest.approx(answer.log_z, rel=1e-13)


def test_products_do_not_underflow():
    """Each variable of the larger layer forbids what the next one wants."""
    edges = two_layers(2, 20)
    couplings = np.where(edges[:, 0] == 0, 90.0, -90.0) * np.where(edges[:, 1] % 2, 1, -1)
    model = PairwiseModel.from_edges(np.full(22, -1.0), edges, couplings)
    fast = reference.solve(model, method="rbm", cache=False)
    slow = reference.solve(model, method="enumeration", cache=False)
    assert fast.log_z == pytest.approx(slow.log_z, rel=1e-13)
    np.testing.assert_allclose(fast.probabilities, slow.probabilities, rtol=0, atol=1e-12)
