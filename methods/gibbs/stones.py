"""The way of the chains from independent draws to the model, in place of burn-in: pilot, rungs, and when to go it."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Engine, State, Trace
from spinbench.api.burn_in import Climb
from spinbench.api.trace import check_seen
from spinbench.mathematics.bennett import ratio
from spinbench.mathematics.chains import FEWEST_CHAINS
from spinbench.mathematics.stepping_stones import pilot_betas, schedule, sweeps_needed

# Overlap from which no stepping stones are needed: twice the 0.05 that Bennett's ratio needs at the end, since it is
# estimated from few draws here.
SUFFICIENT_OVERLAP = 0.1
# Draws on either side from which the overlap is estimated.
OVERLAP_DRAWS = 64
# Shares of burn-in: before the overlap is estimated, so that chains have left their initial states, and after the last
# rung, so that chains reach equilibrium at β = 1.
OVERLAP_SHARE, FINAL_SHARE = 1 / 8, 1 / 4
# Sweeps of the pilot run at each temperature; the state after the last of them is recorded.
PILOT_SWEEPS = 2


def measure_overlap(engine: Engine, state: State, mode_log_weight: float, max_steps: int) -> tuple[State, float, int]:
    """(state, overlap of the laws that `chib_bar` joins, steps made), from chains as they are.

    Args:
        engine: of the chains.
        state: of the chains.
        mode_log_weight: log p*(s*).
        max_steps: steps that may be made.

    Raises:
        InvalidResultError: a kernel's look does not give what is told from.
    """
    looks = [engine.look(state)]
    check_seen(looks[0], "log_t", "log_r")
    # With so few chains no estimate of log Z is reported as supported, whatever the overlap.
    if len(looks[0]["log_t"]) < FEWEST_CHAINS:
        return state, 1.0, 0
    for _ in range(min(math.ceil(OVERLAP_DRAWS / len(looks[0]["log_t"])) - 1, max_steps)):
        state = engine.warm(state, 1)
        looks.append(engine.look(state))
    forward, backward = (mode_log_weight - np.array([look[name] for look in looks]) for name in ("log_t", "log_r"))
    return state, ratio(forward, backward.ravel()).overlap, len(looks) - 1


def run_stepping_stones(
    engine: Engine, state: State, target_sweeps: int, max_sweeps: int, trace: Trace, steps_per_sweep: int = 1
) -> tuple[State, int]:
    """Up the rungs: `trace.climb` is what was seen there, or `trace.wanted` how many sweeps it would have taken.

    Args:
        engine: of the chains.
        state: of the chains; where they stand does not matter, at β = 0 they are drawn anew.
        target_sweeps: sweeps to spend.
        max_sweeps: sweeps that may be spent where these are too few.
        trace: of the run to come.
        steps_per_sweep: steps of a sweep.

    Returns:
        The state, of chains that have come near β = 1, and the sweeps made.
    """
    pilot = pilot_betas(target_sweeps)
    spent = PILOT_SWEEPS * len(pilot)
    if spent >= max_sweeps:
        trace.wanted = 2 * spent
        return state, 0
    state, slopes = engine.temper(state, pilot, PILOT_SWEEPS)
    # A single chain gives no spread to place rungs by; nor would its log Z be reported as supported.
    if slopes.shape[-1] < 2:
        return state, spent
    spread = slopes[-1].std(axis=-1, ddof=1)
    plan = schedule(pilot, spread, target_sweeps - spent, max_sweeps - spent)
    if plan is None:
        trace.wanted = spent + sweeps_needed(pilot, spread)
        return state, spent
    state, slopes = engine.temper(state, plan.betas[:-1], plan.sweeps)
    climb = Climb(plan.betas[:-1], slopes, plan.sweeps, plan.needed * steps_per_sweep)
    trace.climb = climb._replace(slopes=slopes[climb.burn_in :])
    return state, spent + plan.needed


def warm_up(
    engine: Engine, state: State, steps: int, steps_per_sweep: int, mode_log_weight: float | None, trace: Trace
) -> tuple[State, int]:
    """Of `Gibbs`: climb, unless the chains alone do; at most as many sweeps as burn-in has on top of it.

    Args:
        engine: of the chains.
        state: of the chains.
        steps: of burn-in.
        steps_per_sweep: steps of a sweep.
        mode_log_weight: log p*(s*), by which to tell whether to climb; None: climb anyhow.
        trace: of the run to come.
    """
    sweeps, done = steps // steps_per_sweep, 0
    if mode_log_weight is not None and steps:
        done = int(steps * OVERLAP_SHARE)
        state = engine.warm(state, done)
        state, overlap, overlap_steps = measure_overlap(engine, state, mode_log_weight, steps - done)
        done += overlap_steps
        if overlap >= SUFFICIENT_OVERLAP:
            return state, done
    target_sweeps = int(sweeps * (1 - FINAL_SHARE)) - done // steps_per_sweep
    state, stone_sweeps = run_stepping_stones(engine, state, target_sweeps, sweeps, trace, steps_per_sweep)
    done += stone_sweeps * steps_per_sweep
    if trace.climb is None:
        return state, done
    final_steps = math.ceil(steps * FINAL_SHARE)
    return engine.warm(state, final_steps), done + final_steps
