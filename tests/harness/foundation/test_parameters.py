"""Arguments become what their type hints say, or one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pytest

import spinbench
from spinbench.errors import ModelError, SpinbenchError
from spinbench.foundation.parameters import convert
from spinbench.inference.registry import make_method
from spinbench.models import generators


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (3, float, 3.0),
        (3.0, int, 3),
        (10**400, int, 10**400),
        (np.int64(3), int, 3),
        (np.float64(0.5), float | None, 0.5),
        (None, float | None, None),
        ("auto", str | Sequence[float], "auto"),
        ([1, 0.5], str | Sequence[float], [1, 0.5]),
        ("odd", Literal["even"], "odd"),  # which texts are allowed, the taker says
        (True, bool, True),
    ],
)
def test_values_that_fit(value, hint, expected):
    found = convert(value, hint)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (2.5, int, "2.5 was given; an integer is needed"),
        (True, int, "True was given; an integer is needed"),
        (float("nan"), int, "nan was given; an integer is needed"),
        ("3", float, "'3' was given; a number is needed"),
        (None, int, "None was given; an integer is needed"),
        ("x", int | None, "'x' was given; an integer or none is needed"),
        ("x", Sequence[float], r"'x' was given; a list \(each item a number\) is needed"),
        ([1, "x"], Sequence[float], r"\[1, 'x'\] was given; a list"),
        (3, Literal["even", "odd"], "3 was given; even or odd is needed"),
        (1, bool, "1 was given; true or false is needed"),
    ],
)
def test_values_that_do_not_fit(value, hint, message):
    with pytest.raises(TypeError, match=message):
        convert(value, hint)


def test_settings_of_methods():
    assert make_method("bp", {"damping": 0, "restarts": 2.0}).restarts == 2
    with pytest.raises(SpinbenchError, match="method bp: damping='x' was given; a number is needed"):
        make_method("bp", {"damping": "x"})
    with pytest.raises(SpinbenchError, match=r"method g_mf: restarts=1.5 was given; an integer or none is needed"):
        make_method("g_mf", {"restarts": 1.5})


def test_families_and_exact():
    assert generators.grid(2.0, cols=3).num_variables == 6
    with pytest.raises(ModelError, match="model 'grid': rows = '3' was given; an integer is needed"):
        generators.grid("3")
    for size in (-1, "x", float("nan"), float("inf")):
        with pytest.raises(SpinbenchError, match=rf"exact: max_gib={size!r} was given; a positive number is needed"):
            spinbench.exact(generators.grid(2, 2), max_gib=size)
