"""Kernels that break a promise about raw addresses, and their neighbours that keep it. Run: what became of each."""

from __future__ import annotations

import json
from typing import Any

import numba as nb
import numpy as np

from spinbench.backends.numba.simd.memory import (
    address,
    gather,
    gather_indexed,
    keep,
    load,
    load_lanes,
    load_vector,
    offset_pointer,
    store,
    zeros_aligned,
)

EIGHT, NINE = np.ones(8), np.ones(9)
PLACES = np.arange(8, dtype=np.uint32)
# Of which numbers that begin at the second one are misaligned.
BYTES = np.zeros(129, dtype=np.uint8)


@nb.njit
def address_after_the_last_use(n):
    numbers = np.ones(n)
    begin = address(numbers, 0)
    other = np.zeros(n)
    return load(begin, 0) + other[0]


@nb.njit
def address_of_a_kept_array(n):
    numbers = np.ones(n)
    begin = address(numbers, 0)
    other = np.zeros(n)
    found = load(begin, 0) + other[0]
    keep(numbers)
    return found


@nb.njit
def _address_that_leaves(n):
    numbers = np.ones(n)
    return address(numbers, 0)


@nb.njit
def returned_address(n):
    return load(_address_that_leaves(n), 0)


@nb.njit
def stored_after_the_last_use(n):
    numbers = np.ones(n)
    begin = address(numbers, 0)
    store(begin, 0, 1.0)


@nb.njit
def one_element(x, i):
    return load(address(x, 0), i)


@nb.njit
def element_from_a_moved_address(x, i):
    return load(offset_pointer(address(x, 2), i), -2)


@nb.njit
def stored_element(x, i):
    store(address(x, 0), i, 1.0)


@nb.njit
def one_vector(x, i, out):
    store(address(out, 0), 0, load_vector(address(x, 0), i))


@nb.njit
def stored_vector(x, i, out):
    store(address(out, 0), i, load_vector(address(x, 0), 0))


@nb.njit
def gathered(x, places, out):
    store(address(out, 0), 0, gather_indexed(address(x, 0), address(places, 0), 0))


@nb.njit
def looked_up(x, places, out):
    where = load_lanes(address(places, 0), 0, (0,) * 8)
    store(address(out, 0), 0, gather(address(x, 0), where))


def attempts() -> list[tuple[str, Any, tuple[Any, ...]]]:
    """(name, kernel, arguments)."""
    inner = zeros_aligned((8,), np.dtype(np.float64), margin=8)
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
    ]


def outcome(kernel: Any, arguments: tuple[Any, ...]) -> str:
    try:
        kernel(*arguments)
    except IndexError as error:
        return str(error)
    return "passed"


if __name__ == "__main__":
    print(json.dumps({name: outcome(kernel, arguments) for name, kernel, arguments in attempts()}))
