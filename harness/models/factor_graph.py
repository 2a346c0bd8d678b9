"""Factor graphs of any arity and order, hard zeros allowed."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TypeVar, overload

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_index, check_labels, check_number, check_scope, to_float_array
from spinbench.models.conditionals import PerVariable
from spinbench.models.names import StateNames, check_state_names
from spinbench.models.origin import Origin

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Array = TypeVar("Array", FloatArray, IntArray)

# Largest number of entries of a table that is stacked with tables of its shape.
_MAX_STACKED_ENTRIES = 64


@dataclass(frozen=True, eq=False)
class Factor:
    """A table over a few variables.

    Attributes:
        scope: distinct variables, in the order of the table's axes.
        log_table: float64 of shape (K of each variable of the scope), read-only; -inf is a hard zero.
    """

    scope: tuple[int, ...]
    log_table: FloatArray


class FactorArrays(Sequence[Factor]):
    """Factors as flat arrays, one after another; objects are made of them when somebody asks for one.

    Attributes:
        cardinalities: (N,) int64, of the model's variables.
        members: (M,) int64, the scopes.
        orders: (F,) int64, how many variables each has.
        logs: (T,) float64, the log tables, each in C order; read-only.
        offsets: (F + 1,) int64, where each table begins in `logs`.
    """

    def __init__(
        self, cardinalities: IntArray, members: IntArray, orders: IntArray, logs: FloatArray, offsets: IntArray
    ) -> None:
        self.cardinalities, self.members, self.orders = cardinalities, members, orders
        self.logs, self.offsets = logs, offsets
        logs.setflags(write=False)

    @classmethod
    def of(cls, cardinalities: Sequence[int], factors: Sequence[Factor]) -> FactorArrays:
        """From objects; factors that are flat are returned as they are."""
        if isinstance(factors, FactorArrays):
            return factors
        members = np.fromiter((v for factor in factors for v in factor.scope), dtype=np.int64)
        orders = np.fromiter((len(factor.scope) for factor in factors), dtype=np.int64)
        # ten times as fast as np.concatenate for many small tables
        logs = np.frombuffer(b"".join([factor.log_table.tobytes() for factor in factors]))
        sizes = np.fromiter((0, *(factor.log_table.size for factor in factors)), dtype=np.int64)
        return cls(np.array(cardinalities, dtype=np.int64), members, orders, logs, np.cumsum(sizes))

    def __len__(self) -> int:
        return len(self.orders)

    @overload
    def __getitem__(self, index: int) -> Factor: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Factor, ...]: ...
    def __getitem__(self, index: int | slice) -> Factor | tuple[Factor, ...]:
        return self._factor_objects[index]

    def __iter__(self) -> Iterator[Factor]:
        return iter(self._factor_objects)

    def scopes(self) -> list[tuple[int, ...]]:
        """The variables of each factor."""
        scopes: list[tuple[int, ...]] = [()] * len(self)
        for indices, members in group_by_order(self.members, self.orders):
            if members.shape[1]:
                for k, scope in zip(indices.tolist(), zip(*members.T.tolist(), strict=True), strict=True):
                    scopes[k] = scope
        return scopes

    def group_by_shape(self) -> Iterator[tuple[IntArray, IntArray, tuple[int, ...]]]:
        """Factors of one shape after those of another: (their numbers (G,), their variables (G, k), the shape)."""
        for indices, members in group_by_order(self.members, self.orders):
            sizes = self.cardinalities[members]
            if sizes.size == 0 or (sizes == sizes[0]).all():
                yield indices, members, tuple(sizes[0].tolist())
                continue
            shapes, shape_numbers, counts = np.unique(sizes, axis=0, return_inverse=True, return_counts=True)
            parts = np.split(np.argsort(shape_numbers.ravel(), kind="stable"), np.cumsum(counts)[:-1])
            for part, shape in zip(parts, shapes.tolist(), strict=True):
                yield indices[part], members[part], tuple(shape)

    def stack_tables(self, indices: IntArray, shape: tuple[int, ...]) -> FloatArray:
        """(G, *shape) tables of factors of one shape; read-only."""
        stack = _take_rows(self.logs, self.offsets[indices], math.prod(shape)).reshape(len(indices), *shape)
        stack.setflags(write=False)
        return stack

    @cached_property
    def entry_ranges(self) -> tuple[FloatArray, FloatArray]:
        """(F,) the least and the greatest entry of each table."""
        if not len(self):
            return np.zeros(0), np.zeros(0)
        return np.minimum.reduceat(self.logs, self.offsets[:-1]), np.maximum.reduceat(self.logs, self.offsets[:-1])

    @cached_property
    def _factor_objects(self) -> tuple[Factor, ...]:
        tables: list[FloatArray] = [self.logs[:0]] * len(self)
        for indices, _, shape in self.group_by_shape():
            if shape and math.prod(shape) <= _MAX_STACKED_ENTRIES:
                stack = list(self.stack_tables(indices, shape))
            else:
                stack = [self.logs[self.offsets[k] : self.offsets[k + 1]].reshape(shape) for k in indices.tolist()]
            for k, table in zip(indices.tolist(), stack, strict=True):
                tables[k] = table
        return tuple(map(Factor, self.scopes(), tables))


def group_by_order(members: IntArray, orders: IntArray) -> Iterator[tuple[IntArray, IntArray]]:
    """Factors of one order k after those of another: (their numbers (G,), their variables (G, k))."""
    begins = np.cumsum(orders) - orders
    for order in np.flatnonzero(np.bincount(orders)).tolist():
        indices = np.flatnonzero(orders == order)
        yield indices, _take_rows(members, begins[indices], order)


def _take_rows(values: Array, begins: IntArray, width: int) -> Array:
    """(G, width) of what begins at each place; a view where it lies side by side."""
    if (begins[1:] - begins[:-1] == width).all():
        return values[begins[0] : begins[0] + width * len(begins)].reshape(len(begins), width)
    rows: Array = values[begins[:, None] + np.arange(width)]
    return rows


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
        state_names: by label, names of a variable's states, observed ones included; not part of the content hash.
    """

    cardinalities: tuple[int, ...]
    factors: Sequence[Factor]
    log_constant: float = 0.0
    name: str = "model"
    labels: tuple[Hashable, ...] = ()
    origin: Origin | None = None
    state_names: StateNames = field(default_factory=dict)

    @classmethod
    def from_log_tables(
        cls,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Sequence[int], npt.ArrayLike]],
        *,
        log_constant: float = 0.0,
        name: str = "model",
        labels: Sequence[Hashable] = (),
        state_names: StateNames = MappingProxyType({}),
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
        checked_labels = check_labels(name, labels, len(cards))
        names = check_state_names(name, state_names, checked_labels, cards)
        return cls(cards, checked, constant, name, checked_labels, state_names=names)

    @classmethod
    def from_tables(
        cls,
        cardinalities: Sequence[int],
        factors: Iterable[tuple[Sequence[int], npt.ArrayLike]],
        *,
        name: str = "model",
        labels: Sequence[Hashable] = (),
        state_names: StateNames = MappingProxyType({}),
    ) -> FactorGraph:
        """Like `from_log_tables` from tables of non-negative weights.

        Raises:
            ModelError: also where an entry is negative.
        """
        logs = []
        for k, (scope, table) in enumerate(factors):
            values = to_float_array(name, f"the entries of factor {k}", table)
            if (values < 0).any():
                where = tuple(int(i) for i in np.argwhere(values < 0)[0])
                raise ModelError(f"{name}: factor {k} has the entry {values[where]:g} at {where}; weights must be >= 0")
            with np.errstate(divide="ignore"):
                logs.append((scope, np.log(values)))
        return cls.from_log_tables(cardinalities, logs, name=name, labels=labels, state_names=state_names)

    @property
    def num_variables(self) -> int:
        """N."""
        return len(self.cardinalities)

    @property
    def all_binary(self) -> bool:
        """Whether each variable has two states, so that marginals are (N,) p(s = 1)."""
        return set(self.cardinalities) <= {2}

    @property
    def flat(self) -> FactorArrays:
        """The factors as flat arrays."""
        return FactorArrays.of(self.cardinalities, self.factors)

    @cached_property
    def has_zeros(self) -> bool:
        """Whether a table has a hard zero."""
        return bool((self.flat.logs == -np.inf).any())

    @cached_property
    def reach(self) -> FloatArray:
        """(N,) sum over a variable's factors of their largest finite |log weight|: how large its terms can be."""
        flat = self.flat
        if not len(flat):
            return np.zeros(self.num_variables)
        sizes = np.maximum.reduceat(np.where(np.isfinite(flat.logs), np.abs(flat.logs), 0.0), flat.offsets[:-1])
        return np.bincount(flat.members, np.repeat(sizes, flat.orders), self.num_variables).astype(np.float64)

    def log_weight(self, states: npt.ArrayLike) -> FloatArray:
        """log_constant + Σ log tables of states (..., N) of integers; shape (...).

        Raises:
            ModelError: a wrong number of variables, or a state outside 0..K - 1.
        """
        x, cards = np.asarray(states, dtype=np.int64), np.asarray(self.cardinalities)
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
        return (self.origin or Origin.identity(self.cardinalities)).marginals(marginals)

    @cached_property
    def content_hash(self) -> str:
        """Hex SHA-256 of cardinalities, scopes and tables (not the name)."""
        digest = hashlib.sha256(b"FactorGraph/1")
        digest.update(repr((self.cardinalities, self.log_constant)).encode())
        flat = self.flat
        logs, ends = flat.logs.view(np.uint8).data, (flat.offsets * flat.logs.itemsize).tolist()
        for scope, begin, end in zip(flat.scopes(), ends, ends[1:], strict=False):
            digest.update(repr(scope).encode())
            digest.update(logs[begin:end])
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"FactorGraph({self.name!r}, {self.num_variables} variables, {len(self.factors)} factors)"


def _check_factor(name: str, index: int, cards: tuple[int, ...], scope: Sequence[int], table: npt.ArrayLike) -> Factor:
    variables = check_scope(name, index, cards, tuple(check_index(name, "a variable of a scope", v) for v in scope))
    shape = tuple(cards[v] for v in variables)
    log_table = to_float_array(name, f"the entries of factor {index}", table)
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
