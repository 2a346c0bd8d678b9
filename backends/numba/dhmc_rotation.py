"""Trajectories for the mass Q⁻¹: the Gaussian part turns position and velocity, the rest kicks.

With y = α - Qm and f = p - m a kick adds h Qf to the velocity w, and ½ wᵀQ⁻¹w changes by h f·w + ½ h² f·Qf: Q⁻¹ never
appears. A step costs one product with Q, dense or along the edges, N sigmoids, and some passes over the chains; a
sample one draw of N(0, Q) more.
"""

from __future__ import annotations

import numba as nb

from spinbench.backends.numba.functions import HALF, ONE, flat
from spinbench.backends.numba.gram import draw_velocity, gram_product
from spinbench.backends.numba.units import KERNEL, add_column, add_columns, log_normaliser, scale_rows, unit_means


@nb.njit(**KERNEL)
def _kick(share, push, step, f, w, gain):
    """w += h push with h = share step; the kinetic energy that this gives goes to `gain`; f is overwritten."""
    flat_push, flat_step, flat_f, flat_w = flat(push), flat(step), flat(f), flat(w)
    half = HALF(share)
    for k in range(flat_w.size):
        h = share * flat_step[k]
        flat_f[k] *= h * (flat_w[k] + half * h * flat_push[k])
        flat_w[k] += h * flat_push[k]
    add_columns(f, 1.0, gain)


@nb.njit(**KERNEL)
def _turn(cosine, sine, y, w):
    flat_cosine, flat_sine, flat_y, flat_w = flat(cosine), flat(sine), flat(y), flat(w)
    for k in range(flat_y.size):
        turned = flat_cosine[k] * flat_y[k] + flat_sine[k] * flat_w[k]
        flat_w[k] = flat_cosine[k] * flat_w[k] - flat_sine[k] * flat_y[k]
        flat_y[k] = turned


def travel(factor, frame, groups, scratch, steps, here, there, gain):
    """From `here` to `there` with a velocity drawn from scratch.noise, which is overwritten; gain (C,): of energy.

    The potential is m·u - log Π (1 + exp(u_i)).
    """
    w, y, step, one = scratch.velocity, there.position, scratch.step, ONE(frame.bias[0])
    draw_velocity(factor, scratch.noise, w)
    for c in range(gain.size):
        gain[c] = -here.potential[c]
        there.potential[c] = 0.0
    add_column(here.position, frame.minus_shift, y)
    add_column(here.p, frame.minus_m, scratch.work)
    _kick(HALF(one), here.push, step, scratch.work, w, gain)
    for k in range(steps):
        _turn(scratch.cosine, scratch.sine, y, w)
        add_column(y, frame.centre, scratch.u)
        unit_means(scratch.u, groups, there.p)
        add_column(there.p, frame.minus_m, scratch.work)
        gram_product(factor, scratch.work, scratch.noise, there.push)
        _kick(one if k < steps - 1 else HALF(one), there.push, step, scratch.work, w, gain)
    add_column(scratch.u, frame.minus_bias, there.position)
    scale_rows(frame.minus_m, scratch.u, scratch.work)
    add_columns(scratch.work, -1.0, there.potential)
    log_normaliser(scratch.u, groups, scratch.work, there.normaliser)
    for c in range(gain.size):
        there.potential[c] -= there.normaliser[c]
        gain[c] += there.potential[c]
