"""Kernels that break a promise about raw addresses, and their neighbours that keep it. Run: what became of each."""

from __future__ import annotations

import json
from typing import Any

import numba as nb
import numpy as np

from spinbench.backends.numba.simd.memory import (
    address,
    keep,
    load_field,
    load_state,
    load_sum,
    load_table,
    moved,
    store_field,
    store_state,
    store_sum,
)
from spinbench.backends.numba.simd.vector_memory import (
    aligned_zeros,
    gather_states,
    gather_table,
    line_address,
    load_state_vector,
    load_table_vector,
    load_table_words,
    store_sum_vector,
)

EIGHT, NINE = np.ones(8), np.ones(9)
PLACES = np.arange(8, dtype=np.uint32)
BYTES = np.zeros(129, dtype=np.uint8)
"""Of which numbers that begin at the second one are misaligned."""


@nb.njit
def address_after_the_last_use(n):
    numbers = np.ones(n)
    begin = address(numbers, 0)
    other = np.zeros(n)
    return load_table(begin, 0) + other[0]


@nb.njit
def address_of_a_kept_array(n):
    numbers = np.ones(n)
    begin = address(numbers, 0)
    other = np.zeros(n)
    found = load_table(begin, 0) + other[0]
    keep(numbers)
    return found


@nb.njit
def _address_that_leaves(n):
    numbers = np.ones(n)
    return address(numbers, 0)


@nb.njit
def returned_address(n):
    return load_table(_address_that_leaves(n), 0)


@nb.njit
def stored_after_the_last_use(n):
    numbers = np.ones(n)
    begin = line_address(numbers)
    store_sum(begin, 0, 1.0)


@nb.njit
def one_element(x, i):
    return load_table(address(x, 0), i)


@nb.njit
def element_from_a_moved_address(x, i):
    return load_table(moved(address(x, 2), i), -2)


@nb.njit
def stored_element(x, i):
    store_sum(address(x, 0), i, 1.0)


@nb.njit
def one_vector(x, i, out):
    store_sum_vector(address(out, 0), 0, load_table_vector(address(x, 0), i))


@nb.njit
def stored_vector(x, i, out):
    store_sum_vector(address(out, 0), i, load_table_vector(address(x, 0), 0))


@nb.njit
def gathered(x, places, out):
    store_sum_vector(address(out, 0), 0, gather_states(address(x, 0), address(places, 0), 0))


@nb.njit
def looked_up(x, places, out):
    where = load_table_words(address(places, 0), 0, (0,) * 8)
    store_sum_vector(address(out, 0), 0, gather_table(address(x, 0), where))


@nb.njit
def stored_and_loaded(x, y):
    store_sum(address(x, 0), 0, 1.0)
    return load_state(address(y, 0), 0)


@nb.njit
def loaded_and_stored(x, y):
    found = load_state(address(y, 0), 0)
    store_sum(address(x, 0), 0, 1.0)
    return found


@nb.njit
def stored_twice(x, y):
    store_sum(address(x, 0), 0, 1.0)
    store_field(address(y, 0), 0, 1.0)


@nb.njit
def loaded_twice(x, y):
    return load_sum(address(x, 0), 0) + load_field(address(y, 0), 0)


@nb.njit
def vectors_that_overlap(x):
    begin = address(x, 0)
    store_sum_vector(begin, 0, load_state_vector(begin, 1))


@nb.njit(forceinline=True)
def _inlined(x):
    store_state(address(x, 0), 0, 1.0)


@nb.njit
def _called(x):
    store_field(address(x, 0), 0, 1.0)


@nb.njit
def stored_in_other_functions(x, y):
    _inlined(x)
    _called(x)
    return load_sum(address(y, 0), 0)


@nb.njit
def stored_around_a_call(x, y):
    store_state(address(x, 0), 0, 1.0)
    _called(x)
    return load_sum(address(y, 0), 0)


@nb.njit
def stored_in_a_loop(x, y):
    """All elements of one array are stored before the first of the other is loaded."""
    for i in range(x.size):
        store_state(address(x, 0), i, 1.0)
    total = 0.0
    for i in range(y.size):
        total += load_sum(address(y, 0), i)
    return total


@nb.njit
def neighbours(x):
    store_state(address(x, 0), 1, 1)
    return load_sum(address(x, 0), 0) + load_sum(address(x, 0), 2)


def attempts() -> list[tuple[str, Any, tuple[Any, ...]]]:
    """(name, kernel, arguments)."""
    large = np.ones(300_000)
    inner = aligned_zeros((8,), np.dtype(np.float64), margin=8)
    return [
        ("lifetime", address_after_the_last_use, (8,)),
        ("lifetime, kept", address_of_a_kept_array, (8,)),
        ("lifetime, returned", returned_address, (8,)),
        ("lifetime, stored", stored_after_the_last_use, (16,)),
        ("bounds, last", one_element, (EIGHT, 7)),
        ("bounds, past the end", one_element, (EIGHT, 8)),
        ("bounds, before the begin", one_element, (EIGHT, -1)),
        ("bounds, moved, last", element_from_a_moved_address, (EIGHT, 7)),
        ("bounds, moved", element_from_a_moved_address, (EIGHT, 8)),
        ("bounds, stored", stored_element, (np.ones(8), 8)),
        ("bounds, vector, last", one_vector, (NINE, 1, np.ones(8))),
        ("bounds, vector", one_vector, (NINE, 2, np.ones(8))),
        ("bounds, stored vector", stored_vector, (EIGHT, 1, np.ones(8))),
        ("bounds, gathered, last", gathered, (EIGHT, PLACES, np.ones(8))),
        ("bounds, gathered", gathered, (EIGHT, PLACES + np.uint32(1), np.ones(8))),
        ("bounds, looked up, last", looked_up, (EIGHT, PLACES, np.ones(8))),
        ("bounds, looked up", looked_up, (EIGHT, PLACES + np.uint32(1), np.ones(8))),
        ("bounds, view", one_element, (np.ones((2, 8))[0], 8)),
        ("bounds, margin", one_element, (inner, -8)),
        ("bounds, margin of a view", one_element, (inner[2:5], 13)),
        ("bounds, past the margin", one_element, (inner, 16)),
        ("alignment", one_element, (BYTES[1:].view(np.float64), 0)),
        ("alignment, vector", one_vector, (BYTES[1:].view(np.float64), 0, np.ones(8))),
        ("kinds, apart", stored_and_loaded, (np.ones(8), np.ones(8))),
        ("kinds, load after store", stored_and_loaded, (NINE, NINE)),
        ("kinds, store after load", loaded_and_stored, (NINE, NINE)),
        ("kinds, stores", stored_twice, (NINE, NINE)),
        ("kinds, loads", loaded_twice, (NINE, NINE)),
        ("kinds, vectors", vectors_that_overlap, (np.ones(16),)),
        ("kinds, around a call", stored_around_a_call, (NINE, NINE)),
        ("kinds, large", stored_in_a_loop, (large, large)),
        ("kinds, neighbours", neighbours, (np.ones(3, dtype=np.int16),)),
        ("kinds, other functions", stored_in_other_functions, (NINE, NINE)),
    ]


def outcome(kernel: Any, arguments: tuple[Any, ...]) -> str:
    try:
        kernel(*arguments)
    except IndexError as error:
        return str(error)
    return "passed"


if __name__ == "__main__":
    print(json.dumps({name: outcome(kernel, arguments) for name, kernel, arguments in attempts()}))
