"""Networks in the files of other programs: right values, names, and sentences for the rest."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import math
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import ModelError
from spinbench.foundation import remarks
from spinbench.models import load, to_factor_graph

BIF = """// the sprinkler, made by hand
network "wet grass" { property author "a; b"; }
variable rain { /* twice
  a day */ type discrete [ 3 ] { none, "a drop", much }; property position = (1, 2) ; }
variable sprinkler {
  type discrete[2] { on off };
}
variable wet-grass { type discrete [ 2 ] { yes, no }; }
probability ( wet-grass | sprinkler, rain ) {
  default 0.9, 0.1;
  (off, none) 0.0, 1.0;
  (on, "a drop") .95 5e-2;
}
probability(sprinkler|rain) {
  table 0.4, 0.25, 0.0,
        0.6, 0.75, 1.0;
}
probability ( rain ) { property a b c; table 0.5, 0.3, 0.2; }
"""
RAIN = np.array([0.5, 0.3, 0.2])
SPRINKLER = np.array([[0.4, 0.6], [0.25, 0.75], [0.0, 1.0]])  # given rain
WET = np.array([[[0.9, 0.1], [0.95, 0.05], [0.9, 0.1]], [[0.0, 1.0], [0.9, 0.1], [0.9, 0.1]]])  # sprinkler and rain

ERGO = """3
2 2 3
0
1 0
2 0 1

/* Probabilities */
2
 0.436 0.564
4
 0.128 0.872
 0.920 0.080
12
 0.210 0.333 0.457
 0.811 0.000 0.189
 0.1 0.2 0.7
 1 0 0

/* Names */
X
Y
Z

/* Labels */
x0 x1
y0 y1
z0 z1 z2
"""
FIRST, SECOND = np.array([0.436, 0.564]), np.array([[0.128, 0.872], [0.92, 0.08]])
THIRD = np.array([[[0.21, 0.333, 0.457], [0.811, 0.0, 0.189]], [[0.1, 0.2, 0.7], [1.0, 0.0, 0.0]]])
# Parents are counted from 1: from 0, the second variable were its own.
GENIE = "2\n2 3\n0\n1 1\n/* Probabilities */\n2\n0.2 0.8\n6\n0.4 0.4 0.2 0.1 0.3 0.6\n/* Names */\nSuccess Forecast\n"
BIF_LAW = RAIN[:, None, None] * SPRINKLER[:, :, None] * WET.transpose(1, 0, 2)
ERGO_LAW = FIRST[:, None, None] * SECOND[:, :, None] * THIRD
BEFORE_NAMES = ERGO.partition("/* Names")[0]
ABC = "".join(f"variable {v} {{ type discrete [1] {{ only }}; }}" for v in "abc")
CYCLE = ABC + "probability (a|b) { (only) 1; } probability (b|c) { (only) 1; } "
LARGE = "".join(
    f"variable v{v} {{ type discrete [1000] {{ {' '.join(f's{k}' for k in range(1000))} }}; }}\n" for v in range(4)
)
UNCLEAR = "4 2 2 2 2  0 0 1 1 0 /* Probabilities */ 2 .5 .5 2 .5 .5 4 .5 .5 .5 .5 2 .5 .5"


def replace_text(text, old, new):
    assert old in text
    return text.replace(old, new, 1)


@pytest.mark.parametrize(
    ("name", "text", "labels", "law"),
    [
        *(
            pytest.param("m.bif", text, ("rain", "sprinkler", "wet-grass"), BIF_LAW, id=f"bif {label}")
            for label, text in {
                "plain": BIF,
                "blanks": BIF.replace(",", " "),
                "ends of lines": BIF.replace("\n", "\t\r\n").replace("  ", "\t"),
                "one line": BIF.replace("}\n", "}"),
                "probabilities first": BIF[BIF.index("probability") :] + BIF[: BIF.index("probability")],
                "a comment glued to a word": BIF.replace("type discrete", "type discrete/* of two */"),
                "rounded": replace_text(BIF, "0.0, 1.0;", "0.0, 1.0000000000000002;"),
            }.items()
        ),
        *(
            pytest.param("m.erg", text, labels, ERGO_LAW, id=f"ergo {label}")
            for label, labels, text in (
                ("plain", ("X", "Y", "Z"), ERGO),
                ("parents from 1", ("X", "Y", "Z"), replace_text(ERGO, "1 0\n2 0 1\n", "1 1\n2 1 2\n")),
                ("names in a line", ("X", "Y", "Z"), replace_text(ERGO, "X\nY\nZ\n", "X Y Z\n")),
                ("names of words", ("the X", "the Y", "Z"), replace_text(ERGO, "X\nY\nZ\n", "the X\nthe Y\nZ\n")),
                ("no names", (), BEFORE_NAMES),
                ("centres", tuple("ABC"), BEFORE_NAMES + "/* Centers */\n1 2\n3 4\n5 6\n/* Names */ A\nB\nC"),
            )
        ),
        pytest.param("m.erg", GENIE, ("Success", "Forecast"), [[0.08, 0.08, 0.04], [0.08, 0.24, 0.48]], id="genie"),
    ],
)
def test_networks(write, name, text, labels, law):
    model = load(write(name, text))
    assert model.labels == labels
    states = np.stack(np.unravel_index(np.arange(np.size(law)), np.shape(law)), axis=1)
    np.testing.assert_allclose(np.exp(model.log_weight(states)), np.ravel(law), rtol=1e-14)


def test_states_with_blanks_and_no_quotes(write):
    text = BIF.replace('"a drop"', "a  drop").replace("{ none, a  drop, much }", "{ none, a drop ,\n much }")
    model = load(write("m.bif", text))
    np.testing.assert_array_equal(
        spinbench.exact(model).marginals[0], spinbench.exact(load(write("n.bif", BIF))).marginals[0]
    )


def test_rows_of_an_ergo_network_with_evidence_multiplied_in_are_weights(write, capsys):
    """The linkage networks of UAI-2008: a row of which one state is observed does not add up to 1."""
    remarks.remark.cache_clear()
    model = load(write("m.erg", replace_text(ERGO, "0.1 0.2 0.7", "0.1 0.0 0.7")))
    law = FIRST[:, None, None] * SECOND[:, :, None] * np.where(THIRD == 0.2, 0.0, THIRD)
    states = np.stack(np.unravel_index(np.arange(law.size), law.shape), axis=1)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(np.exp(model.log_weight(states)), np.ravel(law), rtol=1e-14)
    assert "m.erg: probabilities of 1 variable, the first of them 2, do not add up to 1" in capsys.readouterr().err


def test_evidence_on_a_named_network_by_numbers_and_names(write):
    path = write("m.erg", ERGO)
    by_number = load(path, evidence=write("m.erg.evid", "/* Evidence */\n1\n 2    0\n"))
    by_name = load(path, evidence={"Z": 0})
    assert by_number.content_hash == by_name.content_hash
    assert spinbench.exact(by_number, cache=False).log_z == pytest.approx(np.log(ERGO_LAW[:, :, 0].sum()))


BAD_BIF = [
    ("network", "graph", "line 2, token 'graph': one of network, variable, probability is needed"),
    ("variable sprinkler", "variable rain", "line 5, token 'rain': this variable stands here a second time"),
    ("discrete[2]", "continuous[2]", "line 6, token 'continuous': only discrete variables"),
    ("discrete[2]", "discrete[3]", "line 6, token '}': 3 states are claimed, but there are 2"),
    ("discrete[2]", "discrete[two]", "line 6, token 'two': a number of states is needed"),
    ("on off", "on on", "line 6, token '}': state 'on' stands here twice"),
    ("(sprinkler|rain)", "(sprinkler|snow)", "line 14, token 'snow': no variable of this name"),
    ("(sprinkler|rain)", "(sprinkler|sprinkler)", "line 14, token 'sprinkler': this variable stands here a second"),
    ("(sprinkler|rain)", "()", "line 14, token ')': 1 to 40 variables are needed"),
    ("( rain )", "( sprinkler )", "line 18, token ')': this variable has probabilities already"),
    ("(off, none)", "(off, snow)", "line 11, token ')': variable 'rain' has no state 'snow'"),
    ("(off, none)", "(off none a)", "line 11, token ')': 2 states of parents are needed, but there are 3"),
    ("(off, none)", '(on, "a drop")', "a second time"),
    ("  default 0.9, 0.1;\n", "", "line 12, token '}': there is neither a row for (on, none) nor a default"),
    ("0.0, 1.0;", "0.0, 1.1;", "line 11, token '1.1': a probability must be from 0 to 1"),
    ("0.0, 1.0;", "0.0, -1.0;", "line 11, token '-1.0': a probability must be from 0 to 1"),
    ("0.0, 1.0;", "0.0, nan;", "line 11, token 'nan': a probability is needed, the 2. of 2"),
    ("0.0, 1.0;", "0.0, -1e-400;", "line 11, token '-1e-400': a probability must be from 0 to 1"),
    ("0.0, 1.0;", "0.0;", "line 11, token ';': a probability is needed, the 2. of 2"),
    ("0.0, 1.0;", "0.0, 1.0, 0.5;", "line 11, token '0.5': ; is needed"),
    ("0.0, 1.0;", "0.2, 1.0;", "line 13, token '}': the probabilities given (off, none) do not add up to 1"),
    ("0.5, 0.3, 0.2", "0.5, 0.3, 0.3", "token '}': the probabilities do not add up to 1"),
    ('"wet grass"', '"wet grass', "line 2, token '\"': nothing ends this string"),
    ("a day */", "a day", "line 3, token '/*': nothing ends this comment"),
    ("table 0.5, 0.3, 0.2; }", "table 0.5", "m.bif: the file ends in line 19, where a probability is needed"),
]
BAD_ERGO = [
    ("3\n2 2 3", "30\n2 2 3", "line 3, token '0': a number of states must be an integer from 1"),
    ("3\n2 2 3", "3000\n2 2 3", "line 1, token '3000': 3000 variables are claimed"),
    ("2 0 1", "3 0 1 1", "line 5, token '3': variable 2 has 3 parents; at most 2 are allowed"),
    ("2 0 1", "2 1 1", "line 5, token '1': variable 2 has a parent twice"),
    ("2 0 1", "2 0 4", "line 5, token '4': a parent must be an integer from 0 to 3"),
    ("2 0 1", "2 0 3", "this is no network, whether parents are counted from 0 (a parent is outside 0..2) or from"),
    ("0\n1 0", "1 1\n1 0", "are in a cycle)"),
    ("12\n", "11\n", "line 17, token '0': nothing is expected here"),
    ("0.1 0.2 0.7", "0.1 -0.2 0.7", "line 16, token '-0.2': a weight must be a finite number, 0 or more"),
    ("X\nY\nZ", "X\nY", "2 names are given to 3 variables"),
    ("X\nY\nZ", "X\nX\nY", "two variables have the name 'X'"),
    ("Probabilities", "Names", "where the number of entries of the table of variable 0 is missing"),
]
BAD = [
    *(("m.bif", replace_text(BIF, old, new), message) for old, new, message in BAD_BIF),
    *(("m.erg", replace_text(ERGO, old, new), message) for old, new, message in BAD_ERGO),
    ("m.erg", UNCLEAR, "m.erg: no parent is 0 or 4, so that they may be counted from 0 or from 1"),
    ("m.bif", CYCLE, "variable 'c' has no probabilities"),
    ("m.bif", CYCLE + "probability (c|a) { (only) 1; }", "are in a cycle"),
    ("m.bif", "network empty {}", "there are no variables"),
    (
        "m.bif",
        LARGE + "probability (v0|v1,v2,v3) { default 1; }",
        "line 5, token ')': the table has 1000000000000 entries, more than the 6710",
    ),
]


@pytest.mark.parametrize(
    ("name", "text", "message"), BAD, ids=[f"{k} {name} {message[-30:]}" for k, (name, _, message) in enumerate(BAD)]
)
def test_bad_networks(refusal, name, text, message):
    refused_text = refusal(name, text)
    assert refused_text.startswith(name)
    assert message in refused_text


# p(c | a, b) of a of two states, b of three and c of two, the first parent slowest.
TABLE = ".1 .9 .2 .8 .3 .7 .4 .6 .5 .5 .6 .4"
XMLBIF = """<?xml version="1.0" encoding="UTF-8"?>
<!-- a comment --><BIF VERSION="0.3"><NETWORK><NAME>n</NAME>
<VARIABLE TYPE="nature"><NAME>a</NAME><OUTCOME>no</OUTCOME><OUTCOME>yes</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>b</NAME><OUTCOME>low</OUTCOME><OUTCOME>mid</OUTCOME><OUTCOME>high</OUTCOME></VARIABLE>
<VARIABLE TYPE="nature"><NAME>c</NAME><OUTCOME>off</OUTCOME><OUTCOME>on</OUTCOME></VARIABLE>
<DEFINITION><FOR>c</FOR><GIVEN>a</GIVEN><GIVEN>b</GIVEN><TABLE>TABLE_C</TABLE></DEFINITION>
<DEFINITION><FOR>a</FOR><TABLE>.25 .75</TABLE></DEFINITION><DEFINITION><FOR>b</FOR><TABLE>.2 .3 .5</TABLE></DEFINITION>
</NETWORK></BIF>"""
XDSL = """<?xml version="1.0" encoding="ISO-8859-1"?><smile version="1.0" id="n" numsamples="1000"><nodes>
<cpt id="a"><state id="no" /><state id="yes" /><probabilities>.25 .75</probabilities></cpt>
<cpt id="b"><state id="low" /><state id="mid" /><state id="high" /><probabilities>.2 .3 .5</probabilities></cpt>
<cpt id="c"><state id="off" /><state id="on" /><parents>a b</parents><probabilities>TABLE_C</probabilities></cpt>
</nodes><extensions><genie><node id="c"><name>C\xe9</name></node></genie></extensions></smile>"""
HUGIN = """net { node_size = (100 40); name = "a; } net"; }
node a { label = ""; position = (1 2); states = ("no" "yes"); }
node b { states = ("low" "mid" "high"); HR_Desc = "b"; }
discrete node c { states = ("off" "on"); }
potential (c | a b) { data = ((TABLE_C)); }
potential (a | ) { data = (.25 .75); } % the last
potential (b) { data = (.2 .3 .5); }"""
NETWORKS = {".xmlbif": XMLBIF, ".xdsl": XDSL, ".net": HUGIN, ".xml": XMLBIF}
QUBO = "c a comment\np qubo 0 3 2 2\n0 0 -1.5\n2 2 0.5\n0 1 2\n1 2 -0.25\n"
COO = "# vartype=SPIN\n2 2 1.5\n2 5 -0.5\n5 7 0.75\n"
BQPJSON = {
    **{"id": 1, "version": "1.0.0", "variable_ids": [3, 8], "variable_domain": "spin", "scale": 2.0, "offset": 0.5},
    **{"linear_terms": [{"id": 3, "coeff": 1.5}], "quadratic_terms": [{"id_tail": 8, "id_head": 3, "coeff": -0.75}]},
    "metadata": {},
}
Write = Callable[[str, Any], Path]


def exact(source: Path, **options: Any) -> float:
    log_z = spinbench.exact(spinbench.load(source, **options)).log_z
    assert log_z is not None
    return log_z


@pytest.mark.parametrize("suffix", NETWORKS)
def test_the_first_parent_is_the_slowest(write: Write, suffix: str) -> None:
    file = write(f"n{suffix}", NETWORKS[suffix].replace("TABLE_C", TABLE).encode("latin-1"))
    assert exact(file) == pytest.approx(0, abs=1e-12)
    assert exact(file, evidence="a=yes\nb=low\nc=on") == pytest.approx(math.log(0.75 * 0.2 * 0.6), abs=1e-12)
    assert exact(file, evidence="a=no\nb=high\nc=off") == pytest.approx(math.log(0.25 * 0.5 * 0.3), abs=1e-12)
    model = spinbench.load(file)
    assert model.labels == ("a", "b", "c")
    assert model.state_names == {"a": ("no", "yes"), "b": ("low", "mid", "high"), "c": ("off", "on")}


WRONG = [
    *((TABLE[3:], "numbers"), (f"{TABLE} .1 .9", "numbers"), (".2" + TABLE[2:], "add up to 1")),
    *(("-" + TABLE, "a weight must be"), ("x" + TABLE, "a number is needed"), ("nan" + TABLE[2:], "a weight must be")),
]


@pytest.mark.parametrize(("table", "sentence"), WRONG, ids=[sentence + table[:6] for table, sentence in WRONG])
@pytest.mark.parametrize("suffix", NETWORKS)
def test_tables_that_are_none_are_refused(refusal: Any, suffix: str, table: str, sentence: str) -> None:
    message = refusal(f"n{suffix}", NETWORKS[suffix].replace("TABLE_C", table).encode("latin-1"))
    assert sentence in message
    assert "table of 'c'" in message


@pytest.mark.parametrize(
    ("suffix", "old", "new", "sentence"),
    [
        (".xmlbif", "<GIVEN>a<", "<GIVEN>c<", "stands there twice"),
        (".xmlbif", "<GIVEN>a<", "<GIVEN>d<", "no variable is named 'd'"),
        (".xmlbif", "<FOR>b<", "<FOR>a<", "has two tables"),
        (".xmlbif", "<NAME>b<", "<NAME>a<", "variable 'a' stands there twice"),
        (".xmlbif", ">yes<", ">no<", "different ones are needed"),
        (".xmlbif", 'TYPE="nature"><NAME>a', 'TYPE="utility"><NAME>a', "utility"),
        (".xmlbif", "</NETWORK>", "", "this is not XML (mismatched tag)"),
        (".xmlbif", "<!-- a comment -->", '<!DOCTYPE x [<!ENTITY e "ee">]>', "the entity 'e' is"),
        (".xmlbif", "<!-- a comment -->", '<!DOCTYPE x SYSTEM "x.dtd">&e;', "XML"),
        (
            ".xmlbif",
            "<!-- a comment -->",
            '<!DOCTYPE x [<!ENTITY e SYSTEM "/etc/passwd">]>',
            "the entity 'e' is",
        ),
        (
            ".xmlbif",
            "<!-- a comment -->",
            '<!DOCTYPE x [<!ENTITY % e SYSTEM "http://x/">%e;]>',
            "entity 'e' is",
        ),
        (".xmlbif", ">yes<", ">&nbsp;<", "undefined entity"),
        (".xdsl", "<parents>a b<", "<parents>a c<", "stands there twice"),
        (".xdsl", '<cpt id="a">', '<noisymax id="a">', "not XML"),
        (".xdsl", "</nodes>", "<decision id='d' /></nodes>", "an element is 'decision'"),
        (".xdsl", "</nodes>", "</nodes><dynamic />", "an element is 'dynamic'"),
        (".xdsl", 'id="b"', "", "has no name"),
        (".net", "potential (a | )", "potential (a b)", "behind a bar its parents"),
        (".net", "node a {", "decision a {", "net, node or potential"),
        (".net", "data = (.25 .75)", "model_nodes = (); model_data = (1)", "a potential with data"),
        (".net", "(1 2)", '(1 "2)', "nothing ends this text"),
        (".net", "{ data = (.2 .3 .5); }", "{ data = (.2 .3 .5);", "is needed"),
        (".net", "potential (b)", "potential (b | c)", "numbers"),
    ],
)
def test_what_is_no_network_is_refused(refusal: Any, suffix: str, old: str, new: str, sentence: str) -> None:
    text = NETWORKS[suffix].replace("TABLE_C", TABLE)
    assert old in text
    assert sentence in refusal(f"n{suffix}", text.replace(old, new, 1).encode("latin-1"))


def test_entities_of_other_files_are_refused(refusal: Any) -> None:
    text = XMLBIF.replace("TABLE_C", TABLE).replace("<BIF", '<!DOCTYPE BIF SYSTEM "x.dtd"><BIF', 1)
    assert "the entity 'e' is not of XML itself" in refusal("n.xml", text.replace(">yes<", ">y&e;es<"))


def test_networks_with_cycles_are_refused(refusal: Any) -> None:
    text = HUGIN.replace("TABLE_C", TABLE).replace("(a | ) { data = (.25 .75)", "(a | c) { data = (.25 .75 .5 .5)")
    assert "the variables 'a', 'c' are in a cycle" in refusal("n.net", text)


def test_elements_are_counted(refusal: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinbench.models.files.xml_networks.MAX_ELEMENTS", 20)
    assert "more than 20 elements" in refusal("n.xml", XMLBIF.replace("TABLE_C", TABLE))


def sum_of_states(energy: Callable[[Any], float], values: tuple[int, int], n: int) -> float:
    return math.log(sum(math.exp(-energy(x)) for x in itertools.product(values, repeat=n)))


ENERGIES: dict[str, tuple[str, Callable[[Any], float], tuple[int, int], int]] = {
    ".qubo": (QUBO, lambda x: -1.5 * x[0] + 0.5 * x[2] + 2 * x[0] * x[1] - 0.25 * x[1] * x[2], (0, 1), 3),
    ".coo": (COO, lambda s: 1.5 * s[0] - 0.5 * s[0] * s[1] + 0.75 * s[1] * s[2], (-1, 1), 3),
    ".json": (json.dumps(BQPJSON), lambda s: 2 * (0.5 + 1.5 * s[0] - 0.75 * s[0] * s[1]), (-1, 1), 2),
}


@pytest.mark.parametrize("beta", [1.0, 0.5])
@pytest.mark.parametrize("suffix", ENERGIES)
def test_energies_are_summed_over_all_states(write: Write, suffix: str, beta: float) -> None:
    text, energy, values, n = ENERGIES[suffix]
    right = sum_of_states(lambda x: beta * energy(x), values, n)
    assert exact(write(f"m{suffix}", text), beta=beta) == pytest.approx(right, abs=1e-12)


def test_variables_of_energies_keep_their_numbers(write: Write) -> None:
    assert spinbench.load(write("m.coo", COO)).labels == (2, 5, 7)
    assert spinbench.load(write("m.json", json.dumps(BQPJSON))).labels == (3, 8)


@pytest.mark.parametrize(
    ("suffix", "old", "new", "sentence"),
    [
        (".qubo", "p qubo", "p cnf", "'p qubo 0 VARIABLES DIAGONAL COUPLERS' is needed"),
        (".qubo", "0 3 2 2", "0 3 3 1", "3 and 1 numbers on and off the diagonal are claimed, but there are 2 and 2"),
        (".qubo", "0 3 2 2", "0 2 2 2", "a variable must be an integer from 0 to 1"),
        (".qubo", "0 3 2 2", "0 999999999 2 2", "999999999 variables are claimed"),
        (".qubo", "-0.25", "", "a triple"),
        (".qubo", "-0.25", "inf", "finite"),
        (".coo", "# vartype=SPIN", "", "the first line must be"),
        (".coo", "2 5 -0.5", "2 5.5 -0.5", "a variable must be an integer"),
        (".json", '"spin"', '"trit"', "'SPIN' or 'BINARY' is needed"),
        (".json", '"coeff": 1.5', '"coeff": "x"', "linear terms"),
        (".json", '"id_head": 3', '"id_head": 4', "no bqpjson, for 4"),
        (".json", '"scale": 2.0, ', "", "no bqpjson, for 'scale'"),
    ],
)
def test_energies_that_are_none_are_refused(refusal: Any, suffix: str, old: str, new: str, sentence: str) -> None:
    text = ENERGIES[suffix][0]
    assert old in text
    assert sentence in refusal(f"m{suffix}", text.replace(old, new, 1))


PACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.mark.parametrize("suffix", PACK)
def test_packed_files_are_read_and_written(write: Write, suffix: str, tmp_path: Path) -> None:
    model = spinbench.load(write("m.coo", COO))
    assert spinbench.load(write(f"m.coo{suffix}", PACK[suffix](COO.encode()))).content_hash == model.content_hash
    spinbench.save(model, tmp_path / f"again.npz{suffix}")
    again = spinbench.load(tmp_path / f"again.npz{suffix}")
    assert (again.content_hash, again.name) == (model.content_hash, "again")
    evidence = write(f"m.evid{suffix}", PACK[suffix](b"1 5 1\n"))
    assert to_factor_graph(spinbench.load(model, evidence=evidence)).num_variables == 2


@pytest.mark.parametrize("suffix", PACK)
def test_packed_files_that_are_damaged_are_refused(refusal: Any, suffix: str) -> None:
    packed = PACK[suffix](COO.encode())
    for data in (packed[:-5], packed[: len(packed) // 2], packed[:10] + b"\xff" * 9 + packed[19:], packed + b"junk"):
        if not (suffix == ".bz2" and data.endswith(b"junk")):  # which Python's reader passes over
            assert "m.coo" in refusal(f"m.coo{suffix}", data)


def test_xz_files_that_ask_for_much_memory_are_refused(refusal: Any) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 2**29}]
    assert "not a whole archive" in refusal("m.coo.xz", lzma.compress(COO.encode(), filters=filters))
    assert "not a whole archive" in refusal("m.coo.xz", 2 * lzma.compress(COO.encode()))


@pytest.mark.parametrize("suffix", PACK)
def test_no_more_is_unpacked_than_is_read(write: Write, suffix: str) -> None:
    file = write(f"m.coo{suffix}", PACK[suffix](bytes(2**28)))
    tracemalloc.start()
    with pytest.raises(ModelError, match="longer than 64 MiB"):
        spinbench.load(file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**28


def test_numbers_of_any_size_are_kept(write: Write) -> None:
    file = write("n.net", HUGIN.replace("TABLE_C", TABLE).replace(".25 .75", "1e-320 1"))
    assert exact(file, evidence="a=no") == pytest.approx(-320 * math.log(10))
    assert np.isfinite(exact(file))
