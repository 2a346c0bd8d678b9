"""Draws of p(s|x) for the kernels of block Gibbs and DHMC.

Arrays of chains are (N, C), contiguous. Elementwise work runs over them flat, so that vectors are full whatever C is.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.functions import ONE, ZERO, exp, flat, log1p, sigmoid, softplus
from spinbench.relaxation import Sites

KERNEL: Any = {"error_model": "numpy", "fastmath": {"contract", "reassoc", "nsz", "arcp"}, "_nrt": False}
"""Options of functions on arrays that allocate none.

Sums may be reordered, which is what lets LLVM vectorise them. Without Numba's runtime nothing counts references: an
atomic count for each array that is taken from a tuple or sliced would cost a step of one chain as much as its products.
"""
OUTER: Any = KERNEL | {"_nrt": True}
"""The same for functions that allocate arrays, and so count references."""


class Groups(NamedTuple):
    """1-of-K groups: members (G, K) int64 and sizes (G,) int64; free (N,) bool tells the units in none."""

    members: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]
    free: npt.NDArray[np.bool_]


def make_groups(sites: Sites | None, n: int) -> Groups:
    """From the host's table of sites."""
    if sites is None:
        return Groups(np.zeros((0, 1), dtype=np.int64), np.zeros(0, dtype=np.int64), np.ones(n, dtype=np.bool_))
    grouped = ~(sites.members == n).any(axis=1)
    members = np.ascontiguousarray(sites.members[grouped])
    free = np.ones(n, dtype=np.bool_)
    free[members[members < n]] = False
    return Groups(members, (members < n).sum(axis=1), free)


@nb.njit(**KERNEL)
def scale_rows(weights, x, out):
    """out = diag(weights) x."""
    if x.shape[1] == 1:
        flat_x, flat_out = flat(x), flat(out)
        for i in range(weights.size):
            flat_out[i] = weights[i] * flat_x[i]
        return
    for i in range(weights.size):
        weight, row, to = weights[i], x[i], out[i]
        for c in range(row.size):
            to[c] = weight * row[c]


@nb.njit(**KERNEL)
def add_column(x, v, out):
    """out = x + v, v (N,) for every chain."""
    if x.shape[1] == 1:
        flat_x, flat_out = flat(x), flat(out)
        for i in range(v.size):
            flat_out[i] = flat_x[i] + v[i]
        return
    for i in range(v.size):
        row, to, shift = x[i], out[i], v[i]
        for c in range(row.size):
            to[c] = row[c] + shift


@nb.njit(**KERNEL)
def add_columns(values, scale, out):
    """out (C,) float64 += scale times the sums of `values` (N, C) over N, in float64."""
    if values.shape[1] == 1:
        column, total = flat(values), 0.0
        for i in range(column.size):
            total += np.float64(column[i])
        out[0] += scale * total
        return
    for i in range(values.shape[0]):
        row = values[i]
        for c in range(row.size):
            out[c] += scale * np.float64(row[c])


@nb.njit(**KERNEL)
def add_to(values, sums):
    """sums += values in float64: a float32 sum would stop growing at 2^24."""
    flat_values, flat_sums = flat(values), flat(sums)
    for k in range(flat_values.size):
        flat_sums[k] += np.float64(flat_values[k])


@nb.njit(**KERNEL)
def add_log(values, sums):
    """sums = log(exp(sums) + exp(values)), both (C,) float64."""
    for c in range(values.size):
        apart = abs(sums[c] - values[c])
        sums[c] = max(sums[c], values[c]) + log1p(exp(-apart))


@nb.njit(**KERNEL)
def unit_means(u, groups, p):
    """p(s_i = 1|x) from the log-odds u."""
    flat_u, flat_p = flat(u), flat(p)
    for k in range(flat_u.size):
        flat_p[k] = sigmoid(flat_u[k])
    for g in range(groups.sizes.size):
        for c in range(u.shape[1]):
            top = u[groups.members[g, 0], c]
            for k in range(1, groups.sizes[g]):
                top = max(top, u[groups.members[g, k], c])
            total = ZERO(top)
            for k in range(groups.sizes[g]):
                i = groups.members[g, k]
                p[i, c] = exp(u[i, c] - top)
                total += p[i, c]
            for k in range(groups.sizes[g]):
                p[groups.members[g, k], c] /= total


@nb.njit(**KERNEL)
def log_normaliser(u, groups, work, out):
    """out (C,) float64: log Σ_s exp(s·u), the terms in u's precision and their sum in float64. `work` is as u."""
    flat_u, flat_work = flat(u), flat(work)
    for k in range(flat_u.size):
        flat_work[k] = softplus(flat_u[k])
    for i in range(u.shape[0] if groups.sizes.size else 0):
        if not groups.free[i]:
            for c in range(u.shape[1]):
                work[i, c] = ZERO(work[i, c])
    out[:] = 0.0
    add_columns(work, 1.0, out)
    for g in range(groups.sizes.size):
        for c in range(u.shape[1]):
            top = u[groups.members[g, 0], c]
            for k in range(1, groups.sizes[g]):
                top = max(top, u[groups.members[g, k], c])
            total = 0.0
            for k in range(groups.sizes[g]):
                total += np.float64(exp(u[groups.members[g, k], c] - top))
            out[c] += np.float64(top) + np.log(total)


@nb.njit(**KERNEL)
def draw_units(v, p, groups, s):
    """s ~ p(s|x) from the uniform numbers v; a group takes those of its first member."""
    flat_v, flat_p, flat_s = flat(v), flat(p), flat(s)
    for k in range(flat_v.size):
        flat_s[k] = ONE(flat_v[k]) if flat_v[k] < flat_p[k] else ZERO(flat_v[k])
    for g in range(groups.sizes.size):
        for c in range(v.shape[1]):
            left = v[groups.members[g, 0], c]
            chosen = groups.sizes[g] - 1
            for k in range(groups.sizes[g] - 1):
                left -= p[groups.members[g, k], c]
                if left < ZERO(left):
                    chosen = k
                    break
            for k in range(groups.sizes[g]):
                s[groups.members[g, k], c] = k == chosen
