"""Forney models from tables that are given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_index, check_number, float_array
from spinbench.models.forney.model import FloatArray, ForneyModel, check_degree
from spinbench.models.forney.network import Network


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
    pairs = _edge_array(name, edges, len(log_tables))
    network.ends = dict(enumerate(pairs))
    for a, (values, slots) in enumerate(zip(log_tables, _slots(name, pairs, incident, len(log_tables)), strict=True)):
        check_degree(name, f"node {a}", len(slots) - 2 * (len(slots) - len(set(slots))))
        network.add(a, _table(name, a, values, len(slots)), slots)
    for e in range(len(pairs)):
        network.carry_edge(e, e)
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
        values = float_array(name, f"the entries of node {a}", table)
        if (values < 0).any():
            raise ModelError(f"{name}: node {a} has the entry {values.min():g}; weights must be >= 0")
        with np.errstate(divide="ignore"):
            logs.append(np.log(values))
    return from_log_tables(edges, logs, incident=incident, log_constant=log_constant, name=name)


def with_log_tables(model: ForneyModel, log_tables: Sequence[FloatArray], log_constant: float) -> ForneyModel:
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


def _slots(
    name: str, pairs: list[list[int]], incident: Sequence[Sequence[int]] | None, nodes: int
) -> Sequence[Sequence[int]]:
    """The edges at each node in the order of its table's axes."""
    found: list[list[int]] = [[] for _ in range(nodes)]
    for e, ends in enumerate(pairs):
        for a in ends:
            found[a].append(e)
    given = found if incident is None else [[check_index(name, "an edge", e) for e in slots] for slots in incident]
    if [sorted(slots) for slots in given] != found:
        raise ModelError(f"{name}: incident must name, for each of {nodes} nodes, the edges that end there")
    return given


def _edge_array(name: str, edges: npt.ArrayLike, nodes: int) -> list[list[int]]:
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


def _table(name: str, node: int, values: npt.ArrayLike, degree: int) -> FloatArray:
    table = float_array(name, f"the entries of node {node}", values)
    if table.size != 2**degree or table.shape not in ((2,) * degree, (table.size,)):
        raise ModelError(f"{name}: node {node} has a table of shape {table.shape}; {(2,) * degree} is needed")
    if not (table < np.inf).all():
        raise ModelError(f"{name}: node {node} has a NaN or infinite entry")
    if table.max() == -np.inf:
        raise ModelError(f"{name}: node {node} is zero everywhere, so Z = 0")
    return table.reshape((2,) * degree)
