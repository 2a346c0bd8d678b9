"""Weights that float64 cannot hold, and files that hold logarithms of weights."""

from __future__ import annotations

import math

import numpy as np
import pytest

from spinbench.errors import ModelError
from spinbench.models import load

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
