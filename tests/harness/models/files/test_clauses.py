"""Clauses, weights that float64 cannot hold, and files that hold logarithms of weights."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import spinbench
from spinbench import load, reference
from spinbench.errors import ModelError
from spinbench.inference.stored_states.exports import log_weights
from spinbench.models import condition
from spinbench.models.files.clauses import ClauseParser
from spinbench.models.files.text import Tokens

HARD = 1000.0
# Weights of literals in files of the model counting competitions.
WEIGHTED = "c t wmc\np cnf 30 2\n{clause} 0\n-1 -2 0\nc p weight 1 1/3 0\nc p weight 30 1/4 0\n"


def random_clauses(seed, soft):
    """(variables, clauses as (weight, literals)), some of which name all variables."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(6, 12))
    clauses = []
    for size in rng.integers(1, n + 1, int(rng.integers(1, 6))).tolist():
        literals = (1 + rng.permutation(n)[:size]) * rng.choice([-1, 1], size)
        weight = float(rng.integers(1, 4)) / 2 if soft and rng.random() < 0.5 else HARD
        clauses.append((weight, literals.tolist()))
    return n, clauses


def parse(clauses, n):
    text = "\n".join(" ".join(map(str, [weight, *literals, 0])) for weight, literals in clauses)
    parser = ClauseParser(Tokens(text.encode(), "m.wcnf"), 1.0)
    parser.read(HARD, n)
    return parser


def satisfied(states, literals):
    return np.any([states[:, abs(literal) - 1] == (literal > 0) for literal in literals], axis=0)


@pytest.mark.parametrize("soft", [False, True])
@pytest.mark.parametrize("seed", range(20))
def test_split_clauses_leave_the_law_of_the_files_variables(seed, soft):
    n, clauses = random_clauses(seed, soft)
    states = np.array(list(itertools.product((0, 1), repeat=n)))
    costs = [np.where(satisfied(states, x), 0.0, np.inf if w == HARD else w) for w, x in clauses]
    weights = np.exp(-np.sum(costs, axis=0))
    if not weights.any():
        pytest.skip("no state satisfies the hard clauses")
    model = parse(clauses, n).build_model(n, "m", part=3 + seed % 3, max_whole_entries=64 * (seed % 2))
    assert max(len(factor.scope) for factor in model.factors) <= 6
    answer = spinbench.exact(model, cache=False)
    assert answer.log_z == pytest.approx(np.log(weights.sum()), rel=1e-12)
    np.testing.assert_allclose(answer.marginals, weights @ states / weights.sum(), atol=1e-12)
    np.testing.assert_allclose(np.exp(log_weights(model, states)), weights, rtol=1e-12)
    observed = int(states[weights.argmax(), 0])
    conditioned = condition(model, {1: observed})
    agreeing = states[:, 0] == observed
    np.testing.assert_allclose(np.exp(log_weights(conditioned, states[agreeing])), weights[agreeing], rtol=1e-12)
    assert spinbench.exact(conditioned, cache=False).log_z == pytest.approx(np.log(weights[agreeing].sum()))


def test_draws_are_of_the_files_variables():
    clause = [1, -2, 3, 4, -5, 6, 7, 8]
    model = parse([(HARD, clause)], 8).build_model(8, "m", part=4, max_whole_entries=0)
    states = model.origin.lift(reference.sample(model, 200))
    assert states.shape == (200, 8)
    assert satisfied(states, clause).all()


def test_a_clause_of_thirty_literals_is_counted_as_by_hand(write):
    model = load(write("m.cnf", WEIGHTED.format(clause=" ".join(map(str, range(1, 31))))))
    count = 2**28 - Fraction(2**27, 3) - Fraction(2, 3) * Fraction(3, 4)  # but for 1 with 2, and for none
    answer = spinbench.exact(model, cache=False)
    assert answer.log_z == pytest.approx(np.log(float(count)), rel=1e-14)
    assert len(answer.marginals) == 30


def test_wide_clauses_take_little_memory(write):
    rng = np.random.default_rng(0)
    rows = [(1 + rng.permutation(60)[:20]) * rng.choice([-1, 1], 20) for _ in range(60)]
    clauses = "".join(f"{' '.join(map(str, row.tolist()))} 0\n" for row in rows)
    model = load(write("m.cnf", f"p cnf 60 60\n{clauses}"))
    assert sum(factor.log_table.size for factor in model.factors) < 2**22


def test_a_wrong_number_of_clauses_names_the_line(write):
    for name, header in (("m.cnf", "p cnf 2 2"), ("m.wcnf", "p wcnf 2 2 5")):
        with pytest.raises(ModelError, match=rf"{name}, line 3: 2 clauses are claimed, but there are 1"):
            load(write(name, f"c one\n\n{header}\n5 1 0\n" if name == "m.wcnf" else f"c one\n\n{header}\n1 2 0\n"))


def test_many_variables_of_no_clause_are_answered_in_seconds(write):
    model = load(write("m.cnf", "p cnf 200000 2\n1 2 0\n-2 3 0\n"))
    answer = spinbench.exact(model, cache=False)
    assert answer.log_z == pytest.approx(np.log(4) + 199_997 * np.log(2), rel=1e-14)
    np.testing.assert_allclose(answer.marginals[:4], [0.75, 0.5, 0.75, 0.5], rtol=1e-14)


SMALL_WEIGHTS = ["3e-320", "1e-400", "0.5E-0330", "00.07e-999", "0." + 330 * "0" + "25", "2.2e-308"]
SMALL_LOGARITHMS = [
    math.log(mantissa) + exponent * math.log(10)
    for mantissa, exponent in [(3, -320), (1, -400), (0.5, -330), (7, -1001), (25, -332), (2.2, -308)]
]


@pytest.mark.parametrize("name", ["m.uai", "m.fg", "m.bif", "m.erg"])
def test_weights_below_the_smallest_normal_number_keep_their_digits(write, name):
    texts = {
        "m.uai": "MARKOV\n1\n8\n1\n1 0\n8\n0e-500 {} 1\n",
        "m.fg": "1\n\n1\n0\n8\n7\n1 {}\n2 {}\n3 {}\n4 {}\n5 {}\n6 {}\n7 1\n",
        "m.bif": "variable a {{ type discrete [8] {{ p, q, r, s, t, u, v, w }}; }}\nprobability (a) {{ table 0e-500, "
        + "{}, 1; }}\n",
        "m.erg": "1\n8\n0\n/* Probabilities */\n8\n0e-500 {} 1\n",
    }
    parts = SMALL_WEIGHTS if name == "m.fg" else [(", " if name == "m.bif" else " ").join(SMALL_WEIGHTS)]
    model = load(write(name, texts[name].format(*parts)))
    logs = model.log_weight(np.arange(8)[:, None])
    assert (logs[0], logs[7]) == (-np.inf, 0.0)
    np.testing.assert_allclose(logs[1:7], SMALL_LOGARITHMS, rtol=1e-15)


STATES = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])


def test_files_of_logarithms_are_told_by_their_name_alone(write):
    text = "MARKOV\n2\n2 2\n1\n2 0 1\n4\n0.5 -1.5 {} 700.25\n"
    model = load(write("m.LG", text.format("-inf")))
    assert model.log_weight(STATES).tolist() == [0.5, -1.5, -np.inf, 700.25]
    assert load(write("m.txt", text.format("2").replace("-1.5", "3"))).log_weight(STATES)[0] == np.log(0.5)
    for wrong in ("inf", "nan"):
        with pytest.raises(ModelError, match=rf"token '{wrong}': the logarithm of a weight must be a finite number or"):
            load(write("m.LG", text.format(wrong)))
    with pytest.raises(ModelError, match="the table of factor 0 is zero everywhere"):
        load(write("m.LG", "MARKOV\n1\n2\n1\n1 0\n2\n-inf -inf\n"))
