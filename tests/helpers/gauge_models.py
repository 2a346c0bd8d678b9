"""Small Forney models for the tests of the gauged methods, and their exact log Z by enumeration."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import spinbench
from spinbench.mathematics import forney as gauges
from spinbench.models.forney import build
from spinbench.models.forney.model import ForneyModel


def enumerated_log_z(model: ForneyModel) -> float:
    """log Σ_x exp(log weight), at most 2^14 states."""
    assert model.num_edges <= 14
    states = np.arange(2**model.num_edges)[:, None] >> np.arange(model.num_edges) & 1
    return float(np.logaddexp.reduce(model.log_weight(states)))


def point_mass_bound(model: ForneyModel, tables: Sequence[np.ndarray]) -> float:
    """log Π_a f_{a,G}(0), the objective (8) of G-BP."""
    return model.log_constant + float(sum(np.log(table[:, 0]).sum() for table in tables))


def side_by_side(models: Sequence[ForneyModel]) -> ForneyModel:
    """One model of several, their edges and nodes one after the other."""
    edges: list[np.ndarray] = []
    tables: list[np.ndarray] = []
    incident: list[list[int]] = []
    nodes, first = 0, 0
    for model in models:
        edges.append(model.edges + nodes)
        tables += model.log_tables
        incident += [[e + first for e in slots] for slots in model.incident]
        nodes, first = nodes + model.num_nodes, first + model.num_edges
    constant = sum(model.log_constant for model in models)
    return build.from_log_tables(np.concatenate(edges), tables, incident=incident, log_constant=constant)


def symmetric(edges: Sequence[tuple[int, int]], betas: Sequence[float]) -> ForneyModel:
    """Factors exp(β |d - 2k|), k the number of ones; the paper's generator."""
    degrees = np.bincount(np.asarray(edges).ravel(), minlength=len(betas))
    tables = []
    for d, beta in zip(degrees.tolist(), betas, strict=True):
        ones = (np.arange(2**d)[:, None] >> np.arange(d) & 1).sum(axis=1)
        tables.append(beta * np.abs(d - 2.0 * ones))
    return build.from_log_tables(edges, tables)


def random_tables(edges: Sequence[tuple[int, int]], spread: float, rng: np.random.Generator) -> ForneyModel:
    """Entries exp(spread · N(0, 1)), independent."""
    degrees = np.bincount(np.asarray(edges).ravel())
    return build.from_log_tables(edges, [spread * rng.standard_normal(2**d) for d in degrees.tolist()])


def cycle(n: int) -> list[tuple[int, int]]:
    """Edges of a cycle of n nodes."""
    return [(i, (i + 1) % n) for i in range(n)]


def line(n: int) -> list[tuple[int, int]]:
    """Edges of a line of n nodes."""
    return [(i, i + 1) for i in range(n - 1)]


def complete(n: int) -> list[tuple[int, int]]:
    """All pairs of n nodes."""
    return [(i, j) for i in range(n) for j in range(i)]


GRAPHS = {
    "line": line(5),
    "star": [(0, 1), (0, 2), (0, 3), (0, 4)],
    "triangle": cycle(3),
    "square": cycle(4),
    "complete": complete(4),
    "two paths": [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)],
    "parallel": [(0, 1), (0, 1), (1, 2), (2, 0)],
    "triple": [(0, 1), (0, 1), (0, 1)],
    "ladder": [(0, 1), (1, 2), (3, 4), (4, 5), (0, 3), (1, 4), (2, 5)],
    "apart": [(0, 1), (1, 2), (2, 0), (3, 4)],
}


def bethe(model: ForneyModel) -> float:
    """log Z of the Bethe approximation, at a fixed point of belief propagation."""
    found = spinbench.run(model.to_factor_graph(), "bp", "numpy", "5000 samples").log_z
    assert found is not None
    return found


def transformed(model: ForneyModel, angles: np.ndarray) -> list[np.ndarray]:
    """f_{a,G} of all nodes, one (n, 2**d) array a degree group, under angles (E, 2)."""
    flat = np.asarray(angles).reshape(-1)
    return [gauges.transform(g.tables, flat[g.own], flat[g.other]) for g in model.groups]
