"""Good files and objects: what they say, and what is written is read again; `load` and `save` as the one door."""

from __future__ import annotations

import itertools
import json
from types import SimpleNamespace

import dimod
import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from spinbench import reference
from spinbench.errors import ModelError, UnknownNameError
from spinbench.models import FactorGraph, PairwiseModel, generators, load, save, to_factor_graph
from spinbench.models.files import evid

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
UAI_LAW = np.array([[4.0, 2.4], [1.0, 0.0]])[:, :, None] * np.array(
    [[[2.25, 3.25, 3.75], [0, 0, 10]], [[1.875, 4, 3.333], [2, 2, 3.4]]]
)
COMMENTED = "c made by hand\nc\n" + EXAMPLE.replace("\n3\n2 2 3", "\nc three variables\n3\n2 2 3")
# The first variable of a factor is fastest; entry 4 (x7 = 0, x3 = 2) is left out.
FG = "# made by hand\n2\n\n2\n7 3\n2 3\n5\n0 0.5\n1 1.5\n 2 2.5\n3 3.5\n5 5.5\n\n1\n3\n3\n3\n0 1\n1 1\n2 2\n"
FG_LAW = np.array([[0.5, 1.5], [2.5, 3.5], [0.0, 11.0]])
OLD = "c an example\np wcnf 4 6 12\n12 1 2 -4 0\nc between\n3 -3 1 0\n0.5 4 0\n7 2 -1 2 0\n12 3 -3 0\n2 -2 -4\n3 0\n"
NEW = "c an example\nh -4 2 1 0\n3 -3 1 0\nc between\n0.5 4 0\n7 2 -1 0\nh 3 -3 0\n2 -2 -4 3 0\n"
CLAUSES = [(np.inf, [1, 2, -4]), (3.0, [-3, 1]), (0.5, [4]), (7.0, [2, -1]), (2.0, [-2, -4, 3])]
ENERGIES = np.reshape(
    [
        sum(weight for weight, literals in CLAUSES if not any(x[abs(k) - 1] == (k > 0) for k in literals))
        for x in itertools.product((0, 1), repeat=4)
    ],
    (2, 2, 2, 2),
)
COUNT = """c a comment
c t wmc
c p weight 1 0.3 0
p cnf 4 3
1 2 -4 0
c p show 1 03 4 0
c p weight -2 1/4
-3
1 0 4 3 0
c p weight 2 2e0 0
c p weight 2 +4/2 0
c ind 2 0
c p weight 3 0 0
c p weight -3 1e-400 0
%
0
c p weight 4 3 0
"""
COUNTED = np.array(
    [
        (0.3 if a else 0.7)
        * (2.0 if b else 0.25)
        * (0.0 if c else 1.0)
        * ((a or b or not d) and (a or not c) and (d or c))
        for a, b, c, d in itertools.product((0, 1), repeat=4)
    ]
)
# A table that (0, 1) and (1, 0) share, a constant, a variable without functions, and a bound of 9.
WCSP = """shared 3 3 4 9
3 3 2
1 1 0.5 1
2 3
-2 0 1 1 3
0 0 9
1 1 2.5
2 0 12
2 1 0 1 -1
0 0.25 0
"""
_SHARED = np.array([[np.inf, 1, 1], [1, 2.5, 1], [np.inf, 1, 1]])
COSTS = (0.25 + np.array([0.5, 0.5, 3.0]) + _SHARED + _SHARED.T)[..., None] + np.zeros(2)
CFN = """# a comment
{"problem": {"name": "m", "mustbe": "<4.5"},
 "variables": {"a": ["no", "yes"], "b": ["1", "0", "x"]},
 "functions": {
  "first": {"scope": ["a", "b"], "defaultcost": 0.5, "costs": ["yes", "0", 5, 0, 2, "-1.5", "no", "1", inf]},
  "second": {"scope": ["b"], "costs": "third"},
  "third": {"scope": ["b"], "costs": [5, 0, 1]}}}
"""
# A total with 5 in the second table may be 3.5, below the bound, and one with 5 in the first may not.
NAMED_COSTS = np.array([[np.inf, 0.5, 0.5], [10.5, np.inf, 2.5]])
FREE = np.exp(-2.0 * (1 - np.indices((2,) * 5)[0]))


def states(model):
    return np.stack(np.unravel_index(np.arange(np.prod(model.cardinalities)), model.cardinalities), axis=1)


@pytest.mark.parametrize(
    ("name", "text", "options", "labels", "law"),
    [
        pytest.param("m.uai", EXAMPLE, {}, (), UAI_LAW, id="uai"),
        pytest.param("m.uai", " ".join(EXAMPLE.replace("MARKOV", "Bayes").split()), {}, (), UAI_LAW, id="bayes"),
        pytest.param("m.uai", COMMENTED, {}, (), UAI_LAW, id="comments"),
        pytest.param("m.uai", "MARKOV 2 2 1 2 0 1 0 1 3.0 2 1.0 2.0", {}, (), [[3.0], [6.0]], id="orders 0 and 1"),
        pytest.param("m.uai", "MARKOV 1 5 0", {}, (), np.ones(5), id="no factors"),
        pytest.param("m.fg", FG, {}, (3, 7), FG_LAW, id="fg"),
        pytest.param("m.fg", FG, {"evidence": {7: 1}}, (3,), FG_LAW[:, 1], id="evidence by label"),
        *(
            pytest.param(
                "m.wcnf", text, options, (1, 2, 3, 4), np.exp(-beta * ENERGIES), id=f"{kind} wcnf, beta {beta}"
            )
            for kind, text in (("old", OLD), ("new", NEW))
            for beta, options in ((1.0, {}), (0.25, {"beta": 0.25}))
        ),
        pytest.param(
            "m.uai",
            "BAYES\n2 # nodes\n2 3\n2\n1 0   # rain\n2 0 1   # grass\n2\n.2 .8\n6 # {0, 1}\n.1 .3 .6\n.7 .2 .1\n",
            {},
            (),
            [0.02, 0.06, 0.12, 0.56, 0.16, 0.08],
            id="names behind #",
        ),
        pytest.param(
            "m.uai",
            "MARKOV\n2\n2 3\n3\n3 1 0 1\n1 0\n3 1 1 1\n18\n1 9 9 2 9 9 9 3 9 9 4 9 9 9 5 9 9 6\n2\n1 2\n"
            "27\n1 0 0 0 0 0 0 0 0 0 0 0 0 3 0 0 0 0 0 0 0 0 0 0 0 0 5\n",
            {},
            (),
            [1.0, 9.0, 25.0, 4.0, 24.0, 60.0],
            id="variables named twice",
        ),
        pytest.param("m.wcsp", WCSP, {}, (), np.exp(-COSTS), id="wcsp"),
        pytest.param("m", WCSP, {"beta": 0.5}, (), np.exp(-0.5 * COSTS), id="wcsp by content"),
        pytest.param("m.cfn", CFN, {}, ("a", "b"), np.exp(-NAMED_COSTS), id="cfn"),
        pytest.param("m", CFN.replace('"', ""), {}, ("a", "b"), np.exp(-NAMED_COSTS), id="cfn without quotes"),
        pytest.param(
            "m.cfn",
            '{"problem": {"mustbe": "<1e1", "name": "m"}, "variables": {"5": 2, "a": 1},'
            '"functions": {"f": {"scope": ["5"], "costs": [1, 0]}}}',
            {},
            ("5", "a"),
            np.exp([-1.0, 0.0]),
            id="cfn with names of digits",
        ),
        pytest.param(
            "m.cfn",
            "{problem [m >-5] variables [2 2] functions [[scope [] costs [-6]] [scope [0 1] costs [1 .5 inf 9.5]]]",
            {},
            (),
            np.exp([-5.0, -5.5, -np.inf, 3.5]),
            id="cfn of a maximum",
        ),
        pytest.param("m.cnf", COUNT.replace("1e-400", "1"), {}, (1, 2, 3, 4), COUNTED, id="weighted cnf"),
        pytest.param("m", "p cnf 2 1\n1 2 0\n", {}, (1, 2), [0, 1, 1, 1], id="cnf by content"),
        pytest.param("m.cnf", "p cnf 1 0\n", {}, (1,), [1, 1], id="cnf without clauses"),
        pytest.param("m.wcnf", "2 1 0", {"beta": -1.0}, (1,), np.exp([2, 0]), id="negative beta"),
        pytest.param("m", OLD, {}, (1, 2, 3, 4), np.exp(-ENERGIES), id="wcnf by content"),
        pytest.param("m.wcnf", "p wcnf 5 1\n2 1 0\n", {}, (1, 2, 3, 4, 5), FREE, id="free variables"),
        pytest.param("m.wcnf", "3 0\n1 1 0\n", {"beta": 2.0}, (1,), np.exp([-8, -6]), id="a clause without literals"),
    ],
)
def test_files_say_what_their_formats_do(write, name, text, options, labels, law):
    model = load(write(name, text), **options)
    assert model.name == "m"
    assert model.labels == labels
    np.testing.assert_allclose(np.exp(model.log_weight(states(model))), np.ravel(law), rtol=1e-14)


@pytest.mark.parametrize(
    ("weight", "other"),
    [
        ("0.99999999999999999999", 1e-20),
        ("9999999999999999/10000000000000000", 1e-16),
        ("99999/1e5", 1e-5),
        ("0.999999999e0", 1e-9),
        ("100000/1e5", 0.0),
        ("0.001e3", 0.0),
        ("1e-999999999", 1.0),
        (f"{10**399}e-400", 0.9),
        (f"{10**399}e-401", 0.99),
        ("1e900/2e900", 0.5),
    ],
)
def test_a_literal_without_a_weight_has_what_its_negation_leaves(write, weight, other):
    model = load(write("m.cnf", f"p cnf 2 1\n1 2 0\nc p weight 1 {weight} 0\n"))
    with np.errstate(divide="ignore"):
        assert model.log_weight([[0, 1]])[0] == pytest.approx(np.log(other), rel=1e-14)


def test_many_weights_are_read_in_linear_time(write):
    lines = [f"c p weight {sign}{v} 0.5 0" for v in range(1, 30_001) for sign in ("", "-")]
    text = "\n".join(["p cnf 30000 1", "1 2 0", *lines])  # in a quadratic way this would take a minute
    assert load(write("m.cnf", text)).num_variables == 30_000


def test_tiny_weights_of_literals_keep_their_logarithm(write):
    model = load(write("m.cnf", COUNT))
    assert reference.solve(model, cache=False).log_z == pytest.approx(
        np.log(COUNTED.sum()) - 400 * np.log(10), abs=1e-12
    )


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
        ("/* Evidence */\n2\n 0    1\n 3    1\n", {0: 1, 3: 1}),
        ("0\n1 0\n", {}),
        ("c of the example\n# again\n1 1 0\nc", {1: 0}),
    ],
)
def test_evidence_formats(write, text, evidence):
    path = write("a.evid", text)
    assert evid.read_evidence(path) == evidence
    path.write_text(evid.format_evidence(evidence))
    assert evid.read_evidence(path) == evidence


def test_evidence_from_a_file_or_a_mapping(write):
    path = write("example.uai", EXAMPLE)
    by_file = load(path, evidence=str(write("example.uai.evid", "1\n2 1 0 2 1")))
    by_map = load(str(path), evidence={1: 0, 2: 1}, name="other")
    assert by_file.content_hash == by_map.content_hash
    assert by_map.name == "other"
    assert np.exp(by_map.log_weight([1])) == pytest.approx(1.0 * 4.0)
    assert by_map.origin.free.tolist() == [0]


def random_graph(seed, cards, count, max_order=4, zero=0.2):
    rng = np.random.default_rng(seed)
    factors = []
    for _ in range(count):
        scope = rng.permutation(len(cards))[: rng.integers(0, max_order)].tolist()
        table = rng.normal(size=[cards[v] for v in scope])
        table = np.where(rng.random(table.shape) < zero, -np.inf, table)
        table[(0,) * len(scope)] = 1.0
        factors.append((scope, table))
    return FactorGraph.from_log_tables(cards, factors, log_constant=rng.uniform(-500, 500))


def of_many_kinds(seed):
    """Runs of scopes of one order, longer than what is looked at together, between others of other shapes."""
    rng = np.random.default_rng(seed)
    cards, factors = [3, 2, 1, 4, 2, 3], []
    for count in (1, 30, 2, 5000, 1, 9):
        order = int(rng.integers(0, 4))
        scopes = [rng.permutation(6)[:order].tolist() for _ in range(count)]
        factors += [(scope, 0.1 * rng.normal(size=[cards[v] for v in scope])) for scope in scopes]
    return FactorGraph.from_log_tables(cards, factors)


def shift_constant(constant):
    """Beyond what one table of a .uai file can hold."""
    model = generators.grid(3, 3, seed=1)
    return PairwiseModel.from_edges(model.biases, model.edges, model.couplings, log_constant=constant)


def of_low_weights(low):
    """exp(-730) has 6 binary digits of 53: off by .1 nats if it is written as it is."""
    return FactorGraph.from_log_tables([2, 2], [((0, 1), [[low, 0.3], [low + 1.7, -0.2]]), ((1,), [0.0, 1.0])])


def of_one_table(constant):
    return FactorGraph.from_log_tables([2], [((0,), [0.0, -1000.0])], log_constant=constant)


LABELLED = PairwiseModel.from_edges(
    [1, 2, 3, 4], [[0, 3]], [1e-300], groups=[(3, 0), (1, 2)], labels=["a", 1, ("b", 2), 0.5]
)
KEPT = {
    "grid": generators.grid(4, 3, seed=3),
    "one variable": PairwiseModel.from_edges([1.5], [], [], log_constant=0.1),
    "labels and groups": LABELLED,
    **{f"many of a kind {seed}": of_many_kinds(seed) for seed in range(3)},
    **{f"constant {constant}": shift_constant(constant) for constant in (3000.0, -3000.0)},
    **{f"low weights {low}": of_low_weights(low) for low in (-730.0, -744.0, -1000.0, -1400.0)},
    **{f"one table, {constant}": of_one_table(constant) for constant in (350.0, 650.0)},
}


def check_kept(model, folder):
    """Weights by all formats, everything by .npz."""
    for end in ("uai", "lg", "npz"):
        save(model, folder / f"model.{end}")
        again = load(folder / f"model.{end}")
        x = states(model)
        np.testing.assert_allclose(again.log_weight(x), model.log_weight(x), rtol=1e-12, atol=1e-12)
    assert (again.content_hash, again.labels, again.name) == (model.content_hash, model.labels, "model")


@pytest.mark.parametrize("name", KEPT)
def test_what_is_written_is_read_again(tmp_path, name):
    check_kept(KEPT[name], tmp_path)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(1, 3), min_size=1, max_size=4))
@settings(max_examples=40)
def test_random_graphs_are_read_again(tmp_path_factory, seed, cards):
    check_kept(random_graph(seed, cards, seed % 5), tmp_path_factory.mktemp("files"))


@pytest.mark.parametrize(
    ("model", "name", "message"),
    [
        (LABELLED, "model.txt", "model.txt: models are written to .lg, .npz and .uai files"),
        (LABELLED, "missing/model.uai", "model.uai: the file cannot be written (No such file or directory)"),
        (LABELLED, "folder.npz", "folder.npz: the file cannot be written"),
        (PairwiseModel.from_edges([0], [], [], labels=[frozenset()]), "m.npz", "a label is neither text nor number"),
        (PairwiseModel.from_edges([2000.0, 0.0], [[0, 1]], [-2000.0]), "m.uai", "span more than float64 holds"),
        (PairwiseModel.from_edges([-2000.0, 0.0], [[0, 1]], [2000.0]), "m.uai", "span more than float64 holds"),
        (of_one_table(-100.0), "m.uai", "span more than float64 holds"),
    ],
)
def test_saving_fails_in_one_sentence_and_leaves_nothing(tmp_path, model, name, message):
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ModelError) as caught:
        save(model, tmp_path / name)
    assert message in str(caught.value)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.npz"]


W = np.array([[0, 1.5, 0], [1.5, 0, -2], [0, -2, 0]])
EDGES = [[0, 1], [1, 2]]


@pytest.mark.parametrize(
    "arrays",
    [
        ([1, 2, 3], W),
        [[1, 2, 3], W.tolist()],
        ([1, 2, 3], sparse.csr_array(W)),
        ([1, 2, 3], sparse.coo_matrix(W)),
        ([1, 2, 3], EDGES, [1.5, -2]),
        {"biases": [1, 2, 3], "couplings": np.asfortranarray(W)},
        {"biases": [1, 2, 3], "edges": [[1, 0], [2, 1]], "couplings": [1.5, -2]},
    ],
    ids=["matrix", "lists", "csr", "coo", "edges", "npz of a matrix", "compressed npz of edges"],
)
def test_arrays(tmp_path, arrays):
    if isinstance(arrays, dict):
        (np.savez_compressed if "edges" in arrays else np.savez)(tmp_path / "m.npz", **arrays)
        arrays = tmp_path / "m.npz"
    model = load(arrays, name="three")
    assert model.content_hash == PairwiseModel.from_dense([1, 2, 3], W).content_hash
    assert model.name == "three"


def random_bqm(vartype):
    rng = np.random.default_rng(0)
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
    values = 2 * states(model) - 1 if vartype == "SPIN" else states(model)
    energies = bqm.energies((values, list(bqm.variables)))
    np.testing.assert_allclose(model.log_weight(states(model)), -(beta or 1.0) * energies, atol=1e-12)
    read = load(write("bqm.json", json.dumps(bqm.to_serializable())), beta=beta)
    assert (read.content_hash, read.labels) == (model.content_hash, model.labels)
    assert load(bqm, beta=beta, evidence={("cell", 0, 1): 1}).labels == (2, "a", "d")


def test_a_bqm_without_interactions():
    model = load(dimod.BinaryQuadraticModel({"x": 2.0}, {}, 0.0, "BINARY"))
    assert (model.num_edges, model.biases.tolist()) == (0, [-2.0])


@pytest.mark.parametrize("make", [networkx.Graph, networkx.MultiGraph])
def test_networkx_graphs(make):
    graph = make(name="toy")
    graph.add_node("a", bias=1.0)
    graph.add_edge("b", "a", weight=9.0, coupling=2.0)
    graph.add_edge("b", "c", weight=3.0)
    model = load(graph)
    assert (model.name, model.labels, model.biases.tolist()) == ("toy", ("a", "b", "c"), [1.0, 0.0, 0.0])
    assert (model.edges.tolist(), model.couplings.tolist()) == (EDGES, [2.0, 3.0])
    graph.add_edge("a", "b", weight=0.5)
    assert load(graph).couplings.tolist() == ([2.5, 3.0] if graph.is_multigraph() else [2.0, 3.0])
    in_order = make([(0, 1), (1, 2)])
    networkx.set_edge_attributes(in_order, 1.0, "coupling")
    assert load(in_order).labels == ()


def test_models_and_shipped_ones_by_name():
    model = generators.grid(2, 2)
    graph = to_factor_graph(model)
    assert load(model) is model
    assert load(graph) is graph
    assert load(model, name="new").name == "new"
    shipped = load("libdai/testfast", name="mine")
    assert (shipped.num_variables, shipped.name) == (16, "mine")
    with pytest.raises(UnknownNameError, match=r"no file or shipped model is named 'uai14/Grid_12'; .* uai14/Grids_12"):
        load("uai14/Grid_12")


@pytest.mark.parametrize(
    ("source", "options", "message"),
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
        (generators.grid(2, 2), {"beta": 2.0}, "beta = 2.0 was given, but"),
        ("libdai/testfast", {"beta": 2.0}, "beta = 2.0 was given, but"),
        ("m.uai", {"beta": 2.0}, "m.uai: beta = 2.0 was given"),
        (generators.grid(2, 2), {"evidence": {9: 0}}, "evidence names variable 9"),
    ],
)
def test_sources_that_are_no_models(source, options, message):
    with pytest.raises(ModelError) as info:
        load(source, **options)
    assert message in str(info.value)


def test_spins_and_restricted_boltzmann_machines_of_arrays(tmp_path, capsys):
    rng = np.random.default_rng(0)
    h, J = rng.normal(size=4), np.triu(rng.normal(size=(4, 4)), 1)
    ends = np.argwhere(J)
    np.savez(tmp_path / "dense.npz", h=h, J=J + J.T)
    np.savez(tmp_path / "sparse.npz", h=h, J=J[tuple(ends.T)], edges=ends, log_constant=0.0)
    binary = np.array(list(itertools.product((0, 1), repeat=4)))
    spins = 2 * binary - 1
    for name in ("dense.npz", "sparse.npz"):
        np.testing.assert_allclose(
            load(tmp_path / name).log_weight(binary), spins @ h + np.einsum("si,ij,sj->s", spins, J, spins), atol=1e-12
        )
    assert "h and J are read as exp(Σ h s + Σ J s s')" in capsys.readouterr().err
    weights, visible, hidden = rng.normal(size=(3, 2)), rng.normal(size=3), rng.normal(size=2)
    np.savez(tmp_path / "rbm.npz", weights=weights, visible_biases=visible, hidden_biases=hidden)
    v, u = np.split(np.array(list(itertools.product((0, 1), repeat=5))), [3], axis=1)
    np.testing.assert_allclose(
        load(tmp_path / "rbm.npz").log_weight(np.hstack([v, u])),
        v @ visible + u @ hidden + np.einsum("si,ij,sj->s", v, weights, u),
        atol=1e-12,
    )
    machine = SimpleNamespace(intercept_visible_=visible, intercept_hidden_=hidden, components_=weights.T)
    np.testing.assert_array_equal(load(machine).couplings, load(tmp_path / "rbm.npz").couplings)
    machine.feature_names_in_, machine.get_feature_names_out = np.array(["a", "b", "c"]), lambda: ["u0", "u1"]
    assert load(machine).labels == ("a", "b", "c", "u0", "u1")


@pytest.mark.parametrize(
    ("text", "samples"),
    [
        ("2\n1 4 0\n0\n", [{4: 0}, {}]),
        ("c x\n4\n0\n\n2 1 1 2 0\n0\n0", [{}, {1: 1, 2: 0}, {}, {}]),
        ("2 1 4 0 0\n", [{1: 4, 0: 0}]),
        ("2\n1 4\n0 0\n", [{1: 4, 0: 0}]),
        ("2 1 1 1 1 2 0", [{1: 1}, {2: 0}]),
    ],
)
def test_empty_samples_are_told_from_pairs_by_their_lines(text: str, samples: list[dict[int, int]]) -> None:
    assert evid.parse_samples(text.encode(), "m.evid") == samples
