"""Checks of what a backend says of itself, and of the members that `Backend` has defaults for.

Backends override these where they can be faster.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinbench.api import Array, Backend
from spinbench.api.types import CAPABILITIES
from spinbench.errors import UnsupportedError
from spinbench.inference import kernels, registry
from spinbench.testing.backends import arrays
from spinbench.testing.backends.arrays import TreeNode, require_arrays, run_compiled
from spinbench.testing.check import BACKEND_CHECKS, CheckError, require, require_refusal, skip

if TYPE_CHECKING:
    from spinbench.api.types import Index


@BACKEND_CHECKS.add("arrays given up")
def check_donated_arrays(backend: Backend) -> None:
    """Donating updates, also step after step in a loop; arguments that are not given up stay."""

    def run_updates(x: Array, y: Array, rows: Array) -> dict[str, Array]:
        def add_row(i: Index, carry: Array) -> Array:
            return backend.update(carry, i, backend.take(carry, i) + backend.take(y, i), donate=True)

        return {
            "update, donated (integer)": backend.update(x + 0, 1, y[0, :], donate=True),
            "update, donated (integers)": backend.update(x + 0, rows, backend.take(y, rows) * 2, donate=True),
            "update, donated (slice)": backend.update(x + 0, slice(0, 2), y[1:3, :], donate=True),
            "update, donated, in a loop": backend.fori_loop(0, 3, add_row, x + 0),
            "what stays": backend.xp.stack([x, y], axis=0),
        }

    x = np.arange(12.0).reshape(3, 4)
    y, rows = 2 * x - 7, np.array([2, 0])
    integer, integers, part = x.copy(), x.copy(), x.copy()
    integer[1], integers[rows], part[0:2] = y[0], 2 * y[rows], y[1:3]
    expected: dict[str, npt.ArrayLike] = {
        "what stays": np.stack([x, y]),
        "update, donated (integer)": integer,
        "update, donated (integers)": integers,
        "update, donated (slice)": part,
        "update, donated, in a loop": x + y,
    }
    require_arrays(run_compiled(backend, run_updates, x, y, rows), expected, backend.precision)


@BACKEND_CHECKS.add("rows")
def check_take(backend: Backend) -> None:
    """take: rows by integers, by one that is known at run time only, and by arrays of indices."""

    def take_rows(x: Array, index: Index, several: Array, table: Array) -> dict[str, Array]:
        row_sum = backend.fori_loop(0, 3, lambda i, total: total + backend.take(x, i), x[0, :] * 0)
        return {
            "take of 1": backend.take(x, 1),
            "take of an array without axes": backend.take(x, index),
            "take of a vector": backend.take(x, several),
            "take of a table": backend.take(x, table),
            "take of an index in a loop": row_sum,
        }

    x, table = np.arange(12.0).reshape(3, 4), np.array([[2, 0, 1], [1, 1, 0]])
    expected = {
        "take of 1": x[1],
        "take of an array without axes": x[2],
        "take of a vector": x[[2, 0]],
        "take of a table": x[table],
        "take of an index in a loop": x.sum(axis=0),
    }
    require_arrays(
        run_compiled(backend, take_rows, x, np.array(2), np.array([2, 0]), table), expected, backend.precision
    )


@BACKEND_CHECKS.add("constructors")
def check_constructors(backend: Backend) -> None:
    """New arrays of the type `real`, and of integers, in compiled code."""
    precision = backend.precision
    xp = backend.xp

    def create_arrays(x: Array) -> dict[str, Array]:
        new_arrays = {
            "zeros": xp.zeros((2, 3), dtype=backend.real),
            "ones": xp.ones((3,), dtype=backend.real),
            "full": xp.full((2,), 0.25, dtype=backend.real),
            "eye": xp.eye(2, dtype=backend.real),
            "arange": xp.arange(4, dtype=xp.int32),
        }
        return {label: array + xp.astype(x, array.dtype) for label, array in new_arrays.items()}

    results = run_compiled(backend, create_arrays, np.array(2.0))
    for label, expected in {
        "zeros": np.full((2, 3), 2.0, dtype=precision),
        "ones": np.full(3, 3.0, dtype=precision),
        "full": np.full(2, 2.25, dtype=precision),
        "eye": np.eye(2, dtype=precision) + np.array(2, dtype=precision),
        "arange": np.arange(2, 6, dtype=np.int32),
    }.items():
        require(
            results[label].dtype == expected.dtype,
            f"{label} gives {results[label].dtype}; {expected.dtype} was asked for",
        )
        require(np.array_equal(results[label], expected), f"{label} + 2 gives {results[label].tolist()}")


@BACKEND_CHECKS.add("gradients")
def check_gradients(backend: Backend) -> None:
    """grad against central differences, of a function with products, choices and sums, in two arguments of three."""
    precision = backend.precision
    if "grad" not in backend.provides:
        skip("provides has no grad")
    xp = backend.xp

    def value(pair: TreeNode, weights: Array) -> Array:
        field = xp.matmul(weights, pair.first) + pair.second
        bent = xp.where(field > 0, xp.log1p(xp.exp(field)), xp.tanh(field))
        return xp.sum(bent) + xp.sum(xp.exp(-pair.first) * xp.cumulative_sum(pair.first, axis=0))

    rng = np.random.default_rng(2)
    x, y, weights = rng.normal(size=(3, 2)), rng.normal(size=(4, 2)), rng.normal(size=(4, 3))
    results = run_compiled(backend, lambda x, y, w: backend.grad(value)(TreeNode(x, y), w), x, y, weights)
    require(
        isinstance(results, TreeNode), f"grad gives {type(results).__name__}; the tree of the first argument is needed"
    )
    step = float(np.finfo(precision).eps) ** (1 / 3)
    for place, (argument, gradient) in enumerate(((x, results.first), (y, results.second))):
        require(gradient.dtype == precision, f"grad turns {precision} into {gradient.dtype}")
        for at in np.ndindex(argument.shape):
            ends = []
            for side in (step, -step):
                moved = [array.copy() for array in (x, y)]
                moved[place][at] += side
                ends.append(float(run_compiled(backend, lambda x, y, w: value(TreeNode(x, y), w), *moved, weights)))
            difference = (ends[0] - ends[1]) / (2 * step)
            close = abs(gradient[at] - difference) <= 50 * step**2 * (1 + abs(difference))
            require(close, f"grad gives {gradient[at]:.9g} where differences give {difference:.9g}")


def check_declaration(name: str) -> None:
    """Class attributes, and that its module imports no framework."""
    cls = registry.backend_class(name)
    require(
        cls.provides <= CAPABILITIES,
        f"provides={set(cls.provides - CAPABILITIES)} is unknown; {sorted(CAPABILITIES)} are known",
    )
    for module in cls.requires:
        require(isinstance(module, str) and module, f"requires={cls.requires!r}; a tuple of module names is needed")
    for program in cls.programs:
        require(isinstance(program, str) and program, f"programs={cls.programs!r}; a tuple of names is needed")
    frameworks = [module for module in cls.requires if module.partition(".")[0] != "numpy"]
    code = (
        "import sys; from spinbench.inference import registry;"
        f"registry.backend_class({name!r}); print([m for m in {frameworks!r} if m in sys.modules])"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # -P: a folder here with the module's name must not be imported in its place.
    command = [sys.executable, "-P", "-c", code]
    process = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    require(process.returncode == 0, f"importing it in a fresh process fails: {process.stderr[-300:]}")
    require(
        process.stdout.strip() == "[]",
        f"importing its module imports {process.stdout.strip()}; do so in the constructor",
    )


def check_construction(name: str) -> None:
    """Precisions and devices: what is offered works, what is not is refused."""
    cls = registry.backend_class(name)
    for precision in arrays.available_precisions(name):
        instance = cls(precision=precision)
        require(instance.precision == precision, f"precision={precision} became {instance.precision}")
        usual = kernels.device_of(cls)
        require(instance.device == usual, f"the default device is {instance.device}; {usual} is expected")
    first_precision = arrays.available_precisions(name)[0]
    require_refusal(lambda: cls(precision=first_precision, device="no-such-device"), "device=no-such-device")
    if "gpu" not in cls.provides:
        require_refusal(lambda: cls(precision=first_precision, device="gpu"), "device=gpu, which is not in provides,")
        return
    try:
        instance = cls(precision=first_precision, device="gpu")
    except UnsupportedError:  # this machine has no GPU
        return
    except Exception as error:  # frameworks raise errors of their own
        wrong = f"device=gpu, which is in provides, raises {type(error).__name__}: {error}"
        raise CheckError(f"{wrong}; where there is none, an UnsupportedError is needed") from error
    require(instance.device == "gpu", f"device=gpu became {instance.device}")
