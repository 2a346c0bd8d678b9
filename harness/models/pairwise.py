"""Binary pairwise models (Boltzmann machines), the common input of all samplers."""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.checks import check_labels, check_number, to_float_array
from spinbench.models.conditionals import PerVariable
from spinbench.models.lattices import canonical_edges, sum_edges_by_variable
from spinbench.models.names import StateNames
from spinbench.models.origin import Origin

if TYPE_CHECKING:
    from scipy import sparse

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Edges of a block.
CHUNK_EDGES = 2**20
# Largest number of variables for a dense matrix of couplings.
MAX_DENSE_VARIABLES = 2**15


@dataclass(frozen=True, eq=False)
class PairwiseModel:
    """p(s) = exp(log_constant + a·s + ½ sᵀWs) / Z over s in {0,1}^N, W symmetric with zero diagonal.

    Build one with `from_edges`, `from_dense` or `from_spins`, which check and canonicalise their input.

    Attributes:
        biases: (N,) float64, a.
        edges: (E, 2) int64, each row i < j, rows sorted and unique.
        couplings: (E,) float64, W_ij = W_ji of each edge.
        log_constant: added to every log weight, so that a conversion keeps log Z.
        groups: disjoint tuples of variables of which exactly one is 1 (1-of-K coded variables). States that
            break a group have probability zero.
        name: for messages and tables; not part of the content hash.
        labels: (N,) the variables' names in the source, or empty; not part of the content hash.
        origin: how the variables stand for those of the model that this one was derived from, or None.
        state_names: as of a `FactorGraph`.
    """

    biases: FloatArray
    edges: IntArray
    couplings: FloatArray
    log_constant: float = 0.0
    groups: tuple[tuple[int, ...], ...] = ()
    name: str = "model"
    labels: tuple[Hashable, ...] = ()
    origin: Origin | None = None
    state_names: StateNames = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("biases", "couplings"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), dtype=np.float64))

    @classmethod
    def from_edges(
        cls,
        biases: npt.ArrayLike,
        edges: npt.ArrayLike,
        couplings: npt.ArrayLike,
        *,
        log_constant: float = 0.0,
        groups: Iterable[Sequence[int]] = (),
        name: str = "model",
        labels: Sequence[Hashable] = (),
    ) -> PairwiseModel:
        """Parallel edges are summed; edge order and orientation do not matter.

        Raises:
            ModelError: wrong shapes, indices out of range, self-loops, numbers that are not finite, groups
                that overlap or are empty, or labels that repeat.
        """
        a = to_float_array(name, "biases", biases)
        w = to_float_array(name, "couplings", couplings)
        if a.ndim != 1 or a.size == 0:
            raise ModelError(f"{name}: biases have shape {a.shape}; a vector of at least one number is needed")
        e = _check_edges(name, edges, a.size)
        if w.shape != (len(e),):
            raise ModelError(f"{name}: couplings have shape {w.shape}; ({len(e)},), one number an edge, is needed")
        _check_finite(name, "bias of variable", a)
        _check_finite(name, "coupling of edge", w)
        e, w = canonical_edges(e, w, a.size)
        _check_finite(name, "sum of the couplings of parallel edges, edge", w)
        constant = check_number(name, "log_constant", log_constant)
        checked = _check_groups(name, groups, a.size)
        for array in (a, e, w):
            array.setflags(write=False)
        return cls(a, e, w, constant, checked, name, check_labels(name, labels, a.size))

    @classmethod
    def from_dense(
        cls,
        biases: npt.ArrayLike,
        weights: npt.ArrayLike,
        *,
        log_constant: float = 0.0,
        name: str = "model",
        labels: Sequence[Hashable] = (),
    ) -> PairwiseModel:
        """From a and the (N, N) matrix W, symmetric to a relative 1e-12.

        Raises:
            ModelError: W is not square and symmetric with a zero diagonal, or not finite.
        """
        a = to_float_array(name, "biases", biases)
        W = to_float_array(name, "couplings", weights)
        if W.shape != (a.size, a.size):
            raise ModelError(f"{name}: couplings have shape {W.shape}; {(a.size, a.size)} is needed")
        _check_finite(name, "coupling", W)
        if (diagonal := np.diag(W)).any():
            i = int(np.flatnonzero(diagonal)[0])
            raise ModelError(f"{name}: W[{i}, {i}] = {W[i, i]:g}; the diagonal of W must be zero")
        if not (alike := np.isclose(W, W.T, rtol=1e-12, atol=1e-12)).all():
            i, j = (int(k) for k in np.argwhere(~alike)[0])
            raise ModelError(f"{name}: W[{i}, {j}] = {W[i, j]:g} and W[{j}, {i}] = {W[j, i]:g}; W must be symmetric")
        rows, columns = np.nonzero(np.triu(W, 1))
        edges = np.stack([rows, columns], axis=1)
        return cls.from_edges(a, edges, W[rows, columns], log_constant=log_constant, name=name, labels=labels)

    @classmethod
    def from_spins(
        cls,
        fields: npt.ArrayLike,
        edges: npt.ArrayLike,
        couplings: npt.ArrayLike,
        *,
        log_constant: float = 0.0,
        name: str = "model",
        labels: Sequence[Hashable] = (),
    ) -> PairwiseModel:
        """From the ±1 form exp(log_constant + h·σ + Σ J_ij σ_i σ_j) with σ = 2s - 1; log Z is kept.

        W = 4J and a_i = 2h_i - 2 Σ_j J_ij; the constant becomes log_constant - Σh + ΣJ.

        Raises:
            ModelError: as `from_edges`.
        """
        spins = cls.from_edges(fields, edges, couplings, log_constant=log_constant, name=name, labels=labels)
        h, J, ends = spins.biases, spins.couplings, spins.edges
        total = sum_edges_by_variable(ends, J, h.size)
        constant = spins.log_constant - float(h.sum()) + float(J.sum())
        # Edges are already canonical, so that only an overflow has to be checked.
        a, w = 2 * h - 2 * total, 4 * J
        _check_finite(name, "bias of variable", a)
        _check_finite(name, "coupling of edge", w)
        for array in (a, w):
            array.setflags(write=False)
        return cls(a, ends, w, check_number(name, "log_constant", constant), (), name, spins.labels)

    @property
    def num_variables(self) -> int:
        """N."""
        return self.biases.size

    @property
    def num_edges(self) -> int:
        """E."""
        return len(self.edges)

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """(2, …, 2): as on `FactorGraph`."""
        return (2,) * self.num_variables

    @property
    def all_binary(self) -> bool:
        """True: as on `FactorGraph`."""
        return True

    @cached_property
    def degrees(self) -> IntArray:
        """(N,) number of neighbours."""
        return np.bincount(self.edges.ravel(), minlength=self.num_variables).astype(np.int64)

    @property
    def reach(self) -> FloatArray:
        """(N,) |a_i| + Σ_j |w_ij|: how large the terms of a variable's field can be."""
        down, up = self.pulls
        # `down` is negative or 0.
        return np.asarray(np.abs(self.biases) + (up - down))

    @cached_property
    def pulls(self) -> tuple[FloatArray, FloatArray]:
        """(N,), (N,) sums of a variable's negative couplings, and of its positive ones."""
        down, up = np.zeros((2, self.num_variables))
        # Blocks and their sums fit a cache.
        step = max(CHUNK_EDGES, self.num_variables)
        for low in range(0, self.num_edges, step):
            some = self.couplings[low : low + step]
            for ends in self.edges[low : low + step].T:
                down += np.bincount(ends, np.minimum(some, 0.0), self.num_variables)
                up += np.bincount(ends, np.maximum(some, 0.0), self.num_variables)
        return down, up

    def dense(self) -> FloatArray:
        """(N, N) float64: W.

        Raises:
            UnsupportedError: N is above 32,768, where W takes more than 8 GiB; `csr` holds what is not 0.
        """
        if self.num_variables > MAX_DENSE_VARIABLES:
            raise UnsupportedError(
                f"{self.name}: a dense matrix of {self.num_variables} variables would take "
                f"{8 * self.num_variables**2 / 2**30:.0f} GiB"
            )
        W = np.zeros((self.num_variables, self.num_variables))
        W[self.edges[:, 0], self.edges[:, 1]] = self.couplings
        W[self.edges[:, 1], self.edges[:, 0]] = self.couplings
        return W

    def csr(self) -> sparse.csr_array[np.float64, tuple[int, int]]:
        """W as a (N, N) CSR array with sorted indices, both triangles."""
        # Here and not above: importing SciPy takes longer than the rest of this package.
        from scipy import sparse

        i, j = self.edges.T
        rows, columns = np.concatenate([i, j]), np.concatenate([j, i])
        values = np.concatenate([self.couplings, self.couplings])
        W = sparse.csr_array((values, (rows, columns)), shape=(self.num_variables,) * 2)
        W.sort_indices()
        return W

    def log_weight(self, states: npt.ArrayLike) -> FloatArray:
        """log_constant + a·s + ½ sᵀWs of states (..., N) in {0,1}; shape (...); -inf where a group is broken."""
        s = np.asarray(states, dtype=np.float64)
        value = self.log_constant + s @ self.biases
        for first in range(0, self.num_edges, CHUNK_EDGES):
            some = slice(first, first + CHUNK_EDGES)
            i, j = self.edges[some].T
            value = value + (s[..., i] * s[..., j]) @ self.couplings[some]
        for group in self.groups:
            value = np.where(s[..., list(group)].sum(axis=-1) == 1, value, -np.inf)
        return np.asarray(value)

    def original_marginals(self, marginals: npt.ArrayLike) -> PerVariable:
        """Marginals of the variables that the user gave from (..., N) p(s = 1); see `Origin.marginals`."""
        values = np.asarray(marginals, dtype=np.float64)
        return values if self.origin is None else self.origin.marginals(values)

    @cached_property
    def content_hash(self) -> str:
        """Hex SHA-256 of the numbers (not the name): the key under which exact answers are cached."""
        digest = hashlib.sha256(b"PairwiseModel/1")
        for array in (self.biases, self.edges, self.couplings):
            digest.update(str(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        digest.update(repr((self.log_constant, self.groups)).encode())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"PairwiseModel({self.name!r}, {self.num_variables} variables, {self.num_edges} edges)"


def _check_edges(name: str, edges: npt.ArrayLike, n: int) -> IntArray:
    try:
        e = np.asarray(edges)
    except ValueError:
        raise ModelError(f"{name}: edges are ragged; an (E, 2) array of integers is needed") from None
    if e.size == 0:
        e = np.zeros((0, 2), dtype=np.int64)
    if e.ndim != 2 or e.shape[1] != 2:
        raise ModelError(f"{name}: edges have shape {e.shape}; (E, 2) is needed")
    if not np.issubdtype(e.dtype, np.integer):
        raise ModelError(f"{name}: edges have type {e.dtype}; integers from 0 to {n - 1} are needed")
    if len(e) and (e.min() < 0 or e.max() >= n):
        bad = e[((e < 0) | (e >= n)).any(axis=1)][0]
        raise ModelError(f"{name}: edge {tuple(map(int, bad))} names a variable outside 0..{n - 1}")
    e = e.astype(np.int64)
    if (loops := e[:, 0] == e[:, 1]).any():
        raise ModelError(f"{name}: variable {int(e[loops][0, 0])} is coupled to itself; put s_i² = s_i into its bias")
    return e


def _check_finite(name: str, quantity: str, values: FloatArray) -> None:
    if np.isfinite(values).all():
        return
    where = tuple(int(k) for k in np.argwhere(~np.isfinite(values))[0])
    index = where[0] if len(where) == 1 else where
    raise ModelError(f"{name}: the {quantity} {index} is {values[where]}; finite numbers are needed")


def _check_groups(name: str, groups: Iterable[Sequence[int]], n: int) -> tuple[tuple[int, ...], ...]:
    try:
        checked = tuple(tuple(operator.index(i) for i in group) for group in groups)
    except TypeError:
        raise ModelError(f"{name}: groups={groups!r} was given; tuples of variables' numbers are needed") from None
    members = [i for group in checked for i in group]
    if any(not group for group in checked) or len(set(members)) != len(members):
        raise ModelError(f"{name}: groups of 1-of-K variables must be disjoint and not empty")
    if members and (min(members) < 0 or max(members) >= n):
        raise ModelError(f"{name}: a group names a variable outside 0..{n - 1}")
    return checked
