"""Models of factors whose answers are known by enumeration: several states, orders above two, zeros, wide tables."""

from __future__ import annotations

import numpy as np

from spinbench.models import FactorGraph
from spinbench.testing.laws.cases import FloatArray, SolvedModel, enumerate_law

Tables = list[tuple[tuple[int, ...], FloatArray]]
# Numbers of states of a ring's variables.
RING = (3, 5, 7, 8)


def one_to_nine_states_model() -> SolvedModel:
    """3, 9, 1, 4 and 6 states, with loops; scopes that are not in order, and one that comes twice."""
    rng = np.random.default_rng(18)
    sizes = [3, 9, 1, 4, 6]
    scopes = [(0,), (3,), (1, 0), (1, 2), (3, 0), (1, 3), (0, 3), (3,), (4, 3), (4,)]
    tables = [(scope, 0.8 * rng.normal(size=[sizes[v] for v in scope])) for scope in scopes]
    return enumerate_law(
        FactorGraph.from_log_tables(sizes, tables, log_constant=-0.5, name="five variables of 1 to 9 states")
    )


def two_modes_model() -> SolvedModel:
    """Two variables of three states that are as good as never unlike."""
    tables: Tables = [((0, 1), 50.0 * np.eye(3)), ((0,), np.array([0.2, 0.0, -0.1]))]
    return enumerate_law(FactorGraph.from_log_tables([3, 3], tables, name="three states, apart"))


def orders_three_and_four_model() -> SolvedModel:
    """Factors of orders three and four over variables of up to five states."""
    rng = np.random.default_rng(24)
    sizes, scopes = [2, 5, 3, 4, 2], [(3, 1, 0), (0, 2, 4, 1), (2,), (4, 3)]
    tables: Tables = [(scope, 0.8 * rng.normal(size=[sizes[v] for v in scope])) for scope in scopes]
    return enumerate_law(FactorGraph.from_log_tables(sizes, tables, name="orders three and four"))


def zeros_model() -> SolvedModel:
    """States of no weight, some of them in pairs."""
    rng = np.random.default_rng(19)
    tables: list[tuple[tuple[int, ...], FloatArray]] = [
        (scope, rng.normal(size=(3, 3))) for scope in ((0, 1), (1, 2), (0, 2))
    ]
    tables[0][1][0, 1] = tables[1][1][2, 2] = -np.inf
    tables = [*tables, ((2,), np.array([0.3, -np.inf, -0.4]))]
    return enumerate_law(FactorGraph.from_log_tables([3, 3, 3], tables, name="zeros"))


def weightless_state_model() -> SolvedModel:
    """States of no weight that a pairwise model can leave out."""
    rng = np.random.default_rng(20)
    tables: Tables = [(scope, rng.normal(size=(3, 3))) for scope in ((0, 1), (1, 2))]
    tables = [*tables, ((1,), np.array([0.3, -np.inf, -0.4]))]
    return enumerate_law(FactorGraph.from_log_tables([3, 3, 3], tables, name="a state of no weight"))


def huge_log_tables_model() -> SolvedModel:
    """A law like others, of tables that say so with numbers of up to 800 nats of either sign, which cancel; and a
    state whose weight is not 0 but far below the smallest number."""
    rng = np.random.default_rng(23)
    sizes = [3, 2, 2, 3, 2, 3]
    shifts = [400 * rng.uniform(-1, 1, size) for size in sizes]
    tables: Tables = [((v,), 0.8 * rng.normal(size=size)) for v, size in enumerate(sizes)]
    signs = {(0, 1): (1, -1), (1, 2): (1, -1), (2, 3): (1, -1), (0, 3): (-1, 1), (3, 4): (0, 1), (4, 5): (-1, 0)}
    for scope, (ahead, behind) in signs.items():
        rows, columns = ahead * shifts[scope[0]], behind * shifts[scope[1]]
        tables.append((scope, 0.8 * rng.normal(size=(rows.size, columns.size)) + rows[:, None] + columns))
    tables[5][1][1] -= 900.0
    return enumerate_law(FactorGraph.from_log_tables(sizes, tables, name="wide tables"))


def rings_model(count: int, name: str) -> SolvedModel:
    """Rings of four variables of three to eight states, each with tables of its own, in random order."""
    rng = np.random.default_rng(33)
    place, tables, log_z = rng.permutation(4 * count).reshape(count, 4), [], 0.0
    sizes = np.empty(4 * count, dtype=np.int64)
    marginals: list[FloatArray] = [np.zeros(0)] * sizes.size
    for ring_variables in place:
        ring: Tables = [((v,), rng.normal(size=k)) for v, k in enumerate(RING)]
        ring += [((v, (v + 1) % 4), 0.7 * rng.normal(size=(RING[v], RING[(v + 1) % 4]))) for v in range(4)]
        solved = enumerate_law(FactorGraph.from_log_tables(RING, ring))
        log_z, sizes[ring_variables] = log_z + solved.log_z, RING
        for v, p in zip(ring_variables.tolist(), np.split(solved.marginals, np.cumsum(RING)[:-1]), strict=True):
            marginals[v] = p
        tables += [(tuple(int(ring_variables[v]) for v in scope), table) for scope, table in ring]
    graph = FactorGraph.from_log_tables(sizes.tolist(), tables, name=name)
    return SolvedModel(graph, log_z, np.concatenate(marginals))


def complete_model() -> SolvedModel:
    """Twelve variables of eleven neighbours each."""
    rng = np.random.default_rng(29)
    tables: Tables = [((v,), np.array([0.0, bias])) for v, bias in enumerate(0.5 * rng.normal(size=12))]
    tables += [((i, j), np.diag([0.0, 0.7 * rng.normal()])) for i in range(12) for j in range(i)]
    return enumerate_law(FactorGraph.from_log_tables([2] * 12, tables, name="eleven neighbours"))


def factor_tree_model() -> SolvedModel:
    """Factors of orders one to three, without a loop."""
    rng = np.random.default_rng(22)
    sizes = [3, 2, 4, 2, 2]
    tables: Tables = [
        (scope, rng.normal(size=[sizes[v] for v in scope])) for scope in ((0,), (2,), (0, 1, 2), (2, 3), (4, 3))
    ]
    return enumerate_law(FactorGraph.from_log_tables(sizes, tables, name="tree of factors"))


def tree_model_with_zeros() -> SolvedModel:
    """Zeros that leave a variable one state, and its neighbour two of three."""
    rng = np.random.default_rng(34)
    tables: Tables = [(scope, rng.normal(size=(3, 3))) for scope in ((0, 1), (1, 2))]
    tables[0][1][2, 1] = -np.inf
    tables = [*tables, ((1,), np.array([-np.inf, 0.4, -np.inf]))]
    return enumerate_law(FactorGraph.from_log_tables([3, 3, 3], tables, name="tree with zeros"))
