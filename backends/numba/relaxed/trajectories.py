"""Samples of DHMC in compiled code: trajectories and their Metropolis tests, one tile of chains after the other.

Arrays of chains are tiles (`tiles`) in the kernel's precision; energies are float64, one in each lane.

What limits a sample: its products, one (A = I) or two (the harmonium) a leapfrog step, N sigmoids a step, and N normal
numbers. A tile's trajectory stays in the first-level cache.

The limit of a leapfrog step on a 10×10 grid, in cycles: the product (`elimination`) takes 240 fused multiplications and
additions of vectors for one chain in float32 and 420 in float64, two a cycle, and a sigmoid 11 and 16: 200 and 420. A
tile of chains takes 3000 and 100 sigmoids: 165 a chain in float32, 390 in float64.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb
import numpy as np
import numpy.typing as npt

from spinbench.backends.numba.gibbs.form import Copies
from spinbench.backends.numba.kernel_cache import njit
from spinbench.backends.numba.relaxed.factors import Factor, Gram
from spinbench.backends.numba.relaxed.integrators import travel_by_leapfrog, travel_by_rotation
from spinbench.backends.numba.relaxed.tiles import ENTRY, KERNEL, ONCE, lanes, stride
from spinbench.backends.numba.relaxed.units import Groups, add_to_sums, chain_uniforms, draw_noise
from spinbench.backends.numba.simd import (
    Array,
    address,
    by_types,
    choose,
    exp,
    in_lanes,
    load_lanes,
    load_row,
    smaller,
    store,
    store_row,
)
from spinbench.methods.relaxed.step_size import dual_averaging


class Point(NamedTuple):
    """As `spinbench.methods.relaxed.dhmc_program.Point`, without u, of one tile, or of all (T, …).

    The potential is (L,) or (T, L).
    """

    position: Array
    p: Array
    push: Array
    potential: Array


class Frame(NamedTuple):
    """Columns (P,): b; for the rotating forms m and Qm of the tilt, and Qm + b."""

    bias: Array
    m: Array
    shift: Array
    centre: Array


class Scratch(NamedTuple):
    """Work space of a tile: noise; u, velocity and work; energy (L,) float64; a trajectory's end."""

    noise: Array
    u: Array
    velocity: Array
    work: Array
    energy: Array
    target: Point


class System(NamedTuple):
    """What trajectories follow; the factor's type decides which dynamics is compiled."""

    factor: Factor
    frame: Frame
    groups: Groups
    n: int


class Settings(NamedTuple):
    """Of the method: `leaps` a trajectory, relative `jitter`, what burn-in does.

    Dual averaging, if the method `adapts`, aims at the mean acceptance `target` with steps up to exp(`log_limit`).
    """

    leaps: int
    jitter: float
    adapts: bool
    target: float
    log_limit: float


class Chains(NamedTuple):
    """Of `number` chains in T tiles: keys, points, and the last acceptance (T, L)."""

    number: int
    keys: npt.NDArray[np.uint64]
    points: Point
    accept: Array


class StepSums(NamedTuple):
    """Sums over steps: of p, all tiles; of acceptance (T, L). Copies of positions on the way."""

    p: Array
    accept: Array
    copies: Copies


_adapted = nb.njit(**KERNEL)(dual_averaging(np))


@njit(**ENTRY)
def take_samples(system, settings, chains, step_size, scratch, sums, counter, warm, steps):
    """`steps` samples of every chain: moves points, adds to `sums`, copies positions; the next counter, the step size.

    Burn-in, if `warm`, adapts the step size of all chains together after each step; later on, each tile takes all of
    its steps.
    """
    # Burn-in advances all tiles step by step, since all chains share a step size; afterwards each tile stays in the
    # cache for all its steps.
    run = 1 if warm else steps
    for _ in range(steps if warm else 1):
        after = counter
        for t in range(len(sums.p)):
            after = _take_tile(system, settings, chains, step_size.step, scratch, sums, t, counter, run)
        counter = after
        if warm:
            miss = settings.target - _mean_acceptance(chains.accept, chains.number)
            step_size = _adapted(step_size, settings.adapts, miss, settings.log_limit)
    return counter, step_size


@njit(**ONCE)
def _take_tile(system, settings, chains, step, scratch, sums, t, counter, steps):
    """Samples of tile t."""
    points, accept = chains.points, chains.accept[t]
    current = Point(points.position[t], points.p[t], points.push[t], points.potential[t])
    next_copy, k = sums.copies.first, 0
    for sample in range(1, steps + 1):
        counter = _sample(system, settings, scratch, current, chains.keys[t], counter, step, accept)
        add_to_sums(current.p, system.n, sums.p[t])
        add_energies(accept, sums.accept[t], lanes(current.p))
        if sample == next_copy:
            add_to_sums(current.position, system.n, sums.copies.states[k, t])
            next_copy, k = next_copy + sums.copies.every, k + 1
    return counter


@njit(**ONCE)
def _sample(system, settings, scratch, current, keys, counter, step, accept):
    """One sample of one tile; its acceptance probabilities go to `accept`."""
    size = in_lanes(step, lanes(current.p))
    # The step size varies between trajectories: a trajectory of fixed length may come back to where it began.
    if settings.jitter > 0.0:
        size = size * (1.0 + settings.jitter * (2.0 * chain_uniforms(current.p, keys, counter) - 1.0))
        counter += np.uint64(1)
    counter = draw_noise(keys, counter, scratch.noise, system.factor.noise)
    gain = _travel(system, settings.leaps, size, scratch, current)
    # A trajectory that diverged to NaN is rejected. The step size is finite, so that 0 · step is 0 in every lane.
    zero = 0.0 * size
    chance = choose(gain == gain, exp(smaller(-gain, zero)), zero)
    store(address(accept, 0), 0, chance)
    move(chain_uniforms(current.p, keys, counter) < chance, scratch.target, current, system.n)
    return counter + np.uint64(1)


@by_types(**KERNEL)
def _travel(system, leaps, size, scratch, origin):
    """One trajectory, by the dynamics of the factor; the energy that it gains."""
    factor = system.types[system.fields.index("factor")]
    return travel_by_rotation if factor.instance_class is Gram else travel_by_leapfrog


@njit(**ONCE)
def _mean_acceptance(accept, count):
    mean = 0.0
    for c in range(count):
        # with one chain per tile, every lane holds the same acceptance
        row, lane = (c, 0) if count == len(accept) else (c // accept.shape[1], c % accept.shape[1])
        mean += accept[row, lane] / count
    return mean


@nb.njit(**ONCE)
def add_energies(more, out, lanes):
    """out += more: float64, one in each lane."""
    to = address(out, 0)
    store(to, 0, load_lanes(to, 0, lanes) + load_lanes(address(more, 0), 0, lanes))


@nb.njit(**ONCE)
def move(moving, proposal, current, n):
    """The chains whose proposal is accepted move."""
    _take(moving, proposal.position, current.position, n)
    _take(moving, proposal.p, current.p, n)
    _take(moving, proposal.push, current.push, n)
    new, old = address(proposal.potential, 0), address(current.potential, 0)
    store(old, 0, choose(moving, load_lanes(new, 0, lanes(current.p)), load_lanes(old, 0, lanes(current.p))))


@nb.njit(**KERNEL)
def _take(moving, new, old, n):
    for i in range(0, n, stride(old)):
        store_row(old, i, choose(moving, load_row(new, i), load_row(old, i)))
