"""Factor graphs with seeds: Bayesian networks of which little is observed, Potts models, and gauged inference's models.

The models of gauged inference (Ahn, Chertkov and Shin, NIPS 2017, section 5) have a binary variable on every edge of a
graph and a factor on every node; variable e is edge e in the order of `lattices`, factor a node a, so that
`forney.convert.from_factor_graph` gives the model back without extra nodes. Kinds:

    "generic"        f_a(x) = exp(β_a |h0(x) - h1(x)|), h0 and h1 the numbers of zeros and ones, β_a ~ N(0, β²)
    "supermodular"   the same with |β_a|: log-supermodular factors
    "lognormal"      all entries exp(β N(0, 1)), independent

Every family draws from `numpy.random.Generator(PCG64(seed))`. Those of gauged inference draw what the graph needs
first, then one standard normal a node (an entry, in C order, for "lognormal").
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.foundation.parameters import family
from spinbench.models import lattices
from spinbench.models.checks import check_parameter, make_rng
from spinbench.models.evidence import condition
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.forney.model import check_degree

FloatArray = npt.NDArray[np.float64]
# Largest number of entries of all tables together: 400 MB.
MAX_ENTRIES = 50_000_000
GaugeKind = Literal["generic", "supermodular", "lognormal"]
KINDS = ("generic", "supermodular", "lognormal")
MAX_NODES = 100_000


@family
def bayesian_network(
    layers: int = 4,
    width: int = 100,
    parents: int = 2,
    determinism: float = 0.3,
    states: int = 2,
    observed: int = 5,
    seed: int = 0,
) -> FactorGraph:
    """Random layered network p(x) = Π p(x_v | x_parents) under evidence, Z the evidence's probability.

    Each variable has `parents` parents in the layer above, all sets as likely, and a table over them and itself, in
    this order: a share `determinism` of the tables are random functions of the parents, the others' rows are uniform on
    the simplex. Of the last layer, `observed` variables are observed, in the states of a draw from the network. All
    that is no ancestor of these sums out ("barren": Shachter, "Evaluating influence diagrams", Operations Research
    1986), so that `spinbench.models.simplify` has much to do.

    Variables are numbered by layers. For each layer the generator gives the parents of its variables, then for each
    variable a uniform number (a function, if it is below `determinism`), the table, and its state; those of the first
    layer have neither parents nor that number.
    """
    name = "bayesian_network"
    for key, value in (("layers", layers), ("width", width), ("states", states)):
        check_parameter(name, value >= 1, f"{key} = {value}; it must be 1 or more")
    check_parameter(
        name, 0 <= parents <= width, f"parents = {parents} and width = {width}; 0 <= parents <= width is needed"
    )
    check_parameter(name, 0 <= determinism <= 1, f"determinism = {determinism}; it must be from 0 to 1")
    check_parameter(
        name, 0 <= observed <= width, f"observed = {observed} and width = {width}; 0 <= observed <= width is needed"
    )
    entries = layers * width * float(states) ** (parents + 1)
    check_parameter(
        name,
        entries <= MAX_ENTRIES,
        f"the tables would have {entries:,.0f} entries; at most {MAX_ENTRIES:,} are allowed",
    )
    rng = make_rng(name, seed)
    factors: list[tuple[tuple[int, ...], FloatArray]] = []
    sampled_states: list[int] = []
    for layer in range(layers):
        above = np.arange(width) + (layer - 1) * width
        layer_parents = [above[:0]] * width
        if layer:
            layer_parents = [np.sort(rng.choice(above, parents, replace=False)) for _ in range(width)]
        for k, parent_variables in enumerate(layer_parents):
            deterministic = bool(layer) and rng.random() < determinism
            table = _sample_conditional_table(rng, (states,) * (len(parent_variables) + 1), deterministic=deterministic)
            row = table[tuple(sampled_states[u] for u in parent_variables)]
            # Rounding may leave the last cumulated probability below the random number.
            sampled_states.append(min(int(np.searchsorted(np.cumsum(row), rng.random(), side="right")), states - 1))
            factors.append(((*parent_variables.tolist(), layer * width + k), table))
    model = FactorGraph.from_tables([states] * (layers * width), factors, name=name)
    last = (layers - 1) * width + np.sort(rng.choice(width, observed, replace=False))
    return condition(model, {v: sampled_states[v] for v in last.tolist()})


def _sample_conditional_table(rng: np.random.Generator, shape: tuple[int, ...], *, deterministic: bool) -> FloatArray:
    """p(x_v | parents), v last."""
    if deterministic:
        return np.asarray(np.eye(shape[-1])[rng.integers(shape[-1], size=shape[:-1])])
    # Normalised exponential variables are uniform on the simplex.
    weights = rng.standard_exponential(shape)
    return np.asarray(weights / weights.sum(axis=-1, keepdims=True))


@family
def potts(
    rows: int = 8, cols: int = 8, states: int = 3, coupling: float = 1.0, field: float = 0.1, seed: int = 0
) -> FactorGraph:
    """Potts model exp(K Σ δ(x_i, x_j) + Σ h_i(x_i)) of q states on an open grid, h_i(x) ~ N(0, field²).

    Without fields the infinite lattice is critical at K = ln(1 + √q): Potts, Math. Proc. Cambridge Phil. Soc. 48, 106
    (1952). The fields make all marginals different.
    """
    name = "potts"
    check_parameter(name, rows >= 1 and cols >= 1, f"rows = {rows} and cols = {cols}; both must be 1 or more")
    check_parameter(name, states >= 2, f"states = {states}; it must be 2 or more")
    entries = rows * cols * states * (1 + 2 * states)
    check_parameter(name, entries <= MAX_ENTRIES, f"{entries} table entries; {MAX_ENTRIES} are allowed")
    fields = field * make_rng(name, seed).standard_normal((rows * cols, states))
    tables: list[tuple[tuple[int, ...], FloatArray]] = [((v,), table) for v, table in enumerate(fields)]
    agree = coupling * np.eye(states)
    tables += [((u, v), agree) for u, v in lattices.grid_edges(rows, cols).tolist()]
    return FactorGraph.from_log_tables((states,) * (rows * cols), tables, name=name)


@family
def gauge_complete(nodes: int = 4, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0) -> FactorGraph:
    """All pairs of nodes joined."""
    name = "gauge_complete"
    check_parameter(name, nodes >= 2, f"nodes = {nodes}; it must be 2 or more")
    check_degree(name, "a node", nodes - 1)
    return _gauge_model(name, nodes, lattices.complete_edges(nodes), beta, kind, make_rng(name, seed))


@family
def gauge_regular(
    nodes: int = 20, degree: int = 3, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0
) -> FactorGraph:
    """Connected random regular graph (drawn by NetworkX from 32-bit integers of the generator until connected)."""
    name = "gauge_regular"
    _check_num_nodes(name, nodes)
    check_parameter(name, 2 <= degree < nodes, f"degree = {degree} and nodes = {nodes}; 2 <= degree < nodes is needed")
    check_parameter(name, degree * nodes % 2 == 0, f"degree = {degree} and nodes = {nodes}; their product must be even")
    check_parameter(name, degree > 2 or nodes <= 50, f"degree = 2 and nodes = {nodes}; use gauge_cycle")
    check_degree(name, "a node", degree)
    rng = make_rng(name, seed)
    while True:
        edges = lattices.random_regular_edges(nodes, degree, int(rng.integers(2**32)))
        if _is_connected(nodes, edges):
            return _gauge_model(name, nodes, edges, beta, kind, rng)


@family
def gauge_grid(
    rows: int = 4, cols: int = 4, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0
) -> FactorGraph:
    """Open rows × cols grid; a line where one of them is 1."""
    name = "gauge_grid"
    check_parameter(name, min(rows, cols) >= 1, f"rows = {rows} and cols = {cols}; both must be 1 or more")
    check_parameter(name, rows * cols >= 2, "rows = cols = 1; two nodes are needed")
    _check_num_nodes(name, rows * cols)
    return _gauge_model(name, rows * cols, lattices.grid_edges(rows, cols), beta, kind, make_rng(name, seed))


@family
def gauge_cycle(nodes: int = 6, beta: float = 0.5, kind: GaugeKind = "generic", seed: int = 0) -> FactorGraph:
    """One cycle."""
    name = "gauge_cycle"
    check_parameter(name, nodes >= 3, f"nodes = {nodes}; it must be 3 or more")
    _check_num_nodes(name, nodes)
    return _gauge_model(name, nodes, lattices.ring_edges(nodes), beta, kind, make_rng(name, seed))


def _gauge_model(
    name: str, nodes: int, edges: npt.NDArray[np.int64], beta: float, kind: str, rng: np.random.Generator
) -> FactorGraph:
    check_parameter(name, kind in KINDS, f"kind = {kind!r}; {', '.join(map(repr, KINDS))} are allowed")
    check_parameter(name, bool(np.isfinite(beta)) and beta >= 0, f"beta = {beta}; a finite number from 0 is needed")
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
        tables = [c * _imbalance_table(len(scope)) for c, scope in zip(coefficients, scopes, strict=True)]
    return FactorGraph.from_log_tables((2,) * len(edges), zip(scopes, tables, strict=True), name=name)


def _imbalance_table(degree: int) -> npt.NDArray[np.float64]:
    """|d - 2k| of the entries with k ones."""
    ones = np.indices((2,) * degree).sum(axis=0)
    return np.asarray(np.abs(degree - 2.0 * ones))


def _is_connected(nodes: int, edges: npt.NDArray[np.int64]) -> bool:
    import networkx

    graph: networkx.Graph[int] = networkx.Graph(edges.tolist())
    graph.add_nodes_from(range(nodes))
    return bool(networkx.is_connected(graph))


def _check_num_nodes(name: str, nodes: int) -> None:
    check_parameter(
        name, nodes <= MAX_NODES, f"the graph would have {nodes:,} nodes; at most {MAX_NODES:,} are allowed"
    )
