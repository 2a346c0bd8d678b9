"""Forney-style models: binary variables on the edges of a graph, factors on its nodes.

Ahn, Chertkov and Shin, "Gauging Variational Inference" (NIPS 2017), equation (1):

    p(x) = exp(log_constant) Π_a f_a(x_a) / Z,   x_a = the variables of the edges at node a.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError, UnsupportedError
from spinbench.models.factor_graph import Factor, FactorGraph

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Largest degree of a node: its table is dense, 2**degree entries.
MAX_DEGREE = 10


@dataclass(frozen=True, eq=False)
class Readout:
    """How the marginal of a source variable follows from the belief of one node.

    p(s = 1) = Σ_x conditional[x] b_node(x); the node -1 stands for none, and conditional is p(s = 1) itself.

    Attributes:
        node: index of a node, or -1.
        conditional: (2,) * degree float64 of p(s = 1 | x_node); shape () without a node.
    """

    node: int
    conditional: FloatArray


@dataclass(frozen=True, eq=False)
class DegreeGroup:
    """All n nodes of one degree d, as arrays for batched computations.

    Tables are flat: entry Σ_k x_k 2^(d-1-k), so the first edge of a node varies slowest (C order).

    Attributes:
        degree: d >= 1.
        nodes: (n,) indices of the nodes, ascending.
        edges: (n, d) edge of each slot.
        sides: (n, d) 0 where the node is the edge's first end, 1 where it is the second.
        log_tables: (n, 2**d) logarithms of the tables, -inf at zeros, 0 the largest.
    """

    degree: int
    nodes: IntArray
    edges: IntArray
    sides: IntArray
    log_tables: FloatArray

    @cached_property
    def tables(self) -> FloatArray:
        """(n, 2**d) tables, the largest entry of each 1; 0 below the smallest normal number, about e^-708.

        What is smaller still has no more than a few bits, of which a bound would be off by as much as they round.
        """
        tables = np.exp(self.log_tables)
        return np.where(tables < np.finfo(np.float64).tiny, 0.0, tables)

    @cached_property
    def own(self) -> IntArray:
        """(n, d) index of the node's own end in an array of 2E half edges, 2·edge + side."""
        return 2 * self.edges + self.sides

    @cached_property
    def other(self) -> IntArray:
        """(n, d) index of the opposite end, 2·edge + 1 - side."""
        return 2 * self.edges + 1 - self.sides


@dataclass(frozen=True, eq=False)
class ReadoutGroup:
    """The readouts at the nodes of one degree group: m source variables.

    Attributes:
        variables: (m,) source variables.
        positions: (m,) row of the group that carries each.
        conditionals: (m, 2**d) p(s = 1 | x_node).
    """

    variables: IntArray
    positions: IntArray
    conditionals: FloatArray


def state_marginals(p: FloatArray, cardinalities: Sequence[int]) -> FloatArray | list[FloatArray]:
    """p(s_v = 1) (N,) of variables of at most two states as `Estimate.marginals` holds them."""
    if all(k == 2 for k in cardinalities):
        return p
    return [np.array([1 - q, q]) if k == 2 else np.ones(1) for q, k in zip(p, cardinalities, strict=True)]


@dataclass(frozen=True, eq=False)
class ForneyModel:
    """p(x) = exp(log_constant + Σ_a log f_a(x_a)) / Z over x in {0,1}^E.

    Build one with `build.from_log_tables`, `build.from_tables`, `convert.from_factor_graph`, `convert.to_forney` or
    `compact.from_pairwise`. The largest entry of each table is 1 (its scale is in log_constant); every node has an
    edge; there are no self loops; parallel edges are allowed, and so are models without edges,
    Z = exp(log_constant).

    Attributes:
        edges: (E, 2) int64, the two nodes of each edge: its side 0 and side 1.
        incident: edges at each node, in the order of its table's axes.
        log_tables: float64 of shape (2,) * degree, one a node, read-only; -inf is a hard zero.
        log_constant: added to every log weight.
        readouts: one for each variable of the model that this one stands for; for the edges where it stands for
            itself.
        name: for messages; not part of the content hash.
    """

    edges: IntArray
    incident: tuple[tuple[int, ...], ...]
    log_tables: tuple[FloatArray, ...]
    log_constant: float = 0.0
    readouts: tuple[Readout, ...] = ()
    name: str = "model"

    @property
    def num_edges(self) -> int:
        """E."""
        return len(self.edges)

    @property
    def num_nodes(self) -> int:
        """Number of factors."""
        return len(self.log_tables)

    @property
    def num_variables(self) -> int:
        """Number of variables of the source, one a readout."""
        return len(self.readouts)

    @cached_property
    def degrees(self) -> IntArray:
        """(nodes,) number of edges at each."""
        return np.array([len(slots) for slots in self.incident], dtype=np.int64)

    @cached_property
    def has_zeros(self) -> bool:
        """Whether a table has a hard zero."""
        return any(table.min() == -np.inf for table in self.log_tables)

    @cached_property
    def groups(self) -> tuple[DegreeGroup, ...]:
        """The nodes by degree, ascending."""
        groups = []
        for d in np.unique(self.degrees).tolist():
            nodes = np.flatnonzero(self.degrees == d)
            edges = np.array([self.incident[a] for a in nodes], dtype=np.int64)
            sides = (self.edges[edges, 0] != nodes[:, None]).astype(np.int64)
            tables = np.stack([self.log_tables[a].ravel() for a in nodes])
            groups.append(DegreeGroup(d, nodes, edges, sides, tables))
        return tuple(groups)

    @cached_property
    def readout_groups(self) -> tuple[ReadoutGroup, ...]:
        """The readouts by the degree of their node, one entry a group of `groups`; those without a node left out."""
        groups = []
        owner = np.array([readout.node for readout in self.readouts], dtype=np.int64)
        for group in self.groups:
            variables = np.flatnonzero(np.isin(owner, group.nodes))
            rows = [self.readouts[v].conditional.ravel() for v in variables]
            groups.append(
                ReadoutGroup(
                    variables,
                    np.searchsorted(group.nodes, owner[variables]),
                    np.array(rows).reshape(-1, 2**group.degree),
                )
            )
        return tuple(groups)

    def variable_marginals(self, beliefs: Sequence[npt.ArrayLike]) -> FloatArray:
        """p(s_v = 1) of the source's variables, (num_variables, ...), from beliefs of the nodes.

        Args:
            beliefs: one array (n, 2**d, ...) a degree group, normalised over axis 1.
        """
        arrays = [np.asarray(b, dtype=np.float64) for b in beliefs]
        tail = next((array.shape[2:] for array in arrays), ())
        result = np.empty((self.num_variables, *tail))
        for v, readout in enumerate(self.readouts):
            if readout.node < 0:
                result[v] = readout.conditional
        for group, belief in zip(self.readout_groups, arrays, strict=True):
            result[group.variables] = np.einsum("vx,vx...->v...", group.conditionals, belief[group.positions])
        return result

    def log_weight(self, states: npt.ArrayLike) -> FloatArray:
        """log_constant + Σ log tables of states (..., E) in {0, 1}; shape (...).

        Raises:
            ModelError: a wrong number of edges, or a state that is neither 0 nor 1.
        """
        x = np.asarray(states, dtype=np.int64)
        if x.shape[-1:] != (self.num_edges,) or ((x < 0) | (x > 1)).any():
            raise ModelError(
                f"{self.name}: states of shape {x.shape} were given; the last axis must hold {self.num_edges} states "
                "0 or 1"
            )
        value = np.full(x.shape[:-1], self.log_constant)
        for group in self.groups:
            index = x[..., group.edges] @ (1 << np.arange(group.degree - 1, -1, -1))
            value = value + group.log_tables[np.arange(len(group.nodes)), index].sum(axis=-1)
        return np.asarray(value)

    def relabel(self, flips: npt.ArrayLike) -> ForneyModel:
        """The model in y = x XOR flips, (E,) 0/1; Z, nodes, edges and the source's marginals stay."""
        flip = np.asarray(flips).astype(bool)
        if flip.shape != (self.num_edges,):
            raise ModelError(f"{self.name}: flips have shape {flip.shape}; ({self.num_edges},) is needed")
        axes = [tuple(k for k, e in enumerate(slots) if flip[e]) for slots in self.incident]
        tables = tuple(np.flip(table, ax) for table, ax in zip(self.log_tables, axes, strict=True))
        readouts = tuple(
            Readout(r.node, np.flip(r.conditional, axes[r.node])) if r.node >= 0 else r for r in self.readouts
        )
        return replace(self, log_tables=tables, readouts=readouts)

    def to_factor_graph(self) -> FactorGraph:
        """The same model with edges as variables and nodes as factors; without edges, one variable of one state."""
        factors = tuple(Factor(slots, table) for slots, table in zip(self.incident, self.log_tables, strict=True))
        return FactorGraph((2,) * self.num_edges or (1,), factors, self.log_constant, self.name)

    @cached_property
    def content_hash(self) -> str:
        """Hex SHA-256 of edges, incidences and tables (neither the name nor the readouts)."""
        digest = hashlib.sha256(b"ForneyModel/1")
        digest.update(repr((self.edges.tolist(), self.incident, self.log_constant)).encode())
        for table in self.log_tables:
            digest.update(np.ascontiguousarray(table).tobytes())
        return digest.hexdigest()

    def __repr__(self) -> str:
        return f"ForneyModel({self.name!r}, {self.num_nodes} nodes, {self.num_edges} edges)"


def check_degree(name: str, owner: str, degree: int) -> None:
    """Refuses tables that would be too large.

    Raises:
        UnsupportedError: degree above `MAX_DEGREE`.
    """
    if degree > MAX_DEGREE:
        raise UnsupportedError(
            f"{name}: {owner} has degree {degree}; methods on the Forney form keep tables of 2**degree entries and "
            f"allow degrees up to {MAX_DEGREE}, so use bp or mf here"
        )
