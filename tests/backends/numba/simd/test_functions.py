"""The kernels' elementary functions: relative errors over their ranges, extremes, and that loops vectorise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numba as nb
import numpy as np
import pytest

from spinbench.backends.numba.simd import functions

KINDS = ["float32", "float64"]
BOUND = {"float32": 2.5e-7, "float64": 4e-16}
LIMIT = {"float32": 87.0, "float64": 708.0}
WIDE: Any = np.longdouble


@nb.njit(error_model="numpy")
def _exp(x, out):
    for i in range(x.size):
        out[i] = functions.exp(x[i])


@nb.njit(error_model="numpy")
def _log(x, out):
    for i in range(x.size):
        out[i] = functions.log(x[i])


@nb.njit(error_model="numpy")
def _log1p(x, out):
    for i in range(x.size):
        out[i] = functions.log1p(x[i])


@nb.njit(error_model="numpy")
def _sigmoid(x, out):
    for i in range(x.size):
        out[i] = functions.sigmoid(x[i])


@nb.njit(error_model="numpy")
def _softplus(x, out):
    for i in range(x.size):
        out[i] = functions.softplus(x[i])


@nb.njit(error_model="numpy")
def _sincos(x, out):
    for i in range(x.size):
        out[0, i], out[1, i] = functions.sincos_turns(x[i])


LOOPS = {"exp": _exp, "log": _log, "log1p": _log1p, "sigmoid": _sigmoid, "softplus": _softplus}
EXACT: dict[str, Callable[[Any], Any]] = {
    "exp": np.exp,
    "log": np.log,
    "log1p": np.log1p,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-abs(x))),
}


def apply(name: str, values: Any, kind: str) -> tuple[np.ndarray, np.ndarray]:
    """The arguments, rounded to `kind`, and the results."""
    x = np.atleast_1d(np.asarray(values)).astype(kind)
    out = np.empty_like(x)
    LOOPS[name](x, out)
    return x, out


def arguments(name: str, kind: str) -> np.ndarray:
    limit, rng = LIMIT[kind], np.random.default_rng(0)
    if name == "log":
        near_one = 1 + rng.uniform(-0.5, 0.5, 50_000) * 10.0 ** rng.uniform(-6, 0, 50_000)
        return np.concatenate([np.exp(rng.uniform(-limit, limit, 200_000)), near_one])
    if name == "log1p":
        return np.concatenate([rng.uniform(0, 1, 100_000), np.exp(rng.uniform(-limit, 0, 100_000)), [0.0, 1.0]])
    spread = [rng.uniform(-limit, limit, 100_000), rng.normal(size=100_000), rng.normal(size=50_000) * 1e-3]
    return np.concatenate([*spread, [0.0, limit, -limit]])


@pytest.mark.skipif(np.finfo(WIDE).eps > 1e-18, reason="no extended precision to compare with")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOOPS)
def test_relative_error(name: str, kind: str) -> None:
    x, out = apply(name, arguments(name, kind), kind)
    exact = EXACT[name](x.astype(WIDE))
    apart = np.abs(out - exact)
    # numbers below the smallest normal one have no relative accuracy; sigmoid and log1p come close to it
    error = apart / np.maximum(np.abs(exact), np.finfo(kind).tiny)
    assert error.max() <= BOUND[kind], x[error.argmax()]


@pytest.mark.parametrize("kind", KINDS)
def test_sines_of_turns(kind: str) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-0.5, 1, 100_000), np.arange(-16, 17) / 8, rng.uniform(-50, 50, 10_000)]).astype(
        kind
    )
    out = np.empty((2, x.size), dtype=kind)
    _sincos(x, out)
    angle = 2 * WIDE("3.14159265358979323846") * (x.astype(WIDE) - np.rint(x.astype(WIDE)))
    assert np.abs(out[0] - np.sin(angle)).max() <= np.finfo(kind).eps
    assert np.abs(out[1] - np.cos(angle)).max() <= np.finfo(kind).eps
    quarters = np.array([0, 0.25, 0.5, 0.75, -0.25], dtype=kind)
    out = np.empty((2, 5), dtype=kind)
    _sincos(quarters, out)
    np.testing.assert_array_equal(out, [[0, 1, 0, -1, -1], [1, 0, -1, 0, 0]])


@pytest.mark.parametrize("kind", KINDS)
def test_extremes_saturate_and_stay_finite(kind: str) -> None:
    huge = float(np.finfo(kind).max)
    values = [-np.inf, -huge, -1e4, -0.0, 0.0, 1e4, huge, np.inf]
    tiny = np.exp(WIDE(-LIMIT[kind])).astype(kind)
    _, e = apply("exp", values, kind)
    np.testing.assert_allclose(e, [tiny, tiny, tiny, 1, 1, 1 / tiny, 1 / tiny, 1 / tiny], rtol=1e-6)
    _, s = apply("sigmoid", values, kind)
    np.testing.assert_allclose(s, [tiny, tiny, tiny, 0.5, 0.5, 1, 1, 1], rtol=1e-6)
    _, p = apply("softplus", values, kind)
    np.testing.assert_allclose(p, [tiny, tiny, tiny, np.log(2), np.log(2), 1e4, huge, np.inf], rtol=1e-6)
    assert apply("exp", 0.0, kind)[1] == 1
    assert apply("log", 1.0, kind)[1] == 0
    assert apply("log1p", 0.0, kind)[1] == 0


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["exp", "log1p", "sigmoid", "softplus"])
def test_nan_stays_nan(name: str, kind: str) -> None:
    assert np.isnan(apply(name, np.nan, kind)[1])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_vectorise(name: str, kind: str) -> None:
    apply(name, np.ones(4), kind)
    signature = (nb.types.Array(getattr(nb.types, kind), 1, "C"),) * 2
    vectors = re.findall(r"<(\d+) x (float|double)>", LOOPS[name].inspect_llvm(signature))
    assert any(int(lanes) >= 2 for lanes, _ in vectors)
