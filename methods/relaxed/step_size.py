"""Step sizes that burn-in adapts: dual averaging (Hoffman and Gelman, "The No-U-Turn Sampler", JMLR 2014, eq. 6)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from spinbench.api import Array, Namespace

# Constants of dual averaging, from section 3.2 of the paper.
GAMMA, T0, KAPPA = 0.05, 10.0, 0.75
# Largest step in radians of DHMC's rotating forms, a little below π / 2, at which position and velocity are exchanged.
MAX_ANGLE = 1.5


class StepSize(NamedTuple):
    """Dual averaging; all scalars of the backend's real type.

    step: used now. centre: μ, the logarithm of what is aimed at from the start. error: H, mean of target - acceptance.
    log_average: of the iterates. count: burn-in steps since the start.
    """

    step: Array
    centre: Array
    error: Array
    log_average: Array
    count: Array


def restart_step_size(xp: Namespace, step: Array, target_factor: float = 10.0) -> StepSize:
    """From this step size on, towards `target_factor` times as much."""
    zero = xp.zeros_like(step)
    return StepSize(step + zero, xp.log(target_factor * step), zero, xp.log(step), zero)


def dual_averaging(xp: Namespace) -> Callable[[StepSize, bool, Array, float], StepSize]:
    """The rule over a namespace's arrays; that of NumPy is compiled, too."""

    def update_step_size(now: StepSize, adapts: bool, miss: Array, log_limit: float) -> StepSize:
        """After a step whose mean acceptance fell short of the target by `miss`; steps stay below a limit."""
        count = now.count + 1.0
        if not adapts:
            return StepSize(now.step, now.centre, now.error, now.log_average, count)
        weight = 1.0 / (count + T0)
        error = (1.0 - weight) * now.error + weight * miss
        log_step = xp.minimum(now.centre - xp.sqrt(count) / GAMMA * error, 0.0 * count + log_limit)
        trust = count**-KAPPA
        average = trust * log_step + (1.0 - trust) * now.log_average
        return StepSize(xp.exp(log_step), now.centre, error, average, count)

    return update_step_size


def final_step_size(xp: Namespace, now: StepSize) -> Array:
    """The step size to go on with after burn-in."""
    return xp.where(now.count > 0.0, xp.exp(now.log_average), now.step)
