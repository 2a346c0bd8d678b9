"""Files that are not models: one sentence each, with file, line and token, and no memory taken for claims."""

from __future__ import annotations

import gzip
import io
import json
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from spinbench.errors import ModelError
from spinbench.models import load, save
from spinbench.models.files import evid, uai
from spinbench.models.generators import grid

UAI = "MARKOV\n2\n2 3\n1\n2 0 1\n6\n1 2 3 4 5 6\n"
FG = "# comment\n1\n\n2\n0 1\n2 2\n4\n0 1.0\n1 2.0\n2 3.0\n3 4.0\n"
BQM = {
    "type": "BinaryQuadraticModel",
    "version": {"bqm_schema": "3.0.0"},
    "use_bytes": False,
    "variable_labels": ["a", "b"],
    "variable_type": "SPIN",
    "offset": 0.0,
    "linear_biases": [1.0, 2.0],
    "quadratic_biases": [0.5],
    "quadratic_head": [0],
    "quadratic_tail": [1],
}
SIZES = {"cardinalities": [2, 2], "scopes": [0, 1], "scope_sizes": [2], "log_tables": np.zeros(4)}


def packed_npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def npz_bytes(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def npy_claiming(shape, descr="<f8"):
    return npy_header(f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {shape!r}, }}")


def npy_header(text):
    header = text.encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header


def zip_bytes(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for key, content in members.items():
            # without the time of day, which would be in the test's name and so differ between processes
            archive.writestr(zipfile.ZipInfo(f"{key}.npy"), content)
    return buffer.getvalue()


BAD = {
    "m.uai": [
        # 40 variables of 8 states in one factor: 8**40 entries
        (
            "MARKOV\n40\n" + "8 " * 40 + "\n1\n40 " + " ".join(map(str, range(40))) + "\n1e9\n1 1",
            "has 13292279957",
        ),
        # 2**30 entries, and the file says so
        (
            "MARKOV\n30\n" + "2 " * 30 + "\n1\n30 " + " ".join(map(str, range(30))) + "\n1073741824\n1 1",
            "2 of its",
        ),
        ("MARKOV\n1\n2000000000\n1\n1 0\n2000000000\n1 1", "the variables have 2000000000 states together"),
        *(
            (
                UAI.replace("4 5 6", f"0e-500 0.0 {weight}"),
                f"line 7, token '{weight[:24]}': a weight must be 0 or a positive number of which float64 ho",
            )
            for weight in ("-1e-400", "-0.5E-0330", "1e-" + 400 * "9")
        ),
        ("GRAPH 2", "m.uai, line 1, token 'GRAPH': a UAI model begins with MARKOV or BAYES"),
        ("\n\n2 2", "m.uai, line 3, token '2': a UAI model begins with"),
        ("MARKOV", "m.uai: the file ends after line 1, where the number of variables is missing"),
        ("MARKOV\n0\n", "line 2, token '0': the number of variables must be an integer from 1"),
        ("MARKOV\n2.5 2 2", "token '2.5': the number of variables must be an integer"),
        ("MARKOV\n-2 2 2", "token '-2': the number of variables must be an integer"),
        ("MARKOV\nnan 2 2", "token 'nan': the number of variables must be an integer"),
        ("MARKOV\n1000000000\n2 2\n", "token '1000000000': 1000000000 variables are claimed, but only 2 tokens follow"),
        (
            "MARKOV\n2\n2 2147483647\n0\n",
            "token '2147483647': the variables have 2147483649 states together; a file of",
        ),
        ("MARKOV\n2\n2 x\n1\n", "m.uai, line 3, token 'x': a number is needed"),
        ("MARKOV\n2\n2 1.5.2\n1\n", "m.uai, line 3, token '1.5.2': a number is needed"),
        ("MARKOV\n2\n2 1_0\n1\n", "m.uai, line 3, token '1_0': a number is needed"),
        ("MARKOV\n2\n2 0x10\n1\n", "token '0x10': a number is needed"),
        ("MARKOV\n2\n2 ２\n1\n", "token '２': a number is needed"),
        ("MARKOV\n2\n2 0\n1\n", "m.uai, line 3, token '0': a number of states must be an integer from 1"),
        ("MARKOV\n2\n2 2\n", "where the number of factors is missing"),
        ("MARKOV\n2\n2 2\n7\n1 0", "token '7': 7 factors are claimed, but only 2 tokens follow"),
        ("MARKOV\n2\n2 2\n1\n9 0 1", "token '9': 9 variables of factor 0 are claimed, but only 2 tokens follow"),
        ("MARKOV\n2\n2 2\n1\n41" + " 0" * 50, "token '41': factor 0 has 41 variables; at most 40"),
        (UAI.replace("2 0 1", "2 0 2"), "m.uai, line 5, token '2': a variable must be an integer from 0 to 1"),
        (UAI.replace("2 0 1", "2 0 -1"), "m.uai, line 5, token '-1': a variable must be"),
        (UAI.replace("2 0 1", "2 1 1"), "m.uai, line 6, token '6': the table of factor 0 over variables (1, 1) has 9"),
        (
            UAI + "# written by hand",
            "m.uai: comments that begin with # are pyAgrum's, which does not write tables of 2",
        ),
        (UAI.replace("\n6\n", "\n5\n"), "m.uai, line 6, token '5': the table of factor 0 over variables (0, 1) has 6"),
        (UAI.replace(" 6\n", "\n"), "m.uai: the file ends after line 7, where the table of factor 0 has 5 of its 6"),
        (UAI.partition("6\n")[0], "m.uai: the file ends after line 5, where the table of factor 0 is missing"),
        (UAI + "7\n", "m.uai, line 8, token '7': nothing is expected here, but 1 tokens follow the last table"),
        (UAI.replace("3 4", "3 -4"), "m.uai, line 7, token '-4': a weight must be a finite number, 0 or more"),
        (UAI.replace("3 4", "3 nan"), "m.uai, line 7, token 'nan': a weight must be a finite number"),
        (UAI.replace("3 4", "inf 4"), "m.uai, line 7, token 'inf': a weight must be a finite number"),
        (UAI.replace("3 4", "3 1e999"), "m.uai, line 7, token '1e999': a weight must be a finite number"),
        (UAI.replace("1 2 3 4 5 6", "0 0 0 0 0 0"), "m.uai, line 7, token '0': the table of factor 0 is zero everywh"),
    ],
    "m.fg": [
        ("1\n\n1\n0\n2000000000\n1\n0 1.0\n", "has 2000000000 entries, more than the 67108864 left"),
        ("1\n\n3\n0 1 2\n2000000 2000000 2000000\n1\n0 1.0\n", "has 8000000000000000000 entries"),
        ("# only a comment\n", "m.fg: the file ends after line 1, where the number of factors is missing"),
        ("x", "m.fg, line 1, token 'x': a number is needed"),
        ("0\n", "m.fg, line 1, token '0': no factor names a variable"),
        ("5\n2\n", "token '5': 5 factors are claimed, but only 1 tokens follow"),
        ("1\n\n9\n0 1\n", "token '9': 9 variables of factor 0 are claimed"),
        ("1\n\n2\n0 1\n2\n", "m.fg: the file ends after line 5, where factor 0 is not complete"),
        (FG.replace("0 1\n2 2", "0 0\n2 2"), "line 5, token '0': factor 0 names a variable twice"),
        (FG.replace("0 1\n2 2", "0 -1\n2 2"), "line 5, token '-1': a variable must be an integer"),
        (FG.replace("0 1\n2 2", "0 1\n2 0"), "line 6, token '0': a number of states must be an integer from 1"),
        (
            FG.replace("\n4\n", "\n5\n"),
            "line 7, token '5': the number of entries of factor 0 must be an integer from 0",
        ),
        (FG.replace("\n4\n", "\n3\n"), "line 11, token '3': nothing is expected here, but 2 tokens follow"),
        (FG.replace("3 4.0", ""), "where the table of factor 0 is not complete"),
        (FG.replace("3 4.0", "4 4.0"), "line 11, token '4': an entry's index must be an integer from 0 to 3"),
        (FG.replace("3 4.0", "0.5 4.0"), "line 11, token '0.5': an entry's index must be"),
        (FG.replace("3 4.0", "1 4.0"), "line 11, token '1': factor 0 has this entry twice"),
        (FG.replace("4.0", "-4.0"), "line 11, token '-4.0': a weight must be a finite number, 0 or more"),
        (FG.replace("4.0", "nan"), "line 11, token 'nan': a weight must be"),
        ("1\n\n1\n0\n2\n0\n", "line 6, token '0': the table of factor 0 is zero everywhere"),
        ("1\n\n1\n0\n2\n1\n0 0.0\n", "line 6, token '1': the table of factor 0 is zero everywhere"),
        ("2\n\n1\n0\n2\n1\n0 1\n\n1\n0\n3\n1\n0 1\n", "line 11, token '3': variable 0 has 3 states here and 2 before"),
    ],
    "m.evid": [
        ("x", "m.evid, line 1, token 'x': a number is needed"),
        ("-1", "token '-1': the number of observed variables must be an integer from 0"),
        ("3 0 1", "m.evid, line 1, token '3': 3 pairs of variable and state are claimed, but 2 tokens follow"),
        ("1\n3 0 1", "m.evid, line 2, token '3': 3 pairs of variable and state are claimed, but 2 tokens follow"),
        ("2 0 1 1 0 5", "token '5': nothing is expected after the 2 pairs"),
        ("1 0 -1", "token '-1': a variable or state must be an integer from 0"),
        ("1 0.5 1", "token '0.5': a variable or state must be"),
        ("2\n1 0 1\n1 0 0\n", "token '2': the file holds 2 evidence samples; one is needed"),
        ("2 4 0 4 1", "token '4': the evidence is contradictory, for variable 4 has states 0 and 1"),
    ],
    "m.npz": [
        (b"not a zip", "m.npz: the file is not a whole .npz archive"),
        (pickle.dumps([1]), "m.npz: the file is not a whole .npz archive"),
        (npz_bytes(biases=[1.0, 2.0], couplings=np.zeros((2, 2)))[:-40], "not a whole .npz archive"),
        (npz_bytes(biases=[0.0], couplings=[[0.0]])[100:], "not a whole .npz archive (negative seek value"),
        (npz_bytes(biases=np.array([object()], dtype=object)), "array 'biases' holds pickled objects, which are never"),
        (npz_bytes(biases=[1.0]), "m.npz: there is no array 'couplings'; arrays of a model are biases, couplings"),
        (npz_bytes(biases=[1.0], couplings=[[0.0]], W=[1]), "there is an unknown array 'W'"),
        (
            zip_bytes(biases=npy_claiming((10**12,))),
            "array 'biases' claims 8000000000000 bytes, but the archive holds 0",
        ),
        (zip_bytes(biases=b"junk"), "array 'biases' has no valid header"),
        (zip_bytes(biases=npy_header("(" * 99)), "array 'biases' has no valid header"),
        (zip_bytes(biases=npy_header("{1: 0, 'a': 0}")), "array 'biases' has no valid header"),
        (zip_bytes(biases=npy_claiming((1,), "O") + b"x" * 8), "holds pickled objects"),
        (npz_bytes(h=[0.0]), "there is no array 'J'; arrays of a model are h, J, edges, log_constant, labels"),
        (npz_bytes(h=[0.0], J=[[0.0]], biases=[1.0]), "there is an unknown array 'biases'; arrays of a model are h, J"),
        (npz_bytes(h=[0, 0], J=[[0, 1], [2, 0]]), "W must be symmetric"),
        (npz_bytes(weights=[[1.0]], visible_biases=[0.0]), "there is no array 'hidden_biases'"),
        (
            npz_bytes(weights=np.zeros((2, 3)), visible_biases=np.zeros(3), hidden_biases=np.zeros(2)),
            "weights have shape (2, 3), and biases (3,) and (2,); (V, H), (V,) and (H,) are needed",
        ),
        (
            packed_npz(h=np.zeros(2**20 + 1), J=[1.0], edges=[[0, 1]]),
            "m.npz: 1048577 variables are claimed; a file of this length tells of 1048576",
        ),
        (npz_bytes(biases=["a"], couplings=[[0.0]]), "m: biases are not an array of real numbers"),
        (npz_bytes(biases=[1.0, np.nan], couplings=np.zeros((2, 2))), "m: the bias of variable 1 is nan"),
        (npz_bytes(biases=[0, 0], couplings=[[0, 1], [2, 0]]), "W must be symmetric"),
        (npz_bytes(biases=[0, 0], couplings=[[0, 1], [1, 5]]), "the diagonal of W must be zero"),
        (npz_bytes(biases=[0, 0], couplings=[1.0], edges=[[1, 1]]), "variable 1 is coupled to itself"),
        (npz_bytes(biases=[0, 0], couplings=[1.0], edges=[[0.5, 1]]), "edges have type float64"),
        (npz_bytes(biases=[0], couplings=[[0]], log_constant=[1, 2]), "log_constant has shape (2,)"),
        (npz_bytes(biases=[0], couplings=[[0]], groups=[0]), "arrays 'groups' and 'group_sizes' are needed together"),
        (npz_bytes(biases=[0], couplings=[[0]], groups=[0], group_sizes=[2]), "does not add up to the 1 entries"),
        (npz_bytes(biases=[0], couplings=[[0]], groups=[0.5], group_sizes=[1]), "a vector of integers is needed"),
        (npz_bytes(biases=[0], couplings=[[0]], labels="nonsense"), "array 'labels' is not a JSON list"),
        (npz_bytes(biases=[0], couplings=[[0]], labels='[{"a": 1}]'), "array 'labels' is not a JSON list"),
        (npz_bytes(**{k: v for k, v in SIZES.items() if k != "scopes"}), "there is no array 'scopes'"),
        (npz_bytes(**SIZES | {"scopes": [0, 2]}), "a scope names a variable outside 0..1"),
        (npz_bytes(**SIZES | {"cardinalities": [2, 3]}), "the scopes need 6 table entries, but log_tables has 4"),
        (npz_bytes(**SIZES | {"cardinalities": [2, 0], "log_tables": []}), "cardinalities are [2, 0]"),
        (npz_bytes(**SIZES | {"log_tables": [0, 0, 0, np.inf]}), "factor 0 has a NaN or infinite entry at (1, 1)"),
    ],
    "m.json": [
        ('{\n"type": \n}', "m.json, line 3: this is not JSON"),
        ("[" * 100_000, "m.json: this JSON cannot be read"),
        ("[1, 2]", "the JSON has type None; dimod's 'BinaryQuadraticModel' is needed"),
        (BQM | {"type": "ConstrainedQuadraticModel"}, "the JSON has type 'ConstrainedQuadraticModel'"),
        (BQM | {"version": {"bqm_schema": "1.0.0"}}, "has schema 1.0.0; schema 3 as numbers is needed"),
        (BQM | {"use_bytes": True}, "has schema 3.0.0 as bytes; schema 3 as numbers"),
        ({k: v for k, v in BQM.items() if k != "offset"}, "has no field 'offset'"),
        (BQM | {"variable_type": "INTEGER"}, "the variables are of type 'INTEGER'; 'SPIN' or 'BINARY' is needed"),
        (BQM | {"linear_biases": [1.0, float("nan")]}, "the bias of variable 1 is nan"),
        (BQM | {"linear_biases": [1.0, None]}, "linear biases are not an array of real numbers"),
        (BQM | {"linear_biases": [1.0, 10**400]}, "linear biases are not an array of real numbers"),
        (BQM | {"quadratic_tail": [2]}, "edge (0, 2) names a variable outside 0..1"),
        (BQM | {"quadratic_tail": [0]}, "variable 0 is coupled to itself"),
        (BQM | {"quadratic_tail": [0, 1]}, "quadratic_head, quadratic_tail or variable_labels is not a list"),
        (BQM | {"quadratic_tail": ["b"]}, "edges have type"),
        (BQM | {"variable_labels": ["a", "a"]}, "two variables are labelled 'a'"),
        (BQM | {"variable_labels": ["a", {}]}, "variable_labels is not a list"),
        (BQM | {"offset": "x"}, "the offset is 'x'; a finite number is needed"),
    ],
    "m.cnf": [
        ("p cnf 2\n1 2 0\n", "m.cnf: a line 'p cnf VARIABLES CLAUSES' is needed before the clauses"),
        ("p cnf 2 2\n1 2 0\n", "2 clauses are claimed, but there are 1"),
        ("p cnf 2 1\n1 3 0\n", "line 2, token '3': a literal must be an integer from -2 to 2"),
        ("p cnf 2 1\n1 2\n", "the file ends after line 2, where the 0 that ends a clause is missing"),
        ("p cnf 2 2\n1 2 0\n0\n", "line 3, token '0': a hard clause without literals is always falsified, so Z = 0"),
        ("p cnf 99999999 1\n1 0\n", "99999999 variables are claimed"),
        ("p cnf 2 1\nw 1 0.3 0\n1 2 0\n", "line 2, token 'w': a number is needed"),
        ("c t pmc\np cnf 2 1\n1 2 0\n", "line 1: the count of a problem of kind pmc is no partition function; mc"),
        *(
            (
                f"p cnf 2 1\n1 2 0\n{line}\n",
                "a projection on some of the variables (c p show, c ind) gives no partition",
            )
            for line in ("c p show 1 0", "c ind 2 0", "c p show 1 -1 0", "c p show 01 1 5 0")
        ),
        ("p cnf 2 1\n1 2 0\nc p weights 1 .3 0\n", "line 3: weights are read from lines 'c p weight LITERAL WEIGHT"),
        ("c weights .3 .7 1 1\np cnf 2 1\n1 2 0\n", "line 1: weights are read from lines 'c p weight LITERAL WEIGHT"),
        *(
            (f"p cnf 2 1\n1 2 0\nc p weight {words}\n", f"line 3: {sentence}")
            for words, sentence in (
                ("1 -0.5 0", "'c p weight LITERAL WEIGHT 0' is needed, of a literal up to 2 and a weight"),
                ("3 0.5 0", "'c p weight LITERAL WEIGHT 0' is needed, of a literal up to 2"),
                ("0 0.5 0", "'c p weight LITERAL WEIGHT 0' is needed, of a literal up to 2"),
                ("1 1+2i 0", "'c p weight LITERAL WEIGHT 0' is needed"),
                ("1 1e2000/2e2000 0", "the numbers of a fraction have exponents up to 1000"),
                ("1 1e2000 0", "a weight above 1 leaves the other literal"),
                ("1 1/0 0", "the weight of a literal must be finite"),
                ("1 0/0 0", "the weight of a literal must be finite"),
                ("1 1.5 0", "a weight above 1 leaves the other literal, which has none, less than 0"),
            )
        ),
        ("p cnf 2 1\n1 2 0\nc p weight 1 1 0\nc p weight 1 2 0\n", "line 4: the literal has another weight in line 3"),
    ],
    "m.wcnf": [
        ("1 1 0\nh 0\n", "line 2, token 'h': a hard clause without literals is always falsified, so Z = 0"),
        ("p wcnf 2 1 5\n5 0\n", "line 2, token '5': a hard clause without literals is always falsified, so Z = 0"),
        ("p cnf 2 1\n1 2 0\n", "m.wcnf: the file is named as WCNF (.wcnf), but holds CNF (.cnf); rename it"),
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
    ],
    "m.wcsp": [
        ("x 2 2 1 5\n2 2\n2 0 1 0 salldiff var 1\n", "line 3, token 'salldiff': functions that are given by a keyword"),
        (
            "a b 2 2 1 5\n2 2\n",
            "m.wcsp: at the beginning a name without blanks is needed, and the numbers of variables",
        ),
        ("x 2 2 1 5\n2 2\n2 0 1 >= 1 2\n", "line 3, token '>=': functions that are given by a keyword"),
        ("x 2 2 1 5\n2 -2\n", "line 2, token '-2': a number of states must be an integer from 1"),
        ("x 2 2 1 5\n2\n", "the numbers of states of 2 variables are needed"),
        ("x 2 2 9 5\n2 2\n", "line 1, token '9': 9 cost functions are claimed, but only 3 tokens follow"),
        ("x 1 2147483647 0 5\n2147483647\n", "the variables have 2147483647 states together"),
        (
            "x 2 2 1 5\n2 2\n2 0 1 0 5\n0 0 1\n",
            "m.wcsp: the file ends after line 4, where the tuples of function 0 are not",
        ),
        ("x 2 2 1 5\n2 2\n2 0 0 0 0\n", "line 3, token '0': function 0 names a variable twice"),
        ("x 2 2 1 5\n2 2\n2 0 2 0 0\n", "line 3, token '2': a variable must be an integer from 0 to 1"),
        ("x 2 2 1 5\n2 2\n1 0 0 1 2 1\n", "line 3, token '2': a state of function 0 must be an integer from 0 to 1"),
        ("x 2 2 1 5\n2 2\n1 0 0 1 0 -1\n", "line 3, token '-1': a cost must be a number, 0 or more"),
        ("x 2 2 1 5\n2 2\n1 0 nan 0\n", "line 3, token 'nan': a cost must be a number, 0 or more"),
        ("x 2 2 1 5\n2 2\n1 0 0 -1\n", "the number of tuples of function 0 must be an integer from 0"),
        ("x 2 2 2 5\n2 3\n-1 0 0 0\n1 1 0 -1\n", "function 1 shares a table of shape (2,); it needs (3,)"),
        ("x 1 2 1 5\n2\n1 0 0 3\n0 1 0 2 1 1\n", "line 3, token '3': function 0 has 2 states, and not so many tuples"),
        ("x 1 2 1 5\n2\n1 0 5 0\n", "all costs of function 0 reach the bound of 5, so Z = 0"),
        ("x 1 2 1 5\n2\n1 0 0 0\n7\n", "line 4, token '7': nothing is expected here"),
        (
            f"x 40 2 1 5\n{'2 ' * 40}\n40 {' '.join(map(str, range(40)))} 0 0\n",
            "the tables up to function 0 have more than 67108864 entries",
        ),
    ],
    "m.cfn": [
        ("{problem: {name: x}}", "m.cfn: problem, variables and functions are needed, in this order"),
        ("{problem: {x 5} variables: {a: 2} functions: {}}", "a problem must be '<' or '>' and a number"),
        ("{problem: {x <5} variables: {} functions: {}}", "m.cfn: there are no variables"),
        ("{problem: {x <5} variables: {a: {x: 0 y: 1}} functions: {}}", "variable 'a' needs states, with a name each"),
        ("{problem: {x <5} variables: {a: 2} functions: {f: g h: {scope: [a] costs: [0 1]}}}", "f has 'g' in place of"),
        ("{problem: {x <5} variables: {a: 2} functions: {f: 3}}", "function f has '3' in place of scope and costs"),
        ("{problem: {x <5} variables: {a: 2} functions: {f}}", "function f has no scope or no costs"),
        (
            "{problem: {x <5} variables: {a: 2} functions: {f: {scope: [0000000000001] costs: [1 2]}}}",
            "function f names a variable '0000000000001'",
        ),
        ("{problem: {x <5} variables: {a} functions: {}}", "variable 'a' has no states"),
        ("{problem: {x <5} variables: {a: -2} functions: {}}", "variable 'a' has -2 states; a number from 1"),
        ("{problem: {x <5} variables: {a: 2 a: 2} functions: {}}", "variable 'a' stands there twice"),
        ("{problem: {x <5} variables: {a: [y y]} functions: {}}", "variable 'a' needs states, with a name each"),
        ("{problem: {x <5} variables: {a: 99999999} functions: {}}", "the variables have 99999999 states together"),
        (
            "{problem: {x <5} variables: {a: 2} functions: {f: {scope: [b] costs: []}}}",
            "function f names a variable 'b'",
        ),
        ("{problem: {x <5} variables: {a: 2} functions: {f: {scope: [a a] costs: []}}}", "names a variable twice"),
        (
            "{problem: {x <5} variables: {a: 2} functions: {f: {scope: [a] costs: [1]}}}",
            "f has 1 costs; its variables have 2",
        ),
        ("{problem: {x <5} variables: {a: 2} functions: {{scope: [a] costs: [1 z]}}}", "function 0 has the cost 'z'"),
        (
            "{problem: {x <5} variables: {a: 2} functions: {{scope: [a] costs: [1 -9e999]}}}",
            "beyond the range of float64",
        ),
        ("{problem: {x <5} variables: {a: 2} functions: {f: {scope: [a] costs: g}}}", "f shares the costs of 'g'"),
        (
            "{problem: {x <5} variables: {a: 2} functions: {f: {scope: [a] type: clique params: {}}}}",
            "function f is given by the keyword 'clique'; its costs are needed",
        ),
        (
            "{problem: {x <5} variables: {a: [y n]} functions: {f: {scope: [a] defaultcost: 0 costs: [m 1]}}}",
            "function f names a state 'm' that its variable does not have",
        ),
        (
            "{problem: {x <5} variables: {a: [y n]} functions: {f: {scope: [a] defaultcost: 0 costs: [y 1 n]}}}",
            "function f has a tuple of states and a cost that is not whole",
        ),
        (
            "{problem: {x <5} variables: {a: 2} functions: {f: {scope: [a] costs: [5 6]}}}",
            "reach the bound of 5, so Z = 0",
        ),
        (
            '{problem: {x <5}\n variables: {"a: 2} functions: {}}',
            "m.cfn, line 2, token '\"': nothing opens or ends this",
        ),
        ("{problem: {x <5} variables: {a: 2} functions: {}}}", "line 1, token '}': nothing opens or ends this"),
        ("{problem: {x <5} variables: {a: 2} functions: {f: ", "one pair of brackets around all is needed"),
        ("{problem: {" + "[" * 99, "line 1, token '[': nothing opens or ends this"),
    ],
    "m.uai.gz": [
        (b"\x1f\x8b", "is not a whole archive of gzip, bzip2 or xz"),
        (b"\x1f\x8b\x08\x00" + b"\xff" * 40, "is not a whole archive of gzip, bzip2 or xz"),
        (gzip.compress(UAI.encode())[:-9], "is not a whole archive of gzip, bzip2 or xz"),
        (gzip.compress(UAI.encode()) + b"junk", "is not a whole archive of gzip, bzip2 or xz"),
        (gzip.compress(b""), "the file is empty"),
        (gzip.compress(b"\n \n"), "nothing but white space"),
        (gzip.compress(gzip.compress(UAI.encode())), "this is a binary file"),
    ],
    "m.xyz": [
        (
            "1 2 3",
            "neither name nor content is that of a known format; files that end in .bif, .bifxml, .bqm, .cfn, .cnf",
        ),
        ("1 2 3", ".xml, .xmlbif are read as models, packed ones (.gz, .bz2, .xz), too"),
    ],
}
NO_TEXT = [
    (b"", "m.{}: the file is empty"),
    (b"  \n\t\n", "nothing but white space"),
    (b"2\n2\n\x00\x01\x02", "this is a binary file"),
    (b"\x7fELF\x02\x01\x01", "this is a binary file"),
    (b"2\n2\n2 \xff\n", "m.{}, line 3: byte 0xff is not UTF-8"),
]
ROWS = [(name, content, message) for name, rows in BAD.items() for content, message in rows]
ROWS += [
    (f"m.{end}", content, message.format(end)) for end in ("uai", "fg", "json", "evid") for content, message in NO_TEXT
]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    ROWS,
    ids=[f"{k} {name} {message[-30:]}" for k, (name, _, message) in enumerate(ROWS)],
)
def test_bad_files(refusal, name, content, message):
    assert message in refusal(name, json.dumps(content) if isinstance(content, dict) else content)


@pytest.mark.parametrize("end", ["uai", "fg", "npz", "json", "evid"])
def test_paths_without_a_file(tmp_path, end):
    read, path = evid.read_evidence if end == "evid" else load, tmp_path / f"m.{end}"
    with pytest.raises(ModelError, match=rf"m\.{end}: there is no such file$"):
        read(path)
    path.mkdir()
    with pytest.raises(ModelError, match=rf"m\.{end}: this is a folder; a model file is needed$"):
        read(path)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(ModelError, match=rf"m\.{end}: this is a pipe or a device; a file is needed"):
        read(path)


def test_files_are_not_read_beyond_what_their_format_allows(refusal, monkeypatch):
    monkeypatch.setattr(uai.UAI, "limit", 4 * 2**20)
    bomb = gzip.compress(b"MARKOV\n") + gzip.compress(b" " * 2**20) * 256
    assert "the file is longer than 4 MiB, the most that is read of this format" in refusal("m.uai.gz", bomb)


@pytest.mark.parametrize("cut", range(1, len(UAI.rstrip()) - 1))
def test_every_truncation_is_refused(refusal, cut):
    refusal("m.uai", UAI[:cut])


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ("1 2 0", "m: evidence names variable 2; variables are 0..1"),
        ("1 0 2", "m: evidence sets variable 0 to 2; its states are 0..1"),
        ("1 1 2", "m: the evidence is contradictory, for factor 0 over variables (0, 1) is zero under it"),
    ],
)
def test_evidence_that_does_not_fit_the_model(write, refusal, evidence, message):
    assert message in refusal("m.uai", UAI.replace("3 4 5 6", "0 4 5 0"), evidence=write("m.evid", evidence))


@pytest.mark.parametrize("beta", [np.nan, np.inf, 1e308])
def test_bad_betas(refusal, beta):
    assert "m.wcnf" in refusal("m.wcnf", "9999 1 0\n", beta=beta)


def test_tables_of_clauses_are_limited_together(refusal, monkeypatch):
    monkeypatch.setattr("spinbench.models.files.clauses.MAX_ENTRIES", 79)
    text = "1 1 2 3 4 5 0\n1 2 3 4 0\n"
    assert "m.wcnf: the tables of its clauses have more than 79 entries" in refusal("m.wcnf", text + text)


def test_a_corrupt_byte_in_an_archive_is_noticed(tmp_path, refusal):
    save(grid(3, 3), tmp_path / "m.npz")
    data = bytearray((tmp_path / "m.npz").read_bytes())
    data[data.index(b"\x93NUMPY") + 140] ^= 0xFF
    assert "not a whole .npz archive" in refusal("m.npz", bytes(data))
