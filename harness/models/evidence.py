"""Evidence: observed variables are removed, and the constant that they leave is kept."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import replace
from typing import Any, overload

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.checks import check_index
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel
from spinbench.models.possible import possible_states

Evidence = Mapping[Any, int]


@overload
def condition(model: PairwiseModel, evidence: Evidence) -> PairwiseModel: ...
@overload
def condition(model: FactorGraph, evidence: Evidence) -> FactorGraph: ...
@overload
def condition(model: PairwiseModel | FactorGraph, evidence: Evidence) -> PairwiseModel | FactorGraph: ...
def condition(model: PairwiseModel | FactorGraph, evidence: Evidence) -> PairwiseModel | FactorGraph:
    """The model of the other variables, its Z the sum over the states that agree with the evidence.

    The result's `origin` knows the observed variables: `original_marginals` gives back marginals of all of them,
    `origin.free` the indices of those that are left. Where all are observed, one variable stays that stands for
    none of them. In a pairwise model, units whose state follows from their 1-of-K group are removed too.

    Args:
        model: any model.
        evidence: state of each observed variable, by its index, or by its label where the model has labels.

    Raises:
        ModelError: a variable or state that does not exist, or evidence of probability zero where arc
            consistency shows it (always on graphs without cycles; see `possible_states`).
    """
    observed = _resolve(model, evidence)
    if not observed:
        return model
    reduced: PairwiseModel | FactorGraph
    if isinstance(model, PairwiseModel):
        reduced, observed = _condition_pairwise(model, observed)
    else:
        reduced = _condition_factors(model, observed)
    here = _origin(model, observed)
    return replace(reduced, origin=here if model.origin is None else model.origin.then(here))


def _resolve(model: PairwiseModel | FactorGraph, evidence: Evidence) -> dict[int, int]:
    """{variable: state}, ascending, checked."""
    index = {label: v for v, label in enumerate(model.labels)}
    cards = model.cardinalities
    observed: dict[int, int] = {}
    for key, value in evidence.items():
        if index:
            if key not in index:
                raise ModelError(f"{model.name}: evidence names variable {key!r}, which is none of the model's labels")
            v = index[key]
        else:
            v = check_index(model.name, "a variable of the evidence", key)
        if not 0 <= v < len(cards):
            raise ModelError(f"{model.name}: evidence names variable {v}; variables are 0..{len(cards) - 1}")
        state = check_index(model.name, f"the observed state of variable {key!r}", value)
        if not 0 <= state < cards[v]:
            raise ModelError(
                f"{model.name}: evidence sets variable {key!r} to {state}; its states are 0..{cards[v] - 1}"
            )
        observed[v] = state
    return dict(sorted(observed.items()))


def _origin(model: PairwiseModel | FactorGraph, observed: Mapping[int, int]) -> Origin:
    every = {k: tuple(range(k)) for k in set(model.cardinalities)}
    states: list[tuple[int, ...]] = []
    variables: list[tuple[int, ...]] = []
    count = 0
    for v, k in enumerate(model.cardinalities):
        if v in observed:
            states.append((observed[v],))
            variables.append(())
        else:
            states.append(every[k])
            variables.append((count,))
            count += 1
    return Origin(model.cardinalities, tuple(states), tuple(variables), model.labels)


def _free_labels(model: PairwiseModel | FactorGraph, observed: Mapping[int, int]) -> tuple[Hashable, ...]:
    return tuple(label for v, label in enumerate(model.labels) if v not in observed)


def _condition_factors(model: FactorGraph, observed: Mapping[int, int]) -> FactorGraph:
    free = [v for v in range(model.num_variables) if v not in observed]
    position = {v: k for k, v in enumerate(free)}
    constant, factors = model.log_constant, []
    for index, factor in enumerate(model.factors):
        if not any(v in observed for v in factor.scope):
            factors.append(Factor(tuple(position[v] for v in factor.scope), factor.log_table))
            continue
        # A copy, so that the full table is not kept alive by a slice of it.
        table = np.array(factor.log_table[tuple(observed.get(v, slice(None)) for v in factor.scope)])
        if table.max() == -np.inf:
            raise ModelError(
                f"{model.name}: the evidence is contradictory, for factor {index} over variables {factor.scope} "
                "is zero under it, so Z = 0"
            )
        if table.ndim == 0:
            constant += float(table)
        else:
            table.setflags(write=False)
            factors.append(Factor(tuple(position[v] for v in factor.scope if v not in observed), table))
    reduced = FactorGraph(
        tuple(model.cardinalities[v] for v in free) or (1,),
        tuple(factors),
        constant,
        model.name,
        _free_labels(model, observed),
    )
    if reduced.has_zeros:
        _check_possible(reduced)
    return reduced


def _check_possible(reduced: FactorGraph) -> None:
    """Refuses evidence whose contradiction shows only beyond single factors."""
    try:
        possible_states(reduced)
    except ModelError:
        raise ModelError(
            f"{reduced.name}: the evidence is contradictory, for the zeros of the factors allow no state of the "
            "other variables under it, so Z = 0"
        ) from None


def _condition_pairwise(model: PairwiseModel, observed: dict[int, int]) -> tuple[PairwiseModel, dict[int, int]]:
    observed, groups = _close_groups(model, observed)
    n = model.num_variables
    known = np.zeros(n, dtype=bool)
    known[list(observed)] = True
    value = np.zeros(n)
    value[list(observed)] = list(observed.values())
    position = np.cumsum(~known) - 1
    i, j = model.edges.T
    w = model.couplings
    constant = model.log_constant + float(value @ model.biases) + float((value[i] * value[j]) @ w)
    field = np.bincount(i, w * value[j], minlength=n) + np.bincount(j, w * value[i], minlength=n)
    biases = (model.biases + field)[~known]
    inner = ~known[i] & ~known[j]
    if not biases.size:
        # One unit that stands for nothing contributes log(1 + e^0) to log Z.
        biases, constant = np.zeros(1), constant - float(np.log(2.0))
    reduced = PairwiseModel.from_edges(
        biases,
        position[model.edges[inner]],
        w[inner],
        log_constant=constant,
        groups=[tuple(int(position[u]) for u in group) for group in groups],
        name=model.name,
        labels=_free_labels(model, observed),
    )
    return reduced, observed


def _close_groups(model: PairwiseModel, observed: dict[int, int]) -> tuple[dict[int, int], list[tuple[int, ...]]]:
    """Evidence with what 1-of-K groups make of it, and the groups that are left."""
    left = []
    for group in model.groups:
        ones = [u for u in group if observed.get(u) == 1]
        unknown = [u for u in group if u not in observed]
        if len(ones) > 1 or not (ones or unknown):
            raise ModelError(
                f"{model.name}: the evidence is contradictory, for exactly one of the units {group} is 1, so Z = 0"
            )
        if ones:
            observed |= {u: int(u == ones[0]) for u in group}
        elif len(unknown) == 1:
            observed[unknown[0]] = 1
        else:
            left.append(tuple(unknown))
    return dict(sorted(observed.items())), left
