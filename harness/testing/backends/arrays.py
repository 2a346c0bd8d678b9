"""Checks of a backend's arrays, loops and transfers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Precision
from spinbench.foundation.trees import map_arrays
from spinbench.inference import registry
from spinbench.testing.backends.array_api import FORMS, OPERATIONS, SYNTAX, VERSION, WIDE
from spinbench.testing.check import BACKEND_CHECKS, require

if TYPE_CHECKING:
    import numpy.typing as npt

    from spinbench.api.types import Index, Namespace

PRECISIONS: dict[str, Precision] = {"f32": "float32", "f64": "float64"}

# Step counts of loops.
COUNTS = (0, 1, 5, 200, 5000)
# Names of NumPy's dtype kinds.
KINDS = {"b": "bool", "i": "an integer", "f": "a float"}


class TreeNode(NamedTuple):
    """A tree's inner node, which loops must keep."""

    first: Array
    second: Array


def available_precisions(backend_name: str) -> list[Precision]:
    """Precisions that a backend says it provides."""
    provides = registry.backend_class(backend_name).provides
    return [precision for short, precision in PRECISIONS.items() if short in provides]


def run_compiled(backend: Backend, function: Callable[..., object], *arrays: np.ndarray) -> Any:
    """Run the compiled `function` on NumPy arrays; its results as NumPy arrays."""
    device_arrays = map_arrays(backend.to_device, arrays)
    return map_arrays(backend.to_host, backend.compile(function)(*device_arrays))


def require_arrays(results: dict[str, np.ndarray], expected: dict[str, npt.ArrayLike], precision: Precision) -> None:
    """Require that computed arrays equal the expected ones, in the requested precision."""
    for label, expected_value in expected.items():
        value = results[label]
        right = np.array_equal(value, expected_value)
        require(right, f"{label} gives {value.tolist()}; {np.asarray(expected_value).tolist()} is expected")
        require(value.dtype == precision, f"{label} turns {precision} into {value.dtype}")


@BACKEND_CHECKS.add("namespace")
def check_namespace(backend: Backend) -> None:
    """Every member and operator of the array namespace gives the result of NumPy."""
    precision = backend.precision
    missing = [member for member in OPERATIONS if not hasattr(backend.xp, member)]
    require(not missing, f"xp lacks {', '.join(missing)} of the array API standard {VERSION}")
    rng = np.random.default_rng(1)
    rtol = 200 * float(np.finfo(precision).eps)
    small, large = ((rng.normal(size=size), rng.uniform(0.5, 2.0, size=size)) for size in ((3, 4), (70, 1100)))
    for table, arrays in ((OPERATIONS, small), (FORMS, small), (SYNTAX, small), (WIDE, large)):
        x, y = (array.astype(precision) for array in arrays)
        results, failed = _evaluate_operations(backend, table, x, y)
        require(not failed, "; ".join(failed))
        for operation, call in table.items():
            expected = call(np, x, y)
            value = results[operation]
            named = operation
            if table is WIDE:
                named += f" of {x.shape}"
            require(value.shape == expected.shape, f"{named} gives shape {value.shape}; {expected.shape} is expected")
            kind = expected.dtype.kind
            require(value.dtype.kind == kind, f"{named} gives {value.dtype}; {KINDS[kind]} is expected")
            if expected.dtype == precision:
                require(value.dtype == precision, f"{named} of {precision} gives {value.dtype}")
            atol = rtol * max(1.0, float(np.abs(expected).max()))  # sums may cancel
            off = ~np.isclose(value, expected, rtol=rtol, atol=atol if table is WIDE else rtol, equal_nan=True)
            difference = f"{np.ravel(value)[np.ravel(off)][:3]}…; {np.ravel(expected)[np.ravel(off)][:3]}… is expected"
            require(not off.any(), f"{named} gives {difference}")


def _evaluate_operations(
    backend: Backend, table: dict[str, Callable[[Namespace, Array, Array], Array]], x: Array, y: Array
) -> tuple[dict[str, Array], list[str]]:
    failed: list[str] = []

    def call_operations(x: Array, y: Array) -> dict[str, Array]:
        values = {}
        for operation, call in table.items():
            try:
                values[operation] = call(backend.xp, x, y)
            except Exception as error:
                # Frameworks raise errors of their own.
                failed.append(f"{operation} raises {type(error).__name__}: {str(error).splitlines()[0]}")
        return values

    return run_compiled(backend, call_operations, x, y), failed


@BACKEND_CHECKS.add("transfer")
def check_transfer(backend: Backend) -> None:
    """to_device and to_host: values, shapes and dtypes; what was transferred is a copy."""
    precision = backend.precision
    for array in (
        np.array([[0.5, -1.25]]),
        np.array([1 / 3]),
        np.array([[3, -4]]),
        np.array([2**24 + 1, -(2**30) - 1]),
        np.array([True, False]),
        np.zeros((0, 2)),
        np.array(2.5),
    ):
        expected = array.astype(precision if array.dtype.kind == "f" else array.dtype)
        on_device = backend.to_device(array)
        require(on_device.shape == array.shape, f"to_device gives shape {on_device.shape} for {array.shape}")
        if array.dtype.kind == "f":
            require(
                on_device.dtype == backend.real, f"to_device makes floats {on_device.dtype}; {backend.real} is needed"
            )
        array[...] = 1
        back = backend.to_host(on_device)
        require(isinstance(back, np.ndarray), f"to_host gives {type(back).__name__}; np.ndarray is needed")
        kind, expected_kind = back.dtype.kind, expected.dtype.kind
        require(kind == expected_kind, f"an array of {expected.dtype} comes back as {back.dtype}")
        require(
            expected_kind != "f" or back.dtype == precision, f"floats come back as {back.dtype}; {precision} is needed"
        )
        require(np.array_equal(back, expected), f"{expected.tolist()} comes back as {back.tolist()}")


@BACKEND_CHECKS.add("arithmetic")
def check_arithmetic(backend: Backend) -> None:
    """The precision is that which was asked for, neither more nor less, in sums, products and loops."""
    precision = backend.precision
    info = np.finfo(precision)

    def compute(unit: Array, tiny: Array, row: Array) -> dict[str, Array]:
        halves = backend.fori_loop(0, 40, lambda i, carry: carry * 0.5, unit)
        dot = backend.xp.matmul(row[None, :], row[:, None])
        return {"above": (unit + tiny) - unit, "below": (unit + tiny * 0.25) - unit, "loop": halves, "dot": dot[0, 0]}

    row = np.array([1.0, np.sqrt(float(info.eps)) * 2])
    results = run_compiled(backend, compute, np.array(1.0), np.array(float(info.eps)), row)
    for label, value in results.items():
        require(value.dtype == precision, f"{label} has dtype {value.dtype}; {precision} is needed")
    require(results["above"] == info.eps, f"(1 + eps) - 1 is {results['above']} with eps = {info.eps} of {precision}")
    require(results["below"] == 0, f"(1 + eps/4) - 1 is {results['below']}; {precision} rounds it to 0")
    require(results["loop"] == 2.0**-40, f"40 halvings of 1 give {results['loop']}")
    # Matrix products of reduced precision (TF32, bfloat16) lose this entry's last bits.
    short = results["dot"] - 1
    require(abs(short - 4 * info.eps) <= 2 * info.eps, f"matmul loses digits: 4 eps is computed as {short / info.eps}")


@BACKEND_CHECKS.add("loops")
def check_fori_loop(backend: Backend) -> None:
    """fori_loop: order, first index, zero steps, nesting, trees as carries, a count that is known at run time only."""
    precision = backend.precision
    calls = []

    def run_loops(count: Index, start: Array, whole: Array) -> tuple[Array, TreeNode, Array, Array, Array]:
        def body(i: Index, carry: tuple[Array, TreeNode]) -> tuple[Array, TreeNode]:
            calls.append(1)
            total, pair = carry
            inner = backend.fori_loop(0, 2, lambda j, value: value + start[j], start[0] * 0)
            return total * 0.5 + start[0] * i, TreeNode(pair.first + inner, pair.second)

        total, pair = backend.fori_loop(0, count, body, (start[0] * 0, TreeNode(start[0] * 0, start)))
        num_steps = backend.xp.astype(start[0] <= start[1] * count, backend.xp.int32)  # 1, or 0 if count is 0
        late = backend.fori_loop(3, 5, lambda i, value: value * 10 + i, start[0] * 0)
        once = backend.fori_loop(0, num_steps, lambda i, value: value + 1, start)
        return total, pair, once, late, backend.fori_loop(0, count, lambda i, value: value + 1, whole)

    compiled = backend.compile(run_loops)
    start, whole = backend.to_device(np.array([1.0, 3.0])), backend.to_device(np.array([2**24]))
    for count in COUNTS:
        total, pair, once, late, ones = map_arrays(backend.to_host, compiled(count, start, whole))
        expected = 0.0
        for i in range(count):
            expected = expected / 2 + i
        close = np.isclose(total, expected, rtol=1e-6)
        require(close, f"{count} steps of c = c/2 + i give {total}; {expected} is expected")
        require(pair.first == 4.0 * count, f"a loop within {count} steps gives {pair.first}; {4 * count} is expected")
        require(np.array_equal(pair.second, [1, 3]), "an array that is carried unchanged changes")
        require(late == 34, f"a loop from 3 to 5 that writes down its indices gives {late:g}; 34 is expected")
        expected_once = np.array([1, 3]) + min(count, 1)
        require(np.array_equal(once, expected_once), f"a loop whose count is an array, {min(count, 1)}, gives {once}")
        require(ones.dtype.kind == "i", f"a loop turns integers into {ones.dtype}")
        require(ones[0] == 2**24 + count, f"{count} ones and 2^24 are {ones[0]} in a loop")
        require(pair.first.dtype == precision, f"a loop turns {precision} into {pair.first.dtype}")
    if "loop" in backend.provides:
        require(
            len(calls) < 40, f"provides says loop, but {sum(COUNTS)} steps call the body {len(calls)} times in Python"
        )


@BACKEND_CHECKS.add("open loops")
def check_while_loop(backend: Backend) -> None:
    """while_loop: as long as a flag is set that the steps make, none where it is not, within another loop."""

    def run_loops(limit_value: Array, start: Array) -> tuple[tuple[Array, Array], Array]:
        def double(carry: tuple[Array, Array]) -> tuple[Array, Array]:
            value, steps = carry
            return value * 2, steps + 1

        def count_doublings(limit: Array) -> Array:
            return backend.while_loop(lambda carry: carry[0] < limit, double, (start[0], start[0] * 0))[1]

        inner = backend.fori_loop(0, 3, lambda i, total: total + count_doublings(limit_value), start[0] * 0)
        return backend.while_loop(lambda carry: carry[0] < limit_value, double, (start[0], start[0] * 0)), inner

    compiled = backend.compile(run_loops)
    start = backend.to_device(np.array([1.0]))
    for limit_value, expected_steps in ((0.5, 0), (1.0, 0), (5.0, 3), (2.0**20, 20)):
        limit = backend.to_device(np.array([limit_value]))
        (value, steps), inner = map_arrays(backend.to_host, compiled(limit[0], start))
        require(
            steps == expected_steps,
            f"doubling 1 while it is below {limit_value:g} takes {steps:g} steps, not {expected_steps}",
        )
        require(value == 2.0**expected_steps, f"a loop that doubles 1 {expected_steps} times gives {value:g}")
        require(
            inner == 3 * expected_steps,
            f"that loop, in a loop of three steps, takes {inner:g} steps, not {3 * expected_steps}",
        )
        require(value.dtype == backend.precision, f"a loop turns {backend.precision} into {value.dtype}")


@BACKEND_CHECKS.add("updates")
def check_update(backend: Backend) -> None:
    """update: integers, integer arrays, slices and indices known at run time only; the argument stays as it was."""
    precision = backend.precision

    def run_updates(array: Array, rows: Array) -> dict[str, Array]:
        by_integer = backend.update(array, 1, array[0, :])
        several = backend.update(array, rows, array[:2, :] * 0 + 7)
        part = backend.update(array, slice(0, 2), array[1:3, :])
        end = backend.update(array, -1, array[0, :] - 1)
        ends = backend.update(array, rows - 3, array[:2, :] + 7)
        every = backend.update(array, slice(0, 3, 2), array[1:3, :])
        last = backend.fori_loop(0, 3, lambda i, carry: backend.update(carry, i, backend.take(carry, i) + i), array)
        row = array[0, :] + 0
        single = backend.update(row, 1, row[0] + 9)
        axis = {"one axis": single, "argument of one axis": row}
        return {
            "integer": by_integer,
            "integers": several,
            "slice": part,
            "negative": end,
            "negative integers": ends,
            "step": every,
            "run time": last,
            "argument": array,
            **axis,
        }

    array = np.arange(6.0).reshape(3, 2)
    results = run_compiled(backend, run_updates, array, np.array([2, 0]))
    expected: dict[str, npt.ArrayLike] = {
        "update (integer)": [[0, 1], [0, 1], [4, 5]],
        "update (integers)": [[7, 7], [2, 3], [7, 7]],
        "update (slice)": [[2, 3], [4, 5], [4, 5]],
        "update (negative)": [[0, 1], [2, 3], [-1, 0]],
        "update (negative integers)": [[9, 10], [2, 3], [7, 8]],
        "update (step)": [[2, 3], [2, 3], [4, 5]],
        "update (run time)": [[0, 1], [3, 4], [6, 7]],
        "update (argument)": array.tolist(),
        "update (one axis)": [0, 9],
        "update (argument of one axis)": [0, 1],
    }
    require_arrays({f"update ({label})": value for label, value in results.items()}, expected, precision)
