"""Weighted CNF: energies by hand, both forms of the format, and files that are none."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import spinbench
from spinbench.errors import ModelError
from spinbench.models import FactorGraph, load

OLD = "c an example\np wcnf 4 6 12\n12 1 2 -4 0\nc between\n3 -3 1 0\n0.5 4 0\n7 2 -1 2 0\n12 3 -3 0\n2 -2 -4\n3 0\n"
NEW = "c an example\nh -4 2 1 0\n3 -3 1 0\nc between\n0.5 4 0\n7 2 -1 0\nh 3 -3 0\n2 -2 -4 3 0\n"
CLAUSES = [(np.inf, [1, 2, -4]), (3.0, [-3, 1]), (0.5, [4]), (7.0, [2, -1]), (2.0, [-2, -4, 3])]


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
