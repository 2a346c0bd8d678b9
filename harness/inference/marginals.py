"""Marginals as a result hands them out: alike for binary variables and for those of more states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from numpy.lib.mixins import NDArrayOperatorsMixin

from spinbench.api import Estimate
from spinbench.errors import SpinbenchError
from spinbench.mathematics import all_states

FloatArray = npt.NDArray[np.float64]


class Ragged(NDArrayOperatorsMixin, list[FloatArray]):
    """A list of N arrays (K_v,), one a variable, with which NumPy computes as with one array of all their entries.

    Arithmetic, comparisons and NumPy's element-wise functions go variable by variable, with a number or with as many
    arrays; `max`, `min`, `sum`, `mean`, `std`, `all` and `any` are over all entries of all variables.
    """

    __array_priority__ = 1.0
    __hash__ = None

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: object) -> Any:
        if method != "__call__" or ufunc.nout != 1 or "out" in options:
            return NotImplemented
        columns = [_column(value, len(self)) for value in inputs]
        parts = [ufunc(*(column[v] for column in columns), **options) for v in range(len(self))]
        if any(len(part) != len(rows) for part, rows in zip(parts, self, strict=True)):
            raise SpinbenchError("marginals of variables with other numbers of states were given")
        return Ragged(parts)

    def __bool__(self) -> bool:
        raise ValueError("the truth value of many numbers is ambiguous; use .any() or .all()")

    def max(self) -> float:
        """The largest entry."""
        return float(self._flat().max())

    def min(self) -> float:
        """The smallest entry."""
        return float(self._flat().min())

    def sum(self) -> float:
        """Of all entries."""
        return float(self._flat().sum())

    def mean(self) -> float:
        """Over all entries."""
        return float(self._flat().mean())

    def std(self) -> float:
        """Over all entries."""
        return float(self._flat().std())

    def all(self) -> bool:
        """Whether all entries are true."""
        return bool(self._flat().all())

    def any(self) -> bool:
        """Whether an entry is true."""
        return bool(self._flat().any())

    def round(self, decimals: int = 0) -> Ragged:
        """Each entry to so many decimals."""
        return Ragged(np.round(part, decimals) for part in self)

    def _flat(self) -> np.ndarray:
        return np.concatenate(self)


class Marginals:
    """Probabilities of the states of N variables.

    Of binary variables it is a NumPy array (N,) float64 of p(s = 1); where a variable has another number of states, a
    list of N arrays (K_v,) float64. Either way `len` is N, `m - other`, `abs(…)`, `.max()`, `.mean()` and NumPy's
    element-wise functions work, and so do the methods below, which do not ask which of them it is. What is computed
    with them is a plain array, or a list of arrays (`Ragged`) with the same arithmetic.
    """

    def by_variable(self) -> list[FloatArray]:
        """N arrays (K_v,) float64: the probabilities of all states, 1 - p and p of binary variables."""
        return all_states.by_variable(_plain(self))

    def of(self, variable: int) -> FloatArray:
        """(K,) float64: the probabilities of all states of a variable.

        Raises:
            SpinbenchError: there is no such variable.
        """
        count = len(self)  # type: ignore[arg-type]
        if not 0 <= variable < count:
            raise SpinbenchError(f"variable {variable!r} was given; 0 … {count - 1} are allowed")
        return all_states.by_variable(_plain(self)[variable : variable + 1])[0]

    def error_to(self, other: object) -> float:
        """The largest difference of a probability from another's, over all states of all variables.

        States whose probability is NaN on either side, which exact answers leave open, are left out.

        Args:
            other: marginals of the same variables: `Marginals`, an array (N,) of p(s = 1), or N arrays (K_v,).

        Raises:
            SpinbenchError: it is of other variables, or nothing is known on both sides.
        """
        return float(np.abs(self._probability_differences(other)).max())

    def rmse_to(self, other: object) -> float:
        """The root mean square of the differences over all states of all variables, `marginal_rmse` of a record.

        Args, NaN and errors as of `error_to`.
        """
        return float(np.sqrt((self._probability_differences(other) ** 2).mean()))

    def _probability_differences(self, other: object) -> FloatArray:
        ours, others = self.by_variable(), _split_by_variable(other)
        if [len(p) for p in ours] != [len(p) for p in others]:
            raise SpinbenchError(
                f"marginals of {_describe_sizes(others)} were given; those of {_describe_sizes(ours)} can be compared "
                "with these"
            )
        differences = np.concatenate(ours) - np.concatenate(others)
        differences = differences[np.isfinite(differences)]
        if not differences.size:
            raise SpinbenchError("no state has a probability that is known on both sides; there is nothing to compare")
        return differences


class BinaryMarginals(Marginals, np.ndarray[tuple[int], np.dtype[np.float64]]):
    """Of binary variables, (N,) float64."""

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: object, **options: Any) -> Any:
        """On plain arrays, as what comes out are no marginals."""
        if "out" in options:
            options["out"] = tuple(_plain(value) for value in options["out"])
        return getattr(ufunc, method)(*(_plain(value) for value in inputs), **options)

    def __getitem__(self, key: Any) -> Any:
        return self.view(np.ndarray)[key]


class ManyStateMarginals(Marginals, Ragged):
    """Of variables some of which have other numbers of states than two, N arrays (K_v,) float64."""


def wrap_marginals(estimate: Estimate) -> Estimate:
    """An estimate whose marginals and their errors are in the containers of this module; None stays None."""
    wrapped: dict[str, Any] = {}
    for name in ("marginals_se", "marginals_error_bound", "ess", "r_hat"):
        if isinstance(values := getattr(estimate, name), list):
            wrapped[name] = Ragged(values)
    if isinstance(estimate.marginals, list):
        wrapped["marginals"] = ManyStateMarginals(estimate.marginals)
    elif estimate.marginals is not None:
        wrapped["marginals"] = estimate.marginals.view(BinaryMarginals)
    return replace(estimate, **wrapped)


def _plain(values: Any) -> Any:
    """An array without its methods; a list as it is."""
    if isinstance(values, BinaryMarginals):
        return values.view(np.ndarray)
    return values


def _column(value: Any, count: int) -> Sequence[object]:
    if isinstance(value, list | tuple) and len(value) == count:
        return value
    if isinstance(value, list | tuple) or np.ndim(value):
        raise SpinbenchError(f"{type(value).__name__} was given; a number, or a list of {count} arrays, is needed")
    return [value] * count


def _split_by_variable(values: object) -> list[FloatArray]:
    """(K_v,) of each variable, of whatever `error_to` was given."""
    try:
        if isinstance(values, list | tuple) and np.ndim(values[0]) == 1:
            return [np.asarray(p, dtype=np.float64) for p in values]
        flat = np.asarray(_plain(values), dtype=np.float64)
    except (TypeError, ValueError, IndexError):
        flat = np.empty((0, 0))
    if flat.ndim != 1:
        raise SpinbenchError(
            f"{type(values).__name__} was given; marginals are needed: of a result, an array (N,) of p(s = 1), or a "
            "list of N arrays (K,)"
        )
    return all_states.by_variable(flat)


def _describe_sizes(values: Sequence[FloatArray]) -> str:
    sizes = sorted({len(p) for p in values})
    return f"{len(values)} variables of {' or '.join(map(str, sizes))} states"
