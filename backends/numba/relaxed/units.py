"""Draws of p(s|x) for the kernels of block Gibbs and DHMC, on tiles of chains (`tiles`)."""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.relaxed.tiles import (
    KERNEL,
    ONCE,
    Layout,
    coefficient,
    lanes,
    over_variables,
    stride,
    unit,
    zeros,
)
from spinbench.backends.numba.simd import (
    Array,
    address,
    choose,
    convert,
    exp,
    fill_normal,
    in_lanes,
    larger,
    load,
    load_lanes,
    load_row,
    sigmoid,
    softplus,
    store,
    store_row,
    uniform,
)
from spinbench.mathematics.relaxation.density import Sites


class Members(NamedTuple):
    """1-of-K groups: members (G, K) int64, rows of a tile, and sizes (G,) int64."""

    members: npt.NDArray[np.int64]
    sizes: npt.NDArray[np.int64]


class Groups(NamedTuple):
    """free (P,): 1 for units in no group; the groups, or None, for which less is compiled."""

    free: Array
    of: Members | None


def tile_one_of_k_groups(sites: Sites | None, layout: Layout) -> Groups:
    """From the host's table of sites."""
    n, free = layout.n, np.ones(layout.n)
    if sites is None:
        return Groups(layout.column(free), None)
    members = sites.members[~(sites.members == n).any(axis=1)]
    free[members[members < n]] = 0.0
    # Members are stored as their rows in a tile; the padding of smaller groups is never read.
    rows = np.append(np.argsort(layout.order), [n, n])
    grouping = Members(np.ascontiguousarray(rows[members]), (members < n).sum(axis=1))
    return Groups(layout.column(free), grouping)


@nb.njit(**KERNEL)
def draw_noise(keys, counter, noise, rows):
    """Standard normal numbers in the rows of a tile and zeros beyond; the next counter."""
    # The number of axes is part of the type: Numba compiles only one branch.
    if noise.ndim == 1:
        for i in range(rows, noise.size):
            noise[i] = 0
        return fill_normal(keys, counter, noise[:rows])
    return fill_normal(keys, counter, noise)


@nb.njit(**KERNEL)
def chain_uniforms(tile, keys, counter):
    """Number `counter` of a tile's chains, uniform on [0, 1), float64, one in each lane."""
    start, gamma = address(keys, 0), address(keys, keys.size // 2)
    if tile.ndim == 1:
        return in_lanes(uniform(load(start, 0), load(gamma, 0), counter), lanes(tile))
    return uniform(load_lanes(start, 0, lanes(tile)), load_lanes(gamma, 0, lanes(tile)), counter)


@nb.njit(**KERNEL)
def add_to_sums(values, n, sums):
    """sums += values in float64: a float32 sum would stop growing at 2^24."""
    to = address(sums, 0)
    for i in range(0, n, stride(values)):
        at = i * unit(values)
        store(to, at, load_lanes(to, at, lanes(values)) + convert(load_row(values, i), 0.0))


@nb.njit(**ONCE)
def unit_means(u, groups, n, p):
    """p(s_i = 1|x) from the log-odds u."""
    for i in range(0, n, stride(u)):
        store_row(p, i, sigmoid(load_row(u, i)))
    group_means(u, groups.of, p)


@nb.njit(**KERNEL)
def _group_total(fields, groups, g, lane, width):
    """The largest log-odds of a group's members and Σ exp(log-odds - the largest), for one chain."""
    top = load(fields, groups.members[g, 0] * width + lane)
    for k in range(1, groups.sizes[g]):
        top = larger(top, load(fields, groups.members[g, k] * width + lane))
    total = top - top
    for k in range(groups.sizes[g]):
        total += exp(load(fields, groups.members[g, k] * width + lane) - top)
    return top, total


@nb.njit(**KERNEL)
def group_means(u, groups, p):
    """p(s_i = 1|x) of the units in groups, if there are any."""
    if groups is None:
        return
    fields, to, width = address(u, 0), address(p, 0), unit(u)
    for g in range(groups.sizes.size):
        for lane in range(width):
            top, total = _group_total(fields, groups, g, lane, width)
            for k in range(groups.sizes[g]):
                at = groups.members[g, k] * width + lane
                store(to, at, exp(load(fields, at) - top) / total)


@nb.njit(**ONCE)
def log_normaliser(u, groups, n, energy):
    """log Σ_s exp(s·u) in every lane, the terms in u's precision and their sum in float64; `energy` is work space."""
    free, result = address(groups.free, 0), convert(zeros(u), 0.0)
    for i in range(0, n, stride(u)):
        term = coefficient(free, i, u) * softplus(load_row(u, i))
        result = result + convert(term, 0.0)
    return _with_groups(over_variables(u, result), u, groups.of, energy)


@nb.njit(**KERNEL)
def _with_groups(result, u, groups, energy):
    """The same with what the groups, if there are any, add."""
    if groups is None:
        return result
    fields, width = address(u, 0), unit(u)
    for c in range(energy.size):
        energy[c] = 0.0
        for g in range(groups.sizes.size):
            top, total = _group_total(fields, groups, g, c % width, width)
            energy[c] += np.float64(top) + np.log(np.float64(total))
    return result + load_lanes(address(energy, 0), 0, lanes(u))


@nb.njit(**KERNEL)
def draw_units(v, p, groups, n, s):
    """s ~ p(s|x) from the uniform numbers v; a group takes those of its first member."""
    zero = zeros(v)
    ones = zero + v.dtype.type(1)
    for i in range(0, n, stride(v)):
        store_row(s, i, choose(load_row(v, i) < load_row(p, i), ones, zero))
    _draw_groups(v, p, groups.of, s)


@nb.njit(**KERNEL)
def _draw_groups(v, p, groups, s):
    """The same of the units in groups, if there are any."""
    if groups is None:
        return
    numbers, means, to, width = address(v, 0), address(p, 0), address(s, 0), unit(v)
    for g in range(groups.sizes.size):
        for c in range(width):
            left = load(numbers, groups.members[g, 0] * width + c)
            # The last member is the default where rounding leaves a remainder of the uniform number.
            last = groups.sizes[g] - 1
            for k in range(groups.sizes[g] - 1):
                left -= load(means, groups.members[g, k] * width + c)
                if left < 0:
                    last = k
                    break
            for k in range(groups.sizes[g]):
                store(to, groups.members[g, k] * width + c, s.dtype.type(k == last))
