"""Loads and stores through addresses: what a kind tells LLVM holds within one function, as it is written."""

from __future__ import annotations

import numba as nb
import numpy as np
import pytest

from spinbench.backends.numba.simd.memory import address, load_state, load_sum, load_table, store_state, store_sum


@nb.njit(forceinline=True)
def _store_elsewhere(x, number):
    store_sum(address(x, 0), 0, number)


@nb.njit
def _changed_between(x, y):
    """Loads and a store of two functions, which one function holds in the end."""
    before = load_state(address(x, 0), 0)
    _store_elsewhere(y, before + 1.0)
    return load_state(address(x, 0), 0) - before


def test_what_a_kind_promises_ends_with_the_function() -> None:
    """The second load may not become the first, though it is of another kind than the store."""
    x = np.zeros(1)
    assert _changed_between(x, x) == 1.0


@nb.njit(forceinline=True)
def _count(x):
    store_sum(address(x, 0), 0, load_sum(address(x, 0), 0) + 1.0)


@nb.njit
def _total(x, y, n):
    """The sum of the states that so many calls leave, each after the last one's."""
    total = 0.0
    for _ in range(n):
        _count(y)
        total += load_state(address(x, 0), 0)
    return total


def test_a_load_stays_in_a_loop_whose_calls_store() -> None:
    x = np.zeros(1)
    assert _total(x, x, 4) == 1 + 2 + 3 + 4


@nb.njit(forceinline=True)
def _follow(x, i):
    store_state(address(x, 0), i + 1, load_table(address(x, 0), i) + 1)


@nb.njit
def _chain(x):
    """Each call loads as a table what the one before it stored as a state."""
    for i in range(x.size - 1):
        _follow(x, i)


@pytest.mark.parametrize("number", [np.int16, np.int32, np.int64, np.float32, np.float64])
def test_what_a_kind_promises_ends_with_each_call_in_a_loop(number: type) -> None:
    """Elements of several calls may not be loaded as a vector before those calls store."""
    x = np.zeros(101, dtype=number)
    _chain(x)
    np.testing.assert_array_equal(x, np.arange(101))
