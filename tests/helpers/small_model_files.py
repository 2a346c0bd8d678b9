"""A small file of every format of models, and words that upset their readers."""

from __future__ import annotations

import io
import json
import struct
from typing import Any

import h5py
import numpy as np


def archive(**arrays: Any) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def dimod_file(magic: bytes, version: int, header: dict[str, Any], *sections: bytes) -> bytes:
    head = json.dumps(header).encode() + b"\n"
    return magic + bytes((version, 0)) + struct.pack("<I", len(head)) + head + b"".join(sections)


def section(name: bytes, data: bytes) -> bytes:
    return name + struct.pack("<I", len(data)) + data


def opengm_file(
    cards: list[int], functions: dict[int, list[tuple[list[int], Any]]], factors: list[tuple[int, int, list[int]]]
) -> bytes:
    """As OpenGM writes it: functions of a type as (indices, values), factors as (function, place of type, variables).

    Arrays whose lengths a test changes are not checked.
    """
    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as archive:
        types = [number for kind, some in functions.items() for number in (kind, len(some))]
        model = archive.create_group("gm")
        flat = [number for index, kind, scope in factors for number in (index, kind, len(scope), *scope)]
        arrays = {"header": [2, 0, len(cards), len(factors), len(functions), *types, 1]}
        for name, numbers in (arrays | {"numbers-of-states": cards, "factors": flat}).items():
            model[name] = np.array(numbers, dtype=np.uint64)
        for kind, some in functions.items():
            indices, values = ([x for each in some for x in each[part]] for part in (0, 1))
            model[f"function-id-{kind}/indices"] = np.array(indices, dtype=np.uint64)
            model[f"function-id-{kind}/values"] = np.array(values, dtype=np.float64)
    return buffer.getvalue()


QUADRATIC = {"shape": [2, 1], "dtype": "float64", "itype": "int32", "ntype": "int32", "vartype": "SPIN"}
CASES = {
    "case_starts": [0, 2],
    "linear_biases": [0.5, 0.0, -1.0, 0.25, 2.0],
    "quadratic_row_indices": [2, 4, 3],
    "quadratic_col_indices": [1, 0, 1],
    "quadratic_biases": [1.5, -0.5, 2.0],
    "offset": 0.75,
}


GOOD = {
    "uai": b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 2 1\n4\n1 0 .5 2e-1\n6\n1 2 3 4 5 6\n",
    "loguai": b"MARKOV\n3\n2 2 3\n2\n2 0 1\n2 2 1\n4\n1 0 -inf -2e-1\n6\n1 2 3 4 5 6\n",
    "libdai": b"# x\n2\n\n2\n0 1\n2 2\n4\n0 1.0\n1 2.0\n2 3.0\n3 4.0\n\n1\n4\n3\n1\n2 .5\n",
    "npz": archive(biases=[1.0, 2.0], couplings=[[0, 1.5], [1.5, 0]]),
    "bqm_file": dimod_file(
        b"DIMODBQM",
        2,
        QUADRATIC | {"variables": True},
        struct.pack("<didididid", 0.5, 0, 1.0, 1, -2.0, 1, 0.25, 0, 0.25),
        section(b"VARS", b'["a", ["b", 1]]'),
    ),
    "dqm_file": dimod_file(
        b"DIMODDQM", 1, {"variables": True}, section(b"BIAS", archive(**CASES)), section(b"VARS", b'["a", "b"]')
    ),
    "bqm": b'{"type": "BinaryQuadraticModel", "version": {"bqm_schema": "3.0.0"}, "use_bytes": false,'
    b'"variable_labels": ["a", ["b", 1]], "variable_type": "SPIN", "offset": 0.5, "linear_biases": [1.0, 0],'
    b'"quadratic_biases": [2.0], "quadratic_head": [0], "quadratic_tail": [1]}',
    "bif": b"network x {}\nvariable a { type discrete [ 2 ] { y, n }; }\nvariable b { type discrete [2] { 0, 1 }; }\n"
    b"probability (b | a) { (y) .5 .5; default 1, 0; }\nprobability (a) { table 0.1, 0.9; }\n",
    "ergo": b"3\n2 2 3\n0\n1 0\n1 1\n"
    b"/* Probabilities */\n2 .4 .6\n4 .1 .9 .9 .1\n6 .2 .3 .5 .8 0 .2\n/* Names */ X Y Z\n",
    "cnf": b"c t wmc\np cnf 4 3\n1 -2 0\nc p weight 1 0.3 0\nc p weight -2 1/3 0\n3 4 -1 0\n-4 2 0\n",
    "xmlbif": b'<?xml version="1.0"?>\n<!DOCTYPE BIF [ <!ELEMENT BIF ( NETWORK )*> ]>\n'
    b'<BIF VERSION="0.3"><NETWORK><NAME>x</NAME><VARIABLE TYPE="nature"><NAME>a</NAME><OUTCOME>y</OUTCOME>'
    b"<OUTCOME>n</OUTCOME></VARIABLE>\n<VARIABLE><NAME>b</NAME><OUTCOME>0</OUTCOME><OUTCOME>1</OUTCOME></VARIABLE>\n"
    b"<DEFINITION><FOR>b</FOR><GIVEN>a</GIVEN><TABLE>.5 .5 <!-- n -->\n1 0</TABLE></DEFINITION>"
    b"<DEFINITION><FOR>a</FOR><TABLE>0.1 0.9</TABLE></DEFINITION></NETWORK></BIF>\n",
    "xdsl": b'<?xml version="1.0" encoding="UTF-8"?>\n<smile version="1.0" id="x">\n<nodes><cpt id="a"><state id="y" />'
    b'<state id="n" /><probabilities>0.1 0.9</probabilities></cpt>\n<deterministic id="b"><state id="s" />'
    b'<state id="t" /><parents>a</parents><resultingstates>t s</resultingstates></deterministic></nodes>\n'
    b"<extensions /></smile>\n",
    "hugin": b'net { node_size = (80 40); }\n% x\nnode a { states = ("y" "n n"); }\n'
    b'discrete node b { label = "b"; states = ("0" "1"); }\n'
    b"potential (a) { data = (0.1 0.9); }\npotential (b | a) { data = ((.5 .5) % n\n(1 0)); }\n",
    "qubo": b"c x\np qubo 0 3 2 2\n0 0 -1.5\n2 2 .5\n0 1 2\n1 2 -1e-1\n",
    "coo": b"# vartype=SPIN\n0 0 1.0\n0 5 -.5\n5 7 2\n",
    "wcsp": b"x 3 3 4 9\n2 3 2\n-2 0 2 1 2\n0 1 9\n1 0 0\n2 2 0 1 -1\n1 1 0.5 1\n2 3\n0 2 0\n",
    "cfn": b'# x\n{ problem: {"name": "x", "mustbe": "<9.0"}\nvariables: {"a": ["y", "n"], b: 3}\n'
    b'functions: {"f": {scope: ["a" "b"], defaultcost: 1 costs: ["y" 1 9.5 n 0 -0.25]},\n'
    b'{"scope": ["b"], "costs": [.5, inf, 2]} {scope: [b a] costs: "g"}, g: {scope: [1 0] costs: [1 2 3 4 5 6]}}}\n',
    "opengm": opengm_file(
        [2, 3],
        {16000: [([1, 2], [0, 1.5]), ([2, 2, 3], range(6))], 16006: [([2, 3], [1, -0.5])]},
        [(0, 0, [0]), (1, 0, [0, 1]), (0, 1, [0, 1])],
    ),
    "wcnf": b"c x\nh -4 2 1 0\n3 -3 1 0\n0.5 4 0\n7 2 -1 0\n2 -2 -4 3 0\n",
}
BINARY = ("npz", "bqm_file", "dqm_file", "opengm")
WORDS = [
    b"0",
    b"1",
    b"-1",
    b"9999999999",
    b"2147483647",
    b"nan",
    b"inf",
    b"1e400",
    b"{",
    b"}",
    b'"',
    b"/*",
    b"\n",
    b" ",
]
WORDS += [
    b"\x00",
    b"\xff",
    b"[",
    b"]",
    b";",
    b"(",
    b"|",
    b"h",
    b"p wcnf 3 3 3\n",
    b"c p weight 1 ",
    b"property",
    b"/* Names */",
    b"default",
    b"</NAME>",
    b"<!ENTITY x 'y'>",
    b"potential",
    b"p qubo 0 3 2 2\n",
    b"defaultcost",
    b"-2 0 1 ",
]
