"""Leapfrog trajectories with unit mass on x, for A = I and for the harmonium A = Λ^(-½)Vᵀ.

The energy is evaluated at the two ends alone; a step in between costs its products (one with Q⁻¹, or two with the
root), N sigmoids, and a pass over the tile.
"""

from __future__ import annotations

from typing import Any

import numba as nb
from numba.extending import overload

from spinbench.backends.numba.relaxed.factors import Harmonium
from spinbench.backends.numba.relaxed.matrices import product
from spinbench.backends.numba.relaxed.point import add_column
from spinbench.backends.numba.relaxed.tiles import KERNEL, lanes, over_variables, stride, unit, zeros
from spinbench.backends.numba.relaxed.units import log_normaliser, unit_means
from spinbench.backends.numba.simd.memory import address, load_lanes, load_vector, store
from spinbench.backends.numba.simd.vector_sums import converted


def force(factor: Any, system: Any, scratch: Any) -> Any:
    """p at scratch.there.position, with u in scratch.u; returns Kx and A⁻ᵀp, whose difference is the push."""
    raise NotImplementedError("compiled code only")


@overload(force, jit_options=KERNEL)
def _choose_force(factor, system, scratch):
    def harmonium(factor, system, scratch):
        there, n = scratch.there, system.n
        product(factor.root, there.position, scratch.u)
        add_column(scratch.u, 1.0, system.frame.bias, n, scratch.u)
        unit_means(scratch.u, system.groups, n, there.p)
        product(factor.transposed, there.p, scratch.work)
        return there.position, scratch.work

    def precision(factor, system, scratch):
        there, n = scratch.there, system.n
        add_column(there.position, 1.0, system.frame.bias, n, scratch.u)
        unit_means(scratch.u, system.groups, n, there.p)
        product(factor.inverse, there.position, scratch.work)
        return scratch.work, there.p

    return harmonium if factor.instance_class is Harmonium else precision


@nb.njit(**KERNEL)
def _start(push, step, n, r, origin, x):
    """Half a kick and a drift: r -= ½ step push, x = origin + step r. Returns ½ r·r before."""
    pushes, momenta, whence, to = address(push, 0), address(r, 0), address(origin, 0), address(x, 0)
    kinetic, half = converted(zeros(r), 0.0), step * r.dtype.type(0.5)
    for i in range(0, n, stride(r)):
        at = i * unit(r)
        old = load_vector(momenta, at)
        kinetic = kinetic + converted(old * old, 0.0)
        new = old - half * load_vector(pushes, at)
        store(momenta, at, new)
        store(to, at, load_vector(whence, at) + step * new)
    return over_variables(r, kinetic) * 0.5


@nb.njit(**KERNEL)
def _leap(Kx, Bp, step, n, r, x):
    """A kick and a drift: r -= step (Kx - Bp), x += step r; Kx may be x."""
    left, right, momenta, to = address(Kx, 0), address(Bp, 0), address(r, 0), address(x, 0)
    for i in range(0, n, stride(r)):
        at = i * unit(r)
        push = load_vector(left, at) - load_vector(right, at)
        new = load_vector(momenta, at) - step * push
        store(momenta, at, new)
        store(to, at, load_vector(to, at) + step * new)


@nb.njit(**KERNEL)
def _finish(Kx, Bp, step, n, r, x, push):
    """Half a kick, keeping the push. Returns ½ r·r and ½ x·Kx after it."""
    left, right, momenta = address(Kx, 0), address(Bp, 0), address(r, 0)
    pushes, whence = address(push, 0), address(x, 0)
    kinetic, half = converted(zeros(r), 0.0), step * r.dtype.type(0.5)
    quadratic = kinetic
    for i in range(0, n, stride(r)):
        at = i * unit(r)
        pull = load_vector(left, at)
        new = pull - load_vector(right, at)
        store(pushes, at, new)
        momentum = load_vector(momenta, at) - half * new
        kinetic = kinetic + converted(momentum * momentum, 0.0)
        quadratic = quadratic + converted(pull * load_vector(whence, at), 0.0)
    return over_variables(r, kinetic) * 0.5, over_variables(r, quadratic) * 0.5


def travel(system, leaps, size, scratch, here):
    """From `here` to scratch.there with the momentum scratch.noise, which is overwritten; `size` of the steps, float64.

    The potential is -log p(x) = ½ x·Kx - log Π (1 + exp(u_i)). Returns the energy gained.
    """
    r, there, n = scratch.noise, scratch.there, system.n
    x = there.position
    step = converted(size, x.dtype.type(0))
    kinetic = _start(here.push, step, n, r, here.position, x)
    after = quadratic = kinetic
    for k in range(leaps):
        Kx, Bp = force(system.factor, system, scratch)  # at one place, since the compiler copies it to each
        if k < leaps - 1:
            _leap(Kx, Bp, step, n, r, x)
        else:
            after, quadratic = _finish(Kx, Bp, step, n, r, x, there.push)
    normaliser = log_normaliser(scratch.u, system.groups, n, scratch.energy)
    potential = quadratic - normaliser
    store(address(there.normaliser, 0), 0, normaliser)
    store(address(there.potential, 0), 0, potential)
    return (after - kinetic) + (potential - load_lanes(address(here.potential, 0), 0, lanes(x)))
