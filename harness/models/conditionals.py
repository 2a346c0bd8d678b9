"""What is known of variables: the layouts of marginals, and what follows of those that were summed out of a model."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# One number per variable (p(s = 1) of binary variables), or one array over the states per variable.
PerVariable = FloatArray | list[FloatArray]


def split_by_variable(cardinalities: Sequence[int], values: FloatArray) -> PerVariable:
    """Numbers of states in the layout of marginals.

    Args:
        cardinalities: (N,).
        values: (N,) of state 1 where all variables are binary, else of all states of all variables, one after another.
    """
    if set(cardinalities) <= {2}:
        return values
    return np.split(values, np.cumsum(cardinalities)[:-1])


def split_fields(cardinalities: Sequence[int], **fields: FloatArray) -> dict[str, Any]:
    """Entries of an `Estimate`, each from numbers of states as `split_by_variable` takes them."""
    return {name: split_by_variable(cardinalities, values) for name, values in fields.items()}


def uniform_marginals(cardinalities: Sequence[int]) -> FloatArray:
    """Probabilities of states, as `split_by_variable` takes them, of which nothing is known."""
    sizes = np.array(cardinalities, dtype=np.int64)
    if not (sizes == 2).all():
        sizes = np.repeat(sizes, sizes)
    return 1 / sizes


@dataclass(frozen=True, eq=False)
class Conditional:
    """p(x_v | x_S) of a variable that sums out of the model once those drawn after it have.

    Attributes:
        variable: v.
        parents: S, variables that are left, or that other conditionals tell of.
        table: (K of each variable of S, K_v), rows that sum to 1; 0 where a state of S is not possible.
    """

    variable: int
    parents: tuple[int, ...]
    table: FloatArray

    def draw(self, states: IntArray, rng: np.random.Generator) -> IntArray:
        """States (...) of v, given states (..., M) of all variables."""
        rows = self.table[tuple(states[..., u] for u in self.parents)]
        rows = np.broadcast_to(rows, (*states.shape[:-1], self.table.shape[-1]))
        cumulative = np.cumsum(rows, axis=-1)
        # u stays below the last sum: rounding must not select a state of probability zero.
        below = np.nextafter(cumulative[..., -1:], 0.0)
        u = np.minimum(rng.random((*rows.shape[:-1], 1)) * cumulative[..., -1:], below)
        return np.asarray((u >= cumulative[..., :-1]).sum(axis=-1), dtype=np.int64)

    def embed(
        self, variables: Sequence[int], cardinalities: Sequence[int], states: Sequence[Sequence[int]]
    ) -> Conditional:
        """The same of other variables, of which those here are parts.

        Args:
            variables: for each variable here, which it is there.
            cardinalities: of all variables there.
            states: for each variable there, the states that are left here, ascending.
        """
        axes = [variables[u] for u in (*self.parents, self.variable)]
        if len(axes) == 1 and self.table.size == cardinalities[axes[0]]:
            if axes[0] == self.variable:
                return self
            return Conditional(axes[0], (), self.table)
        table = np.zeros([cardinalities[u] for u in axes])
        table[np.ix_(*(states[u] for u in axes))] = self.table
        return Conditional(axes[-1], tuple(axes[:-1]), table)


# From a table (K_u, K_v) and values (..., K_u) of u to values (..., K_v) of v.
Propagation = Callable[[FloatArray, FloatArray], FloatArray]


def propagate_means(table: FloatArray, parent_values: FloatArray) -> FloatArray:
    """p(x_v) = Σ_u p(x_u) p(x_v | x_u)."""
    return np.asarray(parent_values @ table)


def propagate_errors(table: FloatArray, parent_values: FloatArray) -> FloatArray:
    """Standard errors of `propagate_means`, no smaller than they are however those of u's states go together.

    The errors of a variable's probabilities add up to 0, so that Σ_u δ_u p(x_v | x_u) is Σ_u δ_u (p(x_v | x_u) - c)
    for any c; the triangle inequality is tightest where c is one of the row's values.
    """
    distances = np.abs(table[None] - table[:, None])  # (K_c, K_u, K_v)
    return np.asarray(np.einsum("...u,cuk->...ck", parent_values, distances).min(axis=-2))


def propagate_minimum(table: FloatArray, parent_values: FloatArray) -> FloatArray:
    """What holds of v because it holds of all states of u: an effective sample size."""
    return np.repeat(parent_values.min(axis=-1, keepdims=True), table.shape[-1], axis=-1)


def propagate_maximum(table: FloatArray, parent_values: FloatArray) -> FloatArray:
    """What is as bad for v as for the worst state of u: R-hat."""
    return np.repeat(parent_values.max(axis=-1, keepdims=True), table.shape[-1], axis=-1)


def is_ascending(labels: tuple[int, ...]) -> bool:
    """Whether each state stands for one of its own, in order; not so of members of a group that became one variable."""
    return all(a < b for a, b in itertools.pairwise(labels))


def complement(p: FloatArray) -> FloatArray:
    """Of probabilities of state 1 those of state 0."""
    return 1.0 - p


def fill_states(
    table: FloatArray,
    labels: tuple[int, ...],
    carrier_values: Sequence[FloatArray],
    *,
    binary: bool,
    other: Callable[[FloatArray], FloatArray],
) -> None:
    """Spreads over an original variable's states what was found for its carriers, as p(s = 1) or over their states."""
    if len(carrier_values) > 1:
        for label, value in zip(labels, carrier_values, strict=True):
            table[..., label] = value if binary else value[..., 1]
    elif binary:
        table[..., labels[0]], table[..., labels[1]] = other(carrier_values[0]), carrier_values[0]
    elif not is_ascending(labels):
        probability = carrier_values[0][..., labels.index(1)]
        table[..., 0], table[..., 1] = other(probability), probability
    else:
        table[..., list(labels)] = carrier_values[0]
