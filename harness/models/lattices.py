"""Edge lists: (E, 2) int64, rows i < j, sorted by (i, j); those of the graphs that generators put weights on."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
# Edges of a block: copies of more edges would need newly mapped memory.
_CHUNK_EDGES = 2**20


def sort_edges(edges: npt.ArrayLike) -> IntArray:
    """Rows oriented to i <= j and sorted by (i, j)."""
    e = np.sort(np.asarray(edges, dtype=np.int64).reshape(-1, 2), axis=1)
    return e[np.lexsort((e[:, 1], e[:, 0]))]


def grid_edges(rows: int, cols: int) -> IntArray:
    """Open square lattice; site (r, c) is variable r·cols + c."""
    site = np.arange(rows * cols).reshape(rows, cols)
    edges = np.empty((rows * (cols - 1) + (rows - 1) * cols, 2), dtype=np.int64)
    # Each site has edges to the right and down, in this order; sites of the last row have only the first.
    whole = (rows - 1) * (2 * cols - 1)
    upper, last = edges[:whole].reshape(rows - 1, 2 * cols - 1, 2), edges[whole:]
    right, down = upper[:, :-1:2], upper[:, 1::2]
    right[..., 0] = down[..., 0] = site[:-1, :-1]
    right[..., 1], down[..., 1] = site[:-1, 1:], site[1:, :-1]
    upper[:, -1, 0], upper[:, -1, 1] = site[:-1, -1], site[1:, -1]
    last[:, 0], last[:, 1] = site[-1, :-1], site[-1, 1:]
    return edges


def torus_edges(rows: int, cols: int) -> IntArray:
    """Square lattice with periodic boundaries, 2·rows·cols bonds; a side of length 2 has each bond twice."""
    site = np.arange(rows * cols).reshape(rows, cols)
    right = np.stack([site.ravel(), np.roll(site, -1, axis=1).ravel()], axis=1)
    down = np.stack([site.ravel(), np.roll(site, -1, axis=0).ravel()], axis=1)
    return sort_edges(np.concatenate([right, down]))


def cubic_edges(size: int) -> IntArray:
    """Cubic lattice of size³ sites with periodic boundaries, 3·size³ bonds; of size 2 it has each bond twice."""
    index = np.arange(size**3).reshape(size, size, size)
    pairs = [np.stack([index, np.roll(index, -1, axis)], axis=-1).reshape(-1, 2) for axis in range(3)]
    return sort_edges(np.concatenate(pairs))


def complete_edges(n: int) -> IntArray:
    """All n(n - 1)/2 pairs."""
    edges, every, end = np.empty((n * (n - 1) // 2, 2), dtype=np.int64), np.arange(n), 0
    for i in range(n - 1):
        first, end = end, end + n - 1 - i
        edges[first:end, 0], edges[first:end, 1] = i, every[i + 1 :]
    return edges


def bipartite_edges(first: int, second: int) -> IntArray:
    """All pairs of 0..first-1 with first..first+second-1."""
    i, j = np.divmod(np.arange(first * second), second)
    return np.stack([i, first + j], axis=1).astype(np.int64)


def ring_edges(n: int) -> IntArray:
    """A cycle through all n >= 3 variables."""
    i = np.arange(n)
    return sort_edges(np.stack([i, (i + 1) % n], axis=1))


def random_tree_edges(n: int, rng: np.random.Generator) -> IntArray:
    """Random recursive tree: variable i > 0 hangs on one of 0..i-1, each as likely; n - 1 uniforms are drawn."""
    child = np.arange(1, n)
    # A uniform number below i, rounded down, is uniform on 0..i-1.
    parent = (rng.random(n - 1) * child).astype(np.int64)
    return sort_edges(np.stack([parent, child], axis=1))


def shortcut_tree_edges(n: int, shortcuts: int, rng: np.random.Generator) -> IntArray:
    """Random recursive tree, then further edges one by one, each a pair of uniform integers that is new."""
    edges = {(int(i), int(j)) for i, j in random_tree_edges(n, rng)}
    while len(edges) < n - 1 + shortcuts:
        i, j = sorted(int(k) for k in rng.integers(n, size=2))
        if i != j:
            edges.add((i, j))
    return sort_edges(sorted(edges))


def random_regular_edges(n: int, degree: int, seed: int) -> IntArray:
    """Random regular graph of NetworkX (Steger and Wormald's algorithm) from `random.Random(seed)`."""
    import networkx

    return sort_edges(list(networkx.random_regular_graph(degree, n, seed=seed).edges))


def chimera_edges(m: int, n: int, t: int) -> IntArray:
    """Chimera: m × n cells of K_tt. Unit k of side u in cell (i, j) is variable ((i·n + j)·2 + u)·t + k.

    Side 0 couples to the cells above and below, side 1 to those left and right.
    """
    unit = np.arange(m * n * 2 * t).reshape(m, n, 2, t)
    pairs = [
        np.broadcast_arrays(unit[:, :, 0, :, None], unit[:, :, 1, None, :]),
        (unit[:-1, :, 0], unit[1:, :, 0]),
        (unit[:, :-1, 1], unit[:, 1:, 1]),
    ]
    return sort_edges(np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]))


def sum_edges_by_variable(edges: IntArray, values: FloatArray, n: int) -> FloatArray:
    """(N,) of each variable the sum of its edges' values, in their order."""
    total: FloatArray = np.zeros(n)
    every, step = np.arange(n), max(_CHUNK_EDGES, n)
    for low in range(0, len(edges), step):
        some = slice(low, low + step)
        # Each block begins with the sums so far, so that terms are added in the order of edges whatever the block size.
        ends = np.concatenate([every, edges[some].ravel()])
        total = np.bincount(ends, np.concatenate([total, np.repeat(values[some], 2)]), n).astype(np.float64)
    return total


def _is_canonical(edges: IntArray, n: int) -> bool:
    for low in range(0, len(edges), _CHUNK_EDGES):
        # One edge more, so that a block's last edge is compared with the next block's first.
        i, j = edges[low : low + _CHUNK_EDGES + 1].T
        codes = i * n + j
        if not ((i < j).all() and (codes[1:] > codes[:-1]).all()):
            return False
    return True


def canonical_edges(edges: IntArray, weights: FloatArray, n: int) -> tuple[IntArray, FloatArray]:
    """Edges of n variables as rows i < j, sorted; the weights of parallel ones are summed."""
    if _is_canonical(edges, n):
        return edges, weights
    if (edges[:, 0] > edges[:, 1]).any():
        edges = np.sort(edges, axis=1)
    codes = edges[:, 0] * n
    codes += edges[:, 1]
    order = codes.argsort(kind="stable")
    codes, weights = codes[order], weights[order]
    first = np.flatnonzero(np.diff(codes, prepend=-1))
    if len(first) < len(codes):
        # The caller reports the sum that is not finite.
        with np.errstate(over="ignore"):
            codes, weights = codes[first], np.add.reduceat(weights, first)
    low = codes // n
    return np.stack([low, codes - low * n], axis=1), weights
