"""What the trajectories of DHMC share.

Arrays of chains are tiles (`tiles`) in the kernel's precision; energies are float64, one in each lane.
"""

from __future__ import annotations

from typing import NamedTuple

import numba as nb

from spinbench.backends.numba.relaxed.tiles import KERNEL, coefficient, lanes, stride, unit
from spinbench.backends.numba.simd import Array, address, choose, load_lanes, load_vector, store


class Point(NamedTuple):
    """As `spinbench.methods.relaxed.dhmc_dynamics.Point`, without u, of one tile, or of all (T, …).

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


@nb.njit(**KERNEL)
def add_scaled(x, scale, y, n, out):
    """out = x + scale · y, `scale` a number or in vectors, y a tile or a column; out may be x."""
    left, right, to = address(x, 0), address(y, 0), address(out, 0)
    for i in range(0, n, stride(x)):
        at = i * unit(x)
        # Which of the two is part of the type: one of them is compiled.
        other = coefficient(right, i, x) if y.ndim == 1 else load_vector(right, at)
        store(to, at, load_vector(left, at) + scale * other)


@nb.njit(**KERNEL)
def add_energies(more, out, lanes):
    """out += more: float64, one in each lane."""
    to = address(out, 0)
    store(to, 0, load_lanes(to, 0, lanes) + load_lanes(address(more, 0), 0, lanes))


@nb.njit(**KERNEL)
def move(moving, proposal, current, n):
    """The chains whose proposal is accepted move."""
    _take(moving, proposal.position, current.position, n)
    _take(moving, proposal.p, current.p, n)
    _take(moving, proposal.push, current.push, n)
    new, old = address(proposal.potential, 0), address(current.potential, 0)
    store(old, 0, choose(moving, load_lanes(new, 0, lanes(current.p)), load_lanes(old, 0, lanes(current.p))))


@nb.njit(**KERNEL)
def _take(moving, new, old, n):
    source, target = address(new, 0), address(old, 0)
    for i in range(0, n, stride(old)):
        at = i * unit(old)
        value = choose(moving, load_vector(source, at), load_vector(target, at))
        store(target, at, value)
