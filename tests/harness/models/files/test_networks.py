"""Bayesian networks from BIF and Ergo files."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.foundation import remarks
from spinbench.models import load

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
