"""Checks of the members that `Backend` has defaults for, which backends override where they can be faster."""

from __future__ import annotations

from typing import Any

import numpy as np

from spinbench.api import Backend
from spinbench.testing.backends.arrays import Pair, called, require_arrays
from spinbench.testing.check import OF_ARRAYS, require, skip

TERMS = 4000
"""Of a sum; the rounding of a plain one shows."""


@OF_ARRAYS.add("arrays given up")
def given_up(backend: Backend) -> None:
    """Donating updates, add and add_product, also step after step in a loop; arguments that are not given up stay."""

    def function(x: Any, y: Any, rows: Any, column: Any) -> dict[str, Any]:
        def updated(i: Any, carry: Any) -> Any:
            return backend.update(carry, i, backend.take(carry, i) + backend.take(y, i), donate=True)

        return {
            "update, donated (integer)": backend.update(x + 0, 1, y[0, :], donate=True),
            "update, donated (integers)": backend.update(x + 0, rows, backend.take(y, rows) * 2, donate=True),
            "update, donated (slice)": backend.update(x + 0, slice(0, 2), y[1:3, :], donate=True),
            "update, donated, in a loop": backend.fori_loop(0, 3, updated, x + 0),
            "add": backend.add(x + 0, y),
            "add in a loop": backend.fori_loop(0, 3, lambda i, carry: backend.add(carry, y), x + 0),
            "add_product": backend.add_product(x + 0, y, x),
            "add_product (one factor a row)": backend.add_product(x + 0, y, column),
            "what stays": backend.xp.stack([x, y], axis=0),
        }

    x = np.arange(12.0).reshape(3, 4)
    y, rows, column = 2 * x - 7, np.array([2, 0]), np.array([[0.5], [-1.0], [2.0]])
    integer, integers, part = x.copy(), x.copy(), x.copy()
    integer[1], integers[rows], part[0:2] = y[0], 2 * y[rows], y[1:3]
    expected = {
        "what stays": np.stack([x, y]),
        "update, donated (integer)": integer,
        "update, donated (integers)": integers,
        "update, donated (slice)": part,
        "update, donated, in a loop": x + y,
        "add": x + y,
        "add in a loop": x + 3 * y,
        "add_product": x + x * y,
        "add_product (one factor a row)": x + column * y,
    }
    require_arrays(called(backend, function, x, y, rows, column), expected, backend.precision)


@OF_ARRAYS.add("compensated sums")
def compensated_sums(backend: Backend) -> None:
    """add_compensated loses no digits over many terms, of rows and of a number without axes."""
    precision = backend.precision

    def function(terms: Any) -> Any:
        def total(zero: Any, term: Any) -> Any:
            def body(i: Any, carry: Any) -> Any:
                return backend.add_compensated(carry[0], carry[1], term)

            return backend.fori_loop(0, TERMS, body, (zero + 0, zero + 0))[0]

        return total(terms * 0, terms), total(terms[0, 0] * 0, terms[0, 0])

    terms = np.array([[0.1, 1 / 3], [-0.7, 1e-3]], dtype=precision)
    rows, number = called(backend, function, terms)
    exact = TERMS * terms.astype(np.longdouble)
    rounding = 4 * float(np.finfo(precision).eps)
    for what, value, wanted in (("an array", rows, exact), ("a number", number, exact[0, 0])):
        worst = float(np.max(np.abs(value / wanted - 1)))
        require(
            worst <= rounding,
            f"add_compensated, {TERMS} terms into {what}: off by {worst:.2g} of the sum; {rounding:.2g} is rounding",
        )


@OF_ARRAYS.add("rows")
def rows(backend: Backend) -> None:
    """take: rows by integers, by one that is known at run time only, and by arrays of indices."""

    def function(x: Any, one: Any, several: Any, table: Any) -> dict[str, Any]:
        seen = backend.fori_loop(0, 3, lambda i, total: total + backend.take(x, i), x[0, :] * 0)
        return {
            "take of 1": backend.take(x, 1),
            "take of an array without axes": backend.take(x, one),
            "take of a vector": backend.take(x, several),
            "take of a table": backend.take(x, table),
            "take of an index in a loop": seen,
        }

    x, table = np.arange(12.0).reshape(3, 4), np.array([[2, 0, 1], [1, 1, 0]])
    expected = {
        "take of 1": x[1],
        "take of an array without axes": x[2],
        "take of a vector": x[[2, 0]],
        "take of a table": x[table],
        "take of an index in a loop": x.sum(axis=0),
    }
    require_arrays(called(backend, function, x, np.array(2), np.array([2, 0]), table), expected, backend.precision)


@OF_ARRAYS.add("constructors")
def constructors(backend: Backend) -> None:
    """New arrays of the type `real`, and of integers, in compiled code."""
    precision = backend.precision
    xp = backend.xp

    def function(x: Any) -> dict[str, Any]:
        made = {
            "zeros": xp.zeros((2, 3), dtype=backend.real),
            "ones": xp.ones((3,), dtype=backend.real),
            "full": xp.full((2,), 0.25, dtype=backend.real),
            "eye": xp.eye(2, dtype=backend.real),
            "arange": xp.arange(4, dtype=xp.int32),
        }
        return {what: array + xp.astype(x, array.dtype) for what, array in made.items()}

    found = called(backend, function, np.array(2.0))
    for what, wanted in {
        "zeros": np.full((2, 3), 2.0, dtype=precision),
        "ones": np.full(3, 3.0, dtype=precision),
        "full": np.full(2, 2.25, dtype=precision),
        "eye": np.eye(2, dtype=precision) + np.array(2, dtype=precision),
        "arange": np.arange(2, 6, dtype=np.int32),
    }.items():
        require(found[what].dtype == wanted.dtype, f"{what} gives {found[what].dtype}; {wanted.dtype} was asked for")
        require(np.array_equal(found[what], wanted), f"{what} + 2 gives {found[what].tolist()}")


@OF_ARRAYS.add("gradients")
def gradients(backend: Backend) -> None:
    """grad against central differences, of a function with products, choices and sums, in two arguments of three."""
    precision = backend.precision
    if "grad" not in backend.provides:
        skip("provides has no grad")
    xp = backend.xp

    def value(pair: Pair, weights: Any) -> Any:
        field = xp.matmul(weights, pair.first) + pair.second
        bent = xp.where(field > 0, xp.log1p(xp.exp(field)), xp.tanh(field))
        return xp.sum(bent) + xp.sum(xp.exp(-pair.first) * xp.cumulative_sum(pair.first, axis=0))

    rng = np.random.default_rng(2)
    x, y, weights = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 3))
    found = called(backend, lambda x, y, w: backend.grad(value)(Pair(x, y), w), x, y, weights)
    require(isinstance(found, Pair), f"grad gives {type(found).__name__}; the tree of the first argument is needed")
    step = float(np.finfo(precision).eps) ** (1 / 3)
    for given, gradient in ((x, found.first), (y, found.second)):
        require(gradient.dtype == precision, f"grad turns {precision} into {gradient.dtype}")
        for at in np.ndindex(given.shape):
            ends = []
            for side in (step, -step):
                moved = [array.copy() for array in (x, y)]
                moved[0 if given is x else 1][at] += side
                ends.append(float(called(backend, lambda x, y, w: value(Pair(x, y), w), *moved, weights)))
            wanted = (ends[0] - ends[1]) / (2 * step)
            close = abs(gradient[at] - wanted) <= 50 * step**2 * (1 + abs(wanted))
            require(close, f"grad gives {gradient[at]:.9g} where differences give {wanted:.9g}")


@OF_ARRAYS.add("window and sigmoid")
def window_and_sigmoid(backend: Backend) -> None:
    """Rows from an index known at run time only; a sigmoid that neither overflows nor changes its argument."""
    precision = backend.precision

    def function(rows: Any, start: Any, x: Any) -> Any:
        sigmoid = backend.sigmoid(x)
        return backend.window(rows, start, 2), sigmoid, x

    rows, x = np.arange(8.0).reshape(4, 2), np.array([-1e4, -80.0, -2.0, 0.0, 0.5, 80.0, 1e4])
    for start in (0, 2):
        seen, sigmoid, argument = called(backend, function, rows, np.array(start), x)
        wanted = rows[start : start + 2]
        require(np.array_equal(seen, wanted), f"window from {start} gives {seen.tolist()}; {wanted.tolist()} is needed")
    with np.errstate(over="ignore"):
        exact = 1 / (1 + np.exp(-x))
    off = np.abs(sigmoid - exact) > 4 * np.finfo(precision).eps
    require(not off.any(), f"sigmoid of {x[off]} gives {sigmoid[off]}; {exact[off]} is expected")
    require(sigmoid.dtype == precision, f"sigmoid turns {precision} into {sigmoid.dtype}")
    require(np.array_equal(argument, x.astype(precision)), "sigmoid changes its argument")
