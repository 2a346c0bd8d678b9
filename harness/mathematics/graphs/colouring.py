"""Edges in compressed rows, and orders in which vertices may be updated together: colourings, levels of a raster scan.

Everything is vectorised over vertices, so that a graph of a million vertices takes a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

AnyInts = npt.NDArray[np.signedinteger]
# Edges are found in a dense table of all pairs if at least one pair in this many is an edge.
FEW_HOLES = 4
# Entries of that table in a block.
AT_ONCE = 2**20
# Rows and columns of the blocks in which a table is transposed: a block fits a cache.
BESIDE = 256
IntArray = npt.NDArray[np.int64]
# Largest number of vertices whose colouring may exceed `MAX_COLOURS`, at the cost of a Python loop over vertices.
SEQUENTIAL = 4096
MAX_COLOURS = 63
MAX_LEVELS = 10_000
# Degree above which `MAX_COLOURS` colours, the bits of a 64-bit mask, rarely suffice.
MANY_EDGES = 512
# Largest number of edges for which a colouring is improved: beyond, it takes seconds and saves a colour at most.
FEW_EDGES = 300_000


def adjacency_rows(n: int, first: AnyInts, second: AnyInts) -> tuple[AnyInts, AnyInts, AnyInts]:
    """Who is next to whom, both ways.

    Args:
        n: vertices.
        first, second: (E,) ends of the edges, each edge once, no loops.

    Returns:
        (N + 1,) where rows start; (2E,) neighbours, ascending in each row; (2E,) the numbers of their edges. Of 32 bits
        each, where that is enough.
    """
    narrow = np.promote_types(np.int32, np.min_scalar_type(-n))
    if has_most(n, len(first)):
        numbered = dense_symmetric_matrix(n, first, second, np.arange(1, len(first) + 1, dtype=np.int32))
        start, others, numbers = table_to_csr(numbered)
        numbers -= 1
        return start, others, numbers
    from scipy import sparse

    ends = np.concatenate([first, second], dtype=narrow)
    others = np.concatenate([ends[len(first) :], ends[: len(first)]])
    numbers = np.tile(np.arange(len(first), dtype=np.promote_types(np.int32, np.min_scalar_type(-len(first)))), 2)
    square = sparse.coo_array((numbers, (ends, others)), shape=(n, n), copy=False)
    square.has_canonical_format = True  # skips the sort for duplicates, of which there are none
    by_rows = square.tocsr()
    del ends, others, numbers, square  # edge numbers are half as large as weights, so that the peak is little above
    ascending = by_rows.tocsc()  # the result. Columns of a symmetric matrix are its rows, and this puts them in order.
    return ascending.indptr, ascending.indices.astype(narrow, copy=False), ascending.data


def has_most(n: int, edges: int) -> bool:
    """Whether a graph has most of the edges that it could have, so that a table of all pairs is looked through."""
    return 2 * edges * FEW_HOLES >= n * n and n * n < 2**31


def dense_symmetric_matrix(n: int, first: AnyInts, second: AnyInts, values: np.ndarray) -> np.ndarray:
    """(N, N) the values (E,) of the edges, each edge once, no loops; 0 of all other pairs."""
    table = np.empty((n, n), dtype=values.dtype)
    table.fill(0)  # uses large pages where available; np.zeros would use small ones
    for low in range(0, len(first), AT_ONCE):
        some = slice(low, low + AT_ONCE)
        table[first[some], second[some]] = values[some]
    for low in range(0, n, BESIDE):
        rows = slice(low, low + BESIDE)
        table[rows, rows] += table[rows, rows].T
        for other in range(low + BESIDE, n, BESIDE):  # one of each pair of entries is set, and both get its value
            columns = slice(other, other + BESIDE)
            table[rows, columns] += table[columns, rows].T
            table[columns, rows] = table[rows, columns].T
    return table


def table_to_csr(table: np.ndarray) -> tuple[AnyInts, AnyInts, np.ndarray]:
    """Where rows start, columns and values of the entries of a table (N, N) that are not 0; at most 2^31."""
    n = len(table)
    start = row_starts(table)
    columns, values = np.empty(start[-1], dtype=np.int32), np.empty(start[-1], dtype=table.dtype)
    step = max(1, AT_ONCE // max(n, 1))
    numbers = np.tile(np.arange(n, dtype=np.int32), (min(step, n), 1))
    for low in range(0, n, step):
        part, entries = table[low : low + step], slice(start[low], start[min(low + step, n)])
        nonzero = part != 0
        columns[entries] = numbers[: len(part)][nonzero]
        values[entries] = part[nonzero]
    return start, columns, values


def row_starts(table: np.ndarray) -> AnyInts:
    """(N + 1,) int32: where the rows of a table start if what is 0 is left out."""
    start = np.zeros(len(table) + 1, dtype=np.int32)
    np.cumsum([np.count_nonzero(row) for row in table], out=start[1:])
    return start


class Adjacency(NamedTuple):
    """The neighbours of vertex i are others[start[i] : start[i + 1]], ascending."""

    start: IntArray
    others: npt.NDArray[np.signedinteger]

    @classmethod
    def of(cls, n: int, edges: IntArray) -> Adjacency:
        """From (E, 2) edges between n vertices, each edge once, no loops."""
        start, others, _ = adjacency_rows(n, edges[:, 0], edges[:, 1])
        return cls(start.astype(np.int64), others)

    def around(self, vertices: IntArray) -> tuple[IntArray, IntArray]:
        """(position in `vertices`, neighbour) of every edge that leaves `vertices`."""
        first = self.start[vertices]
        counts = self.start[vertices + 1] - first
        ends = np.cumsum(counts)
        entry = np.arange(counts.sum()) + np.repeat(first - ends + counts, counts)
        return np.repeat(np.arange(len(vertices)), counts), self.others[entry]


def colouring(n: int, edges: IntArray) -> IntArray:
    """Colours 0, 1, … such that no edge joins two vertices of one colour.

    Two colours where the graph is bipartite (found by breadth-first search, exactly). Otherwise greedy in an
    approximate smallest-last order (Besta et al., "High-performance parallel graph coloring with strong
    guarantees", SC 2020: vertices of at most the mean degree are peeled off in rounds), then improved by iterated
    greedy colouring (Culberson, 1992): the classes in reverse order, which never needs more colours.

    Args:
        n: number of vertices.
        edges: (E, 2), each edge once, no loops.

    Returns:
        (n,) int64; every colour up to the largest occurs.
    """
    if len(edges) == 0:
        return np.zeros(n, dtype=np.int64)
    if 2 * len(edges) == n * (n - 1):  # complete graph: colour of each vertex by its place in the random order
        return _rank(np.lexsort((_random_order(n), np.arange(n) > 0)))
    graph = Adjacency.of(n, edges)
    parity = _breadth_first_parity(graph)
    if (parity[edges[:, 0]] != parity[edges[:, 1]]).all():
        return parity.astype(np.int64)
    shuffled = _random_order(n)
    colours = _greedy(graph, _rank(np.lexsort((shuffled, parity, -_peeling_rounds(graph)))))
    if len(edges) < FEW_EDGES:
        for _ in range(4):
            colours = _greedy(graph, _rank(np.lexsort((shuffled, -colours))))
    return colours


def raster_levels(n: int, edges: IntArray) -> IntArray:
    """level(i) = 1 + the highest level among the neighbours of lower index (0 without any).

    Updating level by level gives exactly the raster scan 0, 1, …, n - 1: a vertex sees new values of its
    neighbours of lower index and old ones of the others. Where there would be more than `MAX_LEVELS` levels, each
    vertex gets a level of its own.
    """
    levels = np.zeros(n, dtype=np.int64)
    if len(edges) == 0:
        return levels
    graph = Adjacency.of(n, edges)
    for level, vertices in enumerate(_frontiers(graph, np.arange(n))):
        if level == MAX_LEVELS:
            return np.arange(n)
        levels[vertices] = level
    return levels


def _random_order(n: int) -> IntArray:
    return np.random.default_rng(0).permutation(n)


def _rank(order: IntArray) -> IntArray:
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank


def _breadth_first_parity(graph: Adjacency) -> npt.NDArray[np.int8]:
    """(n,) parity of the distance to the first vertex of the component."""
    from scipy.sparse import csgraph

    n, square = len(graph.start) - 1, _square(graph.start, graph.others)
    order, parent = csgraph.breadth_first_order(square, 0, directed=True, return_predecessors=True)
    if len(order) == n:
        return _depth_parity(parent, 0)
    # Strong components of an undirected graph are its components, found without a transposed matrix.
    components, label = csgraph.connected_components(square, connection="strong")
    firsts = np.zeros(components, dtype=graph.others.dtype)
    firsts[label[::-1]] = np.arange(n - 1, -1, -1)
    others = np.concatenate([graph.others, firsts])
    rooted = _square(np.append(graph.start, len(others)), others)  # a single search, from an extra root
    parent = csgraph.breadth_first_order(rooted, n, directed=True, return_predecessors=True)[1]
    return 1 - _depth_parity(parent, n)[:n]


def _depth_parity(parent: npt.NDArray[np.int32], root: int) -> npt.NDArray[np.int8]:
    """Of each vertex of a tree, by pointer jumping: the number of rounds is the logarithm of the depth."""
    parent[root] = root
    parity = np.ones(len(parent), dtype=np.int8)
    parity[root] = 0
    while (parent != root).any():
        parity ^= parity.take(parent)
        parent = parent.take(parent)
    return parity


def _square(start: IntArray, others: npt.NDArray[np.signedinteger]) -> Any:
    """A graph as SciPy takes it. It asks for weights, which searches do not read: they take no memory."""
    from scipy.sparse import csr_array

    n = len(start) - 1
    return csr_array((np.broadcast_to(1.0, len(others)), others, start), shape=(n, n))


def _peeling_rounds(graph: Adjacency) -> IntArray:
    """(n,) the round in which a vertex has at most 1.1 times the mean degree of the graph that is left."""
    n = len(graph.start) - 1
    degree = np.diff(graph.start)
    rounds = np.full(n, -1, dtype=np.int64)
    left = np.arange(n)
    current = 0
    while len(left):
        leaves = degree[left] <= 1.1 * degree[left].mean()
        gone, left = left[leaves], left[~leaves]
        rounds[gone] = current
        if not len(left):
            return rounds
        degree = degree - np.bincount(graph.around(gone)[1], minlength=n)
        current += 1
    return rounds


def _frontiers(graph: Adjacency, rank: IntArray) -> Iterator[IntArray]:
    """Sets of vertices in the order of the longest rising path that ends in them."""
    n = len(rank)
    source = np.repeat(np.arange(n), np.diff(graph.start))
    waiting = np.bincount(source[rank[graph.others] < rank[source]], minlength=n)
    vertices = np.flatnonzero(waiting == 0)
    while len(vertices):
        yield vertices
        position, other = graph.around(vertices)
        other = other[rank[other] > rank[vertices][position]]
        np.subtract.at(waiting, other, 1)
        vertices = np.unique(other[waiting[other] == 0])


def _greedy(graph: Adjacency, rank: IntArray) -> IntArray:
    """Every vertex in the order of rank gets the smallest colour that its coloured neighbours leave."""
    n = len(rank)
    if n <= SEQUENTIAL or len(graph.others) > MANY_EDGES * n:
        return _greedy_sequential(graph, np.argsort(rank))
    neighbour_colours = np.zeros(n, dtype=np.uint64)  # bit c: a coloured neighbour has colour c
    colours = np.full(n, -1, dtype=np.int64)
    for vertices in _frontiers(graph, rank):
        free = ~neighbour_colours[vertices]
        lowest = free & (~free + np.uint64(1))
        colours[vertices] = np.bitwise_count(lowest - np.uint64(1))
        if colours[vertices].max() > MAX_COLOURS - 1:
            return _greedy_sequential(graph, np.argsort(rank))
        position, other = graph.around(vertices)
        np.bitwise_or.at(neighbour_colours, other, lowest[position])
    return colours


def _greedy_sequential(graph: Adjacency, order: IntArray) -> IntArray:
    colours = np.full(len(order), -1, dtype=np.int64)
    for i in order.tolist():
        near = colours[graph.others[graph.start[i] : graph.start[i + 1]]]
        used = np.zeros(len(near) + 1, dtype=bool)
        used[near[(near >= 0) & (near <= len(near))]] = True
        colours[i] = int(used.argmin())
    return colours
