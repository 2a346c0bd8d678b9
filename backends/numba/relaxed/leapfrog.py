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
from spinbench.backends.numba.relaxed.point import add_column, add_scaled
from spinbench.backends.numba.relaxed.tiles import KERNEL, lanes, over_variables, stride, unit, zeros
from spinbench.backends.numba.relaxed.units import log_normaliser, unit_means
from spinbench.backends.numba.simd.memory import address, load_lanes, load_vector, store
from spinbench.backends.numba.simd.vector_sums import converted


def force(factor: Any, system: Any, scratch: Any) -> Any:
    """p at scratch.there.position, with u in scratch.u; returns Kx and A⁻ᵀp, whose difference is the push."""
    raise NotImplementedError("compiled code only")


# A call would copy all that `system` and `scratch` hold, which costs a step of one chain a third.
_INLINED: Any = {**KERNEL, "forceinline": True}


@overload(force, jit_options=_INLINED)
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
def _half_dot(x, y, n):
    """½ x·y in every lane, summed in float64."""
    left, right, result = address(x, 0), address(y, 0), converted(zeros(x), 0.0)
    for i in range(0, n, stride(x)):
        at = i * unit(x)
        result = result + converted(load_vector(left, at) * load_vector(right, at), 0.0)
    return over_variables(x, result) * 0.5


def travel(system, leaps, size, scratch, here):
    """From `here` to scratch.there with the momentum scratch.noise, which is overwritten; `size` of the steps, float64.

    The potential is -log p(x) = ½ x·Kx - log Π (1 + exp(u_i)). Returns the energy gained.
    """
    r, there, n = scratch.noise, scratch.there, system.n
    x = there.position
    step = converted(size, x.dtype.type(0))
    half, minus = step * x.dtype.type(0.5), zeros(x) - x.dtype.type(1)
    kinetic = quadratic = _half_dot(r, r, n)
    add_scaled(r, -half, here.push, n, r)
    add_scaled(here.position, step, r, n, x)
    for k in range(leaps):
        Kx, Bp = force(system.factor, system, scratch)  # at one place, since the compiler copies it to each
        add_scaled(Kx, minus, Bp, n, there.push)
        if k < leaps - 1:
            add_scaled(r, -step, there.push, n, r)
            add_scaled(x, step, r, n, x)
        else:
            add_scaled(r, -half, there.push, n, r)
            quadratic = _half_dot(x, Kx, n)
    after = _half_dot(r, r, n)
    normaliser = log_normaliser(scratch.u, system.groups, n, scratch.energy)
    potential = quadratic - normaliser
    store(address(there.normaliser, 0), 0, normaliser)
    store(address(there.potential, 0), 0, potential)
    return (after - kinetic) + (potential - load_lanes(address(here.potential, 0), 0, lanes(x)))
