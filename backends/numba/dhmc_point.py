"""What the trajectories of DHMC share.

Positions, momenta and forces are (N, C) in the kernel's precision, and loops over them run flat; energies are (C,),
summed in float64. Step sizes are spread over (N, C), one value a column, so that flat loops can read them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy.typing as npt

Array = npt.NDArray[Any]


class Point(NamedTuple):
    """As `spinbench.methods.dhmc_program.Point`, without u, and with `normaliser`, log Π (1 + exp(u_i)), (C,)."""

    position: Array
    p: Array
    push: Array
    potential: Array
    normaliser: Array


class Frame(NamedTuple):
    """Vectors (N,): b and -b; for the rotating forms -m and -Qm of the tilt, and Qm + b."""

    bias: Array
    minus_bias: Array
    minus_m: Array
    minus_shift: Array
    centre: Array


class Scratch(NamedTuple):
    """Work space: noise, `noise_rows` by C; u, velocity, work, step, cosine and sine, (N, C); and in float64 the
    numbers of each chain: jitter and test (1, C), and energy (C,)."""

    noise: Array
    u: Array
    velocity: Array
    work: Array
    step: Array
    cosine: Array
    sine: Array
    jitter: Array
    test: Array
    energy: Array
