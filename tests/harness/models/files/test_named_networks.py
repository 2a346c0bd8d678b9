"""Networks and energies in the files of other programs: right values, names, and sentences for what is not read."""

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
from spinbench.models import to_factor_graph

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
