"""Checks of numbers and labels that come from users."""

from __future__ import annotations

import math
import operator
from collections.abc import Hashable, Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError

# NumPy indexes at most 64 axes; a table of more than 40 has an axis of length 1 or 2**40 entries.
MAX_ORDER = 40


def to_float_array(name: str, quantity: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """A fresh float64 array.

    Raises:
        ModelError: not real numbers, or ragged.
    """
    try:
        array = np.asarray(values)
        if array.dtype.kind not in "biuf" and array.size:
            raise TypeError
        return np.array(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ModelError(f"{name}: {quantity} are not an array of real numbers") from None


def check_number(name: str, quantity: str, value: float) -> float:
    """A finite float.

    Raises:
        ModelError: it is not one.
    """
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ModelError(f"{name}: {quantity} is {value!r}; a finite number is needed")
    return number


def check_index(name: str, quantity: str, value: object) -> int:
    """An int, from anything that is an integer without rounding.

    Raises:
        ModelError: it is not one.
    """
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"{name}: {quantity} is {value!r}; an integer is needed") from None


def check_labels(name: str, labels: Sequence[Hashable], n: int) -> tuple[Hashable, ...]:
    """Distinct labels, one a variable, or none at all; 0, …, n - 1 count as none.

    Raises:
        ModelError: a wrong number of labels, or one twice.
    """
    checked = tuple(labels)
    if not checked or checked == tuple(range(n)):
        return ()
    if len(checked) != n:
        raise ModelError(f"{name}: {len(checked)} labels for {n} variables; one each is needed")
    if len(set(checked)) != n:
        twice = next(label for k, label in enumerate(checked) if label in checked[:k])
        raise ModelError(f"{name}: two variables are labelled {twice!r}")
    return checked


def check_scope(name: str, index: int, cards: tuple[int, ...], scope: tuple[int, ...]) -> tuple[int, ...]:
    """The scope of factor `index`.

    Raises:
        ModelError: it is too long, repeats a variable or leaves the model.
    """
    if len(scope) > MAX_ORDER:
        raise ModelError(f"{name}: factor {index} has {len(scope)} variables; at most {MAX_ORDER} are allowed")
    if len(set(scope)) != len(scope):
        raise ModelError(f"{name}: factor {index} names a variable twice: {scope}")
    if scope and (min(scope) < 0 or max(scope) >= len(cards)):
        raise ModelError(f"{name}: factor {index} has scope {scope}; variables are 0..{len(cards) - 1}")
    return scope


def format_variable(v: int, labels: Sequence[Hashable]) -> str:
    """ "variable 3", or "variable 3 ('rain')" where variables have labels."""
    if not labels:
        return f"variable {v}"
    return f"variable {v} ({labels[v]!r})"


def largest_finite_magnitude(logs: npt.NDArray[np.float64]) -> float:
    """The largest finite |log weight|; 0 where there is none."""
    if logs.size and np.isfinite(ends := (logs.min(), logs.max())).all():
        return float(max(-ends[0], ends[1]))
    return float(np.abs(logs).max(where=np.isfinite(logs), initial=0.0))


def check_parameter(name: str, condition: bool, message: str) -> None:
    """Refuses a parameter of a family of models.

    Raises:
        ModelError: it does not hold.
    """
    if not condition:
        raise ModelError(f"model {name!r}: {message}")


def make_rng(name: str, seed: int) -> np.random.Generator:
    """What a family draws from.

    Raises:
        ModelError: a negative seed.
    """
    check_parameter(name, seed >= 0, f"seed = {seed}; it must be 0 or more")
    return np.random.Generator(np.random.PCG64(seed))
