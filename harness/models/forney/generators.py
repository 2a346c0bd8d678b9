"""Random models of gauged inference (Ahn, Chertkov and Shin, NIPS 2017, section 5): factor graphs over edge variables.

A binary variable sits on every edge of a graph and a factor on every node; variable e is edge e in the order of
`lattices`, factor a node a, so `convert.from_factor_graph` gives the model back without extra nodes. Kinds:

    "generic"        f_a(x) = exp(β_a |h0(x) - h1(x)|), h0 and h1 the numbers of zeros and ones, β_a ~ N(0, β²)
    "supermodular"   the same with |β_a|: log-supermodular factors
    "lognormal"      all entries exp(β N(0, 1)), independent

Every family draws from `numpy.random.Generator(PCG64(seed))`, what the graph needs first, then one standard normal a
node (an entry, in C order, for "lognormal").
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.foundation.parameters import family
from spinbench.models import lattices
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.forney.model import check_degree

GaugeKind = Literal["generic", "supermodular", "lognormal"]
KINDS = ("generic", "supermodular", "lognormal")
MAX_NODES = 100_000


@family
def gauge_complete(nodes: int = 4, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0) -> FactorGraph:
    """All pairs of nodes joined."""
    name = "gauge_complete"
    _require(name, nodes >= 2, f"nodes = {nodes}; it must be 2 or more")
    check_degree(name, "a node", nodes - 1)
    return _model(name, nodes, lattices.complete_edges(nodes), beta, kind, _rng(name, seed))


@family
def gauge_regular(
    nodes: int = 20, degree: int = 3, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0
) -> FactorGraph:
    """Connected random regular graph (drawn by NetworkX from 32-bit integers of the generator until connected)."""
    name = "gauge_regular"
    _limit(name, nodes)
    _require(name, 2 <= degree < nodes, f"degree = {degree} and nodes = {nodes}; 2 <= degree < nodes is needed")
    _require(name, degree * nodes % 2 == 0, f"degree = {degree} and nodes = {nodes}; their product must be even")
    _require(name, degree > 2 or nodes <= 50, f"degree = 2 and nodes = {nodes}; use gauge_cycle")
    check_degree(name, "a node", degree)
    rng = _rng(name, seed)
    while True:
        edges = lattices.random_regular_edges(nodes, degree, int(rng.integers(2**32)))
        if _is_connected(nodes, edges):
            return _model(name, nodes, edges, beta, kind, rng)


@family
def gauge_grid(
    rows: int = 4, cols: int = 4, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0
) -> FactorGraph:
    """Open rows × cols grid; a line where one of them is 1."""
    name = "gauge_grid"
    _require(name, min(rows, cols) >= 1, f"rows = {rows} and cols = {cols}; both must be 1 or more")
    _require(name, rows * cols >= 2, "rows = cols = 1; two nodes are needed")
    _limit(name, rows * cols)
    return _model(name, rows * cols, lattices.grid_edges(rows, cols), beta, kind, _rng(name, seed))


@family
def gauge_cycle(nodes: int = 6, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0) -> FactorGraph:
    """One cycle."""
    name = "gauge_cycle"
    _require(name, nodes >= 3, f"nodes = {nodes}; it must be 3 or more")
    _limit(name, nodes)
    return _model(name, nodes, lattices.ring_edges(nodes), beta, kind, _rng(name, seed))


def _model(
    name: str, nodes: int, edges: npt.NDArray[np.int64], beta: float, kind: str, rng: np.random.Generator
) -> FactorGraph:
    _require(name, kind in KINDS, f"kind = {kind!r}; {', '.join(map(repr, KINDS))} are allowed")
    _require(name, bool(np.isfinite(beta)) and beta >= 0, f"beta = {beta}; a finite number from 0 is needed")
    scopes: list[list[int]] = [[] for _ in range(nodes)]
    for e, (u, v) in enumerate(edges.tolist()):
        scopes[u].append(e)
        scopes[v].append(e)
    if kind == "lognormal":
        tables = [beta * rng.standard_normal((2,) * len(scope)) for scope in scopes]
    else:
        coefficients = beta * rng.standard_normal(nodes)
        if kind == "supermodular":
            coefficients = np.abs(coefficients)
        tables = [c * _imbalance(len(scope)) for c, scope in zip(coefficients, scopes, strict=True)]
    return FactorGraph.from_log_tables((2,) * len(edges), zip(scopes, tables, strict=True), name=name)


def _imbalance(degree: int) -> npt.NDArray[np.float64]:
    """|d - 2k| of the entries with k ones."""
    ones = np.indices((2,) * degree).sum(axis=0)
    return np.asarray(np.abs(degree - 2.0 * ones))


def _is_connected(nodes: int, edges: npt.NDArray[np.int64]) -> bool:
    import networkx

    graph: networkx.Graph[int] = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(nodes))
    return bool(networkx.is_connected(graph))


def _rng(name: str, seed: int) -> np.random.Generator:
    _require(name, seed >= 0, f"seed = {seed}; it must be 0 or more")
    return np.random.Generator(np.random.PCG64(seed))


def _limit(name: str, nodes: int) -> None:
    _require(name, nodes <= MAX_NODES, f"the graph would have {nodes:,} nodes; at most {MAX_NODES:,} are allowed")


def _require(name: str, holds: bool, message: str) -> None:
    if not holds:
        raise ModelError(f"model {name!r}: {message}")
