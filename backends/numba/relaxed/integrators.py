"""Trajectories of DHMC, for each kind of mass.

Leapfrog trajectories with unit mass on x, for A = I and for the harmonium A = Λ^(-½)Vᵀ.

The energy is evaluated at the two ends alone; a step in between costs its products (one with Q⁻¹, or two with the
root), N sigmoids, and a pass over the tile.

Trajectories for the mass Q⁻¹: the Gaussian part turns position and velocity, the rest kicks.

With y = α - Qm and f = p - m a kick adds h Qf to the velocity w, and ½ wᵀQ⁻¹w changes by h f·w + ½ h² f·Qf: Q⁻¹ never
appears. A step costs one product with Q, dense or along the edges, N sigmoids, and some passes over the tile; a
sample one draw of N(0, Q) more.
"""

from __future__ import annotations

import numba as nb

from spinbench.backends.numba.kernel_cache import Options
from spinbench.backends.numba.relaxed.factors import Harmonium
from spinbench.backends.numba.relaxed.matrices import add_scaled, product
from spinbench.backends.numba.relaxed.tiles import KERNEL, ONCE, coefficient, lanes, over_variables, stride, zeros
from spinbench.backends.numba.relaxed.units import log_normaliser, unit_means
from spinbench.backends.numba.simd import (
    address,
    by_types,
    convert,
    load_lanes,
    load_row,
    sincos_turns,
    store,
    store_row,
)

# Inlined: a call would copy all fields of `system` and `scratch`, a third of the time of a step of one chain.
_INLINED: Options = {**KERNEL, "forceinline": True}


@by_types(**_INLINED)
def force(factor, system, scratch):
    """p at scratch.target.position, with u in scratch.u; returns Kx and A⁻ᵀp, whose difference is the push."""

    def harmonium(factor, system, scratch):
        target, n = scratch.target, system.n
        product(factor.root, target.position, scratch.u)
        add_scaled(scratch.u, 1.0, system.frame.bias, n, scratch.u)
        unit_means(scratch.u, system.groups, n, target.p)
        product(factor.transposed, target.p, scratch.work)
        return target.position, scratch.work

    def precision(factor, system, scratch):
        target, n = scratch.target, system.n
        add_scaled(target.position, 1.0, system.frame.bias, n, scratch.u)
        unit_means(scratch.u, system.groups, n, target.p)
        product(factor.inverse, target.position, scratch.work)
        return scratch.work, target.p

    return harmonium if factor.instance_class is Harmonium else precision


@nb.njit(**KERNEL)
def _dot(x, y, n):
    """x·y in every lane, summed in float64; y a column."""
    right, result = address(y, 0), convert(zeros(x), 0.0)
    for i in range(0, n, stride(x)):
        result = result + convert(load_row(x, i) * coefficient(right, i, x), 0.0)
    return over_variables(x, result)


@nb.njit(**ONCE)
def _start(origin, step, n, r, x):
    """Half a kick and a drift from `origin`; returns r·r before it, summed in float64."""
    squares, half = convert(zeros(r), 0.0), step * r.dtype.type(0.5)
    for i in range(0, n, stride(r)):
        momentum = load_row(r, i)
        squares = squares + convert(momentum * momentum, 0.0)
        momentum = momentum - half * load_row(origin.push, i)
        store_row(r, i, momentum)
        store_row(x, i, load_row(origin.position, i) + step * momentum)
    return over_variables(r, squares)


@nb.njit(**ONCE)
def _finish(Kx, Bp, step, n, r, target):
    """Half a kick, whose push stays with the target; returns r·r after it and x·Kx."""
    half, squares = step * r.dtype.type(0.5), convert(zeros(r), 0.0)
    quadratic = squares
    for i in range(0, n, stride(r)):
        pull = load_row(Kx, i)
        push = pull - load_row(Bp, i)
        momentum = load_row(r, i) - half * push
        store_row(target.push, i, push)
        squares = squares + convert(momentum * momentum, 0.0)
        quadratic = quadratic + convert(pull * load_row(target.position, i), 0.0)
    return over_variables(r, squares), over_variables(r, quadratic)


@nb.njit(**ONCE)
def _leap(Kx, Bp, step, n, r, x):
    """A kick and a drift: r -= step (Kx - Bp), x += step r; Kx may be x."""
    # One pass: three would take a tenth of a sample of 16 chains.
    for i in range(0, n, stride(r)):
        momentum = load_row(r, i) - step * (load_row(Kx, i) - load_row(Bp, i))
        store_row(r, i, momentum)
        store_row(x, i, load_row(x, i) + step * momentum)


def travel_by_leapfrog(system, leaps, size, scratch, origin):
    """From `origin` to scratch.target with the momentum scratch.noise, which is overwritten; `size` of the steps,
    float64.

    The potential is -log p(x) = ½ x·Kx - log Π (1 + exp(u_i)). Returns the energy gained.
    """
    r, target, n = scratch.noise, scratch.target, system.n
    x = target.position
    step = convert(size, x.dtype.type(0))
    # Energies are summed in float64: the Metropolis test takes their difference, which is small beside them.
    before = after = quadratic = _start(origin, step, n, r, x)
    for k in range(leaps):
        # A single call site in the loop, since the compiler copies the function to each.
        Kx, Bp = force(system.factor, system, scratch)
        if k < leaps - 1:
            _leap(Kx, Bp, step, n, r, x)
        else:
            after, quadratic = _finish(Kx, Bp, step, n, r, target)
    potential = 0.5 * quadratic - log_normaliser(scratch.u, system.groups, n, scratch.energy)
    store(address(target.potential, 0), 0, potential)
    return 0.5 * (after - before) + (potential - load_lanes(address(origin.potential, 0), 0, lanes(x)))


# 1 / 2π.
TURN = 0.15915494309189535


@nb.njit(**KERNEL)
def _kick(push, step, f, n, w):
    """w += step push. Returns the kinetic energy that this gives."""
    gained, half = convert(zeros(w), 0.0), step * w.dtype.type(0.5)
    for i in range(0, n, stride(w)):
        q, old = load_row(push, i), load_row(w, i)
        gained = gained + convert(load_row(f, i) * (step * (old + half * q)), 0.0)
        store_row(w, i, old + step * q)
    return over_variables(w, gained)


@nb.njit(**KERNEL)
def _turn(cosine, sine, centre, n, y, w, u):
    """(y, w) turned; u = y + Qm + b."""
    shift = address(centre, 0)
    for i in range(0, n, stride(y)):
        position, velocity = load_row(y, i), load_row(w, i)
        turned = cosine * position + sine * velocity
        store_row(y, i, turned)
        store_row(w, i, cosine * velocity - sine * position)
        store_row(u, i, turned + coefficient(shift, i, y))


def travel_by_rotation(system, leaps, size, scratch, origin):
    """From `origin` to scratch.target with a velocity drawn from scratch.noise, which is overwritten.

    `size` of the steps is float64. The potential is m·u - log Π (1 + exp(u_i)). Returns the energy gained.
    """
    factor, frame, n, target = system.factor, system.frame, system.n, scratch.target
    w, y, f = scratch.velocity, target.position, scratch.work
    step = convert(size, y.dtype.type(0))
    # An exact rotation for the Gaussian part: unlike leapfrog's, the step is not limited by the smallest eigenvalue of
    # Q.
    sine, cosine = sincos_turns(size * TURN)
    sine, cosine = convert(sine, y.dtype.type(0)), convert(cosine, y.dtype.type(0))
    product(factor.root, scratch.noise, w)
    add_scaled(origin.position, -1.0, frame.shift, n, y)
    add_scaled(origin.p, -1.0, frame.m, n, f)
    # Each kick adds h f·w + ½ h² f·Qf to the kinetic energy, which needs no Q⁻¹ then.
    gained = _kick(origin.push, step * y.dtype.type(0.5), f, n, w)
    for k in range(leaps):
        _turn(cosine, sine, frame.centre, n, y, w, scratch.u)
        unit_means(scratch.u, system.groups, n, target.p)
        add_scaled(target.p, -1.0, frame.m, n, f)
        product(factor.gram, f, target.push)
        gained = gained + _kick(target.push, step if k < leaps - 1 else step * y.dtype.type(0.5), f, n, w)
    # y was relative to the tilt's centre; stored positions are not, since the tilt changes during burn-in.
    add_scaled(scratch.u, -1.0, frame.bias, n, y)
    potential = _dot(scratch.u, frame.m, n) - log_normaliser(scratch.u, system.groups, n, scratch.energy)
    store(address(target.potential, 0), 0, potential)
    return gained + (potential - load_lanes(address(origin.potential, 0), 0, lanes(y)))
