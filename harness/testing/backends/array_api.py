"""What is asked of a backend's `xp`: the Python array API standard, each function with a call; NumPy is the yardstick.

In the calls x and y are (3, 4) and y > 0; in those of `WIDE` they are larger.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from spinbench.api import Array, Namespace

# Version of the standard: https://data-apis.org/array-api/2024.12/
VERSION = "2024.12"

Call = Callable[[Namespace, Array, Array], Array]


def _calls(
    names: str, arguments: Callable[[Namespace, Array, Array], tuple[Array, ...]], **options: int
) -> dict[str, Call]:
    """Calls of the functions of these names, all with the same arguments."""

    def call(name: str, xp: Namespace, x: Array, y: Array) -> Array:
        return getattr(xp, name)(*arguments(xp, x, y), **options)

    return {name: partial(call, name) for name in names.split()}


def _call_with_nan(name: str, xp: Namespace, x: Array, y: Array) -> Array:
    """Of two arrays, or along rows, in each of which some numbers are none."""
    values = xp.where(x > xp.min(y, axis=0), xp.nan, x)
    if name.endswith("imum"):
        return xp.stack([getattr(xp, name)(values, y), getattr(xp, name)(y, values)])
    return getattr(xp, name)(values, axis=1)


_ALONG_AXES = (
    *("all", "any", "argmax", "argmin", "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "sort"),
    *("std", "sum", "var"),
)


def _call_along_last_axis(name: str, xp: Namespace, x: Array, y: Array) -> Array:
    """Of three axes as long as each other, so that another one gives the same shape."""
    values = x[:, :3]
    cube = xp.stack([values, values + y[:, 1:], values * y[:, :3]])
    return getattr(xp, name)(cube > 0.5 if name in ("all", "any") else cube, axis=-1)


OPERATIONS: dict[str, Call] = {
    **_calls(
        "abs asinh atan ceil cos cosh exp expm1 floor isfinite isinf isnan negative ones_like positive round sign "
        "signbit sin sinh square tan tanh tril triu trunc zeros_like",
        lambda xp, x, y: (x,),
    ),
    **_calls("log log10 log1p log2 reciprocal sqrt", lambda xp, x, y: (y,)),
    **_calls(
        "add atan2 copysign divide equal floor_divide greater greater_equal hypot less less_equal logaddexp maximum "
        "minimum multiply not_equal remainder subtract",
        lambda xp, x, y: (x, y),
    ),
    **_calls("logical_and logical_or logical_xor", lambda xp, x, y: (x < y, x > 0)),
    **_calls(
        "bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor",
        lambda xp, x, y: (xp.argmax(x, axis=0) + 5, xp.argmax(y, axis=0)),
    ),
    **_calls(
        "argmax argmin argsort cumulative_prod cumulative_sum diff flip max mean min prod sort std sum var",
        lambda xp, x, y: (x,),
        axis=0,
    ),
    "acos": lambda xp, x, y: xp.acos(xp.tanh(x)),
    "acosh": lambda xp, x, y: xp.acosh(y + 1),
    "all": lambda xp, x, y: xp.all(x < y, axis=0),
    "any": lambda xp, x, y: xp.any(x < y, axis=0),
    "arange": lambda xp, x, y: xp.arange(1, 7, 2),
    "asarray": lambda xp, x, y: xp.asarray(x),
    "asin": lambda xp, x, y: xp.asin(xp.tanh(x)),
    "astype": lambda xp, x, y: xp.astype(x < y, x.dtype),
    "atanh": lambda xp, x, y: xp.atanh(xp.tanh(x)),
    "bitwise_invert": lambda xp, x, y: xp.bitwise_invert(xp.argmax(x, axis=0)),
    "broadcast_to": lambda xp, x, y: xp.broadcast_to(x[:1, :], x.shape),
    "clip": lambda xp, x, y: xp.clip(x, -0.5, 0.5),
    "concat": lambda xp, x, y: xp.concat([x, y], axis=0),
    "count_nonzero": lambda xp, x, y: xp.count_nonzero(x < y, axis=1),
    "expand_dims": lambda xp, x, y: xp.expand_dims(x, axis=1),
    "eye": lambda xp, x, y: xp.eye(3, dtype=x.dtype),
    "full": lambda xp, x, y: xp.full((2, 3), 0.25, dtype=x.dtype),
    "full_like": lambda xp, x, y: xp.full_like(x, 0.25),
    "linspace": lambda xp, x, y: xp.linspace(0.0, 1.0, 5, dtype=x.dtype),
    "logical_not": lambda xp, x, y: xp.logical_not(x < y),
    "matmul": lambda xp, x, y: xp.matmul(x.T, y),
    "matrix_transpose": lambda xp, x, y: xp.matrix_transpose(x),
    "meshgrid": lambda xp, x, y: xp.meshgrid(x[0, :], y[1, :])[1],
    "moveaxis": lambda xp, x, y: xp.moveaxis(x, 0, 1),
    "ones": lambda xp, x, y: xp.ones((2, 3), dtype=x.dtype),
    "permute_dims": lambda xp, x, y: xp.permute_dims(x, (1, 0)),
    "pow": lambda xp, x, y: xp.pow(y, x),
    "repeat": lambda xp, x, y: xp.repeat(x, 2, axis=0),
    "reshape": lambda xp, x, y: xp.reshape(x, (-1,)),
    "roll": lambda xp, x, y: xp.roll(x, 1, axis=0),
    "searchsorted": lambda xp, x, y: xp.searchsorted(xp.sort(x[0, :]), y[0, :]),
    "squeeze": lambda xp, x, y: xp.squeeze(x[:1, :], axis=0),
    "stack": lambda xp, x, y: xp.stack([x, y], axis=0),
    "take": lambda xp, x, y: xp.take(x, xp.argmax(y, axis=0), axis=0),
    "take_along_axis": lambda xp, x, y: xp.take_along_axis(x, xp.argsort(y, axis=1), axis=1),
    "tensordot": lambda xp, x, y: xp.tensordot(x, y, axes=2),
    "tile": lambda xp, x, y: xp.tile(x, (2, 1)),
    "unstack": lambda xp, x, y: xp.unstack(x, axis=0)[1],
    "vecdot": lambda xp, x, y: xp.vecdot(x, y, axis=-1),
    "where": lambda xp, x, y: xp.where(x < y, x, y),
    "zeros": lambda xp, x, y: xp.zeros((2, 3), dtype=x.dtype),
}

# Further call forms that generic programs use.
FORMS: dict[str, Call] = {
    "argmax (of a vector)": lambda xp, x, y: xp.argmax(x[0, :]),
    "max (several axes, kept)": lambda xp, x, y: xp.max(x, axis=(0, 1), keepdims=True),
    "min (no axis)": lambda xp, x, y: xp.min(x),
    "mean (kept)": lambda xp, x, y: xp.mean(x, axis=1, keepdims=True),
    "maximum (with a number)": lambda xp, x, y: xp.maximum(x, 0.0),
    "sum (several axes)": lambda xp, x, y: xp.sum(x, axis=(0, 1)),
    "take (along the last axis)": lambda xp, x, y: xp.take(x, xp.arange(2), axis=-1),
    "where (with a number)": lambda xp, x, y: xp.where(x < y, x, -xp.inf),
    "e, newaxis, pi": lambda xp, x, y: x[xp.newaxis, :, :] * xp.e / xp.pi,
    "bool, int32": lambda xp, x, y: xp.astype(xp.astype(x < y, xp.int32), xp.bool),
    "searchsorted (right)": lambda xp, x, y: xp.searchsorted(xp.sort(x[0, :]), x[0, :], side="right"),
    "cumulative_sum (from nothing)": lambda xp, x, y: xp.cumulative_sum(x, axis=1, include_initial=True),
    "var (correction)": lambda xp, x, y: xp.var(x, axis=1, correction=1),
    "std (correction)": lambda xp, x, y: xp.std(x, axis=0, correction=1),
    "logaddexp (of large ones)": lambda xp, x, y: xp.logaddexp(1000 * x, 1000 * x - y),
    "expm1 (of small ones)": lambda xp, x, y: xp.expm1(x * 1e-10) * 1e10,
    "log1p (of small ones)": lambda xp, x, y: xp.log1p(y * 1e-10) * 1e10,
    "argmax (of equal ones, the first)": lambda xp, x, y: xp.argmax(xp.sign(y), axis=1),
    "astype (toward zero)": lambda xp, x, y: xp.astype(3 * x, xp.int32),
    "matmul (of stacks)": lambda xp, x, y: xp.matmul(xp.stack([x, y]), xp.stack([y.T, x.T])),
    "cumulative_sum (of stacks)": lambda xp, x, y: xp.cumulative_sum(xp.stack([x, y]), axis=1),
    **{f"{name} (with NaN)": partial(_call_with_nan, name) for name in ("max", "min", "maximum", "minimum", "sum")},
    "exp (of large ones)": lambda xp, x, y: xp.log(xp.exp(80 * xp.tanh(x))),
    **{f"{name} (along the last axis)": partial(_call_along_last_axis, name) for name in _ALONG_AXES},
    "round (halves)": lambda xp, x, y: xp.round(xp.floor(4 * x) + 0.5),
}

# Wide arrays, whose end a kernel of fixed size would not reach.
WIDE: dict[str, Call] = {
    "matmul": lambda xp, x, y: xp.matmul(x, xp.matrix_transpose(y)),
    "matmul (of columns)": lambda xp, x, y: xp.matmul(xp.matrix_transpose(y), x),
    "sum": lambda xp, x, y: xp.sum(x, axis=1),
    "cumulative_sum": lambda xp, x, y: xp.cumulative_sum(x, axis=1),
    "max": lambda xp, x, y: xp.max(x, axis=1),
    "argmax": lambda xp, x, y: xp.argmax(x, axis=1),
    "sort": lambda xp, x, y: xp.sort(x, axis=1),
    "searchsorted": lambda xp, x, y: xp.searchsorted(xp.sort(x[0, :]), y[0, :]),
    "take": lambda xp, x, y: xp.take(x, xp.argsort(y[0, :]), axis=1),
}

SYNTAX: dict[str, Call] = {
    "x + y, x - y, x * y, x / y, -x": lambda xp, x, y: -((x + y) * (x - y)) / y,
    "2.0 * x, x + 1, 1 - x": lambda xp, x, y: 2.0 * x + (x + 1) - (1 - x),
    "x @ y": lambda xp, x, y: x @ y.T,
    "x ** 2": lambda xp, x, y: x**2,
    "integers: n // m, n % m, n * m": lambda xp, x, y: xp.argmax(x, axis=0) * 7 // 2 % 3,
    "comparisons, ~, & and |": lambda xp, x, y: ((x < y) & ~(x >= 0)) | (x == y) | (x > 2) | (x <= -2) | (x != x),
    "x[i, :], x[i, ...], x[:, None, :]": lambda xp, x, y: x[1, :] + x[2, ...] + x[:2, None, :][0, 0, :],
    "x[integers, integers]": lambda xp, x, y: x[xp.argmax(y, axis=0), xp.arange(4)],
    "x[..., i], x[..., None]": lambda xp, x, y: x[..., 1] + x[..., None][1, 1, :],
    "x.shape, x.ndim, x.dtype, x.T": lambda xp, x, y: xp.astype(x.T / x.shape[0] * x.ndim, y.dtype),
}
