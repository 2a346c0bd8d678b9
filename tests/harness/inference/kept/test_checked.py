"""States that an engine hands over: whole numbers that the variables have, or one sentence."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spinbench.errors import InvalidResultError
from spinbench.inference.kept.checked import checked_states
from spinbench.models import FactorGraph

K_ARY = FactorGraph.from_tables((2, 3), [((0, 1), np.ones((2, 3)))])


@pytest.mark.parametrize("kind", [np.int8, np.uint16, np.float32, np.float64])
def test_whole_numbers_are_states(kind: type) -> None:
    given = np.array([[0, 1, 1], [2, 0, 1]], dtype=kind)
    states = checked_states(given, K_ARY, "x on y")
    assert states.dtype == np.int64
    np.testing.assert_array_equal(states, given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ([[0.0], [0.5]], r"the state 0.5 of variable 1; 0 to 2 are its states"),
        ([[2], [2]], "the state 2 of variable 0; 0 to 1 are its states"),
        ([[0], [-1]], "the state -1 of variable 1"),
        ([[0.0], [np.nan]], "the state nan of variable 1"),
        ([[0j], [1j]], r"type complex128; \(2, C\) integers are needed"),
        ([0, 1], r"shape \(2,\)"),
        ([["0"], ["1"]], "integers are needed"),
        ([[0], [1, 2]], "states that are no array"),
        (None, "integers are needed"),
    ],
)
def test_others_are_refused(given: Any, message: str) -> None:
    with pytest.raises(InvalidResultError, match=f"x on y handed over .*{message}"):
        checked_states(given, K_ARY, "x on y")
