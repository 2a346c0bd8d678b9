"""From the model that was given to the one that a method takes, and back: marginals, draws, joint tables."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from spinbench.api import Estimate, Method
from spinbench.errors import ConversionError, UnsupportedError
from spinbench.mathematics import all_states
from spinbench.models import Factor, FactorGraph, Model, PairwiseModel, conditionals, to_pairwise
from spinbench.models.groups import FloatArray, merge_groups
from spinbench.models.simplification import Simplification

if TYPE_CHECKING:
    from spinbench.api.host_arrays import PairsWithErrors, PerVariable


def model_for_method(model: Model, method: Method) -> Model:
    """The model as the method takes it.

    Raises:
        UnsupportedError: it cannot be had so.
    """
    if method.model_form == "pairwise":
        return _as_pairs(model, method)
    if method.model_form != "any" and isinstance(model, PairwiseModel) and model.groups:
        model = merge_groups(model)
    if method.model_form != "either" or isinstance(model, PairwiseModel):
        return model
    try:
        return to_pairwise(model, one_of_k=False)
    except ConversionError:
        return model


def _as_pairs(model: Model, method: Method) -> PairwiseModel:
    try:
        return to_pairwise(model)
    except ConversionError as why:
        reason = f"takes pairwise models: {why}"
        if type(method).model_form == "pairwise":
            raise UnsupportedError(f"{method.name} {reason}; gibbs, bp and mf take this one") from None
        fields = dataclasses.fields(method)  # type: ignore[arg-type]
        settings = {field.name: getattr(method, field.name) for field in fields}
        changed = " ".join(
            f"{field.name}={settings[field.name]}" for field in fields if settings[field.name] != field.default
        )
        raise UnsupportedError(f"{method.name} with {changed} {reason}; with its defaults it takes this one") from None


def in_terms_of_origin(model: Model, estimate: Estimate, draws: int, seed: int = 0) -> Estimate:
    """Marginals and their diagnostics of the variables that the user gave, from those that were computed with.

    What evidence or zeros determine is as good as if every draw had been independent. Of draws, variables that were
    summed out are drawn given the others.
    """
    origin = model.origin
    if origin is None:
        return estimate
    if estimate.draws is not None:
        states, log_weights = estimate.draws
        rng = np.random.default_rng(np.random.SeedSequence((seed, 0x4C494654)))
        estimate = dataclasses.replace(estimate, draws=(origin.lift(np.asarray(states).T, rng).T, log_weights))
    if estimate.marginals is None:
        return estimate

    def spread(values: PerVariable | None, fixed: float, along: conditionals.Propagation) -> PerVariable | None:
        if values is None:
            return None
        return origin.diagnostics(values, fixed, along)

    return dataclasses.replace(
        estimate,
        marginals=origin.marginals(estimate.marginals),
        marginals_se=spread(estimate.marginals_se, 0.0, conditionals.propagate_errors),
        marginals_error_bound=spread(estimate.marginals_error_bound, 0.0, conditionals.propagate_errors),
        ess=spread(estimate.ess, float(draws), conditionals.propagate_minimum),
        r_hat=spread(estimate.r_hat, 1.0, conditionals.propagate_maximum),
    )


def allowing_for(estimate: Estimate, rounding: float) -> Estimate:
    """With bounds on log Z that are off by so much still bounds."""
    if not rounding:
        return estimate
    shifts = {"lower": -rounding, "upper": rounding}
    log_z = estimate.log_z
    if log_z is not None:
        log_z += shifts.get(estimate.log_z_kind, 0.0)
    bounds = tuple(dataclasses.replace(each, value=each.value + shifts[each.side]) for each in estimate.bounds)
    return dataclasses.replace(estimate, log_z=log_z, bounds=bounds)


def pairs_as_given(simplified: Simplification, estimate: Estimate) -> PairsWithErrors:
    """Joint tables of the factors that were given, from those of the factors that are left.

    Args:
        simplified: the model, of which `estimate` tells where something fell away.
        estimate: with marginals and pairs of the model that is left.

    Returns:
        Pairs, and no errors; None where a factor's variables share none of the factors that are left.
    """
    if simplified.step is None or estimate.pairs is None:
        return estimate.pairs, None
    if isinstance(simplified.original, PairwiseModel):  # here: a pairwise model without edges
        return np.zeros(0), None
    return _Joint(simplified, estimate.marginals, estimate.pairs).tables(), None


class _Joint:
    """Tables over the scopes of the factors that were given."""

    def __init__(self, simplified: Simplification, marginals: PerVariable, pairs: Sequence[FloatArray]) -> None:
        original, left, step = simplified.original, simplified.model, simplified.step
        assert isinstance(original, FactorGraph)
        assert isinstance(left, FactorGraph)
        assert step is not None
        self.factors, self.step = original.factors, step
        self.single = all_states.by_variable(step.marginals(marginals))
        back = {units[0]: v for v, units in enumerate(step.variables) if units}
        scopes = [tuple(back[u] for u in factor.scope) for factor in left.factors]
        self.left = {frozenset(scope): k for k, scope in enumerate(scopes)}
        self.tables_left = [
            (scope, np.asarray(table).reshape(factor.log_table.shape))
            for scope, factor, table in zip(scopes, left.factors, pairs, strict=True)
        ]
        self.holding: Mapping[int, list[int]] = _by_variable(scopes)
        self.summed = {frozenset((each.variable, *each.parents)): each for each in step.conditionals}

    def tables(self) -> list[FloatArray] | None:
        tables: list[FloatArray] = []
        for factor in self.factors:
            table = self._table(factor)
            if table is None:
                return None
            tables.append(table.ravel())
        return tables

    def _table(self, factor: Factor) -> FloatArray | None:
        free = [v for v in factor.scope if len(self.step.states[v]) > 1]
        states = [self.step.states[v] for v in factor.scope]
        joint = self._free(free)
        if joint is None:
            return None
        table = np.zeros(factor.log_table.shape)
        table[np.ix_(*states)] = joint.reshape([len(each) for each in states])
        return table

    def _free(self, free: list[int]) -> FloatArray | None:
        """Over the possible states of variables that are not determined, in this order."""
        if not free:
            return np.ones(())
        if len(free) == 1:
            return self.single[free[0]][list(self.step.states[free[0]])]
        if (each := self.summed.get(frozenset(free))) is not None and len(free) == 2:
            u = each.parents[0]
            both = (each.table * self.single[u][:, None])[np.ix_(self.step.states[u], self.step.states[each.variable])]
            if free[0] == u:
                return both
            return both.T
        index = next((k for k in self.holding.get(free[0], []) if set(free) <= set(self.tables_left[k][0])), None)
        if index is None:
            return None
        scope, table = self.tables_left[index]
        axes = [v for v in scope if v in free]
        within = table.sum(axis=tuple(axis for axis, v in enumerate(scope) if v not in free))
        return np.asarray(within).transpose([axes.index(v) for v in free])


def _by_variable(scopes: Sequence[tuple[int, ...]]) -> Mapping[int, list[int]]:
    factors: dict[int, list[int]] = {}
    for k, scope in enumerate(scopes):
        for v in scope:
            factors.setdefault(v, []).append(k)
    return factors
