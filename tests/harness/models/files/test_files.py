"""Good files and objects: read, write, round trips; `load` and `save` as the one door."""

from __future__ import annotations

import itertools
import json
from pathlib import Path

import dimod
import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

import spinbench
from spinbench.errors import ModelError, UnknownNameError
from spinbench.models import FactorGraph, PairwiseModel, generators, load, save, to_factor_graph
from spinbench.models.loading import uai

# The example of the competitions' page: three variables, two factors.
EXAMPLE = """MARKOV
3
2 2 3
2
2 0 1
3 0 1 2

4
 4.000 2.400
 1.000 0.000

12
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.0000
 1.8750 4.0000 3.3330
 2.0000 2.0000 3.4000
"""
OLD = "c an example\np wcnf 4 6 12\n12 1 2 -4 0\nc between\n3 -3 1 0\n0.5 4 0\n7 2 -1 2 0\n12 3 -3 0\n2 -2 -4\n3 0\n"
NEW = "c an example\nh -4 2 1 0\n3 -3 1 0\nc between\n0.5 4 0\n7 2 -1 0\nh 3 -3 0\n2 -2 -4 3 0\n"
CLAUSES = [(np.inf, [1, 2, -4]), (3.0, [-3, 1]), (0.5, [4]), (7.0, [2, -1]), (2.0, [-2, -4, 3])]


@pytest.fixture
def write(tmp_path):
    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def test_uai_example(write):
    graph = load(write("example.uai", EXAMPLE))
    assert graph.name == "example"
    assert graph.cardinalities == (2, 2, 3)
    assert [f.scope for f in graph.factors] == [(0, 1), (0, 1, 2)]
    assert np.exp(graph.log_weight([0, 0, 2])) == pytest.approx(4.0 * 3.75)
    assert np.exp(graph.log_weight([1, 0, 1])) == pytest.approx(1.0 * 4.0)
    assert graph.log_weight([0, 1, 0]) == -np.inf


@pytest.mark.parametrize(
    "text",
    [
        EXAMPLE.replace("MARKOV", "BAYES"),
        EXAMPLE.replace("MARKOV", "markov"),
        EXAMPLE.replace("\n", "\r\n"),
        " ".join(EXAMPLE.split()),
        "\ufeff" + EXAMPLE,
        "c made by hand\nc\n" + EXAMPLE.replace("\n3\n2 2 3", "\nc three variables\n3\n2 2 3"),
    ],
    ids=["bayes", "lower case", "crlf", "one line", "byte order mark", "comments"],
)
def test_uai_variants(write, text):
    assert load(write("variant.uai", text)).content_hash == load(write("example.uai", EXAMPLE)).content_hash


def test_uai_orders_0_and_1_and_no_factors(write):
    graph = load(write("a.uai", "MARKOV 2 2 1 2 0 1 0 1 3.0 2 1.0 2.0"))
    assert graph.log_weight([1, 0]) == pytest.approx(np.log(6.0))
    assert load(write("b.uai", "MARKOV 1 5 0")).cardinalities == (5,)


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("0", {}),
        ("0\n", {}),
        ("1\n0\n", {}),
        ("1 2 1", {2: 1}),
        ("2 0 1 2 2", {0: 1, 2: 2}),
        ("1\n2 0 1 2 2\n", {0: 1, 2: 2}),
        ("1\n1 0 1\n", {0: 1}),
        ("3 5 0 5 0 6 1", {5: 0, 6: 1}),
        # five tokens: two pairs, and not two samples of none and one
        ("2 0 1 3 1", {0: 1, 3: 1}),
    ],
)
def test_evidence_formats(write, text, evidence):
    path = write("a.evid", text)
    assert uai.read_evidence(path) == evidence
    path.write_text(uai.format_evidence(evidence))
    assert uai.read_evidence(path) == evidence


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 3), min_size=1, max_size=4), st.floats(-500, 500))
@settings(max_examples=40)
def test_uai_and_npz_keep_factor_graphs(tmp_path_factory, seed, cards, constant):
    rng = np.random.default_rng(seed)
    factors = []
    for _ in range(rng.integers(0, 5)):
        scope = rng.permutation(len(cards))[: rng.integers(0, 4)].tolist()
        table = np.where(
            rng.random([cards[v] for v in scope]) < 0.2, -np.inf, rng.normal(size=[cards[v] for v in scope])
        )
        table[(0,) * len(scope)] = 1.0
        factors.append((scope, table))
    graph = FactorGraph.from_log_tables(cards, factors, log_constant=constant)
    folder = tmp_path_factory.mktemp("files")
    states = np.stack(np.unravel_index(np.arange(np.prod(cards)), cards), axis=1)
    save(graph, folder / "model.uai")
    again = load(folder / "model.uai")
    np.testing.assert_allclose(again.log_weight(states), graph.log_weight(states), rtol=1e-14, atol=1e-13)
    save(graph, folder / "model.npz")
    assert load(folder / "model.npz").content_hash == graph.content_hash


@pytest.mark.parametrize("seed", range(3))
def test_uai_keeps_factors_that_are_many_of_a_kind(tmp_path, seed):
    """Runs of scopes of one order, longer than what is looked at together, between others of other shapes."""
    rng = np.random.default_rng(seed)
    cards, factors = rng.integers(1, 5, 20).tolist(), []
    for count in (1, 30, 2, 5000, 1, 9):
        order = int(rng.integers(0, 4))
        for _ in range(count):
            scope = rng.permutation(20)[:order].tolist()
            factors.append((scope, rng.normal(size=[cards[v] for v in scope])))
    graph = FactorGraph.from_log_tables(cards, factors)
    save(graph, tmp_path / "model.uai")
    again = load(tmp_path / "model.uai")
    assert [one.scope for one in again.factors] == [one.scope for one in graph.factors]
    for one, other in zip(again.factors, graph.factors, strict=True):
        assert not one.log_table.flags.writeable
        np.testing.assert_allclose(one.log_table, other.log_table, rtol=0, atol=1e-13)


def test_uai_spreads_a_constant_that_one_table_cannot_hold(tmp_path):
    model = generators.grid(3, 3, seed=1)
    for constant in (3000.0, -3000.0):
        shifted = PairwiseModel.from_edges(model.biases, model.edges, model.couplings, log_constant=constant)
        save(shifted, tmp_path / "m.uai")
        states = np.eye(9, dtype=int)
        np.testing.assert_allclose(load(tmp_path / "m.uai").log_weight(states), shifted.log_weight(states), rtol=1e-12)
    for bias in (-2000.0, 2000.0):
        with pytest.raises(ModelError, match="span more than float64 holds"):
            save(PairwiseModel.from_edges([bias, 0.0], [[0, 1]], [-bias]), tmp_path / "m.uai")


@pytest.mark.parametrize("low", [-730.0, -744.0, -1000.0, -1400.0])
def test_uai_keeps_weights_that_are_no_normal_floats(tmp_path, low):
    """exp(-730) has 6 binary digits of 53: off by .1 nats if it is written as it is."""
    graph = FactorGraph.from_log_tables([2, 2], [((0, 1), [[low, 0.3], [low + 1.7, -0.2]]), ((1,), [0.0, 1.0])])
    save(graph, tmp_path / "m.uai")
    states = [[0, 0], [0, 1], [1, 0], [1, 1]]
    np.testing.assert_allclose(load(tmp_path / "m.uai").log_weight(states), graph.log_weight(states), rtol=1e-12)


def test_uai_has_no_room_for_a_constant_that_all_tables_together_cannot_hold(tmp_path):
    tables = [((0,), [0.0, -1000.0])]
    for constant in (350.0, 650.0):
        graph = FactorGraph.from_log_tables([2], tables, log_constant=constant)
        save(graph, tmp_path / "m.uai")
        np.testing.assert_allclose(load(tmp_path / "m.uai").log_weight([[1]]), constant - 1000.0, rtol=1e-12)
    with pytest.raises(ModelError, match="span more than float64 holds"):
        save(FactorGraph.from_log_tables([2], tables, log_constant=-100.0), tmp_path / "m.uai")


@pytest.mark.parametrize(
    "model",
    [
        generators.grid(4, 5, seed=3),
        PairwiseModel.from_edges([1.5], [], [], log_constant=0.1),
        PairwiseModel.from_edges(
            [1, 2, 3, 4], [[0, 3]], [1e-300], groups=[(3, 0), (1, 2)], labels=["a", 1, ("b", 2), 0.5]
        ),
    ],
)
def test_npz_keeps_pairwise_models(tmp_path, model):
    save(model, tmp_path / "model.npz")
    again = load(tmp_path / "model.npz")
    assert again.content_hash == model.content_hash
    assert again.labels == model.labels
    assert again.name == "model"


def test_npz_of_plain_arrays(tmp_path):
    W = np.array([[0, 1.5, 0], [1.5, 0, -2], [0, -2, 0]])
    np.savez(tmp_path / "dense.npz", biases=[1, 2, 3], couplings=np.asfortranarray(W))
    np.savez_compressed(tmp_path / "edges.npz", biases=[1, 2, 3], edges=[[1, 0], [2, 1]], couplings=[1.5, -2])
    dense, edges = load(tmp_path / "dense.npz"), load(tmp_path / "edges.npz")
    assert dense.content_hash == edges.content_hash
    np.testing.assert_array_equal(dense.dense(), W)


def test_fg_has_its_first_variable_fastest_and_keeps_labels(write):
    text = "# made by hand\n2\n\n2\n7 3\n2 3\n5\n0 0.5\n1 1.5\n 2 2.5\n3 3.5\n5 5.5\n\n1\n3\n3\n3\n0 1\n1 1\n2 2\n"
    graph = load(write("tiny.fg", text))
    assert graph.labels == (3, 7)
    assert graph.cardinalities == (3, 2)
    # states are (x3, x7); entry 5 is x7 = 1, x3 = 2, and entry 4 (x7 = 0, x3 = 2) is left out
    assert np.exp(graph.log_weight([2, 1])) == pytest.approx(5.5 * 2)
    assert graph.log_weight([2, 0]) == -np.inf
    assert np.exp(graph.log_weight([1, 0])) == pytest.approx(2.5)
    conditioned = load(write("tiny.fg", text), evidence={7: 1})
    assert np.exp(conditioned.log_weight([2])) == pytest.approx(11.0)


def random_bqm(vartype, seed=0):
    rng = np.random.default_rng(seed)
    labels = ["a", 2, ("cell", 0, 1), "d"]
    linear = {v: rng.normal() for v in labels}
    quadratic = {(u, v): rng.normal() for k, u in enumerate(labels) for v in labels[:k]}
    return dimod.BinaryQuadraticModel(linear, quadratic, 0.7, vartype)


@pytest.mark.parametrize("vartype", ["SPIN", "BINARY"])
@pytest.mark.parametrize("beta", [None, 0.3])
def test_bqm_objects_and_json_give_minus_beta_times_the_energy(write, vartype, beta):
    bqm = random_bqm(vartype)
    model = load(bqm, beta=beta)
    assert model.labels == tuple(bqm.variables)
    states = np.stack(np.unravel_index(np.arange(16), (2,) * 4), axis=1)
    values = 2 * states - 1 if vartype == "SPIN" else states
    energies = bqm.energies((values, list(bqm.variables)))
    np.testing.assert_allclose(model.log_weight(states), -(beta or 1.0) * energies, atol=1e-12)
    read = load(write("bqm.json", json.dumps(bqm.to_serializable())), beta=beta)
    assert read.content_hash == model.content_hash
    assert read.labels == model.labels
    assert load(bqm, beta=beta, evidence={("cell", 0, 1): 1}).labels == (2, "a", "d")


def test_a_bqm_without_interactions():
    model = load(dimod.BinaryQuadraticModel({"x": 2.0}, {}, 0.0, "BINARY"))
    assert model.num_edges == 0
    assert model.biases.tolist() == [-2.0]


@pytest.mark.parametrize("make", [networkx.Graph, networkx.MultiGraph])
def test_networkx_graphs(make):
    graph = make(name="toy")
    graph.add_node("a", bias=1.0)
    graph.add_node("b")
    graph.add_edge("b", "a", weight=9.0, coupling=2.0)
    graph.add_edge("b", "c", weight=3.0)
    model = load(graph)
    assert model.name == "toy"
    assert model.labels == ("a", "b", "c")
    assert model.biases.tolist() == [1.0, 0.0, 0.0]
    assert model.edges.tolist() == [[0, 1], [1, 2]]
    assert model.couplings.tolist() == [2.0, 3.0]
    if graph.is_multigraph():
        graph.add_edge("a", "b", weight=0.5)
        assert load(graph).couplings.tolist() == [2.5, 3.0]


def test_nodes_that_are_numbers_in_order_are_no_labels():
    graph = networkx.path_graph(3)
    networkx.set_edge_attributes(graph, 1.0, "coupling")
    assert load(graph).labels == ()


def test_arrays():
    a, W = [1.0, 2.0, 3.0], np.array([[0, 1.0, 0], [1.0, 0, 2.0], [0, 2.0, 0]])
    expected = PairwiseModel.from_dense(a, W).content_hash
    assert load((a, W)).content_hash == expected
    assert load([a, W.tolist()]).content_hash == expected
    assert load((a, sparse.csr_array(W))).content_hash == expected
    assert load((a, sparse.coo_matrix(W))).content_hash == expected
    assert load((a, [[0, 1], [1, 2]], [1.0, 2.0]), name="three").name == "three"


def test_models_pass_through():
    model = generators.grid(2, 2)
    assert load(model) is model
    assert load(model, name="new").name == "new"
    graph = to_factor_graph(model)
    assert load(graph) is graph


def test_evidence_from_a_file_or_a_mapping(write):
    path = write("example.uai", EXAMPLE)
    by_file = load(path, evidence=str(write("example.uai.evid", "1\n2 1 0 2 1")))
    by_map = load(str(path), evidence={1: 0, 2: 1}, name="other")
    assert by_file.content_hash == by_map.content_hash
    assert by_map.name == "other"
    assert np.exp(by_map.log_weight([1])) == pytest.approx(1.0 * 4.0)
    assert by_map.origin.free.tolist() == [0]


def test_a_shipped_model_by_name():
    assert load("libdai/testfast").num_variables == 16
    assert load("libdai/testfast", name="mine").name == "mine"
    with pytest.raises(UnknownNameError, match=r"no file or shipped model is named 'uai14/Grid_12'; .* uai14/Grids_12"):
        load("uai14/Grid_12")


@pytest.mark.parametrize(
    ("source", "options", "words"),
    [
        (3.5, {}, "a model cannot be made of a float"),
        ((1, 2, 3, 4), {}, "a model cannot be made of a tuple"),
        (([0, 0], sparse.csr_array([[0, 1.0], [0, 0]])), {}, "W[0, 1] and W[1, 0] differ by 1"),
        (([0, 0], sparse.csr_array([[1.0, 0], [0, 0]])), {}, "variable 0 is coupled to itself"),
        (([0], sparse.csr_array([[0, 0], [0, 0.0]])), {}, "couplings have shape (2, 2); (1, 1) is needed"),
        (networkx.DiGraph(), {}, "the graph is directed"),
        (networkx.Graph(), {}, "biases have shape (0,)"),
        (networkx.path_graph(2), {}, "edge (0, 1) has neither 'coupling' nor 'weight'"),
        (networkx.Graph([(0, 0, {"weight": 1.0})]), {}, "variable 0 is coupled to itself"),
        (networkx.Graph([(0, 1, {"weight": "x"})]), {}, "couplings are not an array of real numbers"),
        (dimod.BinaryQuadraticModel("SPIN"), {}, "biases have shape (0,)"),
        (random_bqm("SPIN"), {"beta": np.nan}, "beta is nan; a finite number is needed"),
        (generators.grid(2, 2), {"beta": 2.0}, "beta = 2.0 was given"),
        ("m.uai", {"beta": 2.0}, "m.uai: beta = 2.0 was given"),
        (generators.grid(2, 2), {"evidence": {9: 0}}, "evidence names variable 9"),
    ],
)
def test_sources_that_are_no_models(source, options, words):
    with pytest.raises(ModelError) as info:
        load(source, **options)
    assert words in str(info.value)


def test_saving_fails_in_one_sentence_and_leaves_nothing(tmp_path):
    model = generators.grid(2, 2)
    with pytest.raises(ModelError, match=r"model.txt: models are written to .npz and .uai files"):
        save(model, tmp_path / "model.txt")
    with pytest.raises(ModelError, match=r"model.uai: the file cannot be written \(No such file or directory\)"):
        save(model, tmp_path / "missing" / "model.uai")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ModelError, match=r"folder.npz: the file cannot be written"):
        save(model, tmp_path / "folder.npz")
    odd = PairwiseModel.from_edges([0.0], [], [], labels=[frozenset()])
    with pytest.raises(ModelError, match="a label is neither text nor number"):
        save(odd, tmp_path / "odd.npz")
    assert [p.name for p in tmp_path.iterdir()] == ["folder.npz"]


def read(path: Path, text: str, **options: float) -> FactorGraph:
    path.write_bytes(text.encode())
    model = load(path, **options)
    assert isinstance(model, FactorGraph)
    return model


def energy(state: tuple[int, ...]) -> float:
    return sum(w for w, literals in CLAUSES if not any(state[abs(k) - 1] == (k > 0) for k in literals))


@pytest.mark.parametrize("beta", [None, 0.25, -1.0])
@pytest.mark.parametrize("text", [OLD, NEW, OLD.replace("\n", "\r\n"), NEW.replace(" ", "\t"), "\ufeff" + NEW])
def test_states_have_the_energy_of_the_clauses_that_they_falsify(tmp_path: Path, text: str, beta: float | None) -> None:
    options = {} if beta is None else {"beta": beta}
    model = read(tmp_path / "m.wcnf", text, **options)
    assert model.labels == (1, 2, 3, 4)
    states = list(itertools.product((0, 1), repeat=4))
    expected = [-np.inf if energy(s) == np.inf else -(1.0 if beta is None else beta) * energy(s) for s in states]
    np.testing.assert_allclose(model.log_weight(states), expected, rtol=1e-14)
    log_z = np.logaddexp.reduce(expected)
    assert spinbench.exact(model, cache=False).log_z == pytest.approx(log_z, rel=1e-12)
    assert read(tmp_path / "other.txt", text, **options).content_hash == model.content_hash


def test_variables_that_no_clause_names_are_free(tmp_path: Path) -> None:
    assert spinbench.exact(read(tmp_path / "m.wcnf", "p wcnf 5 1\n2 1 0\n"), cache=False).log_z == pytest.approx(
        4 * np.log(2) + np.log1p(np.exp(-2))
    )
    assert read(tmp_path / "m.wcnf", "1 -3 0").cardinalities == (2, 2, 2)


def test_clauses_without_literals_are_a_constant(tmp_path: Path) -> None:
    model = read(tmp_path / "m.wcnf", "3 0\n1 1 0\n", beta=2.0)
    assert model.log_weight([[0], [1]]).tolist() == [-8.0, -6.0]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1 1 0\nh 0\n", "line 2, token 'h': a hard clause without literals is always falsified, so Z = 0"),
        ("p wcnf 2 1 5\n5 0\n", "line 2, token '5': a hard clause without literals is always falsified, so Z = 0"),
        ("p cnf 2 1\n1 2 0\n", "m.wcnf, line 1: 'p wcnf VARIABLES CLAUSES TOP' is needed, or no such line"),
        ("c x\n\np wcnf 2\n1 2 0\n", "m.wcnf, line 3: 'p wcnf VARIABLES CLAUSES TOP' is needed"),
        ("p wcnf 2 2 5\n1 1 0\n", "2 clauses are claimed"),
        ("p wcnf 2 1 5\n1 3 0\n", "line 2, token '3': a literal must be an integer from -2 to 2"),
        ("p wcnf 2 1 5\n1 1.5 0\n", "line 2, token '1.5': a literal must be an integer"),
        ("p wcnf 2 1 5\n-1 1 0\n", "line 2, token '-1': the weight of a clause must be a number, 0 or more"),
        ("p wcnf 2 1 5\n1 1 2\n", "m.wcnf: the file ends after line 2, where the 0 that ends a clause is missing"),
        ("p wcnf 2 1 5\nh 1 2 0\n", "line 2, token 'h': a number is needed"),
        ("1 1 0\nnan 1 0\n", "line 2, token 'nan': the weight of a clause must be a number, 0 or more"),
        ("h 1 0\ninf 1 0\n", "line 2, token 'inf': a finite number is needed"),
        ("1 1 0\n9e999 1 0\n", "line 2, token '9e999': a finite number is needed"),
        ("1 1 0\n+09.0e+0999 1 0\n", "m.wcnf, line 2, token 'h': a finite number is needed"),
        ("1 x 0\n", "line 1, token 'x': a number is needed"),
        ("1 -2147483649 0\n", "token '-2147483649': a literal must be an integer"),
        ("1 2147483648 0\n", "m.wcnf: 2147483648 variables are claimed; a file of this length tells of 1048576"),
        ("p wcnf 99999999 1\n1 1 0\n", "m.wcnf: 99999999 variables are claimed"),
        ("3 0\n", "m.wcnf: no clause names a variable"),
        ("1 " + " ".join(map(str, range(1, 31))) + " 0", "token '1': a clause of 30 variables has a table of 2^30"),
        ("1 " + " ".join(map(str, range(1, 101))) + " 0", "token '1': a clause of 100 variables has a table of 2^100"),
        (("1 " + " ".join(map(str, range(1, 26))) + " 0\n") * 3, "line 3, token '1': a clause of 25 variables"),
    ],
)
def test_bad_wcnf(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ModelError) as info:
        read(tmp_path / "m.wcnf", text)
    assert words in str(info.value)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("beta", [np.nan, np.inf, 1e308])
def test_bad_betas(tmp_path: Path, beta: float) -> None:
    with pytest.raises(ModelError, match=r"m\.wcnf"):
        read(tmp_path / "m.wcnf", "9999 1 0\n", beta=beta)
