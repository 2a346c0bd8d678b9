"""Connected components of a support: what changes of single variables lead to, over states of positive weight.

A chain that changes one variable at a time never leaves the component that it starts in, so that how much it makes of
each is what its starts do. Of few states all components are known, else those that a search from feasible states finds
the ends of; of each the weight is summed exactly.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from spinbench.inference.checks.probes import Content, FloatArray, IntArray
from spinbench.mathematics.graphs.feasible_starts import feasible_starts
from spinbench.models import FactorGraph

# Largest number of states for which all components are found by enumeration.
MAX_ENUMERATED = 2**12
# Largest number of variables of a model that is searched.
MAX_VARIABLES = 200
# Largest number of states of a component that a search explores completely.
MAX_COMPONENT = 256
# Limit of factor evaluations of a search (factors times states).
MAX_WORK = 2.0**22
# Feasible states from which components are searched.
STARTS = 32


class Component(NamedTuple):
    """Of states that single changes lead to from each other.

    Attributes:
        log_weight: of all of them together.
        law: (S,) probabilities of all states of all variables among them.
    """

    log_weight: float
    law: FloatArray


@lru_cache(maxsize=16)
def separate_components(content: Content, seed: int) -> tuple[Component, ...]:
    """Components whose states are all known, the largest of a model that is enumerated left out; empty where the
    support is in one, as far as is seen."""
    model = content.model
    assert isinstance(model, FactorGraph)
    if math.prod(model.cardinalities) <= MAX_ENUMERATED:
        return _enumerate_components(model)
    if model.num_variables <= MAX_VARIABLES:
        return _search_components(model, seed)
    return ()


def _enumerate_components(model: FactorGraph) -> tuple[Component, ...]:
    from scipy import sparse

    sizes = model.cardinalities
    states = np.indices(sizes).reshape(len(sizes), -1)
    logs = model.log_weight(states.T)
    possible, places = (logs > -np.inf).reshape(sizes), np.arange(logs.size).reshape(sizes)
    ends = []
    for axis, size in enumerate(sizes):
        for first in range(size):
            for second in range(first + 1, size):
                both = np.take(possible, first, axis) & np.take(possible, second, axis)
                ends.append(np.stack([np.take(places, k, axis)[both] for k in (first, second)]))
    pairs = np.concatenate(ends, axis=1)
    graph = sparse.coo_array((np.ones(pairs.shape[1]), (pairs[0], pairs[1])), shape=(logs.size,) * 2)
    _, part = sparse.csgraph.connected_components(graph, directed=False)
    is_possible = possible.ravel()
    names, counts = np.unique(part[is_possible], return_counts=True)
    others = np.delete(names, int(counts.argmax()))
    return tuple(
        _component(states.T[is_possible & (part == name)], logs[is_possible & (part == name)], sizes) for name in others
    )


def _search_components(model: FactorGraph, seed: int) -> tuple[Component, ...]:
    starts = np.unique(np.asarray(feasible_starts(model, STARTS, seed)).T, axis=0)
    components: list[Component] = []
    visited: set[bytes] = set()
    outside, left = 0, MAX_WORK / max(len(model.factors), 1)
    for start in starts.astype(np.int64):
        if start.tobytes() in visited:
            continue
        reachable, left = _reachable_states(model, start, left)
        if reachable is None:
            outside += 1
        else:
            visited |= {state.tobytes() for state in reachable}
            components.append(_component(reachable, model.log_weight(reachable), model.cardinalities))
        if left <= 0:
            break
    if len(components) == 1 and not outside:
        return ()
    return tuple(components)


def _reachable_states(model: FactorGraph, start: IntArray, left: float) -> tuple[IntArray | None, float]:
    """All states that single changes lead to from one, or None where they are too many; and what work is left."""
    reachable, waiting = {start.tobytes(): start}, [start]
    while waiting and left > 0:
        near = _neighbours(waiting.pop(), model.cardinalities)
        left -= len(near)
        for state in near[model.log_weight(near) > -np.inf]:
            if state.tobytes() not in reachable:
                reachable[state.tobytes()] = state
                waiting.append(state)
        if len(reachable) > MAX_COMPONENT:
            return None, left
    return (None if waiting else np.array(list(reachable.values()))), left


def _neighbours(state: IntArray, sizes: tuple[int, ...]) -> IntArray:
    """(Σ (K - 1), N) states that differ in one variable."""
    variables = np.repeat(np.arange(len(sizes)), np.array(sizes) - 1)
    shifts = np.concatenate([np.arange(1, size) for size in sizes])
    near = np.tile(state, (len(variables), 1))
    near[np.arange(len(variables)), variables] = (state[variables] + shifts) % np.array(sizes)[variables]
    return near


def _component(states: IntArray, logs: FloatArray, sizes: tuple[int, ...]) -> Component:
    top = float(logs.max())
    weights = np.exp(logs - top)
    laws = [np.bincount(column, weights, size) for column, size in zip(states.T, sizes, strict=True)]
    return Component(top + math.log(weights.sum()), np.concatenate(laws) / weights.sum())
