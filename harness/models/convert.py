"""Conversions between factor graphs and binary pairwise models; all keep log Z."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import ConversionError
from spinbench.models.checks import format_variable
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel
from spinbench.models.possible_states import possible_state_sets

FloatArray = npt.NDArray[np.float64]
# Largest 1-of-K group that becomes a factor, which has 2**K entries.
MAX_GROUP = 20
IntArray = npt.NDArray[np.int64]


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
    factors += [Factor(group, _exactly_one_table(model.name, len(group))) for group in model.groups]
    source = model.name, model.labels, model.origin, model.state_names
    return FactorGraph(model.cardinalities, tuple(factors), model.log_constant, *source)


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
    return _OneOfKCoding(model, one_of_k).build_pairwise_model()


def original_log_weights(model: PairwiseModel | FactorGraph, states: npt.NDArray[np.integer]) -> FloatArray:
    """log p* of states (..., N), as of the model that evidence or 1-of-K coding left this of.

    Where that left no variable, a unit stands for nothing, and the weight of the one state is that of both of its.
    """
    origin, weights = model.origin, model.log_weight(states)
    has_variables = origin is None or origin.free.size > 0 or len(origin.conditionals) > 0
    if has_variables or not isinstance(model, PairwiseModel):
        return weights
    return np.asarray(weights + np.log(2.0))


class _FactorStack(NamedTuple):
    """Factors of one shape: their numbers (F,), their variables (F, k), their tables (F, *shape)."""

    indices: IntArray
    members: IntArray
    tables: FloatArray


class _OneOfKCoding:
    """1-of-K coding of one factor graph: a layout of units, then sums of log tables over them."""

    def __init__(self, graph: FactorGraph, one_of_k: bool) -> None:
        self.graph = graph
        sizes = np.array([len(states) for states in self.states] if graph.has_zeros else graph.cardinalities)
        if not one_of_k and sizes.max() > 2:
            v = int(np.argmax(sizes > 2))
            raise ConversionError(
                f"{graph.name}: {format_variable(v, graph.labels)} has {sizes[v]} possible states; "
                "binary variables are needed"
            )
        self.counts = np.where(sizes > 2, sizes, sizes - 1)
        self.starts = np.cumsum(self.counts) - self.counts
        count = int(self.counts.sum())
        # A model needs a variable: if all are determined, a dummy unit remains.
        self.biases = np.zeros(max(count, 1))
        self.constant = graph.log_constant
        if count == 0:
            self.constant -= np.log(2.0)
        self.edges: list[IntArray] = []
        self.couplings: list[FloatArray] = []
        # Parts of all factors other than fields and pairs of binary variables, each with its factor's number.
        none, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        self.constants = [(none, nothing)]
        self.fields = [(none, none, nothing)]
        self.others = [(none, np.zeros((0, 2), dtype=np.int64), nothing)]

    @cached_property
    def states(self) -> tuple[tuple[int, ...], ...]:
        """The possible states of each variable."""
        return possible_state_sets(self.graph)

    @cached_property
    def units(self) -> tuple[tuple[int, ...], ...]:
        """The units of each variable."""
        spans = zip(self.starts.tolist(), self.counts.tolist(), strict=True)
        return tuple(tuple(range(start, start + count)) for start, count in spans)

    def build_pairwise_model(self) -> PairwiseModel:
        pairs, tables = [np.zeros((0, 2), dtype=np.int64)], [np.zeros((0, 2, 2))]
        for stack in self._stack_factors():
            match stack.tables.shape[1:]:
                case ():
                    self.constants.append((stack.indices, stack.tables))
                case (_,):
                    self._add_fields(stack.indices, stack.members[:, 0], stack.tables)
                case (2, 2):
                    pairs.append(stack.members)
                    tables.append(stack.tables)
                case _:
                    self._add_pairs(stack)
        self._sum_in_factor_order()
        self._add_binary_pairs(self.starts[np.concatenate(pairs)], np.concatenate(tables))
        return self._assemble_model()

    def _stack_factors(self) -> Iterator[_FactorStack]:
        """All factors over their undetermined variables, those of one shape together."""
        flat, whole = self.graph.flat, not self.graph.has_zeros
        left: list[int] = []
        for indices, members, shape in flat.group_by_shape():
            if whole and len(shape) in {1, 2} and 1 not in shape:
                # Number -1 sorts the fields of binary variables before all other terms of the sums.
                numbers = np.full_like(indices, -1) if shape == (2,) else indices
                yield _FactorStack(numbers, members, flat.stack_tables(indices, shape))
            else:
                left += indices.tolist()
        kinds: dict[tuple[int, ...], list[tuple[int, Sequence[int], FloatArray]]] = {}
        for index in sorted(left):
            scope, table = self._restrict_factor(index)
            kinds.setdefault(table.shape, []).append((index, scope, table))
        for rows in kinds.values():
            factor_numbers, scopes, tables = zip(*rows, strict=True)
            yield _FactorStack(np.array(factor_numbers), np.array(scopes, dtype=np.int64), np.stack(tables))

    def _assemble_model(self) -> PairwiseModel:
        graph, single = self.graph, bool((self.counts == 1).all())
        model = PairwiseModel.from_edges(
            self.biases,
            np.concatenate([np.zeros((0, 2), dtype=np.int64), *self.edges]),
            np.concatenate([np.zeros(0), *self.couplings]),
            log_constant=self.constant,
            groups=[self.units[v] for v in np.flatnonzero(self.counts > 1).tolist()],
            name=graph.name,
            labels=graph.labels if single else (),
        )
        if single and all(k == 2 for k in graph.cardinalities):
            return replace(model, origin=graph.origin, state_names=graph.state_names)
        coding_origin = Origin(graph.cardinalities, self.states, self.units, graph.labels)
        return replace(model, origin=coding_origin.after(graph.origin), state_names=graph.state_names)

    def _restrict_factor(self, index: int) -> tuple[Sequence[int], FloatArray]:
        """The factor over the possible states of its undetermined variables."""
        factor = self.graph.factors[index]
        scope, table = factor.scope, factor.log_table
        if self.graph.has_zeros and scope:
            table = table[np.ix_(*(self.states[v] for v in scope))]
        if 1 in table.shape:
            scope = tuple(v for v, size in zip(scope, table.shape, strict=True) if size > 1)
            table = table.reshape([size for size in table.shape if size > 1])
        if len(scope) > 2:
            raise ConversionError(
                f"{self.graph.name}: factor {index} over variables {scope} has order {len(scope)}; "
                "a Boltzmann machine needs factors of order 2 or less"
            )
        if self.graph.has_zeros and table.min() == -np.inf:
            raise ConversionError(
                f"{self.graph.name}: factor {index} over variables {scope} has zeros where finite couplings are needed"
            )
        return scope, table

    def _units_by_variable(self, variables: IntArray, num_states: int) -> IntArray:
        """(F, 1 or K) units of variables of K states each."""
        return np.asarray(self.starts[variables][:, None] + np.arange(1 if num_states == 2 else num_states))

    def _add_fields(self, indices: IntArray, variables: IntArray, tables: FloatArray) -> None:
        base = _base_level(tables, 1).reshape(-1)
        units = self._units_by_variable(variables, tables.shape[1])
        self.constants.append((indices, base))
        values = tables[:, -units.shape[1] :] - base[:, None]
        self.fields.append((np.repeat(indices, units.shape[1]), units.ravel(), values.ravel()))

    def _add_binary_pairs(self, pairs: npt.NDArray[np.int64], tables: FloatArray) -> None:
        base = tables[:, 0, 0]
        first, second = tables[:, 1, 0] - base, tables[:, 0, 1] - base
        self.constant += float(base.sum())
        self.biases += np.bincount(pairs[:, 0], first, minlength=self.biases.size)
        self.biases += np.bincount(pairs[:, 1], second, minlength=self.biases.size)
        self.edges.append(pairs)
        self.couplings.append(tables[:, 1, 1] - tables[:, 0, 1] - tables[:, 1, 0] + base)

    def _add_pairs(self, stack: _FactorStack) -> None:
        """T_kl = r_k + c_l + R_kl with R zero wherever a binary variable is 0, so R holds the couplings."""
        rest, sizes = stack.tables, stack.tables.shape[1:]
        for axis, other in ((0, 2), (1, 1)):
            part = _base_level(rest, other)
            self._add_fields(stack.indices, stack.members[:, axis], part.reshape(len(part), -1))
            rest = rest - part
        first, second = (self._units_by_variable(stack.members[:, axis], sizes[axis]) for axis in (0, 1))
        rest = rest[:, -first.shape[1] :, -second.shape[1] :]
        a, k, m = np.nonzero(rest)
        self.others.append((stack.indices[a], np.stack([first[a, k], second[a, m]], axis=1), rest[a, k, m]))

    def _sum_in_factor_order(self) -> None:
        """One factor after the other as the graph has them: the order decides the last digits of sums."""
        constants = _concatenate_sorted(self.constants)[1]
        self.constant = float(np.cumsum(np.append(self.constant, constants))[-1])
        _, units, values = _concatenate_sorted(self.fields)
        self.biases += np.bincount(units, values, minlength=self.biases.size)
        _, edges, couplings = _concatenate_sorted(self.others)
        self.edges.append(edges)
        self.couplings.append(couplings)


def _base_level(tables: FloatArray, axis: int) -> FloatArray:
    """What fields or couplings are counted from along an axis, which stays: entry 0 of binary variables, a median."""
    if tables.shape[axis] == 2:
        return tables.take([0], axis)
    return np.asarray(np.median(tables, axis, keepdims=True))


def _concatenate_sorted(parts: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """The parts as one, sorted by their first arrays, the numbers of factors."""
    whole = [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
    order = np.argsort(whole[0], kind="stable")
    return tuple(array[order] for array in whole)


def _exactly_one_table(name: str, size: int) -> FloatArray:
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
