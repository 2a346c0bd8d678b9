"""Forney forms of factor graphs; all keep log Z and the marginals of the variables.

The compact form of a binary pairwise model has one node a variable, one edge a coupling, and no zeros. The pair weights
M(s_u, s_v) > 0 of a coupling are written as M = A Bᵀ with A, B > 0, the sum over the states of a new variable x on the
edge; A stays at u and B at v:

    f_u(x_u) = Σ_s u(s) Π_e A_e(s, x_e).

With ratios r_j = M(1, j) / M(0, j) and the margin h > 0 (`spread`), A = [[1, 1/hi], [lo, 1]] for lo = min(r) e^-h and
hi = max(r) e^h, so that B = (A⁻¹ M)ᵀ is positive, too. Small margins leave B close to zero; h = 1 serves well.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.checks import format_variable
from spinbench.models.convert import to_factor_graph, to_pairwise
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.forney.build import Network, edge_indicator
from spinbench.models.forney.model import FloatArray, ForneyModel, check_degree
from spinbench.models.forney.modes import find_factor_graph_mode
from spinbench.models.pairwise import PairwiseModel


def from_pairwise(model: PairwiseModel, mode: npt.ArrayLike | None = None, spread: float = 1.0) -> ForneyModel:
    """The compact form; variables with at most one coupling are summed first, again and again.

    Args:
        model: without 1-of-K groups.
        mode: (N,) a state of high probability, which becomes the one whose edges are mostly 0; all zeros by default.
        spread: the margin h.

    Raises:
        ModelError: a mode that is not (N,) of 0 and 1, or a spread that is not positive.
        UnsupportedError: 1-of-K groups, or a variable with more than `MAX_DEGREE` couplings.
    """
    if model.groups:
        raise UnsupportedError(f"{model.name}: it has 1-of-K groups; the compact Forney form needs independent units")
    n = model.num_variables
    flips = np.zeros(n, dtype=np.int64)
    if mode is not None:
        flips = np.asarray(mode).astype(np.int64)
    if flips.shape != (n,) or ((flips != 0) & (flips != 1)).any():
        raise ModelError(f"{model.name}: the mode has shape {flips.shape}; ({n},) of 0 and 1 is needed")
    if not 0 < spread < np.inf:
        raise ModelError(f"{model.name}: spread is {spread}; a positive number is needed")
    return _CompactForm(model, flips, spread).model()


class _CompactForm:
    """A pairwise model in t = s XOR mode whose leaves are summed before the others get tables."""

    def __init__(self, model: PairwiseModel, flips: npt.NDArray[np.int64], spread: float) -> None:
        self.source = model
        self.flips = flips
        self.spread = spread
        self.network = Network(model.name, model.log_constant)
        states = np.arange(2) ^ flips[:, None]  # (N, 2) s of each t
        self.weights = model.biases[:, None] * states
        i, j = model.edges.T
        self.couplings = model.couplings[:, None, None] * states[i][:, :, None] * states[j][:, None, :]
        # couplings of 0 are left out, as they would cost an edge
        self.around: list[dict[int, int]] = [{} for _ in range(model.num_variables)]
        for e in np.flatnonzero(model.couplings).tolist():
            u, v = int(i[e]), int(j[e])
            self.around[u][v] = self.around[v][u] = e
        self.children: list[tuple[int, int, FloatArray]] = []

    def model(self) -> ForneyModel:
        core_variables = self._sum_leaves()
        network = self.network
        network.ends = {e: [u, v] for u in core_variables for v, e in self.around[u].items() if u < v}
        factors = {e: _factorise_pair_weights(self.couplings[e], self.spread) for e in network.ends}
        for u in core_variables:
            slots = sorted(self.around[u].values())
            check_degree(self.source.name, f"variable {u}", len(slots))
            logs = [self.weights[u][t] for t in (0, 1)]
            for k, e in enumerate(slots):
                shape = [1] * len(slots)
                shape[k] = 2
                ends = factors[e][network.ends[e].index(u)]
                logs = [logs[t] + ends[t].reshape(shape) for t in (0, 1)]
            total = np.logaddexp(logs[0], logs[1])
            network.add_node(u, total, slots)
            network.carried[u][u] = np.exp(logs[1 - self.flips[u]] - total)
        network.attach_readouts(self.children)
        return network.model(self.source.num_variables)

    def _sum_leaves(self) -> list[int]:
        """Sums variables of degree 1 and 0; those that stay are returned, ascending."""
        waiting = list(range(len(self.around)))
        gone: set[int] = set()
        while waiting:
            v = waiting.pop()
            if v in gone or len(self.around[v]) > 1:
                continue
            gone.add(v)
            label_of_one = 1 - int(self.flips[v])  # the t of s = 1
            if not self.around[v]:
                total = float(np.logaddexp(*self.weights[v]))
                self.network.log_constant += total
                self.network.constants[v] = float(np.exp(self.weights[v][label_of_one] - total))
                continue
            (u, e) = next(iter(self.around[v].items()))
            del self.around[u][v]
            pair = self.couplings[e] if u < v else self.couplings[e].T  # (t_u, t_v)
            joint = pair + self.weights[v]
            log_totals = np.logaddexp(joint[:, 0], joint[:, 1])
            conditional = np.exp(joint[:, label_of_one] - log_totals)
            if self.flips[u]:
                conditional = conditional[::-1]
            self.children.append((v, u, conditional))
            self.weights[u] = self.weights[u] + log_totals
            waiting.append(u)
        return [v for v in range(len(self.around)) if v not in gone]


def _factorise_pair_weights(log_pair: FloatArray, spread: float) -> tuple[FloatArray, FloatArray]:
    """log A and log B of M = A Bᵀ, both (2, 2): rows are the states of an end, columns those of the edge."""
    ratio = log_pair[1] - log_pair[0]
    low, high = ratio.min() - spread, ratio.max() + spread
    a = np.array([[0.0, -high], [low, 0.0]])
    determinant = np.log1p(-np.exp(low - high))
    first = log_pair[0] + np.log1p(-np.exp(ratio - high))
    second = log_pair[1] + np.log1p(-np.exp(low - ratio))
    return a, np.stack([first, second], axis=1) - determinant


def to_forney(model: PairwiseModel | FactorGraph, seed: int = 0) -> ForneyModel:
    """The smallest Forney form at hand of a model of binary variables.

    Pairwise models, and factor graphs of order 2 without zeros, take the compact form around a mode of high
    probability (`compact.from_pairwise`); factor graphs in which every variable has two factors are Forney
    models as they stand; all others get equality nodes (`from_factor_graph`).

    Args:
        model: any model of binary variables.
        seed: of the search for the mode.

    Raises:
        UnsupportedError: a variable of more than two states, or a degree above `MAX_DEGREE`.
        ModelError: Z = 0.
    """
    if isinstance(model, FactorGraph):
        orders = [len(factor.scope) for factor in model.factors]
        compact = set(model.cardinalities) == {2} and max(orders, default=0) <= 2 and not model.has_zeros
        if not compact or _has_forney_structure(model):
            return from_factor_graph(model)
        model = to_pairwise(model)
    if model.groups:
        return from_factor_graph(to_factor_graph(model))
    return from_pairwise(model, find_factor_graph_mode(to_factor_graph(model), seed))


def from_factor_graph(graph: FactorGraph) -> ForneyModel:
    """Variables become edges, factors nodes.

    A graph in which every variable is in exactly two factors is taken as it stands: variable v is edge v, factor k
    node k (factors without variables become constants). In all others factors of one variable are first multiplied
    into that variable's weights u(s), variables in at most one factor are summed (again and again), and a variable
    that is then in d >= 3 factors becomes a node with the equality table, u(0) at 0…0 and u(1) at 1…1, and d edges.

    Raises:
        UnsupportedError: a variable of more than two states, or a degree above `MAX_DEGREE`.
        ModelError: Z = 0.
    """
    for v, k in enumerate(graph.cardinalities):
        if k > 2:
            raise UnsupportedError(
                f"{graph.name}: {format_variable(v, graph.labels)} has {k} states; methods on the Forney form need "
                "binary variables, so use bp or mf here"
            )
    reduction = _FactorGraphReduction(graph)
    if not _has_forney_structure(graph):
        reduction.sum_leaves()
    return reduction.model()


def _has_forney_structure(graph: FactorGraph) -> bool:
    counts = Counter(v for factor in graph.factors for v in factor.scope)
    return all(counts[v] == 2 for v, k in enumerate(graph.cardinalities) if k == 2)


class _FactorGraphReduction:
    """A factor graph on its way to a Forney form: its network's nodes are factors, its edges variables."""

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        self.network = Network(graph.name, graph.log_constant)
        self.weights: dict[int, FloatArray] = {}
        self.factors: dict[int, list[int]] = {}
        self.children: list[tuple[int, int, FloatArray]] = []
        for v, k in enumerate(graph.cardinalities):
            if k == 1:
                self.network.constants[v] = 0.0
            else:
                self.weights[v], self.factors[v] = np.zeros(2), []
        for k, factor in enumerate(graph.factors):
            scope = [v for v in factor.scope if v in self.factors]
            self.network.add_node(k, factor.log_table.reshape((2,) * len(scope)), scope)
            for v in scope:
                self.factors[v].append(k)

    def sum_leaves(self) -> None:
        """Sums all variables that are in at most one factor besides their weights."""
        for k in list(self.network.tables):
            self._absorb_unary_factor(k)
        waiting = list(self.factors)
        while waiting:
            v = waiting.pop()
            if v not in self.factors or len(self.factors[v]) > 1:
                continue
            factors = self.factors.pop(v)
            if not factors:
                self._sum_isolated_variable(v)
                continue
            node = factors[0]
            self.network.sum_dangling_edge(node, v, self.weights.pop(v))
            waiting += self._absorb_unary_factor(node)

    def _absorb_unary_factor(self, node: int) -> list[int]:
        """Makes weights of a factor of one variable, which is returned."""
        network = self.network
        if len(network.slots[node]) != 1:
            return []
        v = network.slots.pop(node)[0]
        self.weights[v] = self.weights[v] + network.tables.pop(node)
        self.factors[v].remove(node)
        self.children += [(child, v, conditional) for child, conditional in network.carried.pop(node).items()]
        return [v]

    def _sum_isolated_variable(self, v: int) -> None:
        """Sums a variable that is in no factor."""
        node = len(self.graph.factors) + v
        self.network.add_node(node, self.weights.pop(v), [v])
        self.network.sum_dangling_edge(node, v, np.zeros(2))
        self.network.constants[v] = float(self.network.carried.pop(node)[v])
        self.network.log_constant += float(self.network.tables.pop(node))
        del self.network.slots[node]

    def model(self) -> ForneyModel:
        """With an edge or an equality node for each variable that is left."""
        network, equalities = self.network, len(self.graph.factors)
        renamed: dict[int, list[int]] = {node: [] for node in network.slots}
        position = {(node, v): k for node, scope in network.slots.items() for k, v in enumerate(scope)}
        for node, scope in network.slots.items():
            check_degree(self.graph.name, f"factor {node}", len(scope))
            renamed[node] = [0] * len(scope)
        carriers: list[tuple[int, int]] = []
        for v, nodes in self.factors.items():
            first = len(network.ends)
            if len(nodes) == 2:
                network.ends[first] = list(nodes)
                self._multiply_weights(nodes[0], v)
                renamed[nodes[0]][position[nodes[0], v]] = renamed[nodes[1]][position[nodes[1], v]] = first
                carriers.append((v, nodes[0]))
                continue
            check_degree(self.graph.name, f"variable {v}", len(nodes))
            for k, node in enumerate(nodes):
                network.ends[first + k] = [equalities + v, node]
                renamed[node][position[node, v]] = first + k
            network.add_node(
                equalities + v, _equality_table(self.weights[v], len(nodes)), range(first, first + len(nodes))
            )
            network.carried[equalities + v][v] = edge_indicator(len(nodes), 0)
        for v, node in carriers:
            network.carried[node][v] = edge_indicator(len(network.slots[node]), position[node, v])
        network.slots.update(renamed)
        network.attach_readouts(self.children)
        return network.model(self.graph.num_variables)

    def _multiply_weights(self, node: int, v: int) -> None:
        shape = [2 if u == v else 1 for u in self.network.slots[node]]
        self.network.tables[node] = self.network.tables[node] + self.weights[v].reshape(shape)


def _equality_table(weights: FloatArray, degree: int) -> FloatArray:
    table = np.full((2,) * degree, -np.inf)
    table[(0,) * degree], table[(1,) * degree] = weights
    return table
