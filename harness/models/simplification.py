"""What falls away before any method sees a model: impossible states, constants, duplicates, variables that sum out.

All of it is exact: log Z stays, and the origin of what is left tells of the variables that were given. The cost is near
linear in the entries of the tables.
"""

from __future__ import annotations

import heapq
import itertools
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.conditionals import Conditional
from spinbench.models.factor_graph import Factor, FactorArrays, FactorGraph, group_by_order
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel
from spinbench.models.possible_states import possible_state_sets

FloatArray = npt.NDArray[np.float64]
# Tolerance for log sums that count as constant, relative to their size and to the number of terms.
ROUNDING = 16 * float(np.finfo(np.float64).eps)
Model = PairwiseModel | FactorGraph
EPSILON = float(np.finfo(np.float64).eps)


def sum_out_variables(
    sizes: Sequence[int], factors: dict[int, Factor], max_parents: int
) -> tuple[tuple[Conditional, ...], list[float], float]:
    """Takes out of `factors` those that fall away.

    Args:
        sizes: (N,) states of each variable; those of one state are no variables.
        factors: by any index; their tables are not constant.
        max_parents: the most variables that another may be given.

    Returns:
        The conditionals of the variables that fell away, each after all that it is given, what they add to log Z, and
        by how much the sum of that may be off.
    """
    holding: dict[int, set[int]] = defaultdict(set)
    for index, factor in factors.items():
        for v in factor.scope:
            holding[v].add(index)
    queue: list[int] = []
    if max_parents >= 0:
        queue += [v for v, size in enumerate(sizes) if size > 1 and len(holding[v]) <= 1]
    conditionals: list[Conditional] = []
    constants, rounding = [0.0], 0.0
    gone: set[int] = set()
    uniform = {size: np.full(size, 1 / size) for size in set(sizes) if size > 1}
    while queue:
        v = heapq.heappop(queue)
        if v in gone:
            continue
        only = next(iter(holding[v]), None)
        if only is None:  # a shortcut: millions of variables may have no factor
            conditionals.append(Conditional(v, (), uniform[sizes[v]]))
            gone.add(v)
            constants.append(math.log(sizes[v]))
            rounding += ROUNDING * (sizes[v] + math.log(sizes[v]))
            continue
        factor = factors[only]
        if len(factor.scope) > max_parents + 1 or (outcome := _sum_out_of_factor(factor, v)) is None:
            continue
        conditional, size, off = outcome
        conditionals.append(conditional)
        gone.add(v)
        constants.append(size)
        rounding += off
        del factors[only]
        for u in conditional.parents:
            holding[u].discard(only)
            if len(holding[u]) <= 1:
                heapq.heappush(queue, u)
    return tuple(reversed(conditionals)), constants, rounding


def _sum_out_of_factor(factor: Factor, v: int) -> tuple[Conditional, float, float] | None:
    """p(x_v | others) of a factor, the log of its sum over x_v, and how far off that may be; None if others matter."""
    axis = factor.scope.index(v)
    logs = np.moveaxis(factor.log_table, axis, -1)
    peak = logs.max(axis=-1, keepdims=True)
    if peak.min() == -np.inf:
        return None
    weights = np.exp(logs - peak)
    total = weights.sum(axis=-1, keepdims=True)
    sums = peak + np.log(total)
    low, high = float(sums.min()), float(sums.max())
    off = ROUNDING * (logs.shape[-1] + max(abs(low), abs(high), float(np.abs(peak).max())))
    if high - low > off:
        return None
    others = factor.scope[:axis] + factor.scope[axis + 1 :]
    return Conditional(v, others, weights / total), (low + high) / 2, off


@dataclass(frozen=True)
class Simplification:
    """A model and what is left of it.

    Attributes:
        original: the model.
        model: what is left; `original` itself where nothing fell away. Its origin leads back to where `original` came
            from.
        step: how its variables stand for those of `original`; None where nothing fell away.
        rounding: by how much its log Z may differ from that of `original`, which bounds have to allow for.
        is_solved: whether no variable is left that has a choice, so that what is left is the answer.
    """

    original: Model
    model: Model
    step: Origin | None = None
    rounding: float = 0.0
    is_solved: bool = False

    @property
    def note(self) -> str:
        """What fell away, in a sentence; empty: nothing."""
        if self.is_solved:
            return "simplified: no variable is left to choose, so that the answer is exact"
        if self.step is None:
            return ""
        before, after = _count_variables_factors_states(self.original), _count_variables_factors_states(self.model)
        parts = zip(after, before, ("variables", "factors", "states"), strict=True)
        return f"simplified: {', '.join(f'{left} of {count} {noun}' for left, count, noun in parts)} are left"


def simplify(model: Model, max_parents: int = 1) -> Model:
    """The model without what can be taken out of it exactly and at once; the same object where there is nothing.

    Of a factor graph there go, with log Z as it was,

    * states that generalised arc consistency on hard zeros rules out, and variables of one state;
    * factors that are constant, and all but one over a set of variables;
    * repeatedly, variables of no factor, or of one whose sum over them is constant ("barren nodes": Shachter,
      "Evaluating influence diagrams", Operations Research 1986), with this factor.

    A pairwise model stays as it is, unless it has neither edges nor groups: then no variable is left.
    `original_marginals` of the result gives back the marginals of all variables; where
    one was summed out given two others or more, they say nothing of it, and it is NaN.

    Args:
        model: any model.
        max_parents: the most variables that the sum over another may be given. 1: all marginals can be had from those
            left.

    Raises:
        ModelError: the hard zeros leave a variable no state, so Z = 0.
    """
    return compute_simplification(model, max_parents).model


def compute_simplification(model: Model, max_parents: int = 1) -> Simplification:
    """As `simplify`, with what was done."""
    if isinstance(model, PairwiseModel):
        return Simplification(model, model) if model.num_edges or model.groups else _sum_out_independent(model)
    if model.cardinalities == (1,) and not model.factors:
        return Simplification(model, model, is_solved=True)
    flat = model.flat
    if _is_irreducible(flat):
        return Simplification(model, model)
    low, high = flat.entry_ranges
    work = _WorkingGraph(model, possible_state_sets(model), (low == high).tolist())
    if model.origin is not None and any(len(units) > 1 for units in model.origin.variables):
        # With several units per variable, the conditional of one unit is not that of the variable.
        max_parents = -1
    if model.origin is not None and (model.origin.functions or model.origin.steps):
        # Nor is a conditional on parents that are functions of variables, which the origin omits.
        max_parents = min(max_parents, 0)
    conditionals, removed, rounding = sum_out_variables(work.sizes, work.factors, max_parents)
    work.constants += removed
    work.rounding += rounding
    if len(work.factors) == len(model.factors) and not conditionals and work.untouched:
        return Simplification(model, model)
    first = work.build_simplification(conditionals)
    # Merging factors may create zeros, which may determine further states.
    if work.merged:
        return _repeat_simplification(first, max_parents)
    return first


def _repeat_simplification(first: Simplification, max_parents: int) -> Simplification:
    further = compute_simplification(first.model, max_parents)
    if first.step is None or further.step is None:
        return first
    rounding = first.rounding + further.rounding
    return Simplification(first.original, further.model, further.step.after(first.step), rounding, further.is_solved)


def _sum_out_independent(model: PairwiseModel) -> Simplification:
    """Of variables that are independent each sums out."""
    sums = np.logaddexp(0.0, model.biases)
    tables = np.exp(np.stack([-sums, model.biases - sums], axis=-1))
    count = model.num_variables
    conditionals = tuple(Conditional(v, (), table) for v, table in enumerate(tables))
    step = Origin(model.cardinalities, ((0, 1),) * count, ((),) * count, model.labels, conditionals)
    constant = math.fsum([model.log_constant, *sums.tolist()])
    left = FactorGraph((1,), (), constant, model.name, (), step.after(model.origin), model.state_names)
    return Simplification(
        model, left, step, EPSILON * (abs(model.log_constant) + 2 * float(sums.sum())), is_solved=True
    )


def _count_variables_factors_states(model: Model) -> tuple[int, int, int]:
    # A variable of one state may be a dummy.
    cards = [k for k in model.cardinalities if k > 1]
    num_factors = len(model.factors) if isinstance(model, FactorGraph) else model.num_edges
    return len(cards), num_factors, sum(cards)


def _is_irreducible(factors: FactorArrays) -> bool:
    """Whether nothing falls away for sure, which takes no look at single factors."""
    low, high = factors.entry_ranges
    degrees = np.bincount(factors.members, minlength=len(factors.cardinalities))
    if (factors.cardinalities == 1).any() or (degrees < 2).any() or (low == -np.inf).any() or (low == high).any():
        return False
    for indices, members in group_by_order(factors.members, factors.orders):
        # different numbers belong to different sets; after an overflow, equal numbers may too, which only costs time
        sets = np.sort(members, axis=1) @ np.cumprod(np.full(members.shape[1], len(degrees)))
        if len(np.unique(sets)) < len(indices):
            return False
    return True


class _WorkingGraph:
    """A factor graph over possible states, while things fall away.

    Attributes:
        sizes: of each variable given, the states that are left.
        factors: those that are left, by the place of the first of them, their tables over the states that are left.
        constants: of all that fell away; rounding: by which they and sums of tables may be off.
        untouched: whether all variables have all of their states, more than one; merged: whether tables were summed.
    """

    def __init__(self, model: FactorGraph, states: tuple[tuple[int, ...], ...], constant: Sequence[bool]) -> None:
        self.model = model
        self.states = states
        self.sizes = [len(each) for each in states]
        self.constants = [model.log_constant]
        self.rounding = 0.0
        self.factors: dict[int, Factor] = {}
        cut = [size < k or size == 1 for size, k in zip(self.sizes, model.cardinalities, strict=True)]
        self.untouched = not any(cut)
        self.merged = False
        first: dict[tuple[int, ...], int] = {}
        for index, (factor, flat) in enumerate(zip(model.factors, constant, strict=True)):
            if not flat and any(cut[v] for v in factor.scope):
                factor = self._restrict_to_possible(factor)
                flat = bool(factor.log_table.min() == factor.log_table.max())
            if flat:
                self.constants.append(float(factor.log_table.flat[0]))
                continue
            place = first.setdefault(tuple(sorted(factor.scope)), index)
            if place == index:
                self.factors[place] = factor
                continue
            self.factors[place] = both = _add_log_tables(self.factors[place], factor)
            self.rounding += EPSILON * float(np.abs(both.log_table[np.isfinite(both.log_table)]).max(initial=0.0))
            self.merged = True
        if self.merged:
            self._drop_constant_factors()

    def _restrict_to_possible(self, factor: Factor) -> Factor:
        """Over the possible states of its variables of several."""
        scope = tuple(v for v in factor.scope if self.sizes[v] > 1)
        table = factor.log_table[np.ix_(*(self.states[v] for v in factor.scope))]
        return Factor(scope, table.reshape([self.sizes[v] for v in scope]))

    def _drop_constant_factors(self) -> None:
        """Sums of tables may be constant, too, or zero everywhere."""
        for index, factor in list(self.factors.items()):
            if factor.log_table.max() == -np.inf:
                name = self.model.name
                raise ModelError(f"{name}: the factors over variables {factor.scope} leave them no state, so Z = 0")
            if factor.log_table.min() == factor.log_table.max():
                self.constants.append(float(factor.log_table.flat[0]))
                del self.factors[index]

    def build_simplification(self, conditionals: tuple[Conditional, ...]) -> Simplification:
        model = self.model
        out = {each.variable for each in conditionals}
        core_variables = [v for v, size in enumerate(self.sizes) if size > 1 and v not in out]
        places = dict(zip(core_variables, itertools.count(), strict=False))
        step = Origin.of_states(
            model.cardinalities,
            self.states,
            (v in places for v in range(len(self.sizes))),
            model.labels,
            tuple(each.embed(range(len(self.sizes)), model.cardinalities, self.states) for each in conditionals),
        )
        constant = math.fsum(self.constants)
        left = FactorGraph(
            tuple(self.sizes[v] for v in core_variables) or (1,),
            tuple(_renumber_scope(self.factors[index], places) for index in sorted(self.factors)),
            constant,
            model.name,
            tuple(label for v, label in enumerate(model.labels) if v in places),
            step.after(model.origin),
            model.state_names,
        )
        return Simplification(model, left, step, self.rounding + EPSILON * abs(constant), is_solved=not core_variables)


def _add_log_tables(first: Factor, second: Factor) -> Factor:
    """Two tables over one set of variables as one."""
    return Factor(
        first.scope, first.log_table + second.log_table.transpose([second.scope.index(v) for v in first.scope])
    )


def _renumber_scope(factor: Factor, places: dict[int, int]) -> Factor:
    table = np.ascontiguousarray(factor.log_table)
    table.setflags(write=False)
    return replace(factor, scope=tuple(places[v] for v in factor.scope), log_table=table)
