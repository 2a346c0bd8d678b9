"""What a model's weights allow: the states that hard zeros leave possible, and how large finite weights may be."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.checks import largest_finite_magnitude
from spinbench.models.factor_graph import FactorArrays, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel

BoolArray = npt.NDArray[np.bool_]
# Entries of tables that are looked at together.
MAX_STACKED_ENTRIES = 2**20
# Largest finite |log weight| by precision: sums with it keep two decimals of other terms (three and a half in float64).
MAX_LOG_WEIGHT: Mapping[str, float] = {"float32": 1e5, "float64": 1e12}


def possible_states(graph: FactorGraph) -> list[BoolArray]:
    """One (K,) mask a variable, False where generalised arc consistency shows that p(x_v = k) = 0.

    The masks are exact on graphs without cycles. On others a state may stay True whose probability is zero.

    Raises:
        ModelError: no state of some variable is possible, so Z = 0.
    """
    masks = _masks_of_zeros(graph)
    return [masks.get(v, np.ones(k, dtype=bool)) for v, k in enumerate(graph.cardinalities)]


def _masks_of_zeros(graph: FactorGraph) -> dict[int, BoolArray]:
    """The masks of the variables that have tables with zeros; empty where these rule out no state."""
    flat = graph.flat
    has_zeros = flat.entry_ranges[0] == -np.inf
    queue = deque(_pruning_factors(flat, has_zeros))
    if not queue:
        return {}
    touching: dict[int, list[int]] = defaultdict(list)
    for index in np.flatnonzero(has_zeros).tolist():
        for v in graph.factors[index].scope:
            touching[v].append(index)
    masks = {v: np.ones(graph.cardinalities[v], dtype=bool) for v in touching}
    waiting = set(queue)
    # Variables that have lost a state.
    cut: set[int] = set()
    while queue:
        index = queue.popleft()
        waiting.discard(index)
        for v in _prune_masks(graph, index, masks, cut):
            fresh = [k for k in touching[v] if k not in waiting]
            queue.extend(fresh)
            waiting.update(fresh)
    return masks


def _pruning_factors(flat: FactorArrays, has_zeros: BoolArray) -> list[int]:
    """Factors, ascending, that by themselves leave some state of a variable without an entry."""
    pruning: list[int] = []
    for indices, _, shape in flat.group_by_shape():
        indices = indices[has_zeros[indices]]
        for part in np.split(indices, range(0, indices.size, 1 + MAX_STACKED_ENTRIES // math.prod(shape)))[1:]:
            supports = flat.stack_tables(part, shape) > -np.inf
            for axis in range(len(shape)):
                others = tuple(k for k in range(1, supports.ndim) if k != axis + 1)
                alive = np.asarray(supports.any(axis=others))
                pruning += part[~alive.all(axis=1)].tolist()
    return sorted(set(pruning))


def possible_state_sets(graph: FactorGraph) -> tuple[tuple[int, ...], ...]:
    """What `possible_states` leaves of each variable, ascending; ModelError where it leaves none."""
    every = {k: tuple(range(k)) for k in set(graph.cardinalities)}
    possible = [every[k] for k in graph.cardinalities]
    if graph.has_zeros:
        for v, mask in _masks_of_zeros(graph).items():
            if not mask.all():
                possible[v] = tuple(np.flatnonzero(mask).tolist())
    return tuple(possible)


def origin_of_possible_states(graph: FactorGraph) -> Origin:
    """The map from variables of several possible states to those of the graph; ModelError where one has none."""
    states = possible_state_sets(graph)
    return Origin.of_states(graph.cardinalities, states, (len(each) > 1 for each in states))


def _prune_masks(graph: FactorGraph, index: int, masks: dict[int, BoolArray], cut: set[int]) -> Iterator[int]:
    """Takes from the masks what one factor's support leaves no room for; the variables that lose a state."""
    factor = graph.factors[index]
    scope, support = factor.scope, factor.log_table > -np.inf
    for axis, v in enumerate(scope):
        if v in cut:
            support = np.compress(masks[v], support, axis=axis)
    for axis, v in enumerate(scope):
        alive = support.any(axis=tuple(k for k in range(len(scope)) if k != axis))
        if alive.all() and alive.size:
            continue
        if not alive.any():
            raise ModelError(f"{graph.name}: factor {index} over {scope} leaves variable {v} no state, so Z = 0")
        # The support lists only the states that the mask had left, in their order.
        masks[v][masks[v]] = alive
        cut.add(v)
        support = np.compress(alive, support, axis=axis)
        yield v


def check_weight_range(method: str, model: PairwiseModel | FactorGraph, precision: str) -> None:
    """Refuses finite weights beside which rounding swallows the others.

    Args:
        method: for the message.
        model: as it was given.
        precision: "float32" or "float64".

    Raises:
        UnsupportedError: a finite |log weight| is larger than `MAX_LOG_WEIGHT`.
    """
    if isinstance(model, PairwiseModel):
        parts: tuple[npt.NDArray[np.float64], ...] = (model.biases, model.couplings)
    else:
        parts = (model.flat.logs,)
    size = max(map(largest_finite_magnitude, parts), default=0.0)
    if size > MAX_LOG_WEIGHT[precision]:
        raise UnsupportedError(
            f"{method}: {model.name} has a finite log weight of size {size:.3g}, beside which rounding swallows the "
            f"others; up to {MAX_LOG_WEIGHT[precision]:g} is allowed in {precision}, exact takes any, and what must "
            "not be is written as a weight of 0 or as evidence"
        )
