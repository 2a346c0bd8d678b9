"""Factor graphs of any arity and order, hard zeros allowed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_index, check_labels, check_number, float_array, largest
from spinbench.models.origin import Origin, PerVariable

FloatArray = npt.NDArray[np.float64]

# NumPy indexes at most 64 axes; a table of more than 40 has an axis of length 1 or 2**40 entries.
MAX_ORDER = 40


@dataclass(frozen=True, eq=False)
class Factor:
    """A table over a few variables.

    Attributes:
        scope: distinct variables, in the order of the table's axes.
        log_table: float64 of shape (K of each variable of the scope), read-only; -inf is a hard zero.
    """

    scope: tuple[int, ...]
    log_table: FloatArray


@dataclass(frozen=True, eq=False)
class FactorGraph:
    """p(x) = exp(log_constant + Σ_f log_table_f(x_f)) / Z over x_v in {0, …, K_v - 1}.

    Build one with `from_tables` or `from_log_tables`, which check their input.

    Attributes:
        cardinalities: (N,) K_v >= 1.
        factors: in the order given; several may share a scope.
        log_constant: added to every log weight.
        name: for messages and tables; not part of the content hash.
        labels: (N,) the variables' names in the source, or empty; not part of the content hash.
        origin: how the variables stand for those of the model that this one was derived from, or None.
    """

    cardinalities: tuple[int, ...]
    factors: tuple[Factor, ...]
    log_constant: float = 0.0
    name: str = "model"
    labels: tuple[Hashable, ...] = ()
    origin: Origin | None = None

    @classmethod
    def from_log_tables(
        cls,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Sequence[int], npt.ArrayLike]],
        *,
        log_constant: float = 0.0,
        name: str = "model",
        labels: Sequence[Hashable] = (),
    ) -> FactorGraph:
        """From (scope, log table) pairs; a flat table is read with its last variable fastest (C order).

        Raises:
            ModelError: no variables, a cardinality below 1, a scope that repeats a variable or leaves the
                model, a table of the wrong size, NaN or +inf entries, or a table that is zero everywhere.
        """
        cards = tuple(check_index(name, "a cardinality", k) for k in cardinalities)
        if not cards or min(cards) < 1:
            raise ModelError(
                f"{name}: cardinalities are {list(cards[:8])}; at least one variable is needed, each with 1 or more "
                "states"
            )
        checked = tuple(_check_factor(name, k, cards, scope, table) for k, (scope, table) in enumerate(factors))
        constant = check_number(name, "log_constant", log_constant)
        return cls(cards, checked, constant, name, check_labels(name, labels, len(cards)))

    @classmethod
    def from_tables(
        cls,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Sequence[int], npt.ArrayLike]],
        *,
        name: str = "model",
        labels: Sequence[Hashable] = (),
    ) -> FactorGraph:
        """Like `from_log_tables` from tables of non-negative weights.

        Raises:
            ModelError: also where an entry is negative.
        """
        logs = []
        for k, (scope, table) in enumerate(factors):
            values = float_array(name, f"the entries of factor {k}", table)
            if (values < 0).any():
                where = tuple(int(i) for i in np.argwhere(values < 0)[0])
                raise ModelError(f"{name}: factor {k} has the entry {values[where]:g} at {where}; weights must be >= 0")
            with np.errstate(divide="ignore"):
                logs.append((scope, np.log(values)))
        return cls.from_log_tables(cardinalities, logs, name=name, labels=labels)

    @property
    def num_variables(self) -> int:
        """N."""
        return len(self.cardinalities)

    @cached_property
    def has_zeros(self) -> bool:
        """Whether a table has a hard zero."""
        return any(f.log_table.min() == -np.inf for f in self.factors)

    @cached_property
    def reach(self) -> FloatArray:
        """(N,) sum over a variable's factors of their largest finite |log weight|: how large its terms can be."""
        found = np.zeros(self.num_variables)
        for factor in self.factors:
            found[list(factor.scope)] += largest(factor.log_table)
        return found

    def log_weight(self, states: npt.ArrayLike) -> FloatArray:
        """log_constant + Σ log tables of states (..., N) of integers; shape (...).

        Raises:
            ModelError: a wrong number of variables, or a state outside 0..K - 1.
        """
        x = np.asarray(states, dtype=np.int64)
        cards = np.asarray(self.cardinalities)
        if x.shape[-1:] != (self.num_variables,) or ((x < 0) | (x >= cards)).any():
            raise ModelError(
                f"{self.name}: states of shape {x.shape} were given; the last axis must hold "
                f"{self.num_variables} states from 0 to K - 1"
            )
        value = np.full(x.shape[:-1], self.log_constant)
        for factor in self.factors:
            value = value + factor.log_table[tuple(x[..., v] for v in factor.scope)]
        return np.asarray(value)

    def original_marginals(self, marginals: Sequence[npt.ArrayLike]) -> PerVariable:
        """Marginals of the variables that the user gave from this model's (K,) arrays.

        Returns:
            see `Origin.marginals`: (M,) p(s = 1) where all are binary, else a list of (K,) arrays.
        """
        origin = self.origin or Origin.identity(self.cardinalities)
        return origin.marginals(marginals)

    @cached_property
    def content_hash(self) -> str:
        """Hex SHA-256 of cardinalities, scopes and tables (not the name)."""
        digest = hashlib.sha256(b"FactorGraph/1")
        digest.update(repr((self.cardinalities, self.log_constant)).encode())
        for factor in self.factors:
            digest.update(repr(factor.scope).encode())
            digest.update(np.ascontiguousarray(factor.log_table).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"FactorGraph({self.name!r}, {self.num_variables} variables, {len(self.factors)} factors)"


def _check_factor(name: str, index: int, cards: tuple[int, ...], scope: Sequence[int], table: npt.ArrayLike) -> Factor:
    variables = check_scope(name, index, cards, tuple(check_index(name, "a variable of a scope", v) for v in scope))
    shape = tuple(cards[v] for v in variables)
    log_table = float_array(name, f"the entries of factor {index}", table)
    if log_table.shape != shape:
        if log_table.ndim != 1 or log_table.size != math.prod(shape):
            raise ModelError(f"{name}: factor {index} has a table of shape {log_table.shape}; {shape} is needed")
        log_table = log_table.reshape(shape)
    if not (log_table < np.inf).all():
        where = tuple(int(i) for i in np.argwhere(~(log_table < np.inf))[0])
        raise ModelError(f"{name}: factor {index} has a NaN or infinite entry at {where}")
    if log_table.max() == -np.inf:
        raise ModelError(f"{name}: factor {index} over {variables} is zero everywhere, so Z = 0")
    log_table.setflags(write=False)
    return Factor(variables, log_table)


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
