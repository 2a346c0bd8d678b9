"""Generators: graphs, weights and tables by their laws, and seeds that keep their meaning."""

from __future__ import annotations

import itertools

import networkx
import numpy as np
import pytest

import spinbench
from spinbench import reference
from spinbench.models import PairwiseModel, generators, lattices, networks, simplify
from spinbench.models.forney import convert
from spinbench.models.generators import planar_glass, random_field, regular_glass, sherrington_kirkpatrick, torus
from spinbench.models.networks import bayesian_network, gauge_complete, gauge_cycle, gauge_grid, gauge_regular, potts

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
    "cubic_glass": (-2.0, -2.0),
    "regular_glass": (1.920737082025219, 4.0),
    "random_field": (-1.7348539557813214, 1.76),
}
UNPINNED = ("gauge_complete", "gauge_cycle", "gauge_grid", "gauge_regular", "bayesian_network", "potts")


@pytest.mark.parametrize("family", [*PINNED, *UNPINNED])
def test_seeds_keep_their_meaning(family):
    make = getattr(generators if family in PINNED else networks, family)
    assert make(seed=3).content_hash == make(seed=3).content_hash != make(seed=4).content_hash
    if family in PINNED:
        model = make()
        np.testing.assert_allclose((model.biases[0], model.couplings[-1]), PINNED[family], rtol=1e-13)


@pytest.mark.parametrize(
    ("edges", "graph"),
    [
        (lattices.grid_edges(3, 5), networkx.grid_2d_graph(3, 5)),
        (lattices.grid_edges(1, 4), networkx.path_graph(4)),
        (lattices.torus_edges(3, 5), networkx.grid_2d_graph(3, 5, periodic=True)),
        (lattices.cubic_edges(3), networkx.grid_graph([3, 3, 3], periodic=True)),
        (lattices.complete_edges(6), networkx.complete_graph(6)),
        (lattices.ring_edges(7), networkx.cycle_graph(7)),
        (lattices.bipartite_edges(3, 4), networkx.complete_bipartite_graph(3, 4)),
    ],
)
def test_graphs_are_those_of_networkx(edges, graph):
    index = {node: k for k, node in enumerate(graph.nodes)}
    expected = sorted(sorted((index[u], index[v])) for u, v in graph.edges)
    assert edges.tolist() == expected


def test_regular_graphs_are_regular_and_connected():
    assert set(generators.random_regular(30, 4, seed=5).degrees) == {4}
    assert generators.random_regular(5, 0).num_edges == 0
    for seed in range(5):
        forney = convert.from_factor_graph(gauge_regular(12, 3, seed=seed))
        assert set(forney.degrees) == {3}
        assert networkx.is_connected(networkx.MultiGraph(forney.edges.tolist()))


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


def normal(seed, count):
    return np.random.Generator(np.random.PCG64(seed)).standard_normal(count)


def regular_law():
    """(edges, fields, couplings) of the regular glass."""
    rng = np.random.Generator(np.random.PCG64(2))
    edges = lattices.random_regular_edges(6, 3, int(rng.integers(2**32)))
    return edges, 0.2 * rng.standard_normal(6), 0.7 * np.sign(rng.standard_normal(9))


def torus_bonds(rows, cols):
    """Each site with the next one in its row and in its column: two bonds where there are but two."""
    index = np.arange(rows * cols).reshape(rows, cols)
    return np.concatenate([np.stack([index.ravel(), np.roll(index, -1, axis).ravel()], axis=1) for axis in (0, 1)])


@pytest.mark.parametrize(
    ("model", "edges", "fields", "couplings"),
    [
        *(
            pytest.param(torus(*shape, coupling=0.3, field=0.2), torus_bonds(*shape), 0.2, 0.3, id=f"torus {shape}")
            for shape in [(2, 2), (2, 3), (3, 3)]
        ),
        pytest.param(regular_glass(6, 3, beta=0.7, field=0.2, seed=2), *regular_law(), id="regular glass"),
        pytest.param(
            random_field(2, 3, beta=0.5, field=0.3, seed=4),
            lattices.grid_edges(2, 3),
            0.3 * normal(4, 6),
            0.5,
            id="field",
        ),
        pytest.param(
            planar_glass(3, 3, beta=0.7, seed=2, disorder="gaussian"),
            lattices.grid_edges(3, 3),
            0.0,
            0.7 * normal(2, 12),
            id="planar glass",
        ),
        pytest.param(
            sherrington_kirkpatrick(8, beta=1.5, field=0.3, seed=1),
            lattices.complete_edges(8),
            0.45,
            1.5 * normal(1, 28) / np.sqrt(8),
            id="sk",
        ),
    ],
)
def test_log_weights_are_those_of_spins(model, edges, fields, couplings):
    n = model.num_variables
    s = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
    spins = 2 * s - 1
    expected = (fields * spins).sum(axis=1) + (couplings * spins[:, edges[:, 0]] * spins[:, edges[:, 1]]).sum(axis=1)
    np.testing.assert_allclose(model.log_weight(s), expected, atol=1e-12)


def test_planar_glass_of_two_values_and_the_critical_coupling():
    model = planar_glass(3, 3, beta=0.7, disorder="bimodal", seed=2)
    assert set(np.round(model.couplings / 4 / 0.7, 12)) == {-1.0, 1.0}
    assert np.sinh(2 * generators.CRITICAL_COUPLING) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("graph", "edges"),
    [
        (gauge_complete(5), lattices.complete_edges(5)),
        (gauge_cycle(5), lattices.ring_edges(5)),
        (gauge_grid(3, 4), lattices.grid_edges(3, 4)),
        (gauge_grid(1, 5), lattices.grid_edges(1, 5)),
    ],
)
def test_variable_e_of_a_gauge_model_is_edge_e(graph, edges):
    forney = convert.from_factor_graph(graph)
    np.testing.assert_array_equal(forney.edges, edges)
    assert forney.num_nodes == len(graph.factors)


@pytest.mark.parametrize("kind", ["generic", "supermodular", "lognormal"])
def test_tables_of_gauge_models_follow_the_law(kind):
    """Supermodular ones have f(x ∧ y) f(x ∨ y) >= f(x) f(y), which fails for negative coefficients."""
    rng = np.random.Generator(np.random.PCG64(7))
    coefficients = rng.standard_normal(9) if kind != "lognormal" else None
    supermodular = []
    for a, factor in enumerate(gauge_grid(3, 3, beta=0.3, kind=kind, seed=7).factors):
        x = np.array(list(itertools.product((0, 1), repeat=len(factor.scope))))
        if coefficients is None:
            expected = 0.3 * rng.standard_normal(len(x))
        else:
            c = abs(coefficients[a]) if kind == "supermodular" else coefficients[a]
            expected = 0.3 * c * np.abs(x.shape[1] - 2 * x.sum(axis=1))
        logs = factor.log_table.ravel()
        np.testing.assert_allclose(logs, expected, atol=1e-14)
        place = 1 << np.arange(x.shape[1])[::-1]
        both, either = (x[:, None] & x) @ place, (x[:, None] | x) @ place
        supermodular.append((logs[both] + logs[either] - logs[:, None] - logs >= -1e-12).all())
    assert all(supermodular) == (kind == "supermodular")


def test_tables_are_conditional_probabilities_and_the_evidence_is_possible() -> None:
    model = bayesian_network(layers=4, width=12, parents=3, determinism=0.5, states=3, observed=0, seed=2)
    assert [factor.scope[-1] for factor in model.factors] == list(range(48))
    for k, factor in enumerate(model.factors):
        assert [v // 12 for v in factor.scope[:-1]] == [k // 12 - 1] * 3 * (k >= 12)
        np.testing.assert_allclose(np.exp(factor.log_table).sum(axis=-1), 1.0)
    deterministic = [bool((factor.log_table.max(axis=-1) == 0).all()) for factor in model.factors]
    assert not any(deterministic[:12])
    assert 8 <= sum(deterministic) <= 28  # 18 of 36 are expected
    for seed in range(5):
        network = bayesian_network(layers=3, width=8, determinism=1.0, observed=4, seed=seed)
        assert [v // 8 for v in range(24) if v not in network.origin.free] == [2] * 4
        assert -np.inf < reference.solve(network, cache=False, marginals=False).log_z <= 0


def test_without_observations_all_sums_out() -> None:
    assert simplify(bayesian_network(observed=0), 99).factors == ()


def test_log_z_of_a_bayesian_network_keeps_its_value() -> None:
    model = bayesian_network()
    assert reference.solve(model, marginals=False, cache=False).log_z == pytest.approx(-3.998317373020436, abs=1e-9)


def test_two_states_of_potts_are_an_ising_model() -> None:
    edges = lattices.grid_edges(3, 4)
    ising = PairwiseModel.from_spins(np.zeros(12), edges, np.full(len(edges), 0.8 / 2))
    expected = spinbench.exact(ising, cache=False).log_z + len(edges) * 0.8 / 2
    assert spinbench.exact(potts(3, 4, 2, 0.8, field=0.0), cache=False).log_z == pytest.approx(expected, abs=1e-12)


def test_weights_of_potts_count_equal_neighbours() -> None:
    model = potts(2, 2, 3, 0.7, field=0.5, seed=2)
    fields = [factor.log_table for factor in model.factors if len(factor.scope) == 1]
    states = np.array(list(itertools.product(range(3), repeat=4)))
    equal = (states[:, [0, 0, 1, 2]] == states[:, [1, 2, 3, 3]]).sum(axis=1)
    weights = 0.7 * equal + sum(table[states[:, v]] for v, table in enumerate(fields))
    np.testing.assert_allclose(model.log_weight(states), weights, atol=1e-12)
