"""Leapfrog trajectories with unit mass on x, for A = I and for the harmonium A = Λ^(-½)Vᵀ.

The energy is evaluated at the two ends alone; a step in between costs its products (one with Q⁻¹, or two with the
root), N sigmoids, and two passes over the chains.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy.typing as npt

from spinbench.backends.numba.functions import HALF, ONE, flat
from spinbench.backends.numba.products import product, symmetric_product
from spinbench.backends.numba.units import KERNEL, add_column, add_columns, log_normaliser, unit_means


class Leapfrog(NamedTuple):
    """(N, N) matrices. `identity`: A = I, and `precision` is Q⁻¹; else `root` is B = VΛ^½, and `root_t` Bᵀ.

    The others are empty.
    """

    precision: npt.NDArray[Any]
    root: npt.NDArray[Any]
    root_t: npt.NDArray[Any]
    identity: bool


@nb.njit(**KERNEL)
def _force(leapfrog, frame, groups, scratch, point):
    """p and push = Kx - A⁻ᵀp at point.position; leaves u in scratch.u."""
    if leapfrog.identity:
        add_column(point.position, frame.bias, scratch.u)
    else:
        product(leapfrog.root, point.position, scratch.u)
        add_column(scratch.u, frame.bias, scratch.u)
    unit_means(scratch.u, groups, point.p)
    x, p, push, work = flat(point.position), flat(point.p), flat(point.push), flat(scratch.work)
    if leapfrog.identity:
        symmetric_product(leapfrog.precision, point.position, scratch.work)
        for k in range(x.size):
            push[k] = work[k] - p[k]
    else:
        product(leapfrog.root_t, point.p, scratch.work)
        for k in range(x.size):
            push[k] = x[k] - work[k]
            work[k] = x[k]


@nb.njit(**KERNEL)
def _add_products(x, y, scale, work, out):
    """out (C,) += scale Σ_i x_i y_i; overwrites work, which may be x or y."""
    flat_x, flat_y, flat_work = flat(x), flat(y), flat(work)
    for k in range(flat_x.size):
        flat_work[k] = flat_x[k] * flat_y[k]
    add_columns(work, scale, out)


@nb.njit(**KERNEL)
def _kick_and_drift(share, push, step, r, origin, x):
    """r -= share step push; x = origin + step r."""
    flat_push, flat_step, flat_r, flat_origin, flat_x = flat(push), flat(step), flat(r), flat(origin), flat(x)
    for k in range(flat_r.size):
        flat_r[k] -= share * flat_step[k] * flat_push[k]
        flat_x[k] = flat_origin[k] + flat_step[k] * flat_r[k]


def travel(factor, frame, groups, scratch, steps, here, there, gain):
    """From `here` to `there` with the momentum scratch.noise, which is overwritten; gain (C,): of energy.

    The potential is -log p(x) = ½ x·Kx - log Π (1 + exp(u_i)).
    """
    r, step, x, one = scratch.noise, scratch.step, there.position, ONE(frame.bias[0])
    half = HALF(one)
    for c in range(gain.size):
        gain[c] = -here.potential[c]
        there.potential[c] = 0.0
    _add_products(r, r, -0.5, scratch.work, gain)
    _kick_and_drift(half, here.push, step, r, here.position, x)
    for k in range(steps):
        _force(factor, frame, groups, scratch, there)
        if k < steps - 1:
            _kick_and_drift(one, there.push, step, r, x, x)
    _add_products(x, scratch.work, 0.5, scratch.work, there.potential)
    log_normaliser(scratch.u, groups, scratch.work, there.normaliser)
    flat_r, flat_step, flat_push = flat(r), flat(step), flat(there.push)
    for k in range(flat_r.size):
        flat_r[k] -= half * flat_step[k] * flat_push[k]
    _add_products(r, r, 0.5, scratch.work, gain)
    for c in range(gain.size):
        there.potential[c] -= there.normaliser[c]
        gain[c] += there.potential[c]
