"""Elimination orders: their cost is that of the cliques they meet, with goatd and without."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from spinbench.reference.network import IntArray
from spinbench.reference.orders.order import (
    HOPELESS_SECONDS,
    candidate_orders,
    elimination_order,
    pairs_of,
)
from spinbench.reference.orders.plan import depth_first, place_messages, separators


def random_graph(rng: np.random.Generator) -> tuple[list[int], IntArray]:
    """Numbers of states and pairs of scopes of one to four variables; some variables are alone."""
    n = int(rng.integers(1, 16))
    scopes = [tuple(rng.permutation(n)[: rng.integers(1, 5)].tolist()) for _ in range(rng.integers(0, 2 * n))]
    return rng.integers(2, 6, size=n).tolist(), pairs_of(scopes)


def cliques_met(order: list[int], cardinalities: list[int], pairs: IntArray) -> list[tuple[int, float]]:
    """(neighbours, entries) of each elimination, by removing vertices from the graph."""
    near = {v: set[int]() for v in range(len(cardinalities))}
    for u, v in pairs.tolist():
        near[u].add(v)
        near[v].add(u)
    met = []
    for v in order:
        around = near.pop(v)
        met.append((len(around), float(math.prod(cardinalities[u] for u in (v, *around)))))
        for u in around:
            near[u] |= around
            near[u] -= {u, v}
    return met


def lattice(rows: int, columns: int) -> IntArray:
    at = np.arange(rows * columns).reshape(rows, columns)
    across = np.stack([at[:, :-1].ravel(), at[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([at[:-1].ravel(), at[1:].ravel()], axis=1)])


@pytest.fixture(params=["goatd", "min_fill"])
def library(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Orders by goatd, and as where it has no wheel."""
    if request.param == "min_fill":
        monkeypatch.setitem(sys.modules, "goatd", None)
    else:
        pytest.importorskip("goatd")
    return str(request.param)


def test_orders_cost_what_they_say(library: str) -> None:
    rng = np.random.default_rng(1)
    for seed in range(60):
        cardinalities, pairs = random_graph(rng)
        orders = candidate_orders(cardinalities, pairs, 3, seed, 3)
        for order in [elimination_order(cardinalities, pairs), *orders]:
            assert sorted(order.order.tolist()) == list(range(len(cardinalities)))
            met = cliques_met(order.order.tolist(), cardinalities, pairs)
            assert order.width == max(width for width, _ in met)
            assert 2**order.log2_largest == pytest.approx(max(entries for _, entries in met))
            assert order.entries == pytest.approx(sum(entries for _, entries in met))


def test_repeatable_orders_repeat(library: str) -> None:
    pairs = lattice(9, 9)
    first, again, other = (candidate_orders([2] * 81, pairs, 4, seed) for seed in (3, 3, 4))
    assert [order.order.tolist() for order in first] == [order.order.tolist() for order in again]
    assert [order.order.tolist() for order in first] != [order.order.tolist() for order in other]


def test_known_widths(library: str) -> None:
    """Trees 1, rings 2, complete graphs n - 1, two hubs 2; a 6 x 6 lattice has 6."""
    rng = np.random.default_rng(0)
    n = 200
    cases = [
        ([(int(rng.integers(v)), v) for v in range(1, n)], n, 1),
        ([(v, (v + 1) % n) for v in range(n)], n, 2),
        ([(hub, v) for v in range(2, n) for hub in (0, 1)], n, 2),
        (list(itertools.combinations(range(9), 2)), 9, 8),
        ([], 5, 0),
    ]
    for edges, size, width in cases:
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        assert elimination_order([2] * size, pairs).width == width
    assert elimination_order([2] * 36, lattice(6, 6)).width in (6, 7)


def test_rows_are_candidates_on_long_lattices() -> None:
    best = elimination_order([2] * 900, lattice(30, 30))
    assert best.lattice
    assert best.width == 30


def test_the_clocked_search_is_no_worse_and_counts_states() -> None:
    """linkage models have variables of 2 to 5 states: the order that meets few variables is not the cheapest."""
    pytest.importorskip("goatd")
    rng = np.random.default_rng(5)
    cardinalities = rng.choice([2, 8], size=150).tolist()
    pairs = pairs_of([tuple(rng.choice(150, 3, replace=False).tolist()) for _ in range(110)])
    quick, clocked = (elimination_order(cardinalities, pairs, seconds=s) for s in (0.0, 1.0))
    assert clocked.log2_total <= quick.log2_total
    met = cliques_met(clocked.order.tolist(), cardinalities, pairs)
    assert clocked.entries == pytest.approx(sum(entries for _, entries in met))


def test_what_is_too_wide_is_not_searched_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("goatd")
    from spinbench.reference.orders import goatd

    portfolio_orders, searched = goatd.portfolio_orders, []

    def record(cardinalities: list[int], pairs: IntArray, seed: int, seconds: float) -> Iterator[list[int]]:
        searched.append(seconds)
        return portfolio_orders(cardinalities, pairs, seed, seconds)

    monkeypatch.setattr(goatd, "portfolio_orders", record)
    assert elimination_order([2] * 3600, lattice(60, 60), seconds=60.0).log2_total > 60
    assert sum(searched) <= HOPELESS_SECONDS
    searched.clear()
    assert elimination_order([2] * 10_000, lattice(100, 100), seconds=60.0).log2_total > 80
    assert not searched


def test_a_search_in_vain_ends_soon_where_the_order_takes_more_than_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that only the search moves: 2^36 entries are within what is eliminated in ten minutes, of which the
    search may take a share, and no better order is found."""
    pytest.importorskip("goatd")
    from spinbench.reference.orders import goatd, order

    clock = [0.0]

    def find_none(cardinalities: list[int], pairs: IntArray, seed: int, seconds: float) -> Iterator[list[int]]:
        clock[0] += seconds
        return iter(())

    monkeypatch.setattr(goatd, "portfolio_orders", find_none)
    monkeypatch.setattr(order.time, "perf_counter", lambda: clock[0])
    for columns in (31, 26):
        elimination_order([2] * columns**2, lattice(columns, columns), seconds=10.0, max_bytes=2**30)
        assert (clock[0] <= HOPELESS_SECONDS) == (columns == 31)
        clock[0] = 0.0


def test_depth_first_keeps_the_cliques_and_saves_memory() -> None:
    rng = np.random.default_rng(2)
    for _ in range(60):
        cardinalities, pairs = random_graph(rng)
        order = rng.permutation(len(cardinalities))
        turned = depth_first(order, cardinalities, pairs)
        before, after = (
            {tuple(sorted(order_[[p, *s]])) for p, s in enumerate(separators(order_, pairs))}
            for order_ in (order, turned)
        )
        assert before == after
        assert peak(turned, cardinalities, pairs) <= peak(order, cardinalities, pairs)


def peak(order: IntArray, cardinalities: list[int], pairs: IntArray) -> int:
    """Entries of messages that are held at once; the place of none is used while another one holds it."""
    found = [tuple(s) for s in separators(order, pairs)]
    sizes = [math.prod(cardinalities[order[q]] for q in s) for s in found]
    parents = [min(s) if s else -1 for s in found]
    offsets, length = place_messages(sizes, parents)
    held: dict[int, range] = {}
    most = 0
    for p, parent in enumerate(parents):
        place = range(offsets[p], offsets[p] + sizes[p])
        assert all(other.stop <= place.start or place.stop <= other.start for other in held.values())
        held[p] = place
        most = max(most, sum(map(len, held.values())))
        held = {q: place for q, place in held.items() if parents[q] != p}
        assert parent < 0 or parent > p
    assert most <= length
    return most
