"""Tree-reweighted sum-product: a convex upper bound on log Z for models with factors of order 2 or less.

Wainwright, Jaakkola and Willsky, "A new class of upper bounds on the log partition function", IEEE Transactions on
Information Theory 51 (2005). For spanning forests T with weights λ_T and edge appearance probabilities
ρ_e = Σ_{T ∋ e} λ_T, and any messages m,

    log Z <= Σ_T λ_T log Z_T(θ̃),   θ̃_v = θ_v + Σ_e ρ_e m_{e→v},   θ̃_e = θ_e / ρ_e - m_{e→i} - m_{e→j},

since Σ_T λ_T θ̃_T = θ and log Z is convex in θ (Hölder's inequality). The bound is evaluated in this form, forest by
forest, in float64 and plus its rounding, so that it holds wherever the iteration stands; at a fixed point of the
messages it is the smallest for its ρ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.api import Conformance, Estimate, MethodProfile, Model, Reduction, Trace
from spinbench.errors import UnsupportedError
from spinbench.foundation.parameters import check_setting, is_int_at_least
from spinbench.mathematics.graphs.lowering import lower
from spinbench.mathematics.graphs.message_layouts import (
    FloatArray,
    Graph,
    Incidence,
    IntArray,
    factors,
    incidence,
    marginals,
)
from spinbench.methods.messages.fixed_points import FixedPointMethod


class Tables(NamedTuple):
    """The lowered model as a graph with a table on each edge; K is the largest number of states.

    Attributes:
        graph: without factors of order above 2, and without parallel edges.
        incidence: of its messages.
        edges: (E, 2) int64 variables: first the pairs, then the factors of each group.
        nodes: (n, K) float64 log weights, -inf beyond a variable's own states.
        log_tables: (E, K, K) float64 log tables, 0 beyond the variables' own states.
        messages: (2, E, K) int64, the message entry to the first and to the second end at each state; M, which stands
            for 0, at the first states and beyond a variable's own.
    """

    graph: Graph
    incidence: Incidence
    edges: IntArray
    nodes: FloatArray
    log_tables: FloatArray
    messages: IntArray


@dataclass(frozen=True, kw_only=True)
class TreeReweighted(FixedPointMethod[Tables]):
    """Tree-reweighted sum-product: a convex upper bound on log Z.

    Edge probabilities start from forests that together hold all edges, equally weighted, and are optimised by
    conditional gradient: each round adds the spanning forest of the largest mutual information, with weight
    2 / (round + 4). The smallest bound of all rounds is reported. It is an upper bound whether or not the messages
    have converged; "not converged" says that it could be smaller at the same edge probabilities.

    Every run of a model gives the same, so that only one chain is computed.

    Attributes:
        rounds: of the optimisation of the edge probabilities; 0 keeps the first ones.
        damping: d in [0, 1): a message becomes the old one to the power d times the new one to the power 1 - d. None:
            0 in compiled code, whose messages follow one another, and 0.3 on arrays, where all change at once.
        tolerance: the iteration ends, after the last round, when no message changes by more (as in `bp`).
    """

    rounds: int = 30
    damping: float | None = None

    name: ClassVar[str] = "trw"
    summary: ClassVar[str] = "tree-reweighted sum-product, an upper bound on log Z"
    profile = MethodProfile(family="messages")
    conformance = Conformance(exact_on_trees=True)

    def __post_init__(self) -> None:
        check_setting(self, "rounds", is_int_at_least(self.rounds, 0), "an integer of at least 0")
        is_share = self.damping is None or 0 <= self.damping < 1
        check_setting(self, "damping", is_share, "null or a number from 0 to below 1")
        super().__post_init__()

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """log_z, residual, iterations, rounds, gap and converged: (1,); beliefs: (S, 1)."""
        names = ("log_z", "residual", "iterations", "rounds", "gap", "converged", "beliefs")
        return dict.fromkeys(names, "last")

    def plan(self, model: Model) -> Tables:
        """Tables of edges and messages.

        Raises:
            ModelError: the hard zeros leave a variable no state.
            UnsupportedError: a factor of order above 2.
        """
        graph = lower(model, merge=True)
        order = max((group.log_tables.ndim - 1 for group in graph.groups), default=2)
        if order > 2:
            raise UnsupportedError(
                f"trw: {model.name} has a factor of order {order}; spanning trees need factors of order 2 or less, "
                "and bp takes any"
            )
        return make_tables(graph)

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """The smallest bound so far, and the present pseudo-marginals."""
        last = {name: trace.total(name) for name in self.reductions}
        return Estimate(
            marginals=marginals(tables.graph, model, last["beliefs"][:, 0]),
            log_z=float(last["log_z"][0]),
            log_z_kind="upper",
            diagnostics={name: float(last[name][0]) for name in ("residual", "iterations", "rounds", "gap")},
            doubts=() if last["converged"][0] > 0 else ("not converged",),
        )


def make_tables(graph: Graph) -> Tables:
    """The tables of a lowered model whose factors have order 2."""
    cards, variable = graph.cardinalities, graph.variable
    n, width = len(cards), int(cards.max(initial=1))
    groups = factors(graph)
    total = sum(len(group.log_tables) for group in groups)
    edges = np.zeros((total, 2), dtype=np.int64)
    log_tables = np.zeros((total, width, width))
    layout = incidence(graph)
    messages = np.full((2, total, width), len(layout.target))
    at = start = 0
    for group in groups:
        count, *sizes = group.log_tables.shape
        edges[at : at + count] = variable[group.rows.T]
        log_tables[at : at + count, : sizes[0], : sizes[1]] = group.log_tables
        for slot, size in enumerate(sizes):
            entries = start + np.arange(count * (size - 1)).reshape(count, size - 1)
            messages[slot, at : at + count, 1:size] = entries
            start += entries.size
        at += count
    nodes = np.where(np.arange(width) < cards[:, None], 0.0, -np.inf).reshape(n, width)
    nodes[variable, np.arange(len(graph.theta)) - graph.first[variable] + 1] = graph.theta
    return Tables(graph, layout, edges, nodes, log_tables, messages)
