"""Checks of a backend's random keys and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from spinbench.api import Array, Backend, Key
from spinbench.foundation.trees import map_arrays
from spinbench.testing import limits
from spinbench.testing.check import BACKEND_CHECKS, require

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinbench.api.types import Index

# Number of draws: the standard error of a mean of uniform numbers is 0.0014.
DRAWS = 40_000
# Seeds around powers of two, at which 32-bit words and floats would truncate.
SEEDS = (0, 1, 2, 2**16 + 1, 10**6 + 1, 2**31 + 1, 2**32 - 1, 2**32 + 1, 2**53, 2**53 + 1, 2**60 + 1, 2**63 - 1)
# Indices that are folded into a key, one after another.
PATHS = ((), (0,), (1,), (2,), (12,), (2**31 - 1,), (0, 0), (0, 1), (1, 0), (1, 2), (2, 1))
# Step indices that differ only in high bits: their keys must differ.
STEPS = np.concatenate([np.arange(300), 2 ** np.arange(9, 31) + 12])
# Index of the second of two folds.
INNER = 1100
# A scalar shape, an empty one, and shapes of one to three axes.
SHAPES = ((), (3,), (2, 3), (0, 2), (2, 3, 4))
# Number of keys that give one number each.
KEYS = 2000
# Probability of a tail that 2^20 draws miss with probability `limits.FALSE_ALARM_RATE`.
TAIL = 1.15e-5
# That are drawn at once where the largest is sought.
END_DRAWS = 2**22
# Moments E[x^k], k = 1 … 4.
MOMENTS = {"uniform": (1 / 2, 1 / 3, 1 / 4, 1 / 5), "normal": (0.0, 1.0, 0.0, 3.0)}
# Moments E[x^2k], k = 1 … 4.
SQUARES = {"uniform": (1 / 3, 1 / 5, 1 / 7, 1 / 9), "normal": (1.0, 3.0, 15.0, 105.0)}


@BACKEND_CHECKS.add("keys")
def check_keys(backend: Backend) -> None:
    """Same key, same numbers; other seeds, indices and orders of folding give others."""

    def draw_numbers(key: Key, steps: Array, empty: Array) -> tuple[dict[Any, Array], Array]:
        def body(i: Index, rows: Array) -> Array:
            return backend.update(rows, i, backend.uniform(backend.fold_in(key, backend.take(steps, i)), (8,)))

        numbers = {path: backend.uniform(_fold_in_path(backend, key, path), (8,)) for path in PATHS}
        return numbers, backend.fori_loop(0, len(STEPS), body, empty)

    compiled = backend.compile(draw_numbers)
    arguments = [backend.to_device(array) for array in (STEPS, np.zeros((len(STEPS), 8)))]
    both = [[map_arrays(backend.to_host, compiled(backend.key(seed), *arguments)) for seed in SEEDS] for _ in range(2)]
    _require_distinct_rows(both[0][0][1], STEPS.tolist())
    first, again = ([numbers for numbers, _ in run_results] for run_results in both)
    first_uses: dict[bytes, str] = {}
    for seed, numbers, same in zip(SEEDS, first, again, strict=True):
        for path in PATHS:
            label = f"seed {seed}"
            if path:
                label += f" folded with {', then '.join(map(str, path))}"
            require(np.array_equal(numbers[path], same[path]), f"{label} gives other numbers the second time")
            other = first_uses.setdefault(numbers[path].tobytes(), label)
            require(other == label, f"{other} and {label} give the same numbers")


@BACKEND_CHECKS.add("keys folded twice")
def check_keys_folded_twice(backend: Backend) -> None:
    """Keys folded with two indices differ wherever one of these does."""

    def draw_numbers(key: Key, first: Array, second: Array, empty: Array) -> Array:
        def body(i: Index, rows: Array) -> Array:
            folded_key = backend.fold_in(backend.fold_in(key, backend.take(first, i)), backend.take(second, i))
            return backend.update(rows, i, backend.uniform(folded_key, (8,)))

        return backend.fori_loop(0, 3 * INNER, body, empty)

    first, second = np.divmod(np.arange(3 * INNER), INNER)
    arguments = [backend.to_device(array) for array in (first, second, np.zeros((3 * INNER, 8)))]
    rows = backend.to_host(backend.compile(draw_numbers)(backend.key(7), *arguments))
    _require_distinct_rows(rows, [f"{a}, then {b}" for a, b in zip(first.tolist(), second.tolist(), strict=True)])


def _require_distinct_rows(rows: np.ndarray, steps: Sequence[object]) -> None:
    first_uses: dict[bytes, object] = {}
    for step, row in zip(steps, rows, strict=True):
        other = first_uses.setdefault(row.tobytes(), step)
        require(other == step, f"a key folded with {other} and with {step} gives the same numbers")


@BACKEND_CHECKS.add("folding in loops")
def check_folding_in_loops(backend: Backend) -> None:
    """A key folded with an index known at run time only gives the numbers of the same index in Python."""

    def draw_numbers(key: Key, count: Index, empty: Array) -> tuple[Array, Array]:
        def body(i: Index, rows: Array) -> Array:
            return backend.update(rows, i, backend.uniform(backend.fold_in(key, i), (5,)))

        direct = [backend.uniform(backend.fold_in(key, i), (5,)) for i in range(3)]
        return backend.fori_loop(0, count, body, empty), backend.xp.stack(direct, axis=0)

    empty = backend.to_device(np.zeros((3, 5)))
    looped, direct = map_arrays(backend.to_host, backend.compile(draw_numbers)(backend.key(9), 3, empty))
    require(np.array_equal(looped, direct), "fold_in(key, i) in a loop differs from that of 0, 1, …")


@BACKEND_CHECKS.add("{}", over=("uniform", "normal"))
def check_distribution(backend: Backend, distribution: str) -> None:
    """Shape, dtype, range, four moments and the Kolmogorov-Smirnov distance."""
    precision = backend.precision
    draw = getattr(backend, distribution)

    def draw_numbers(key: Key, empty: Array) -> dict[str, object]:
        return {
            "shapes": tuple(draw(key, shape) for shape in SHAPES),
            "draws": draw(backend.fold_in(key, 1), (DRAWS // 100, 100)),
            "many": draw(backend.fold_in(key, 2), (1 << 20,)),
            "one a key": _draw_once_per_key(backend, distribution, backend.fold_in(key, 3), empty),
        }

    results = map_arrays(
        backend.to_host, backend.compile(draw_numbers)(backend.key(3), backend.to_device(np.zeros(KEYS)))
    )
    for shape, values in zip(SHAPES, results["shapes"], strict=True):
        require(values.shape == shape, f"shape {shape} was asked for, {values.shape} came")
        require(values.dtype == precision, f"{distribution} gives {values.dtype}; {precision} is needed")
    _check_moments_and_distance(distribution, results["draws"], f"{DRAWS} draws of one key")
    # numbers of consecutive indices must be as good as consecutive numbers of one key
    _check_moments_and_distance(distribution, results["one a key"], f"one draw of {KEYS} keys")
    many = results["many"]
    require(np.isfinite(many).all(), "of 2^20 draws some are not finite")
    if distribution == "uniform":
        require(many.min() >= 0 and many.max() < 1, f"2^20 draws lie in [{many.min()}, {many.max()}], not in [0, 1)")
        # with only 2^20 possible values 8 duplicates are expected among 4096 draws
        distinct = len(np.unique(many[:4096]))
        require(distinct > 4075, f"4096 draws have {distinct} distinct values; numbers of at least 20 bits are needed")
    # with 2^20 possible values 63 % are expected to be distinct; float32 has 2^23 values and more
    share = len(np.unique(many)) / many.size
    require(share > 0.6, f"of 2^20 draws {share:.1%} have values of their own; the numbers begin anew")
    is_coarse = precision == "float64" and (many == many.astype(np.float32)).all()
    require(not is_coarse, f"numbers of {distribution} in float64 are those of float32: they are drawn with 24 bits")
    _check_moments_and_distance(distribution, many, "2^20 draws of one key")
    _check_tails(distribution, many.astype(np.float64))


@BACKEND_CHECKS.add("uniform below 1")
def check_uniform_below_one(backend: Backend) -> None:
    """None of 2^27 numbers is 1, to which one in 2^25 is rounded that was drawn with more bits than a float has."""
    if backend.precision == "float64":
        return
    compiled = backend.compile(lambda key: backend.xp.max(backend.uniform(key, (END_DRAWS,))))
    for seed in range(2**27 // END_DRAWS):
        largest = float(backend.to_host(compiled(backend.key(seed))))
        require(largest < 1, f"of {(seed + 1) * END_DRAWS} draws one is {largest}; [0, 1) has no 1: floats are rounded")


@BACKEND_CHECKS.add("independence")
def check_independence(backend: Backend) -> None:
    """No correlation between neighbours, and between the streams of neighbouring keys and seeds."""
    paths = ((3,), (4,), (3, 0))

    def draw_numbers(key: Key, empty: Array) -> tuple[dict[Any, Array], Array]:
        streams = {path: backend.normal(_fold_in_path(backend, key, path), (100, 100)) for path in paths}
        return streams, _draw_once_per_key(backend, "normal", key, empty)

    compiled, empty = backend.compile(draw_numbers), backend.to_device(np.zeros(KEYS))
    (first_streams, single), (second_streams, _) = (
        map_arrays(backend.to_host, compiled(backend.key(seed), empty)) for seed in (5, 6)
    )
    base, folded, deeper = (first_streams[path].astype(np.float64) for path in paths)
    pairs = {
        "neighbours in a row": (base[:, :-1], base[:, 1:]),
        "neighbours in a column": (base[:-1], base[1:]),
        "seeds 5 and 6": (base, second_streams[paths[0]]),
        "fold_in(key, 3) and fold_in(key, 4)": (base, folded),
        "a key and its child": (base, deeper),
        "the numbers of one half and of the other": (base[:50], base[50:]),
        "numbers from the first and from the last": (base[:50], base[:49:-1, ::-1]),
        "first numbers of consecutive keys": (single[:-1], single[1:]),
    }
    z = {}
    for label, (a, b) in pairs.items():
        z[label] = (a * b).sum() / np.sqrt(a.size)
        # x² - 1 of a standard normal x has variance 2.
        z[f"squares of {label}"] = ((a**2 - 1) * (b**2 - 1)).sum() / (2 * np.sqrt(a.size))
    limit = limits.normal_limit(len(z))
    for label, value in z.items():
        require(abs(value) <= limit, f"{label} are correlated: z = {value:.1f}, at most {limit:.1f} is chance")


def _fold_in_path(backend: Backend, key: Key, path: tuple[int, ...]) -> Key:
    for index in path:
        key = backend.fold_in(key, index)
    return key


def _draw_once_per_key(backend: Backend, distribution: str, key: Key, empty: Array) -> Array:
    """(KEYS,): the first number of fold_in(key, i), i = 0, 1, …"""
    draw = getattr(backend, distribution)
    return backend.fori_loop(0, KEYS, lambda i, rows: backend.update(rows, i, draw(backend.fold_in(key, i), ())), empty)


def _check_tails(distribution: str, x: npt.NDArray[np.float64]) -> None:
    """Of 2^20 draws so few are beyond each end as `TAIL` says, and not none."""
    max_count = limits.binomial_limit(x.size, TAIL)
    low, high = TAIL, 1 - TAIL
    if distribution == "normal":
        low, high = float(ndtri(TAIL)), float(-ndtri(TAIL))
    for count, tail in ((int((x < low).sum()), f"below {low:.6g}"), (int((x > high).sum()), f"above {high:.6g}")):
        require(
            0 < count <= max_count,
            f"of 2^20 draws {count} are {tail}; 1 to {max_count} is chance, {TAIL * x.size:.0f} are expected",
        )


def _check_moments_and_distance(distribution: str, draws: np.ndarray, label: str) -> None:
    x = draws.astype(np.float64)
    limit = limits.normal_limit(8)
    for k, (mean, square) in enumerate(zip(MOMENTS[distribution], SQUARES[distribution], strict=True), start=1):
        z = ((x**k).mean() - mean) / np.sqrt((square - mean**2) / x.size)
        require(
            abs(z) <= limit, f"{label}: moment {k} is off by {z:.1f} standard errors; at most {limit:.1f} is chance"
        )
    distance = limits.kolmogorov_distance(x if distribution == "uniform" else ndtr(x))
    allowed = limits.kolmogorov_limit(x.size, 2)
    require(
        distance <= allowed, f"{label}: Kolmogorov-Smirnov distance {distance:.4f}; at most {allowed:.4f} is chance"
    )
