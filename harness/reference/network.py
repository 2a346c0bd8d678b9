"""The views of a problem that exact solvers work on: tables over variables, one by one or in flat arrays, and couplings
of pairs of spins."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise

import numpy as np
import numpy.typing as npt

from spinbench.models.lattices import canonical_edges

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Scope = tuple[int, ...]

# Largest sum of |log weights| of a variable's tables, so that their sum, its bias, is right to 1e-9.
MAX_PULL = 2.0**20


@dataclass(frozen=True, eq=False)
class Network:
    """log p(x) = constant + Σ tables + const.

    Attributes:
        cardinalities: (n,) all >= 2.
        tables: one float64 log table for each scope; scopes are ascending and not empty.
        constant: finite.
    """

    cardinalities: tuple[int, ...]
    tables: dict[Scope, FloatArray]
    constant: float


@dataclass(frozen=True, eq=False)
class Pairwise:
    """log p(s) = constant + a·s + Σ W_ij s_i s_j + const over s in {0,1}^n; edges i < j, unique, W_ij != 0."""

    biases: FloatArray
    edges: IntArray
    couplings: FloatArray
    constant: float

    def __post_init__(self) -> None:
        for array in (self.biases, self.edges, self.couplings):
            # Read-only arrays always have the same Numba type, wherever they come from.
            array.setflags(write=False)

    @property
    def size(self) -> int:
        """n."""
        return self.biases.size

    @cached_property
    def degrees(self) -> IntArray:
        """(n,) number of neighbours."""
        return np.bincount(self.edges.ravel(), minlength=self.size).astype(np.int64)

    @cached_property
    def fields(self) -> FloatArray:
        """(n,) h of the ±1 form h·σ + Σ J σσ with J = W / 4; below rounding error it is exactly zero."""
        ends, n = self.edges.ravel(), self.size
        pull = np.bincount(ends, np.repeat(self.couplings, 2), minlength=n)
        scale = np.abs(self.biases) + np.bincount(ends, np.repeat(np.abs(self.couplings), 2), minlength=n)
        h = self.biases / 2 + pull / 4
        h[np.abs(h) <= 8 * np.finfo(np.float64).eps * scale] = 0.0
        return h

    @property
    def spin_constant(self) -> float:
        """The constant of the ±1 form."""
        return self.constant + float(self.biases.sum()) / 2 + float(self.couplings.sum()) / 4


def merge_tables(cards: tuple[int, ...], pieces: Iterable[tuple[Scope, FloatArray]], constant: float) -> Network:
    """Sums log tables of one scope, with axes in ascending order; those of no variable go into the constant."""
    tables: dict[Scope, FloatArray] = {}
    for scope, table in pieces:
        if not scope:
            constant += float(table)
            continue
        key, turned = scope, table
        if any(a > b for a, b in pairwise(scope)):
            order = sorted(range(len(scope)), key=scope.__getitem__)
            key, turned = tuple(scope[i] for i in order), table.transpose(order)
        # Not in place: the array may belong to the model.
        tables[key] = tables[key] + turned if key in tables else turned
    return Network(cards, tables, constant)


def condition(network: Network, variables: Sequence[int], states: Sequence[int]) -> Network:
    """The network over the other variables, numbered anew, with some held at states; its constant may be -inf."""
    state_of = dict(zip(variables, states, strict=True))
    rest = [v for v in range(len(network.cardinalities)) if v not in state_of]
    place = {v: k for k, v in enumerate(rest)}

    def pieces() -> Iterator[tuple[Scope, FloatArray]]:
        for scope, table in network.tables.items():
            part = table[tuple(state_of.get(v, slice(None)) for v in scope)]
            yield tuple(place[v] for v in scope if v in place), np.asarray(part)

    return merge_tables(tuple(network.cardinalities[v] for v in rest), pieces(), network.constant)


def pairwise_of(
    cardinalities: Sequence[int], scopes: Sequence[Scope], tables: Sequence[FloatArray], constant: float
) -> Pairwise | None:
    """Log tables as couplings of binary variables.

    Returns:
        None where there is a hard zero, a triple or a third state, or where tables that nearly rule out states, such as
        [[0, -1e12], [-1e12, 0]], would cancel in the biases and leave nothing of the others' digits.
    """
    n = len(cardinalities)
    orders = list(map(len, scopes))
    if cardinalities.count(2) < n or max(orders, default=0) > 2:
        return None
    # ten times as fast as `np.concatenate` for many small tables
    values = np.frombuffer(b"".join([table.tobytes() for table in tables]))
    if not np.isfinite(values).all():
        return None
    order = np.array(orders, dtype=np.int64)
    ends = np.fromiter(chain.from_iterable(scopes), dtype=np.int64)
    end, at = np.cumsum(order) - order, np.cumsum(1 << order) - (1 << order)
    single, pair = order == 1, order == 2
    variable, single_at = ends[end[single]], at[single]
    i, j, pair_at = ends[end[pair]], ends[end[pair] + 1], at[pair]
    to_i, to_j = values[pair_at + 2] - values[pair_at], values[pair_at + 1] - values[pair_at]
    ends = np.concatenate([variable, i, j])
    pulls = np.concatenate([values[single_at + 1] - values[single_at], to_i, to_j])
    if np.bincount(ends, np.abs(pulls), minlength=n).max(initial=0.0) > MAX_PULL:
        return None
    biases: FloatArray = np.bincount(ends, pulls, minlength=n).astype(np.float64)
    # W = θ11 - θ10 - θ01 + θ00 (the coupling of 0/1 variables).
    weights = values[pair_at + 3] - values[pair_at + 2] - to_j
    edges, couplings = canonical_edges(np.stack([i, j], axis=1), weights, n)
    constant += float(values[at].sum())
    return Pairwise(biases, *without_zeros(edges, couplings), constant)


def without_zeros(edges: IntArray, couplings: FloatArray) -> tuple[IntArray, FloatArray]:
    """Edges and couplings that are not 0; the given arrays if none is."""
    if np.count_nonzero(couplings) == couplings.size:
        return edges, couplings
    keep = couplings != 0
    return edges[keep], couplings[keep]


def split(flat: FloatArray, cardinalities: Sequence[int]) -> list[FloatArray]:
    """The vectors (K,) that lie one after another, as views."""
    if cardinalities.count(2) == len(cardinalities):
        return list(flat.reshape(-1, 2))
    return np.split(flat, np.cumsum(cardinalities)[:-1])


@dataclass(frozen=True, eq=False)
class FlatFactors:
    """log p(x) = constant + Σ tables + const, n variables and T tables, none of them over no variable.

    Attributes:
        states: (n,) int64, all >= 2.
        start: (T + 1,) int64, where the scopes start in `scope`.
        scope: int64 variables.
        offset: (T + 1,) int64, where the tables start in `values`.
        values: float64 log tables in C order, -inf for a hard zero.
        constant: finite.
    """

    states: IntArray
    start: IntArray
    scope: IntArray
    offset: IntArray
    values: FloatArray
    constant: float

    def scopes(self) -> list[Scope]:
        """Of each table."""
        flat, ends = self.scope.tolist(), self.start.tolist()
        return [tuple(flat[a:b]) for a, b in pairwise(ends)]

    def linear(self) -> tuple[FloatArray, FloatArray, float]:
        """The tables themselves, scaled so that the logarithms of each lie around 0.

        Returns:
            values (Σ,), the largest |log| of a positive entry of each table (T,), and the log of what was taken out.
        """
        if not self.values.size:
            return np.empty(0), np.empty(0), 0.0
        begin = self.offset[:-1]
        zero = np.isneginf(self.values)
        high = np.maximum.reduceat(self.values, begin)
        low = np.minimum.reduceat(np.where(zero, np.inf, self.values), begin)
        # A table of zeros alone: Z = 0, as the sums will show.
        empty = np.isneginf(high)
        high[empty] = low[empty] = 0.0
        # Halves are added, since the sum might overflow.
        middle = high / 2 + low / 2
        with np.errstate(over="ignore"):
            values = np.exp(self.values - np.repeat(middle, np.diff(self.offset)))
        return values, high / 2 - low / 2, float(middle.sum())


def flat_pairs(pairwise: Pairwise) -> FlatFactors:
    """From couplings, with a table for each variable and each pair."""
    n, count = pairwise.size, len(pairwise.edges)
    values = np.zeros(2 * n + 4 * count)
    values[1 : 2 * n : 2] = pairwise.biases
    values[2 * n + 3 :: 4] = pairwise.couplings
    return FlatFactors(
        states=np.full(n, 2, dtype=np.int64),
        start=np.concatenate([np.arange(n), n + 2 * np.arange(count + 1)]),
        scope=np.concatenate([np.arange(n), pairwise.edges.ravel()]),
        offset=np.concatenate([2 * np.arange(n), 2 * n + 4 * np.arange(count + 1)]),
        values=values,
        constant=pairwise.constant,
    )


def flat_network(network: Network) -> FlatFactors:
    """From tables."""
    scopes = list(network.tables)
    tables = list(network.tables.values())
    return FlatFactors(
        states=np.array(network.cardinalities, dtype=np.int64),
        start=np.cumsum([0, *map(len, scopes)], dtype=np.int64),
        scope=np.array([v for scope in scopes for v in scope], dtype=np.int64),
        offset=np.cumsum([0, *(table.size for table in tables)], dtype=np.int64),
        values=np.concatenate([np.empty(0), *(table.ravel() for table in tables)]),
        constant=network.constant,
    )
