"""Sweeps over the variables of flat factor tables: who is updated together, and where the entries stand that it takes.

Variables that share a factor are never updated at once: those of a colour of this conflict graph, or of a level of the
raster scan, may be. Variables of like shape (states, factors) form a section, cut into chunks of one size, so that
arrays loop over chunks.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.mathematics.graphs.factor_tables import FactorTables, IntArray
from spinbench.mathematics.graphs.sweep_layouts import SET_LABELS

FloatArray = npt.NDArray[np.float64]
NarrowArray = npt.NDArray[np.int32]

# At inverse temperatures below 1 a hard zero lies this many nats below the lowest finite entry of its factor:
# negligible in weight, but chains can cross it at small β.
FLOOR = 25.0
# Largest number of variables of a chunk: wider arrays are not faster and need more padding.
WIDEST = 1024
# Cost of a further chunk (a call, or an iteration of a loop) in variables.
FREE = 16
# Largest number of sections, since each is compiled separately.
MAX_SECTIONS = 12
# Up to this many variables form one section: padding costs less than compiling several.
SMALL = 256


class Section(NamedTuple):
    """B chunks of w variables of at most K states, in d factors of o further variables each.

    A chunk's spare places repeat its first variable; spare factors have the entry 0.

    Attributes:
        rows: (B, w) int32, variables.
        valid: (B, w) 1, or 0 of a spare place.
        bases: (B, d, w) int32, where the factor's entries begin; strides: (B, d, w) int32, of the variable.
        others: (B, o, d, w) int32, the factor's other variables; steps: (B, o, d, w) int32, their strides.
        states: (B, K, w) int32, 0 … K - 1, or of a spare state the variable's last.
        places: (B, K, w) int32, the state's row among all that are reported, or the number of these.
    """

    rows: NarrowArray
    valid: FloatArray
    bases: NarrowArray
    strides: NarrowArray
    others: NarrowArray
    steps: NarrowArray
    states: NarrowArray
    places: NarrowArray


class Entries(NamedTuple):
    """What conditionals are looked up in.

    Attributes:
        values: (T + 1,) the log tables and a 0; where there are zeros, (2T + 2,): then all again, floored.
        floored: () int32, where the floored ones begin; 0 where nothing is zero.
        bases: (F,) int32, variables: (o, F) int32, strides: (o, F) int32: of all factors, for the sum of their entries.
    """

    values: FloatArray
    floored: NarrowArray
    bases: NarrowArray
    variables: NarrowArray
    strides: NarrowArray


class TableSweep(NamedTuple):
    """Attributes: entries; sections in the order of a sweep; single: a chunk a variable, or None."""

    entries: Entries
    sections: tuple[Section, ...]
    single: Section | None


def marginal_rows(cardinalities: IntArray) -> tuple[IntArray, IntArray]:
    """(variable, state) of what is reported of a sweep: state 1 of binary variables, all states of larger ones."""
    counts = np.select([cardinalities < 2, cardinalities == 2], [0, 1], cardinalities)
    variables = np.repeat(np.arange(len(counts)), counts)
    states = np.arange(len(variables)) - np.repeat(np.cumsum(counts) - counts, counts)
    return variables, np.where(cardinalities[variables] == 2, 1, states)


def state_rows(cardinalities: IntArray) -> tuple[IntArray, FloatArray]:
    """Of all states, of binary models of state 1: where p is reported, and its sign, -1 of 1 - p and 0 of 1.

    Row R, one behind those that are reported, stands for states that are certain.
    """
    variables, states = marginal_rows(cardinalities)
    every = np.repeat(np.arange(len(cardinalities)), cardinalities)
    state = np.arange(len(every)) - np.repeat(np.cumsum(cardinalities) - cardinalities, cardinalities)
    place = {pair: row for row, pair in enumerate(zip(variables.tolist(), states.tolist(), strict=True))}
    pairs = list(zip(every.tolist(), state.tolist(), strict=True))
    rows = np.array([place.get((v, k), place.get((v, 1), len(variables))) for v, k in pairs])
    sign = dict.fromkeys(((v, 0) for v, k in place if k == 1), -1.0) | dict.fromkeys(place, 1.0)
    signs = np.array([sign.get(pair, 0.0) for pair in pairs])
    is_reported = (state == 1) | (cardinalities != 2).any()
    return rows[is_reported], signs[is_reported]


def replace_zeros(tables: FactorTables) -> FloatArray:
    """(T,) `tables.values`, a zero being `FLOOR` below the lowest other entry of its factor."""
    hard = np.isneginf(tables.values)
    if not hard.any():
        return tables.values
    lowest = np.minimum.reduceat(np.where(hard, np.inf, tables.values), tables.offsets[:-1])
    return np.where(hard, np.repeat(lowest, np.diff(tables.offsets)) - FLOOR, tables.values)


def both_halves(tables: FactorTables) -> tuple[FloatArray, int]:
    """(entries, where the floored ones begin): see `Entries`."""
    if not np.isneginf(tables.values).any():
        return np.append(tables.values, 0.0), 0
    return np.concatenate([tables.values, np.zeros(1), replace_zeros(tables), np.zeros(1)]), len(tables.values) + 1


def conflicts(tables: FactorTables) -> IntArray:
    """(E, 2) pairs of variables that share a factor, each once, the smaller first."""
    orders = np.diff(tables.scope_starts)
    pairs = [np.zeros((0, 2), dtype=np.int64)]
    for order in np.unique(orders[orders > 1]):
        scopes = tables.scope_variables[tables.scope_starts[:-1][orders == order][:, None] + np.arange(order)]
        first, second = np.triu_indices(int(order), 1)
        pairs.append(np.stack([scopes[:, first].ravel(), scopes[:, second].ravel()], axis=1))
    return np.unique(np.concatenate(pairs), axis=0)


def sweep_order(tables: FactorTables, scan: Literal["chromatic", "raster"]) -> tuple[IntArray, IntArray]:
    """(variables of 2 states or more in the order of a sweep, where each set begins that is updated at once, and N)."""
    free = tables.cardinalities > 1
    labels = SET_LABELS[scan](len(free), conflicts(tables))
    sequence = np.argsort(labels, kind="stable")
    sequence = sequence[free[sequence]]
    return sequence, np.append(np.flatnonzero(np.diff(labels[sequence], prepend=-1)), len(sequence))


def table_sweep(tables: FactorTables, scan: Literal["chromatic", "raster"], single: bool) -> TableSweep:
    """The layout of a model's tables.

    Args:
        tables: of the model.
        scan: the order of a sweep.
        single: whether to lay out single variables, too: in the order of the sweep, or 0, 1, … of a raster scan.
    """
    sequence, begins = sweep_order(tables, scan)
    sets = [sequence[a:b] for a, b in pairwise(begins)]
    parts, alone = _by_shape(tables, sets), sequence
    if scan == "raster" and sets:
        parts, alone = [sets], np.sort(sequence)
    sections = tuple(_section(tables, part) for part in parts)
    return TableSweep(_entries(tables), sections, _section(tables, alone[:, None]) if single and len(alone) else None)


def _entries(tables: FactorTables) -> Entries:
    values, floored = both_halves(tables)
    orders = np.diff(tables.scope_starts)
    width = int(orders.max(initial=0))
    variables, strides = np.zeros((2, width, len(orders)), dtype=np.int32)
    factor = np.repeat(np.arange(len(orders)), orders)
    axis = np.arange(len(factor)) - tables.scope_starts[factor]
    variables[axis, factor], strides[axis, factor] = tables.scope_variables, tables.scope_strides
    return Entries(
        values=values,
        floored=np.array(floored, dtype=np.int32),
        bases=tables.offsets[:-1].astype(np.int32),
        variables=variables,
        strides=strides,
    )


def _by_shape(tables: FactorTables, sets: list[IntArray]) -> Iterable[list[IntArray]]:
    """The sets, cut by their variables' states and factors, or less finely where there are too many shapes."""
    states, factors = tables.cardinalities, np.diff(tables.starts)
    powers = np.ceil(np.log2(np.maximum(factors, 1))).astype(np.int64)
    shapes = [states * 64 + powers, powers, np.zeros_like(states)]
    for shape in shapes[2:] if len(states) <= SMALL else shapes:
        kinds = np.unique(shape[states > 1])
        if len(kinds) <= MAX_SECTIONS:
            break
    for kind in kinds:
        parts = [members[shape[members] == kind] for members in sets]
        yield [members for members in parts if len(members)]


def _chunks(sets: list[IntArray] | IntArray) -> tuple[NarrowArray, FloatArray]:
    """(rows, valid) of sets of variables, as wide as is cheapest."""
    if isinstance(sets, np.ndarray):
        return sets.astype(np.int32), np.ones(sets.shape)
    lengths = np.array([len(members) for members in sets])
    widths = np.unique(np.minimum(lengths, WIDEST))
    costs = [int((-(-lengths // w)).sum()) * (int(w) + FREE) for w in widths]
    width = int(widths[int(np.argmin(costs))])
    cut = [members[a : a + width] for members in sets for a in range(0, len(members), width)]
    rows = np.stack([np.append(part, np.full(width - len(part), part[0])) for part in cut])
    valid = np.stack([np.arange(width) < len(part) for part in cut])
    return rows.astype(np.int32), valid.astype(np.float64)


def _section(tables: FactorTables, sets: list[IntArray] | IntArray) -> Section:
    rows, valid = _chunks(sets)
    degrees = np.diff(tables.starts)
    depth, max_states = max(int(degrees[rows].max()), 1), int(tables.cardinalities[rows].max())
    # Axes of `slot` and `present`: (B, d, w).
    slot = tables.starts[rows][:, None, :] + np.arange(depth)[:, None]
    present = np.arange(depth)[:, None] < degrees[rows][:, None, :]
    slot = np.where(present, slot, 0)
    factor = tables.factors[slot] if len(tables.factors) else np.zeros_like(slot)
    bases = np.where(present, tables.offsets[factor], len(tables.values))
    strides = np.where(present, tables.strides[slot] if len(tables.strides) else 0, 0)
    others, steps = _others(tables, rows[:, None, :], factor, present)
    states = np.arange(max_states)[:, None]
    sizes = tables.cardinalities[rows][:, None, :]
    variable, state = marginal_rows(tables.cardinalities)
    place = np.full((len(tables.cardinalities), max_states), len(variable))
    exists = state < max_states
    place[variable[exists], state[exists]] = np.flatnonzero(exists)
    return Section(
        rows=rows,
        valid=valid,
        bases=bases.astype(np.int32),
        strides=strides.astype(np.int32),
        others=others,
        steps=steps,
        states=np.minimum(states, sizes - 1).astype(np.int32),
        # C order, the layout that kernels are compiled for.
        places=place[rows].swapaxes(1, 2).astype(np.int32, order="C"),
    )


def _others(
    tables: FactorTables, rows: NarrowArray, factor: IntArray, present: npt.NDArray[np.bool_]
) -> tuple[NarrowArray, NarrowArray]:
    """(variables, strides), both (B, o, d, w), of the factors' variables beside `rows`; stride 0 where none is."""
    if not present.any():
        empty = np.zeros((factor.shape[0], 0, *factor.shape[1:]), dtype=np.int32)
        return empty, empty
    orders = np.diff(tables.scope_starts)
    longest = int(orders[factor][present].max())
    variables, strides = np.zeros((2, factor.shape[0], longest, *factor.shape[1:]), dtype=np.int32)
    for axis in range(longest):
        inside = present & (axis < orders[factor])
        place = np.where(inside, tables.scope_starts[factor] + axis, 0)
        if len(tables.scope_variables):
            inside &= tables.scope_variables[place] != rows
            variables[:, axis] = np.where(inside, tables.scope_variables[place], 0)
            strides[:, axis] = np.where(inside, tables.scope_strides[place], 0)
    # The variable itself is left out; its stride is 0 here.
    last = np.argsort(strides == 0, axis=1, kind="stable")[:, : longest - 1]
    return np.take_along_axis(variables, last, axis=1), np.take_along_axis(strides, last, axis=1)
