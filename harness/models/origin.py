"""How the variables of a derived model stand for those of the model that the user gave."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spinbench.models.conditionals import (
    Conditional,
    PerVariable,
    Propagation,
    complement,
    fill_states,
    is_ascending,
    propagate_maximum,
    propagate_means,
)

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# (derived variable, state) pairs.
Literals = tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class Origin:
    """Map between M original variables and the N variables of a model derived from them.

    Conditioning, simplification and 1-of-K coding produce one. An original variable v is

    * determined (`variables[v]` empty, one entry in `states[v]`);
    * summed out (`variables[v]` empty, more entries in `states[v]`): a conditional tells of it;
    * one derived variable, whose state k stands for `states[v][k]`: for a member of a 1-of-K group that became one
      variable, one state stands for 1 and all others for 0;
    * several binary derived variables of which exactly one is 1: the k-th stands for `states[v][k]`.

    A derived model may have further variables, which are functions of these.

    Attributes:
        cardinalities: (M,) number of states of each original variable.
        states: for each original variable the states that remain possible, ascending but for members of groups.
        variables: for each original variable the derived variables that carry it.
        labels: the original variables' labels, or empty where they are 0, …, M - 1.
        conditionals: of original variables that were summed out, each after all that it is given.
        functions: of derived binary variables behind those that carry an original one: each is 1 where any of some
            literals holds, else 0.
        steps: the maps that this one is composed of, where the first has functions, which the second may have changed.
    """

    cardinalities: tuple[int, ...]
    states: tuple[tuple[int, ...], ...]
    variables: tuple[tuple[int, ...], ...]
    labels: tuple[Hashable, ...] = ()
    conditionals: tuple[Conditional, ...] = ()
    functions: tuple[Literals, ...] = ()
    steps: tuple[Origin, Origin] | None = None

    @classmethod
    def with_functions(
        cls, cardinalities: tuple[int, ...], functions: tuple[Literals, ...], labels: tuple[Hashable, ...]
    ) -> Origin:
        """Every variable stands for itself, and behind them there are others."""
        return replace(cls.identity(cardinalities, labels), functions=functions)

    @classmethod
    def identity(cls, cardinalities: Sequence[int], labels: tuple[Hashable, ...] = ()) -> Origin:
        """Every variable stands for itself."""
        cards = tuple(cardinalities)
        state_ranges = {k: tuple(range(k)) for k in set(cards)}
        return cls(cards, tuple(state_ranges[k] for k in cards), tuple((v,) for v in range(len(cards))), labels)

    @classmethod
    def of_states(
        cls,
        cardinalities: Sequence[int],
        states: Sequence[tuple[int, ...]],
        carried: Iterable[bool],
        labels: tuple[Hashable, ...] = (),
        conditionals: tuple[Conditional, ...] = (),
    ) -> Origin:
        """Each of the `carried` variables is one derived variable, in their order, over its `states`."""
        places = itertools.count()
        variables = tuple((next(places),) if each else () for each in carried)
        return cls(tuple(cardinalities), tuple(states), variables, labels, conditionals)

    @classmethod
    def of_groups(cls, n: int, groups: Sequence[Sequence[int]], labels: tuple[Hashable, ...] = ()) -> Origin:
        """Of n binary variables, of which 1-of-K groups become one derived variable each, where their first one is."""
        states: list[tuple[int, ...]] = [(0, 1)] * n
        variables: list[tuple[int, ...]] = [(v,) for v in range(n)]
        for group in groups:
            for k, member in enumerate(group):
                states[member] = tuple(int(k == other) for other in range(len(group)))
                variables[member] = (min(group),) if len(group) > 1 else ()
        place = {v: k for k, v in enumerate(dict.fromkeys(unit for units in variables for unit in units))}
        numbered = tuple(tuple(place[unit] for unit in units) for units in variables)
        return cls((2,) * n, tuple(states), numbered, labels)

    @property
    def num_variables(self) -> int:
        """M."""
        return len(self.cardinalities)

    @cached_property
    def carriers(self) -> IntArray:
        """(M,) the derived variable that carries each variable, -1 where none does; of several the first."""
        return np.array([next(iter(units), -1) for units in self.variables], dtype=np.int64)

    @cached_property
    def derived_cardinalities(self) -> tuple[int, ...]:
        """(N,) states of the derived variables, where each variable has at most one carrier."""
        sizes = {units[0]: len(states) for states, units in zip(self.states, self.variables, strict=True) if units}
        return tuple(sizes[unit] for unit in range(len(sizes)))

    @cached_property
    def representatives(self) -> list[int]:
        """(N,) for each derived variable the first of those that it carries."""
        carriers, first = np.unique(self.carriers, return_index=True)
        return [int(v) for v in first[carriers >= 0]]

    @cached_property
    def is_identity(self) -> bool:
        """Whether every variable stands for itself, and there are no others."""
        every = {k: tuple(range(k)) for k in set(self.cardinalities)}
        parts = zip(itertools.count(), self.cardinalities, self.states, self.variables, strict=False)
        return not self.functions and all(units == (v,) and states == every[k] for v, k, states, units in parts)

    @property
    def free(self) -> IntArray:
        """Indices of the original variables that the derived model has, ascending."""
        return np.flatnonzero(self.carriers >= 0)

    def marginals(self, marginals: npt.ArrayLike | Sequence[npt.ArrayLike]) -> PerVariable:
        """Marginals of the original variables from those of the derived ones.

        Of a variable that was summed out given two others or more they are not known, NaN.

        Args:
            marginals: (..., N) array of p(s = 1) of binary variables, or a list of N arrays (..., K).

        Returns:
            (..., M) array of p(s = 1) where all original variables are binary, else a list of M (..., K).
        """
        mapped = self._map_to_original(marginals, fixed=1.0, absent=0.0, other=complement)
        return self._propagate_to_summed_out(mapped, propagate_means, None, other=complement)

    def diagnostics(
        self,
        values: npt.ArrayLike | Sequence[npt.ArrayLike],
        fixed: float,
        along: Propagation = propagate_maximum,
    ) -> PerVariable:
        """What is known about `marginals`, such as their errors, of the same shapes.

        Args:
            values: in the layout of the derived variables' marginals.
            fixed: of determined variables, and of states that are not possible.
            along: what it makes of variables that were summed out, given one other.
        """
        mapped = self._map_to_original(values, fixed=fixed, absent=fixed, other=np.asarray)
        return self._propagate_to_summed_out(mapped, along, fixed, other=np.asarray)

    def lift(self, states: npt.ArrayLike, seed: int | np.random.Generator = 0) -> IntArray:
        """(..., M) original states of (..., N) derived states; those that were summed out are drawn."""
        x = np.asarray(states, dtype=np.int64)
        if self.is_identity:
            return x.copy()
        lifted = np.empty((*x.shape[:-1], self.num_variables), dtype=np.int64)
        for v, (labels, carriers) in enumerate(zip(self.states, self.variables, strict=True)):
            if not carriers:
                lifted[..., v] = labels[0]
            else:
                k = x[..., carriers[0]] if len(carriers) == 1 else x[..., list(carriers)].argmax(axis=-1)
                lifted[..., v] = np.asarray(labels)[k]
        rng = np.random.default_rng(seed)
        for conditional in self.conditionals:
            lifted[..., conditional.variable] = conditional.draw(lifted, rng)
        return lifted

    def lower(self, states: npt.ArrayLike) -> IntArray:
        """(..., N) derived states of (..., M) original states, none of which may be impossible."""
        if self.steps is not None:
            return self.steps[1].lower(self.steps[0].lower(states))
        x = np.asarray(states, dtype=np.int64)
        # a derived model has at least one variable, possibly a dummy
        size = 1 + max((u for carriers in self.variables for u in carriers), default=0)
        lowered = np.zeros((*x.shape[:-1], size + len(self.functions)), dtype=np.int64)
        for v, (labels, carriers) in enumerate(zip(self.states, self.variables, strict=True)):
            if len(carriers) == 1 and not is_ascending(labels):
                unit = carriers[0]
                lowered[..., unit] = np.where(x[..., v] == 1, labels.index(1), lowered[..., unit])
                continue
            k = np.searchsorted(labels, x[..., v])
            if len(carriers) == 1:
                lowered[..., carriers[0]] = k
            else:
                for position, unit in enumerate(carriers):
                    lowered[..., unit] = k == position
        for unit, literals in enumerate(self.functions, size):
            lowered[..., unit] = np.any([lowered[..., u] == state for u, state in literals], axis=0)
        return lowered

    def after(self, earlier: Origin | None) -> Origin:
        """The map from the original variables of `earlier`, whose derived variables this map is of; None: this map."""
        if earlier is None:
            return self
        composed = [_compose_carriers(*each, self) for each in zip(earlier.states, earlier.variables, strict=True)]
        states, variables = (tuple(part) for part in zip(*composed, strict=True))
        conditionals = earlier._pull_back_conditionals(self.conditionals) + earlier.conditionals
        steps = (earlier, self) if earlier.functions or earlier.steps else None
        return Origin(earlier.cardinalities, states, variables, earlier.labels, conditionals, steps=steps)

    def _pull_back_conditionals(self, later: tuple[Conditional, ...]) -> tuple[Conditional, ...]:
        """Conditionals of derived variables, each of which is an original one or stands for nothing."""
        if not later:
            return ()
        owner = {units[0]: v for v, units in enumerate(self.variables) if len(units) == 1}
        variables = [owner.get(unit, -1) for unit in range(1 + max(owner, default=-1))]
        standing = [each for each in later if each.variable in owner]
        return tuple(each.embed(variables, self.cardinalities, self.states) for each in standing)

    @cached_property
    def _binary_layout(self) -> tuple[IntArray, IntArray, FloatArray] | None:
        """(free variables, their carriers, (M,) state where determined), or None where K > 2 occurs."""
        if any(k != 2 for k in self.cardinalities) or any(len(c) > 1 for c in self.variables):
            return None
        if not all(map(is_ascending, set(self.states))):
            return None
        free = np.array([v for v, c in enumerate(self.variables) if c and len(self.states[v]) == 2], dtype=np.int64)
        carriers = np.array([self.variables[v][0] for v in free], dtype=np.int64)
        return free, carriers, np.array([labels[0] for labels in self.states], dtype=np.float64)

    def _map_to_original(
        self,
        values: npt.ArrayLike | Sequence[npt.ArrayLike],
        fixed: float,
        absent: float,
        other: Callable[[FloatArray], FloatArray],
    ) -> PerVariable:
        flat: FloatArray | None = None
        if isinstance(values, np.ndarray) or np.ndim(values[0]) == 0:  # type: ignore[index]
            flat = np.asarray(values, dtype=np.float64)
            lead = flat.shape[:-1]
            if (tables := self._binary_layout) is not None:
                free, sources, states = tables
                determined = np.where(states == 1, fixed, absent)
                result = np.broadcast_to(determined, (*lead, self.num_variables)).copy()
                result[..., free] = flat[..., sources]
                return result
            columns = [flat[..., u] for u in range(flat.shape[-1])]
        else:
            columns = [np.asarray(value, dtype=np.float64) for value in values]  # type: ignore[union-attr]
            lead = columns[0].shape[:-1]
        per_variable = []
        for k, labels, carriers in zip(self.cardinalities, self.states, self.variables, strict=True):
            table = np.full((*lead, k), absent)
            if len(labels) == 1:
                table[..., labels[0]] = fixed
            elif carriers:
                carrier_values = [columns[unit] for unit in carriers]
                fill_states(table, labels, carrier_values, binary=flat is not None, other=other)
            per_variable.append(table)
        if all(k == 2 for k in self.cardinalities):
            return np.stack([table[..., 1] for table in per_variable], axis=-1)
        return per_variable

    def _propagate_to_summed_out(
        self, values: PerVariable, along: Propagation, fixed: float | None, other: Callable[[FloatArray], FloatArray]
    ) -> PerVariable:
        """With what is known of the variables that were summed out; given none, `fixed`, or where None the table."""
        for each in self.conditionals:
            v, table = each.variable, each.table
            if len(each.parents) > 1:
                column = np.full(table.shape[-1], np.nan)
            elif each.parents and isinstance(values, np.ndarray):
                p = values[..., each.parents[0]]
                column = along(table, np.stack([other(p), p], axis=-1))
            elif each.parents:
                column = along(table, values[each.parents[0]])
            else:
                column = table if fixed is None else np.full(table.shape, fixed)
            if isinstance(values, np.ndarray):
                values[..., v] = column[..., 1]
            else:
                values[v] = np.broadcast_to(column, values[v].shape).copy()
        return values


def _compose_carriers(
    labels: tuple[int, ...], carriers: tuple[int, ...], later: Origin
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if not carriers:
        return labels, ()
    if len(carriers) == 1:
        return tuple(labels[k] for k in later.states[carriers[0]]), later.variables[carriers[0]]
    if (merged := _labels_of_merged_group(labels, carriers, later)) is not None:
        return merged
    on = [k for k, unit in enumerate(carriers) if later.states[unit] == (1,)]
    if on:
        return (labels[on[0]],), later.variables[carriers[on[0]]]
    alive = [k for k, unit in enumerate(carriers) if later.states[unit] != (0,)]
    return tuple(labels[k] for k in alive), tuple(later.variables[carriers[k]][0] for k in alive)


def _labels_of_merged_group(
    labels: tuple[int, ...], carriers: tuple[int, ...], later: Origin
) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """As `_compose_carriers`, where a group that carries a variable became one variable; None where it did not."""
    alive = [(label, later.states[unit]) for label, unit in zip(labels, carriers, strict=True) if later.variables[unit]]
    owners = {later.variables[unit] for unit in carriers if later.variables[unit]}
    if len(owners) != 1:
        return None
    count = len(alive[0][1])
    return tuple(next(label for label, states in alive if states[k] == 1) for k in range(count)), owners.pop()
