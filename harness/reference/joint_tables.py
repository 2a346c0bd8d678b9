"""Joint probabilities over the scopes of a model's factors or edges, exactly, in NumPy.

Beside log Z and marginals these are what a model's parameters are fitted with: the derivatives of log Z with respect to
its log tables, or couplings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from spinbench.models import Factor, FactorGraph, Model, Origin, PairwiseModel
from spinbench.reference.choice import Limits, first_answer
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.memory import allowed_bytes
from spinbench.reference.network import FloatArray, IntArray, Network, Scope
from spinbench.reference.orders.order import pairs_of
from spinbench.reference.problem import Problem

# p(s_i = s_j = 1) of a pairwise model's edges (E,), or one flat table (C order) per factor of a factor graph.
Pairs = FloatArray | list[FloatArray]


def pairs(model: Model, *, max_bytes: int | None = None) -> Pairs:
    """Probabilities of the states of all pairs that are coupled, or of all factors.

    Args:
        model: any model.
        max_bytes: memory that elimination may take, the tables of the result apart; None: `default_max_bytes`.

    Returns:
        of a `PairwiseModel` p(s_i = s_j = 1), (E,), in the order of its edges; of a `FactorGraph` a flat table for each
        factor, laid out as its log table is.

    Raises:
        ModelError: Z = 0.
        IntractableError: too wide for the memory.
    """
    problem = _WholeProblem(model)
    solvers = iter([BucketTree.build(problem)])
    limits = Limits(allowed_bytes(max_bytes))
    _, tables = first_answer(problem, solvers, limits, lambda solver: solver.joint_tables(), marginals=True)
    if isinstance(model, FactorGraph):
        return [_table_of_factor(factor, problem.origin, tables).ravel() for factor in model.factors]
    return _of_edges(model, problem.origin, tables)


def expand_table(factor: Factor, origin: Origin, joint: FloatArray) -> FloatArray:
    """A table over all states of a factor's scope, zero where a state is not possible.

    Args:
        factor: of the model.
        origin: of the problem's variables.
        joint: over the possible states of those variables of the scope that are left, in the scope's order.
    """
    if origin.is_identity:
        return joint
    index = [origin.states[v] for v in factor.scope]
    table = np.zeros(factor.log_table.shape)
    table[np.ix_(*index)] = joint.reshape([len(states) for states in index])
    return table


def both(
    origin: Origin, ends: tuple[int, int], joint: Mapping[Scope, FloatArray], single: Sequence[FloatArray]
) -> float:
    """p(s_i = s_j = 1) of two variables of a pairwise model.

    Args:
        origin: of the problem's variables.
        ends: i and j.
        joint: tables over pairs of variables that are left, in ascending order.
        single: probabilities of each of them alone; two that share no table are taken to be independent.
    """
    (a, k), (b, m) = sorted((int(origin.carriers[v]), _one(origin, v)) for v in ends)
    if a < 0:
        return k * (float(m) if b < 0 else float(single[b][m]))
    # Both stand for states of one variable: they are 1 together in the same state, or never.
    if a == b:
        return 0.0 if k != m else float(single[a][k])
    if (a, b) in joint:
        return float(joint[a, b][k, m])
    return float(single[a][k] * single[b][m])


def _one(origin: Origin, v: int) -> int:
    """The state of its source at which a binary variable is 1; of a determined one its value."""
    if origin.carriers[v] >= 0:
        return origin.states[v].index(1)
    return origin.states[v][0]


def _table_of_factor(factor: Factor, origin: Origin, tables: Mapping[Scope, FloatArray]) -> FloatArray:
    scope = [int(origin.carriers[v]) for v in factor.scope if origin.carriers[v] >= 0]
    ascending = tuple(sorted(scope))
    joint = np.ones(())
    if scope:
        joint = tables[ascending].transpose([ascending.index(u) for u in scope])
    return expand_table(factor, origin, joint)


def _of_edges(model: PairwiseModel, origin: Origin, tables: Mapping[Scope, FloatArray]) -> FloatArray:
    single = [np.empty(0)] * len(origin.derived_cardinalities)
    for scope, table in tables.items():
        for axis, v in enumerate(scope):
            single[v] = table.sum(axis=tuple(k for k in range(len(scope)) if k != axis))
    return np.array([both(origin, (i, j), tables, single) for i, j in model.edges.tolist()])


class _WholeProblem(Problem):
    """With a table for every edge and factor, also where it says nothing: its variables are to share a clique."""

    def __init__(self, model: Model) -> None:
        super().__init__(model)
        self.cardinalities = self.origin.derived_cardinalities

    @cached_property
    def network(self) -> Network:
        network = super().network
        tables = dict(network.tables)
        for scope in self._factor_scopes():
            tables.setdefault(scope, np.zeros([network.cardinalities[v] for v in scope]))
        return Network(network.cardinalities, tables, network.constant)

    @cached_property
    def pairs(self) -> IntArray:
        return pairs_of(self.network.tables)

    def _factor_scopes(self) -> set[Scope]:
        model, source = self.model, self.origin.carriers
        if isinstance(model, FactorGraph):
            model_scopes = [factor.scope for factor in model.factors]
        else:
            model_scopes = model.edges.tolist()
        scopes = {tuple(sorted({int(source[v]) for v in scope} - {-1})) for scope in model_scopes}
        return scopes - {()}
