"""Evidence: observed variables are removed, and the constant that they leave is kept; likelihoods become factors."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_index
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.names import find_state
from spinbench.models.origin import Origin
from spinbench.models.pairwise import PairwiseModel
from spinbench.models.possible_states import possible_states

# By index or label of a variable: its state, as number or name, or a likelihood per state.
Evidence = Mapping[Any, int | str | Sequence[float] | np.ndarray]


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

    Soft evidence on a variable of K states are K likelihoods λ (virtual evidence, Pearl 1988): the weight of a state x
    is multiplied by λ[x_v], and the variable stays, unless one state alone has a positive likelihood.

    Args:
        model: any model.
        evidence: number or name of the state of each observed variable, or likelihoods (K,) of its states, which need
            not add up to 1, by the variable's index, or by its label where the model has labels; by both where no label
            is a number.

    Raises:
        ModelError: a variable or state that does not exist, likelihoods that are none, or evidence of probability zero
            where arc consistency shows it (always on graphs without cycles; see `possible_states`).
    """
    observed, likelihoods = _parse_evidence(model, evidence)
    model, determined = _multiply_likelihoods(model, likelihoods)
    observed = dict(sorted((observed | determined).items()))
    if not observed:
        if isinstance(model, FactorGraph) and model.has_zeros and likelihoods:
            _check_consistency(model)
        return model
    reduced: PairwiseModel | FactorGraph
    if isinstance(model, PairwiseModel):
        reduced, observed = _condition_pairwise(model, observed)
    else:
        reduced = _condition_factor_graph(model, observed)
    origin = _build_evidence_origin(model, observed).after(model.origin)
    return replace(reduced, origin=origin, state_names=model.state_names)


def _parse_evidence(
    model: PairwiseModel | FactorGraph, evidence: Evidence
) -> tuple[dict[int, int], dict[int, npt.NDArray[np.float64]]]:
    """{variable: state} and {variable: likelihoods}, checked."""
    index = {label: v for v, label in enumerate(model.labels)}
    # Integers are indices, unless labels are integers themselves.
    if not any(isinstance(label, int | np.integer) for label in index):
        index |= {v: v for v in range(len(index))}
    cards = model.cardinalities
    observed: dict[int, int] = {}
    likelihoods: dict[int, npt.NDArray[np.float64]] = {}
    for key, value in evidence.items():
        if index:
            if key not in index:
                raise ModelError(f"{model.name}: evidence names variable {key!r}, which is none of the model's labels")
            v = index[key]
        else:
            v = check_index(model.name, "a variable of the evidence", key)
        if not 0 <= v < len(cards):
            raise ModelError(f"{model.name}: evidence names variable {v}; variables are 0..{len(cards) - 1}")
        if isinstance(value, list | tuple) or (isinstance(value, np.ndarray) and value.ndim):
            likelihoods[v] = _check_likelihoods(model.name, key, value, cards[v])
            continue
        names = model.state_names.get(model.labels[v], ()) if model.labels else ()
        state = find_state(model.name, key, value, names)
        if not 0 <= state < cards[v]:
            raise ModelError(
                f"{model.name}: evidence sets variable {key!r} to {state}; its states are 0..{cards[v] - 1}"
            )
        observed[v] = state
    return observed, likelihoods


def _check_likelihoods(name: str, key: object, likelihoods: object, num_states: int) -> npt.NDArray[np.float64]:
    try:
        values = np.array(likelihoods, dtype=np.float64)
    except (TypeError, ValueError):
        values = np.empty(0)
    if values.shape != (num_states,) or not np.isfinite(values).all() or (values < 0).any() or not values.any():
        raise ModelError(
            f"{name}: evidence gives variable {key!r} the likelihoods {likelihoods!r}; {num_states} numbers are "
            "needed, one for each state, none of them negative and not all 0"
        )
    return values


def _multiply_likelihoods(
    model: PairwiseModel | FactorGraph, likelihoods: Mapping[int, npt.NDArray[np.float64]]
) -> tuple[PairwiseModel | FactorGraph, dict[int, int]]:
    """The model times the likelihoods, and the states of variables of which one alone is possible."""
    if not likelihoods:
        return model, {}
    with np.errstate(divide="ignore"):
        logs = {v: np.log(values) for v, values in likelihoods.items()}
    determined = {v: int(table.argmax()) for v, table in logs.items() if np.isfinite(table).sum() == 1}
    constant = model.log_constant + sum(float(logs[v].max()) for v in determined)
    soft = {v: table for v, table in logs.items() if v not in determined}
    if isinstance(model, PairwiseModel):
        biases = model.biases.copy()
        for v, table in soft.items():
            biases[v] += table[1] - table[0]
            constant += float(table[0])
        biases.setflags(write=False)
        return replace(model, biases=biases, log_constant=constant), determined
    for table in soft.values():
        table.setflags(write=False)
    factors = (*model.factors, *(Factor((v,), table) for v, table in soft.items()))
    return replace(model, factors=factors, log_constant=constant), determined


def _build_evidence_origin(model: PairwiseModel | FactorGraph, observed: Mapping[int, int]) -> Origin:
    every = {k: tuple(range(k)) for k in set(model.cardinalities)}
    states = [every[k] for k in model.cardinalities]
    for v, state in observed.items():
        states[v] = (state,)
    carried = (v not in observed for v in range(model.num_variables))
    return Origin.of_states(model.cardinalities, states, carried, model.labels)


def _free_variable_labels(model: PairwiseModel | FactorGraph, observed: Mapping[int, int]) -> tuple[Hashable, ...]:
    return tuple(label for v, label in enumerate(model.labels) if v not in observed)


def _condition_factor_graph(model: FactorGraph, observed: Mapping[int, int]) -> FactorGraph:
    free = [v for v in range(model.num_variables) if v not in observed]
    position = {v: k for k, v in enumerate(free)}
    constant, factors = model.log_constant, []
    for index, factor in enumerate(model.factors):
        if observed.keys().isdisjoint(factor.scope):
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
        _free_variable_labels(model, observed),
    )
    if reduced.has_zeros:
        _check_consistency(reduced)
    return reduced


def _check_consistency(reduced: FactorGraph) -> None:
    """Refuses evidence whose contradiction shows only beyond single factors."""
    try:
        possible_states(reduced)
    except ModelError:
        raise ModelError(
            f"{reduced.name}: the evidence is contradictory, for the zeros of the factors allow no state of the "
            "other variables under it, so Z = 0"
        ) from None


def _condition_pairwise(model: PairwiseModel, observed: dict[int, int]) -> tuple[PairwiseModel, dict[int, int]]:
    observed, groups = _propagate_group_evidence(model, observed)
    n = model.num_variables
    is_observed = np.zeros(n, dtype=bool)
    is_observed[list(observed)] = True
    value = np.zeros(n)
    value[list(observed)] = list(observed.values())
    position = np.cumsum(~is_observed) - 1
    i, j = model.edges.T
    w = model.couplings
    constant = model.log_constant + float(value @ model.biases) + float((value[i] * value[j]) @ w)
    field = np.bincount(i, w * value[j], minlength=n) + np.bincount(j, w * value[i], minlength=n)
    biases = (model.biases + field)[~is_observed]
    inner = ~is_observed[i] & ~is_observed[j]
    if not biases.size:
        # The dummy unit contributes log(1 + e^0) to log Z.
        biases, constant = np.zeros(1), constant - float(np.log(2.0))
    reduced = PairwiseModel.from_edges(
        biases,
        position[model.edges[inner]],
        w[inner],
        log_constant=constant,
        groups=[tuple(int(position[u]) for u in group) for group in groups],
        name=model.name,
        labels=_free_variable_labels(model, observed),
    )
    return reduced, observed


def _propagate_group_evidence(
    model: PairwiseModel, observed: dict[int, int]
) -> tuple[dict[int, int], list[tuple[int, ...]]]:
    """Evidence with what 1-of-K groups make of it, and the groups that are left."""
    open_groups = []
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
            open_groups.append(tuple(unknown))
    return dict(sorted(observed.items())), open_groups
