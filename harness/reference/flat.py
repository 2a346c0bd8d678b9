"""A problem's tables in flat arrays, as compiled solvers take them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from spinbench.reference.network import FloatArray, IntArray, Network, Pairwise


@dataclass(frozen=True, eq=False)
class FlatNetwork:
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
        empty = np.isneginf(high)  # only zeros: Z = 0, and the sums will say so
        high[empty] = low[empty] = 0.0
        middle = high / 2 + low / 2
        with np.errstate(over="ignore"):
            values = np.exp(self.values - np.repeat(middle, np.diff(self.offset)))
        return values, high / 2 - low / 2, float(middle.sum())


def flat_pairs(pairwise: Pairwise) -> FlatNetwork:
    """From couplings, with a table for each variable and each pair."""
    n, count = pairwise.size, len(pairwise.edges)
    values = np.zeros(2 * n + 4 * count)
    values[1 : 2 * n : 2] = pairwise.biases
    values[2 * n + 3 :: 4] = pairwise.couplings
    return FlatNetwork(
        states=np.full(n, 2, dtype=np.int64),
        start=np.concatenate([np.arange(n), n + 2 * np.arange(count + 1)]),
        scope=np.concatenate([np.arange(n), pairwise.edges.ravel()]),
        offset=np.concatenate([2 * np.arange(n), 2 * n + 4 * np.arange(count + 1)]),
        values=values,
        constant=pairwise.constant,
    )


def flat_network(network: Network) -> FlatNetwork:
    """From tables."""
    scopes = list(network.tables)
    tables = list(network.tables.values())
    return FlatNetwork(
        states=np.array(network.cardinalities, dtype=np.int64),
        start=np.cumsum([0, *map(len, scopes)], dtype=np.int64),
        scope=np.array([v for scope in scopes for v in scope], dtype=np.int64),
        offset=np.cumsum([0, *(table.size for table in tables)], dtype=np.int64),
        values=np.concatenate([table.ravel() for table in tables]) if tables else np.empty(0),
        constant=network.constant,
    )
