"""Leapfrog trajectories with unit mass on x, for A = I and for the harmonium A = Λ^(-½)Vᵀ.

The energy is evaluated at the two ends alone; a step in between costs its products (one with Q⁻¹, or two with the
root), N sigmoids, and a pass over the tile.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy.typing as npt

from spinbench.backends.numba.relaxed.elimination import Eliminated, eliminated_product
from spinbench.backends.numba.relaxed.point import add_column
from spinbench.backends.numba.relaxed.products import Matrix, make_matrix, product
from spinbench.backends.numba.relaxed.tiles import Layout, lanes, over_variables, stride, unit, zero_energies
from spinbench.backends.numba.relaxed.units import KERNEL, ONCE, log_normaliser, unit_means
from spinbench.backends.numba.simd.memory import address, load_lanes, load_vector, store
from spinbench.backends.numba.simd.vector_sums import converted

Array = npt.NDArray[Any]


class Leapfrog(NamedTuple):
    """What gives forces, in one of three forms; what a form does not need is None, and is not compiled.

    A = I: `first` is Q⁻¹. The same with half of the variables `eliminated`. The harmonium's B = VΛ^½ and Bᵀ: `first`
    and `second`.
    """

    first: Matrix | None = None
    second: Matrix | None = None
    eliminated: Eliminated | None = None


def make_precision(inverse: Array, layout: Layout) -> Leapfrog:
    """From Q⁻¹, (N, N)."""
    return Leapfrog(first=make_matrix(inverse, layout))


def make_roots(root: Array, layout: Layout) -> Leapfrog:
    """From B, (N, N)."""
    return Leapfrog(make_matrix(root, layout), make_matrix(root.T, layout))


@nb.njit(**ONCE)
def force(system, scratch):
    """p at scratch.there.position, with u in scratch.u; returns Kx and A⁻ᵀp, whose difference is the push."""
    factor, there = system.factor, scratch.there
    _field(factor.first, factor.second, there.position, system, scratch.u)
    unit_means(scratch.u, system.groups, system.n, there.p)
    return _pull(factor.first, factor.second, factor.eliminated, there, scratch.work)


@nb.njit(**KERNEL)
def _field(first, second, position, system, u):
    """u = α + b."""
    if second is None:
        add_column(position, system.frame.bias, system.n, u)
    else:
        product(first, position, u)
        add_column(u, system.frame.bias, system.n, u)


@nb.njit(**KERNEL)
def _pull(first, second, eliminated, there, work):
    """Kx and A⁻ᵀp, one of them in `work`."""
    if second is not None:
        product(second, there.p, work)
        return there.position, work
    if eliminated is not None:
        eliminated_product(eliminated, there.position, work)
    if first is not None:
        product(first, there.position, work)
    return work, there.p


@nb.njit(**KERNEL)
def _start(push, step, n, r, origin, x):
    """Half a kick and a drift: r -= ½ step push, x = origin + step r. Returns ½ r·r before."""
    pushes, momenta, whence, to = address(push, 0), address(r, 0), address(origin, 0), address(x, 0)
    kinetic, half = zero_energies(r), step * r.dtype.type(0.5)
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
    kinetic, half = zero_energies(r), step * r.dtype.type(0.5)
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
        Kx, Bp = force(system, scratch)  # at one place, since the compiler copies it to each
        if k < leaps - 1:
            _leap(Kx, Bp, step, n, r, x)
        else:
            after, quadratic = _finish(Kx, Bp, step, n, r, x, there.push)
    normaliser = log_normaliser(scratch.u, system.groups, n, scratch.energy)
    potential = quadratic - normaliser
    store(address(there.normaliser, 0), 0, normaliser)
    store(address(there.potential, 0), 0, potential)
    return (after - kinetic) + (potential - load_lanes(address(here.potential, 0), 0, lanes(x)))
