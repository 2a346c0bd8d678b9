"""Steps of vectors of chains, transitions to s*, and log weights, in compiled code."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.blocks.sums import OPTIONS, add_log_probability, add_marginals, draw, forward
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.simd.random import uniform

Array = npt.NDArray[Any]
JIT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}, "cache": True}


class Chains(NamedTuple):
    """x (G, N, L) states, keys (G, 2, L) of random numbers, beta (G, L)."""

    x: Array
    keys: Array
    beta: Array


class Steps(NamedTuple):
    """What is to be done.

    Attributes:
        first, end: numbers of steps, the last one not among them.
        tempered: whether β differs from 1 anywhere.
        fixed: what takes the place of uniform numbers; below 0: nothing does.
    """

    first: int
    end: int
    tempered: bool
    fixed: float


@njit(**OPTIONS)
def _fill_uniform(keys, counter, count, fixed, u):
    """Numbers counter, counter + 1, … of each chain."""
    for i in range(count):
        for lane in range(u.shape[1]):
            u[i, lane] = fixed if fixed >= 0 else uniform(keys[0, lane], keys[1, lane], counter + np.uint64(i))


@njit(**JIT)
def run_steps(m, w, room, blocks, chains, steps, sums, target, logs):
    """Draw the listed blocks in each step; or, given a target, find how likely they end there, and put them there.

    One function, which is compiled once. `sums` (G, N, K, L), to which marginals are added, has no variables where
    nothing is wanted, `target` (N, L) neither; logs (G, L) += log of the probability of the target.
    """
    total = np.uint64(m.starts[-1])
    for g in range(chains.x.shape[0]):
        x, keys, beta = chains.x[g], chains.keys[g], chains.beta[g]
        for step in range(steps.first, steps.end):
            for block in blocks:
                forward(m, w, block, x, beta, steps.tempered, room)
                if target.shape[0]:
                    add_log_probability(m, block, target, x, room, logs[g])
                    continue
                first = m.starts[block]
                counter = np.uint64(step) * total + np.uint64(first)
                _fill_uniform(keys, counter, m.starts[block + 1] - first, steps.fixed, room.u)
                draw(m, block, x, room)
                if sums.shape[1]:
                    add_marginals(m, block, room, sums[g])


@njit(**JIT)
def log_weights(values, offsets, members, strides, x):
    """(G, L) sums of the factors' log weights of states x (G, N, L)."""
    found = np.zeros((x.shape[0], x.shape[2]))
    for g in range(x.shape[0]):
        for f in range(offsets.size):
            for lane in range(x.shape[2]):
                at = offsets[f]
                for j in range(members.shape[1]):
                    at += strides[f, j] * x[g, members[f, j], lane]
                found[g, lane] += values[at]
    return found
