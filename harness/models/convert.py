"""Conversions between factor graphs and binary pairwise models; both keep log Z."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spinbench.errors import ConversionError, UnsupportedError
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel
from spinbench.models.possible import possible_states

FloatArray = npt.NDArray[np.float64]

# As a factor, "exactly one of K" has 2**K entries.
MAX_GROUP = 20


def to_factor_graph(model: PairwiseModel | FactorGraph) -> FactorGraph:
    """The same variables with one unary factor a bias that is not 0, one pair factor an edge and one factor a
    group (zero unless exactly one member is 1); a factor graph is returned as it is.

    Raises:
        ConversionError: a group of more than 20 members.
    """
    if isinstance(model, FactorGraph):
        return model
    unary = np.zeros((model.num_variables, 2))
    unary[:, 1] = model.biases
    pair = np.zeros((model.num_edges, 2, 2))
    pair[:, 1, 1] = model.couplings
    for tables in (unary, pair):
        tables.setflags(write=False)
    factors = [Factor((v,), unary[v]) for v in np.flatnonzero(model.biases).tolist()]
    factors += [Factor((i, j), table) for (i, j), table in zip(model.edges.tolist(), pair, strict=True)]
    factors += [Factor(group, _exactly_one(model.name, len(group))) for group in model.groups]
    return FactorGraph(model.cardinalities, tuple(factors), model.log_constant, model.name, model.labels, model.origin)


def refuse_groups(method: str, model: PairwiseModel | FactorGraph) -> None:
    """Says no to coded variables, for methods that take variables of K states as they are.

    Raises:
        UnsupportedError: the model has 1-of-K groups.
    """
    if isinstance(model, PairwiseModel) and model.groups:
        raise UnsupportedError(
            f"{method}: {model.name} has 1-of-K groups; a factor graph of variables of K states is taken in their place"
        )


def to_pairwise(model: PairwiseModel | FactorGraph, *, one_of_k: bool = True) -> PairwiseModel:
    """The Boltzmann machine of a model whose factors have order 2 or less; a pairwise model is returned as it is.

    A binary variable becomes one unit. A variable with K > 2 possible states becomes K units of which exactly
    one is 1 (`PairwiseModel.groups`); the couplings between two such variables are fixed only up to terms that
    depend on one of them, and are chosen with zero row and column medians, which keeps Potts models sparse and
    tables with an offset small. States that hard zeros rule out get no unit, nor do variables with one possible
    state; the result's `origin` then maps unit marginals and states back. If every variable has one unit, unit v
    is variable v.

    Args:
        model: any model.
        one_of_k: whether 1-of-K groups are allowed; samplers of independent binary units say no.

    Raises:
        ConversionError: a factor of order above 2, a zero that forbids a pair of states, or groups where they are not
            allowed.
        ModelError: Z = 0.
    """
    if isinstance(model, PairwiseModel):
        if model.groups and not one_of_k:
            raise ConversionError(
                f"{model.name}: units {model.groups[0]} code one variable of {len(model.groups[0])} states; "
                "binary variables are needed"
            )
        return model
    return _Coding(model, one_of_k).pairwise()


class _Coding:
    """1-of-K coding of one factor graph: a layout of units, then sums of log tables over them."""

    def __init__(self, graph: FactorGraph, one_of_k: bool) -> None:
        self.graph = graph
        self.masks = possible_states(graph) if graph.has_zeros else None
        if self.masks is None:
            identity = Origin.identity(graph.cardinalities)
            self.states = identity.states
        else:
            self.states = tuple(tuple(np.flatnonzero(mask).tolist()) for mask in self.masks)
        sizes = [len(states) for states in self.states]
        if not one_of_k and max(sizes) > 2:
            v = next(v for v, size in enumerate(sizes) if size > 2)
            label = f" ({graph.labels[v]!r})" if graph.labels else ""
            raise ConversionError(
                f"{graph.name}: variable {v}{label} has {sizes[v]} possible states; binary variables are needed"
            )
        counts = [0 if size == 1 else 1 if size == 2 else size for size in sizes]
        starts = [0, *itertools.accumulate(counts)]
        self.units = tuple(tuple(range(s, s + c)) for s, c in zip(starts, counts, strict=False))
        # A model needs a variable: where all are determined, one unit stays that stands for nothing.
        self.biases = np.zeros(max(starts[-1], 1))
        self.constant = graph.log_constant - (np.log(2.0) if starts[-1] == 0 else 0.0)
        self.edges: list[npt.NDArray[np.int64]] = []
        self.couplings: list[FloatArray] = []

    def pairwise(self) -> PairwiseModel:
        binary_pairs: list[tuple[int, int]] = []
        binary_tables: list[FloatArray] = []
        for index in range(len(self.graph.factors)):
            scope, table = self._reduced(index)
            if not scope:
                self.constant += float(table)
            elif len(scope) == 1:
                self._add_unary(scope[0], table)
            elif table.shape == (2, 2):
                binary_pairs.append((self.units[scope[0]][0], self.units[scope[1]][0]))
                binary_tables.append(table)
            else:
                self._add_pair(scope, table)
        if binary_pairs:
            self._add_binary_pairs(np.array(binary_pairs), np.stack(binary_tables))
        graph = self.graph
        model = PairwiseModel.from_edges(
            self.biases,
            np.concatenate([np.zeros((0, 2), dtype=np.int64), *self.edges]),
            np.concatenate([np.zeros(0), *self.couplings]),
            log_constant=self.constant,
            groups=[units for units in self.units if len(units) > 1],
            name=graph.name,
            labels=graph.labels if all(len(units) == 1 for units in self.units) else (),
        )
        if all(k == 2 for k in graph.cardinalities) and all(len(units) == 1 for units in self.units):
            return replace(model, origin=graph.origin)
        here = Origin(graph.cardinalities, self.states, self.units, graph.labels)
        return replace(model, origin=here if graph.origin is None else graph.origin.then(here))

    def _reduced(self, index: int) -> tuple[Sequence[int], FloatArray]:
        """The factor over the possible states of its undetermined variables."""
        factor = self.graph.factors[index]
        scope, table = factor.scope, factor.log_table
        if self.masks is not None and scope:
            table = table[np.ix_(*(self.masks[v] for v in scope))]
        if 1 in table.shape:
            scope = tuple(v for v, size in zip(scope, table.shape, strict=True) if size > 1)
            table = table.reshape([size for size in table.shape if size > 1])
        if len(scope) > 2:
            raise ConversionError(
                f"{self.graph.name}: factor {index} over variables {scope} has order {len(scope)}; "
                "a Boltzmann machine needs factors of order 2 or less"
            )
        if self.masks is not None and table.min() == -np.inf:
            raise ConversionError(
                f"{self.graph.name}: factor {index} over variables {scope} has zeros where finite couplings are needed"
            )
        return scope, table

    def _add_unary(self, v: int, table: FloatArray) -> None:
        base = table[0] if table.size == 2 else np.median(table)
        self.constant += float(base)
        self.biases[list(self.units[v])] += table[-len(self.units[v]) :] - base

    def _add_binary_pairs(self, pairs: npt.NDArray[np.int64], tables: FloatArray) -> None:
        base = tables[:, 0, 0]
        first, second = tables[:, 1, 0] - base, tables[:, 0, 1] - base
        self.constant += float(base.sum())
        self.biases += np.bincount(pairs[:, 0], first, minlength=self.biases.size)
        self.biases += np.bincount(pairs[:, 1], second, minlength=self.biases.size)
        self.edges.append(pairs)
        self.couplings.append(tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0] + base)

    def _add_pair(self, scope: Sequence[int], table: FloatArray) -> None:
        """T_kl = r_k + c_l + R_kl with R zero wherever a binary variable is 0, so R holds the couplings."""
        rest = table
        for axis in (0, 1):
            part = rest.take([0], 1 - axis) if rest.shape[1 - axis] == 2 else np.median(rest, 1 - axis, keepdims=True)
            self._add_unary(scope[axis], part.ravel())
            rest = rest - part
        first, second = (list(self.units[v]) for v in scope)
        rest = rest[-len(first) :, -len(second) :]
        k, m = np.nonzero(rest)
        self.edges.append(np.stack([np.array(first)[k], np.array(second)[m]], axis=1))
        self.couplings.append(rest[k, m])


def _exactly_one(name: str, size: int) -> FloatArray:
    if size > MAX_GROUP:
        raise ConversionError(
            f"{name}: a group of {size} units has a table of 2**{size} entries as a factor; at most {MAX_GROUP} "
            "units are allowed, and the factor graph that it was made from holds the same model"
        )
    table = np.full((2,) * size, -np.inf)
    for k in range(size):
        table[tuple(int(m == k) for m in range(size))] = 0.0
    table.setflags(write=False)
    return table
