"""1-of-K groups of binary variables as variables of K states."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spinbench.errors import UnsupportedError
from spinbench.models.factor_graph import FactorArrays, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Largest number of entries of all tables, 1 GiB: two coupled groups share a table over all pairs of their states.
MAX_ENTRIES = 2**27


def merge_groups(model: PairwiseModel) -> FactorGraph:
    """The same law with one variable of K states in place of each group; log Z stays.

    Other variables stay binary. The graph's `origin` leads back to the model's variables, or to where these came from.

    Raises:
        UnsupportedError: the tables would have more than 2^27 entries.
    """
    origin = Origin.of_groups(model.num_variables, model.groups, model.labels)
    # State of the merged variable at which each unit is 1.
    state = np.array([states.index(1) for states in origin.states], dtype=np.int64)
    # if all variables are determined, a dummy variable of one state remains
    cards = np.array(origin.derived_cardinalities or (1,), dtype=np.int64)
    first = np.cumsum(cards) - cards
    place = np.where(origin.carriers < 0, -1, first[origin.carriers] + state)
    fields, constant = _unary_log_weights(model, place, int(cards.sum()))
    pairs = _pair_factors(model, origin.carriers, state, cards)
    alone = np.flatnonzero(np.add.reduceat(fields != 0, first))
    sizes = cards[alone]
    unary = fields[np.repeat(first[alone] - (np.cumsum(sizes) - sizes), sizes) + np.arange(sizes.sum())]
    factors = FactorArrays(
        cards,
        np.concatenate([alone, pairs.members]),
        np.concatenate([np.ones(len(alone), dtype=np.int64), pairs.orders]),
        np.concatenate([unary, pairs.logs]),
        np.concatenate([[0], np.cumsum(sizes), sizes.sum() + pairs.offsets[1:]]).astype(np.int64),
    )
    graph = FactorGraph(tuple(cards.tolist()), factors, constant, model.name)
    return replace(graph, origin=origin.after(model.origin), state_names=model.state_names)


def _unary_log_weights(model: PairwiseModel, place: IntArray, num_states: int) -> tuple[FloatArray, float]:
    """Log weights of all states of all variables, from what depends on one alone; what depends on none."""
    is_free = place >= 0
    first, second = place[model.edges].T
    fields = np.bincount(place[is_free], model.biases[is_free], minlength=num_states)
    for end, other in ((first, second), (second, first)):
        selected = (end >= 0) & (other < 0)
        fields += np.bincount(end[selected], model.couplings[selected], minlength=num_states)
    constant = model.log_constant + model.biases[~is_free].sum() + model.couplings[(first < 0) & (second < 0)].sum()
    return np.asarray(fields, dtype=np.float64), float(constant)


def _pair_factors(model: PairwiseModel, variable: IntArray, state: IntArray, cards: IntArray) -> FactorArrays:
    """A table for each two variables that are coupled; members of one group are never both 1.

    Args:
        model: that has groups.
        variable: (N,) what each variable becomes, -1 for one that is 1 for sure.
        state: (N,) at which of its states the model's variable is 1.
        cards: (M,) states of each.
    """
    ends, states = variable[model.edges], state[model.edges]
    between = (ends >= 0).all(axis=1) & (ends[:, 0] != ends[:, 1])
    ends, states, couplings = ends[between], states[between], model.couplings[between]
    turned = ends[:, 0] > ends[:, 1]
    ends[turned], states[turned] = ends[turned, ::-1], states[turned, ::-1]
    scopes, scope_numbers = np.unique(ends, axis=0, return_inverse=True)
    offsets = np.concatenate([[0], np.cumsum(cards[scopes].prod(axis=1))]).astype(np.int64)
    if offsets[-1] > MAX_ENTRIES:
        raise UnsupportedError(
            f"{model.name}: tables of its coupled 1-of-K groups would have {offsets[-1]} entries; samplers of their "
            f"states take at most {MAX_ENTRIES}"
        )
    at = offsets[scope_numbers.ravel()] + states[:, 0] * cards[ends[:, 1]] + states[:, 1]
    logs = np.bincount(at, couplings, minlength=int(offsets[-1])).astype(np.float64, copy=False)
    return FactorArrays(cards, scopes.ravel(), np.full(len(scopes), 2, dtype=np.int64), logs, offsets)
