"""Forney models from tables that are given, and under construction: nodes, sums over edges, and readouts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_index, check_number, to_float_array
from spinbench.models.forney.model import FloatArray, ForneyModel, Readout, check_degree


class Network:
    """Nodes whose edges are summed one after the other, in the log domain; Z never changes.

    Attributes:
        tables: {node: log table}, one axis an incident edge.
        slots: {node: edges in the order of the axes}; an edge that is there twice is a self loop.
        ends: {edge: its two nodes}, the first one its side 0.
        carried: {node: {source variable: p(s = 1 | x_node)}}.
        constants: {source variable: p(s = 1)} of those that no edge is left to decide.
        log_constant: what was moved out of the tables.
        name: for messages.
    """

    def __init__(self, name: str, log_constant: float = 0.0) -> None:
        self.name = name
        self.log_constant = log_constant
        self.tables: dict[int, FloatArray] = {}
        self.slots: dict[int, list[int]] = {}
        self.ends: dict[int, list[int]] = {}
        self.carried: dict[int, dict[int, FloatArray]] = {}
        self.constants: dict[int, float] = {}

    def add_node(self, node: int, table: FloatArray, slots: Sequence[int]) -> None:
        """A node with its log table; the ends of its edges are set by the caller."""
        self.tables[node], self.slots[node], self.carried[node] = table, list(slots), {}

    def track_edge_marginal(self, edge: int, variable: int) -> None:
        """A source variable whose value is the edge's."""
        node = self.ends[edge][0]
        slots = self.slots[node]
        self.carried[node][variable] = edge_indicator(len(slots), slots.index(edge))

    def attach_readouts(self, children: list[tuple[int, int, FloatArray]]) -> None:
        """Readouts of variables that were summed next to another one, from that one's.

        Args:
            children: (v, u, p(s_v = 1 | s_u)) in the order in which the v were summed.
        """
        home = {v: (self.carried[a], c) for a in self.carried for v, c in self.carried[a].items()}
        for v, u, conditional_pair in reversed(children):
            if u in self.constants:
                self.constants[v] = float(
                    conditional_pair[0] + (conditional_pair[1] - conditional_pair[0]) * self.constants[u]
                )
            else:
                readouts, conditional = home[u]
                readouts[v] = conditional_pair[0] + (conditional_pair[1] - conditional_pair[0]) * conditional
                home[v] = readouts, readouts[v]

    def sum_self_loops(self, node: int) -> None:
        """Sums the edges from a node to itself."""
        while len(set(self.slots[node])) < len(self.slots[node]):
            slots = self.slots[node]
            edge = next(e for k, e in enumerate(slots) if e in slots[:k])
            first, second = (k for k, e in enumerate(slots) if e == edge)
            table = np.diagonal(self.tables[node], axis1=first, axis2=second)
            summed, weights = self._sum_last_axis(table)
            for v, conditional in self.carried[node].items():
                self.carried[node][v] = (weights * np.diagonal(conditional, axis1=first, axis2=second)).sum(axis=-1)
            self.tables[node] = summed
            self.slots[node] = [e for e in slots if e != edge]
            del self.ends[edge]

    def sum_dangling_edge(self, node: int, edge: int, log_weight: FloatArray) -> None:
        """Sums an edge that ends nowhere else, its states weighted by (2,) logarithms."""
        axis = self.slots[node].index(edge)
        summed, weights = self._sum_last_axis(np.moveaxis(self.tables[node], axis, -1) + log_weight)
        for v, conditional in self.carried[node].items():
            self.carried[node][v] = (weights * np.moveaxis(conditional, axis, -1)).sum(axis=-1)
        self.carried[node][edge] = weights[..., 1]
        self.tables[node] = summed
        del self.slots[node][axis]

    def merge_nodes(self, a: int, b: int) -> None:
        """Replaces nodes a and b by one, named a, with all edges between them summed."""
        shared = [e for e in self.slots[a] if e in self.slots[b]]
        remaining_a = [e for e in self.slots[a] if e not in shared]
        remaining_b = [e for e in self.slots[b] if e not in shared]

        def as_matrix(node: int, remaining: list[int], table: FloatArray) -> FloatArray:
            order = [self.slots[node].index(e) for e in remaining + shared]
            return table.transpose(order).reshape(2 ** len(remaining), 2 ** len(shared))

        joint = as_matrix(a, remaining_a, self.tables[a])[:, None] + as_matrix(b, remaining_b, self.tables[b])[None]
        summed, weights = self._sum_last_axis(joint)
        shape = (2,) * (len(remaining_a) + len(remaining_b))
        carried = {
            v: np.einsum("abs,as->ab", weights, as_matrix(a, remaining_a, c)).reshape(shape)
            for v, c in self.carried[a].items()
        }
        carried |= {
            v: np.einsum("abs,bs->ab", weights, as_matrix(b, remaining_b, c)).reshape(shape)
            for v, c in self.carried[b].items()
        }
        self.tables[a], self.slots[a], self.carried[a] = summed.reshape(shape), remaining_a + remaining_b, carried
        del self.tables[b], self.slots[b], self.carried[b]
        for e in shared:
            del self.ends[e]
        for e in remaining_b:
            self.ends[e] = [a if end == b else end for end in self.ends[e]]

    def _sum_last_axis(self, table: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log Σ exp over the last axis, normalised to maximum 0, and the weights of its terms (0 where all vanish)."""
        peak = table.max(axis=-1)
        if peak.max() == -np.inf:
            raise ModelError(f"{self.name}: no state has positive weight, so Z = 0")
        # -inf - -inf would be NaN.
        base = np.where(peak == -np.inf, 0.0, peak)
        terms = np.exp(table - base[..., None])
        total = terms.sum(axis=-1)
        weights = terms / np.where(total > 0, total, 1.0)[..., None]
        with np.errstate(divide="ignore"):
            summed = base + np.log(total)
        self.log_constant += float(summed.max())
        return summed - summed.max(), weights

    def model(self, num_variables: int) -> ForneyModel:
        """The model, nodes and edges numbered in the order of their names here.

        Raises:
            ModelError: Z = 0.
            UnsupportedError: a node of too many edges.
        """
        constant = self.log_constant
        for a in sorted(self.tables):
            if (peak := float(self.tables[a].max())) == -np.inf:
                raise ModelError(f"{self.name}: node {a} is zero everywhere, so Z = 0")
            constant += peak
        nodes = [a for a in sorted(self.tables) if self.slots[a]]
        rank = {a: k for k, a in enumerate(nodes)}
        rank_edge = {e: k for k, e in enumerate(sorted(self.ends))}
        pairs = np.array([[rank[a] for a in self.ends[e]] for e in rank_edge], dtype=np.int64).reshape(-1, 2)
        pairs.setflags(write=False)
        return ForneyModel(
            pairs,
            tuple(tuple(rank_edge[e] for e in self.slots[a]) for a in nodes),
            tuple(self._rescale_table(a) for a in nodes),
            constant,
            self._build_readouts(rank, num_variables),
            self.name,
        )

    def _rescale_table(self, node: int) -> FloatArray:
        """Read-only, the largest entry 0."""
        check_degree(self.name, f"node {node}", len(self.slots[node]))
        table = np.array(self.tables[node] - self.tables[node].max())
        table.setflags(write=False)
        return table

    def _build_readouts(self, rank: Mapping[int, int], num_variables: int) -> tuple[Readout, ...]:
        """Of each source variable, from its node's rank or from none."""
        readouts = {v: Readout(-1, np.array(p)) for v, p in self.constants.items()}
        for a, carried in self.carried.items():
            for v, conditional in carried.items():
                if a in rank:
                    readouts[v] = Readout(rank[a], conditional)
                else:
                    readouts[v] = Readout(-1, np.array(float(conditional)))
        return tuple(readouts[v] for v in range(num_variables) if v in readouts)


@lru_cache(maxsize=256)
def edge_indicator(degree: int, slot: int) -> FloatArray:
    """(2,) * degree float64, read-only: the value of one edge of a node."""
    shape = [1] * degree
    shape[slot] = 2
    return np.broadcast_to(np.arange(2.0).reshape(shape), (2,) * degree)


def network_from_model(model: ForneyModel) -> Network:
    """The model as nodes under construction, with its readouts."""
    network = Network(model.name, model.log_constant)
    for a, (table, slots) in enumerate(zip(model.log_tables, model.incident, strict=True)):
        network.add_node(a, table, slots)
    network.ends = dict(enumerate(model.edges.tolist()))
    for v, readout in enumerate(model.readouts):
        if readout.node < 0:
            network.constants[v] = float(readout.conditional)
        else:
            network.carried[readout.node][v] = readout.conditional
    return network


def from_log_tables(
    edges: npt.ArrayLike,
    log_tables: Sequence[npt.ArrayLike],
    *,
    incident: Sequence[Sequence[int]] | None = None,
    log_constant: float = 0.0,
    name: str = "model",
) -> ForneyModel:
    """From one log table a node.

    Self loops are summed out and nodes without edges become constants, so edges and nodes may be renumbered;
    the result's readouts are those of the edges given.

    Args:
        edges: (E, 2) pairs of nodes 0..len(log_tables) - 1.
        log_tables: of shape (2,) * degree or flat; a self loop counts twice.
        incident: edges in the order of each table's axes; ascending where it is not given.
        log_constant: added to every log weight.
        name: for messages.

    Raises:
        ModelError: edges that leave the model, a table of the wrong size, NaN or +inf entries, or Z = 0.
        UnsupportedError: a node of more than `MAX_DEGREE` edges.
    """
    network = Network(name, check_number(name, "log_constant", log_constant))
    pairs = _check_edges(name, edges, len(log_tables))
    network.ends = dict(enumerate(pairs))
    for a, (values, slots) in enumerate(
        zip(log_tables, _incident_edges(name, pairs, incident, len(log_tables)), strict=True)
    ):
        check_degree(name, f"node {a}", len(slots) - 2 * (len(slots) - len(set(slots))))
        network.add_node(a, _check_log_table(name, a, values, len(slots)), slots)
    for e in range(len(pairs)):
        network.track_edge_marginal(e, e)
    for a in list(network.tables):
        network.sum_self_loops(a)
    return network.model(len(pairs))


def from_tables(
    edges: npt.ArrayLike,
    tables: Sequence[npt.ArrayLike],
    *,
    incident: Sequence[Sequence[int]] | None = None,
    log_constant: float = 0.0,
    name: str = "model",
) -> ForneyModel:
    """Like `from_log_tables`, from tables of non-negative weights.

    Raises:
        ModelError: also where an entry is negative.
    """
    logs = []
    for a, table in enumerate(tables):
        values = to_float_array(name, f"the entries of node {a}", table)
        if (values < 0).any():
            raise ModelError(f"{name}: node {a} has the entry {values.min():g}; weights must be >= 0")
        with np.errstate(divide="ignore"):
            logs.append(np.log(values))
    return from_log_tables(edges, logs, incident=incident, log_constant=log_constant, name=name)


def replace_log_tables(model: ForneyModel, log_tables: Sequence[FloatArray], log_constant: float) -> ForneyModel:
    """The same graph with other tables (for instance gauged ones); it stands for itself.

    Args:
        model: for its graph.
        log_tables: one (n, 2**d) array a degree group.
        log_constant: of the new model, before the tables' scales are taken out.

    Raises:
        ModelError: NaN or +inf entries, or a table that is zero everywhere.
    """
    tables: list[FloatArray] = [np.empty(0)] * model.num_nodes
    for group, values in zip(model.groups, log_tables, strict=True):
        for a, row in zip(group.nodes.tolist(), values, strict=True):
            tables[a] = row
    return from_log_tables(model.edges, tables, incident=model.incident, log_constant=log_constant, name=model.name)


def _incident_edges(
    name: str, pairs: list[list[int]], incident: Sequence[Sequence[int]] | None, nodes: int
) -> Sequence[Sequence[int]]:
    """The edges at each node in the order of its table's axes."""
    edges_by_node: list[list[int]] = [[] for _ in range(nodes)]
    for e, ends in enumerate(pairs):
        for a in ends:
            edges_by_node[a].append(e)
    if incident is None:
        return edges_by_node
    edge_orders = [[check_index(name, "an edge", e) for e in slots] for slots in incident]
    if [sorted(slots) for slots in edge_orders] != edges_by_node:
        raise ModelError(f"{name}: incident must name, for each of {nodes} nodes, the edges that end there")
    return edge_orders


def _check_edges(name: str, edges: npt.ArrayLike, nodes: int) -> list[list[int]]:
    pairs = np.asarray(edges)
    if pairs.size == 0:
        pairs = np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise ModelError(f"{name}: edges have shape {pairs.shape} and type {pairs.dtype}; (E, 2) integers are needed")
    if len(pairs) and (pairs.min() < 0 or pairs.max() >= nodes):
        bad = pairs[((pairs < 0) | (pairs >= nodes)).any(axis=1)][0]
        raise ModelError(f"{name}: edge {tuple(map(int, bad))} names a node outside 0..{nodes - 1}")
    listed: list[list[int]] = pairs.tolist()
    return listed


def _check_log_table(name: str, node: int, values: npt.ArrayLike, degree: int) -> FloatArray:
    table = to_float_array(name, f"the entries of node {node}", values)
    if table.size != 2**degree or table.shape not in ((2,) * degree, (table.size,)):
        raise ModelError(f"{name}: node {node} has a table of shape {table.shape}; {(2,) * degree} is needed")
    if not (table < np.inf).all():
        raise ModelError(f"{name}: node {node} has a NaN or infinite entry")
    if table.max() == -np.inf:
        raise ModelError(f"{name}: node {node} is zero everywhere, so Z = 0")
    return table.reshape((2,) * degree)
