"""Loads and stores through addresses keep their order wherever two of them are of the same memory."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from spinbench.backends.numba.simd.memory import address, load, load_vector, store


@nb.njit(forceinline=True)
def _store_elsewhere(x, number):
    store(address(x, 0), 0, number)


@nb.njit
def _change_between_loads(x, y):
    before = load(address(x, 0), 0)
    _store_elsewhere(y, before + 1.0)
    return load(address(x, 0), 0) - before


def test_a_load_after_a_store_to_the_same_array_is_of_what_was_stored() -> None:
    x = np.zeros(1)
    assert _change_between_loads(x, x) == 1.0


@nb.njit
def _chain(x):
    """Each step loads what the one before it stored."""
    elements = address(x, 0)
    for i in range(x.size - 1):
        store(elements, i + 1, load(elements, i) + 1)


@pytest.mark.parametrize("number", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_steps_that_wait_for_each_other_are_not_made_a_vector(number: type) -> None:
    x = np.zeros(101, dtype=number)
    _chain(x)
    np.testing.assert_array_equal(x, np.arange(101))


@nb.njit
def _shift(x):
    elements = address(x, 0)
    store(elements, 0, load_vector(elements, 1))


def test_a_vector_may_be_stored_over_that_which_was_loaded() -> None:
    x = np.arange(9.0)
    _shift(x)
    np.testing.assert_array_equal(x, [*range(1, 9), 8])
