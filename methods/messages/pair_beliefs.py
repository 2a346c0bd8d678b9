"""What belief propagation says of a model's edges or factors: beliefs over their scopes.

b_f(x_f) ∝ f(x_f) exp Σ_{i in f} c_i(x_i), with cavities c as in `spinbench.methods.messages.arrays`; at a fixed point
their sums over all variables but one are the beliefs of the variables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from spinbench.api import FactorGraph, Model, PairwiseModel
from spinbench.mathematics.graphs.lowering import pieces
from spinbench.mathematics.graphs.message_layouts import FloatArray, Graph, Incidence, factors
from spinbench.methods.messages.arrays import MessagePassing
from spinbench.reference.joint_tables import Pairs, both, expand_table
from spinbench.reference.problem import Problem

Scope = tuple[int, ...]


def pair_beliefs(
    model: Model, graph: Graph, incidence: Incidence, messages: FloatArray, probabilities: FloatArray
) -> Pairs:
    """In the layout of `Estimate.pairs`.

    Args:
        model: any model.
        graph: what it was lowered to.
        incidence: of that.
        messages: (M, 1).
        probabilities: (S,) of all states of the graph's variables.
    """
    passing = MessagePassing(np)
    totals = passing.totals(graph, incidence, messages)
    tables = _Beliefs(passing, graph, totals, messages, probabilities)
    if isinstance(model, FactorGraph):
        origin = Problem(model).origin
        joint = tables.of(*pieces(model))
        return [expand_table(f, origin, table).ravel() for f, table in zip(model.factors, joint, strict=True)]
    if model.groups:
        problem = Problem(model)
        scopes = list(problem.network.tables)
        beliefs = dict(zip(scopes, tables.of(scopes, list(problem.network.tables.values())), strict=True))
        return np.array([both(problem.origin, (i, j), beliefs, tables.single) for i, j in model.edges.tolist()])
    return _of_edges(model, tables.groups.get((), np.zeros((0, 2, 2))), probabilities[1::2])


def _of_edges(model: PairwiseModel, pairs: FloatArray, ones: FloatArray) -> FloatArray:
    """Edges without a coupling are not lowered: their ends know nothing of each other."""
    beliefs = ones[model.edges[:, 0]] * ones[model.edges[:, 1]]
    beliefs[model.couplings != 0] = pairs[:, 1, 1]
    return beliefs


class _Beliefs:
    """Of all factors of a graph.

    Attributes:
        groups: by shape, (n, K_1, …, K_d), those of the pairs by ().
        single: of each variable.
    """

    def __init__(
        self, passing: MessagePassing, graph: Graph, totals: FloatArray, messages: FloatArray, probabilities: FloatArray
    ) -> None:
        self.groups: dict[tuple[int, ...], FloatArray] = {}
        start = 0
        for group in factors(graph):
            pairs = start == 0 and len(graph.pairs.weights) > 0
            cavities, start = passing.cavities(group, totals, messages, start)
            shape = () if pairs else group.log_tables.shape[1:]
            self.groups[shape] = _normalise(passing.joint(group, cavities)[..., 0])
        ends = (graph.first + np.arange(len(graph.first)))[1:]
        self.single = np.split(probabilities, ends)

    def of(self, scopes: Sequence[Scope], tables: Sequence[FloatArray]) -> list[FloatArray]:
        """Of the pieces that the graph was lowered from, in their order, axes as in their scopes."""
        uses: Counter[tuple[int, ...]] = Counter()
        beliefs = []
        for scope, table in zip(scopes, tables, strict=True):
            if len(scope) < 2:
                beliefs.append(self.single[scope[0]] if scope else np.ones(()))
                continue
            order = sorted(range(len(scope)), key=table.shape.__getitem__)
            shape = tuple(table.shape[k] for k in order)
            finite = shape == (2, 2) and bool(np.isfinite(table).all())
            key = () if finite else shape
            belief = self.groups[key][uses[key]]
            uses[key] += 1
            beliefs.append(belief.transpose(np.argsort(order)))
        return beliefs


def _normalise(log: FloatArray) -> FloatArray:
    """Over all axes but the first."""
    axes = tuple(range(1, log.ndim))
    weights = np.exp(log - log.max(axis=axes, keepdims=True, initial=-np.inf))
    return np.asarray(weights / weights.sum(axis=axes, keepdims=True))
