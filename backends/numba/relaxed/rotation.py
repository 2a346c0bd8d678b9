"""Trajectories for the mass Q⁻¹: the Gaussian part turns position and velocity, the rest kicks.

With y = α - Qm and f = p - m a kick adds h Qf to the velocity w, and ½ wᵀQ⁻¹w changes by h f·w + ½ h² f·Qf: Q⁻¹ never
appears. A step costs one product with Q, dense or along the edges, N sigmoids, and some passes over the tile; a
sample one draw of N(0, Q) more.
"""

from __future__ import annotations

import numba as nb

from spinbench.backends.numba.relaxed.matrices import product
from spinbench.backends.numba.relaxed.point import add_column
from spinbench.backends.numba.relaxed.tiles import KERNEL, coefficient, lanes, over_variables, stride, unit, zeros
from spinbench.backends.numba.relaxed.units import log_normaliser, unit_means
from spinbench.backends.numba.simd.functions import sincos_turns
from spinbench.backends.numba.simd.memory import address, load_lanes, load_vector, store
from spinbench.backends.numba.simd.vector_sums import converted

TURN = 0.15915494309189535
"""1 / 2π."""


@nb.njit(**KERNEL)
def _kick(push, step, f, n, w):
    """w += step push. Returns the kinetic energy that this gives."""
    pushes, forces, velocities = address(push, 0), address(f, 0), address(w, 0)
    gained, half = converted(zeros(w), 0.0), step * w.dtype.type(0.5)
    for i in range(0, n, stride(w)):
        at = i * unit(w)
        q, old = load_vector(pushes, at), load_vector(velocities, at)
        gained = gained + converted(load_vector(forces, at) * (step * (old + half * q)), 0.0)
        store(velocities, at, old + step * q)
    return over_variables(w, gained)


@nb.njit(**KERNEL)
def _turn(cosine, sine, centre, n, y, w, u):
    """(y, w) turned; u = y + Qm + b."""
    positions, velocities, odds, shift = address(y, 0), address(w, 0), address(u, 0), address(centre, 0)
    for i in range(0, n, stride(y)):
        at = i * unit(y)
        position, velocity = load_vector(positions, at), load_vector(velocities, at)
        turned = cosine * position + sine * velocity
        store(positions, at, turned)
        store(velocities, at, cosine * velocity - sine * position)
        store(odds, at, turned + coefficient(shift, i, y))


@nb.njit(**KERNEL)
def _tilt(m, u, n):
    """m·u."""
    odds, means = address(u, 0), address(m, 0)
    result = converted(zeros(u), 0.0)
    for i in range(0, n, stride(u)):
        term = coefficient(means, i, u) * load_vector(odds, i * unit(u))
        result = result + converted(term, 0.0)
    return over_variables(u, result)


def travel(system, leaps, size, scratch, here):
    """From `here` to scratch.there with a velocity drawn from scratch.noise, which is overwritten.

    `size` of the steps is float64. The potential is m·u - log Π (1 + exp(u_i)). Returns the energy gained.
    """
    factor, frame, n, there = system.factor, system.frame, system.n, scratch.there
    w, y, f = scratch.velocity, there.position, scratch.work
    step = converted(size, y.dtype.type(0))
    sine, cosine = sincos_turns(size * TURN)
    sine, cosine = converted(sine, y.dtype.type(0)), converted(cosine, y.dtype.type(0))
    product(factor.root, scratch.noise, w)
    add_column(here.position, -1.0, frame.shift, n, y)
    add_column(here.p, -1.0, frame.m, n, f)
    gained = _kick(here.push, step * y.dtype.type(0.5), f, n, w)
    for k in range(leaps):
        _turn(cosine, sine, frame.centre, n, y, w, scratch.u)
        unit_means(scratch.u, system.groups, n, there.p)
        add_column(there.p, -1.0, frame.m, n, f)
        product(factor.gram, f, there.push)
        gained = gained + _kick(there.push, step if k < leaps - 1 else step * y.dtype.type(0.5), f, n, w)
    add_column(scratch.u, -1.0, frame.bias, n, y)
    normaliser = log_normaliser(scratch.u, system.groups, n, scratch.energy)
    potential = _tilt(frame.m, scratch.u, n) - normaliser
    store(address(there.normaliser, 0), 0, normaliser)
    store(address(there.potential, 0), 0, potential)
    return gained + (potential - load_lanes(address(here.potential, 0), 0, lanes(y)))
