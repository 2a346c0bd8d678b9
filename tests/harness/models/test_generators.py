"""Generators: graphs, weights, seeds, refusals."""

from __future__ import annotations

import networkx
import numpy as np
import pytest

from spinbench.errors import ModelError
from spinbench.models import generators, lattices

SEEDED = [
    generators.grid,
    generators.complete,
    generators.random_regular,
    generators.ring,
    generators.tree,
    generators.shortcut_tree,
    generators.chimera,
    generators.rbm,
    generators.sherrington_kirkpatrick,
    generators.planar_glass,
    generators.regular_glass,
    generators.random_field,
]


def spins(model):
    """All states as ±1, (2^N, N), and their 0/1 form."""
    s = (np.arange(2**model.num_variables)[:, None] >> np.arange(model.num_variables)) & 1
    return 2 * s - 1, s


@pytest.mark.parametrize("family", SEEDED, ids=lambda f: f.__name__)
def test_a_seed_decides_the_model(family):
    assert family(seed=3).content_hash == family(seed=3).content_hash
    assert family(seed=3).content_hash != family(seed=4).content_hash


# (biases[0], couplings[-1]) at seed 0: recorded results refer to seeds, so a change here is a break.
PINNED = {
    "grid": (0.2514604421867866, 2.8447570104968927),
    "complete": (0.2514604421867866, 2.755901905445042),
    "random_regular": (-0.2642097265826038, 0.4038200039202198),
    "ring": (0.2514604421867866, 1.1726745630626008),
    "tree": (-1.1710576482466732, 1.1247953545859184),
    "shortcut_tree": (1.242035707080197, 0.35362492746104934),
    "chimera": (0.2514604421867866, 0.926660678414038),
    "rbm": (0.2514604421867866, 0.437539723303269),
    "sherrington_kirkpatrick": (2.104622831403907, -0.42425632101292754),
    "planar_glass": (0.012749284395817184, 1.853321356828076),
    "regular_glass": (1.920737082025219, 4.0),
    "random_field": (-1.7348539557813214, 1.76),
}


@pytest.mark.parametrize("family", SEEDED, ids=lambda f: f.__name__)
def test_seeds_keep_their_meaning(family):
    model = family()
    np.testing.assert_allclose((model.biases[0], model.couplings[-1]), PINNED[family.__name__], rtol=1e-13)


def test_weights_are_drawn_in_the_documented_order():
    rng = np.random.Generator(np.random.PCG64(7))
    noise, weights = rng.standard_normal(12), rng.standard_normal(17)
    model = generators.grid(3, 4, c1=0.5, c2=3.0, seed=7)
    np.testing.assert_allclose(model.biases, 0.5 * 2 * noise)
    np.testing.assert_allclose(model.couplings, 3.0 * 2 * weights)


@pytest.mark.parametrize("scale", [2.0, 4.0])
def test_kinds_differ_in_the_mean_of_the_biases(scale):
    models = {
        kind: generators.grid(4, 5, c1=0.5, c2=2.0, kind=kind, scale=scale, seed=1)
        for kind in ("standard", "frustrated", "frustrated_minus", "frustrated_centred")
    }
    noise = models["standard"].biases
    total = models["standard"].dense().sum(axis=1)
    np.testing.assert_allclose(models["frustrated"].biases, noise + 0.5 * total)
    np.testing.assert_allclose(models["frustrated_minus"].biases, noise - 0.5 * total)
    np.testing.assert_allclose(models["frustrated_centred"].biases, noise - total / 2)
    for model in models.values():
        np.testing.assert_array_equal(model.couplings, models["standard"].couplings)


def test_scale_is_the_standard_deviation_of_the_noise():
    model = generators.grid(200, 200, c1=1.0, c2=0.5, scale=4.0)
    # the standard error of a standard deviation is sd / sqrt(2n)
    assert model.biases.std() == pytest.approx(4.0, abs=4 * 4.0 / np.sqrt(2 * 40_000))
    assert model.couplings.std() == pytest.approx(2.0, abs=4 * 2.0 / np.sqrt(2 * 79_600))


@pytest.mark.parametrize(
    ("edges", "graph"),
    [
        (lattices.grid_edges(3, 5), networkx.grid_2d_graph(3, 5)),
        (lattices.grid_edges(1, 4), networkx.path_graph(4)),
        (lattices.torus_edges(3, 5), networkx.grid_2d_graph(3, 5, periodic=True)),
        (lattices.complete_edges(6), networkx.complete_graph(6)),
        (lattices.ring_edges(7), networkx.cycle_graph(7)),
        (lattices.bipartite_edges(3, 4), networkx.complete_bipartite_graph(3, 4)),
    ],
)
def test_graphs_are_those_of_networkx(edges, graph):
    index = {node: k for k, node in enumerate(graph.nodes)}
    expected = sorted(sorted((index[u], index[v])) for u, v in graph.edges)
    assert edges.tolist() == expected


@pytest.mark.parametrize(("n", "shortcuts"), [(1, 0), (4, 3), (50, 12)])
def test_shortcuts_come_to_the_tree_of_the_same_seed(n, shortcuts):
    tree = lattices.random_tree_edges(n, np.random.default_rng(3)).tolist()
    edges = lattices.shortcut_tree_edges(n, shortcuts, np.random.default_rng(3)).tolist()
    assert len({tuple(edge) for edge in edges}) == n - 1 + shortcuts
    assert all(edge in edges for edge in tree)
    assert all(i < j for i, j in edges)


@pytest.mark.parametrize("n", [1, 2, 50])
def test_trees_are_trees(n):
    edges = lattices.random_tree_edges(n, np.random.default_rng(0))
    assert len(edges) == n - 1
    graph = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(n))
    assert networkx.is_tree(graph)


def test_regular_graphs_are_regular():
    assert set(generators.random_regular(30, 4, seed=5).degrees) == {4}
    assert generators.random_regular(5, 0).num_edges == 0


def test_chimera_has_the_degrees_of_the_hardware():
    model = generators.chimera(3, 4, 4)
    assert model.num_variables == 96
    assert model.num_edges == 12 * 16 + 4 * (2 * 4 + 3 * 3)
    assert model.degrees.min() == 5
    assert model.degrees.max() == 6
    assert networkx.is_bipartite(networkx.Graph(model.edges.tolist()))
    # the first unit of side 0 couples down, the first of side 1 to the right
    assert [0, 4 * 8] in model.edges.tolist()
    assert [4, 8 + 4] in model.edges.tolist()
    assert [0, 4] in model.edges.tolist()


@pytest.mark.parametrize(("rows", "cols"), [(2, 2), (2, 3), (3, 3)])
def test_torus_sums_all_bonds(rows, cols):
    K, h = 0.3, 0.2
    model = generators.torus(rows, cols, coupling=K, field=h)
    sigma, s = spins(model)
    lattice = sigma.reshape(-1, rows, cols)
    bonds = (lattice * np.roll(lattice, 1, 1) + lattice * np.roll(lattice, 1, 2)).sum(axis=(1, 2))
    np.testing.assert_allclose(model.log_weight(s), K * bonds + h * sigma.sum(axis=1), atol=1e-12)


def test_the_critical_coupling_is_onsagers():
    assert np.sinh(2 * generators.CRITICAL_COUPLING) == pytest.approx(1.0)


def test_glass_on_a_regular_graph():
    model = generators.regular_glass(6, 3, beta=0.7, field=0.2, seed=2)
    sigma, s = spins(model)
    rng = np.random.Generator(np.random.PCG64(2))
    edges = lattices.random_regular_edges(6, 3, int(rng.integers(2**32)))
    h, J = 0.2 * rng.standard_normal(6), np.sign(rng.standard_normal(9))
    expected = sigma @ h + 0.7 * (sigma[:, edges[:, 0]] * sigma[:, edges[:, 1]]) @ J
    np.testing.assert_allclose(model.log_weight(s), expected, atol=1e-12)


def test_ferromagnet_in_random_fields():
    model = generators.random_field(2, 3, beta=0.5, field=0.3, seed=4)
    sigma, s = spins(model)
    h = 0.3 * np.random.Generator(np.random.PCG64(4)).standard_normal(6)
    grid = sigma.reshape(-1, 2, 3)
    bonds = (grid[:, 0] * grid[:, 1]).sum(1) + (grid[:, :, :2] * grid[:, :, 1:]).sum((1, 2))
    np.testing.assert_allclose(model.log_weight(s), sigma @ h + 0.5 * bonds, atol=1e-12)


@pytest.mark.parametrize("disorder", ["gaussian", "bimodal"])
def test_planar_glass_has_no_field(disorder):
    model = generators.planar_glass(3, 3, beta=0.7, disorder=disorder, seed=2)
    sigma, s = spins(model)
    np.testing.assert_allclose(model.log_weight(s), model.log_weight(1 - s), atol=1e-12)
    J = model.couplings / 4 / 0.7
    if disorder == "bimodal":
        assert set(np.round(J, 12)) == {-1.0, 1.0}
    else:
        np.testing.assert_allclose(J, np.random.Generator(np.random.PCG64(2)).standard_normal(12))
    i, j = model.edges.T
    np.testing.assert_allclose(model.log_weight(s), 0.7 * (sigma[:, i] * sigma[:, j]) @ J, atol=1e-12)


def test_sherrington_kirkpatrick_couplings():
    model = generators.sherrington_kirkpatrick(8, beta=1.5, field=0.3, seed=1)
    sigma, s = spins(model)
    J = np.random.Generator(np.random.PCG64(1)).standard_normal(28) / np.sqrt(8)
    i, j = np.triu_indices(8, 1)
    expected = 1.5 * ((sigma[:, i] * sigma[:, j]) @ J + 0.3 * sigma.sum(axis=1))
    np.testing.assert_allclose(model.log_weight(s), expected, atol=1e-12)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: generators.grid(0, 3), "model 'grid': rows = 0 and cols = 3"),
        (lambda: generators.grid(2, 2, kind="odd"), "kind = 'odd'; 'standard', 'frustrated'"),
        (lambda: generators.grid(2, 2, seed=-1), "seed = -1"),
        (lambda: generators.grid(2, 2, c1=np.nan), "bias of variable 0 is nan"),
        (lambda: generators.grid(10**6, 10**6), "the graph would have 2,000,000,000,000 edges"),
        (lambda: generators.complete(0), "n = 0"),
        (lambda: generators.complete(10**6), "the graph would have 499,999,500,000 edges"),
        (lambda: generators.ring(2), "n = 2; it must be 3 or more"),
        (lambda: generators.tree(0), "n = 0"),
        (lambda: generators.shortcut_tree(4, 4), "shortcuts = 4; a tree of 4 has room for 3"),
        (lambda: generators.random_regular(5, 3), "degree times n must be even"),
        (lambda: generators.random_regular(3, 3), "0 <= degree < n is needed"),
        (lambda: generators.chimera(1, 0, 4), "m = 1, n = 0 and t = 4"),
        (lambda: generators.rbm(0, 2), "visible = 0"),
        (lambda: generators.torus(1, 5), "both must be 2 or more"),
        (lambda: generators.planar_glass(2, 2, disorder="odd"), "disorder = 'odd'"),
        (lambda: generators.regular_glass(5, 3), "model 'regular_glass': degree = 3 and n = 5; degree times n"),
        (lambda: generators.random_field(0, 5), "rows = 0 and cols = 5"),
        (lambda: generators.sherrington_kirkpatrick(0), "n = 0"),
    ],
)
def test_parameters_out_of_range_are_refused(make, words):
    with pytest.raises(ModelError) as info:
        make()
    assert words in str(info.value)
