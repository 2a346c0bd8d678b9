"""The way of the chains from independent draws to the model, in place of burn-in: pilot, rungs, and when to go it."""

from __future__ import annotations

import math

import numpy as np

from spinbench.api import Engine, State
from spinbench.api.burn_in import Climb
from spinbench.api.trace import Trace, check_seen
from spinbench.mathematics.bennett import ratio
from spinbench.mathematics.chains import FEWEST_CHAINS
from spinbench.mathematics.stepping_stones import pilot_betas, schedule, sweeps_needed

ENOUGH_OVERLAP = 0.1
"""From here on the chains alone do: twice what the look from both sides takes at the end."""
LOOKED_AT = 64
"""Draws on either side from which the overlap is told."""
PROBED, ENDED = 1 / 8, 1 / 4
"""Shares of burn-in: before the overlap is told, and after the last rung."""
PILOT_SWEEPS = 2
"""At each temperature; what the last one left is looked at."""


def overlap(engine: Engine, state: State, weight: float, most: int) -> tuple[State, float, int]:
    """(state, overlap of the laws that `chib_bar` joins, steps made), from chains as they are.

    Args:
        engine: of the chains.
        state: of the chains.
        weight: log p*(s*).
        most: steps that may be made.

    Raises:
        InvalidResultError: a kernel's look does not give what is told from.
    """
    seen = [engine.look(state)]
    check_seen(seen[0], "log_t", "log_r")
    if len(seen[0]["log_t"]) < FEWEST_CHAINS:  # whatever is done, nothing will be vouched for
        return state, 1.0, 0
    for _ in range(min(math.ceil(LOOKED_AT / len(seen[0]["log_t"])) - 1, most)):
        state = engine.warm(state, 1)
        seen.append(engine.look(state))
    forward, backward = (weight - np.array([look[name] for look in seen]) for name in ("log_t", "log_r"))
    return state, ratio(forward, backward.ravel()).overlap, len(seen) - 1


def climb(engine: Engine, state: State, wanted: int, most: int, trace: Trace, updates: int = 1) -> tuple[State, int]:
    """Up the rungs: `trace.climb` is what was seen there, or `trace.wanted` how many sweeps it would have taken.

    Args:
        engine: of the chains.
        state: of the chains; where they stand does not matter, at β = 0 they are drawn anew.
        wanted: sweeps to spend.
        most: sweeps that may be spent where these are too few.
        trace: of the run to come.
        updates: steps of a sweep.

    Returns:
        The state, of chains that have come near β = 1, and the sweeps made.
    """
    pilot = pilot_betas(wanted)
    spent = PILOT_SWEEPS * len(pilot)
    if spent >= most:
        trace.wanted = 2 * spent
        return state, 0
    state, slopes = engine.climb(state, pilot, PILOT_SWEEPS)
    if slopes.shape[-1] < 2:  # no spread to place rungs by; nor would anything be vouched for
        return state, spent
    spread = slopes[-1].std(axis=-1, ddof=1)
    plan = schedule(pilot, spread, wanted - spent, most - spent)
    if plan is None:
        trace.wanted = spent + sweeps_needed(pilot, spread)
        return state, spent
    state, slopes = engine.climb(state, plan.betas[:-1], plan.sweeps)
    found = Climb(plan.betas[:-1], slopes, plan.sweeps, plan.needed * updates)
    trace.climb = found._replace(slopes=slopes[found.burn_in :])
    return state, spent + plan.needed


def warm_up(
    engine: Engine, state: State, steps: int, updates: int, weight: float | None, trace: Trace
) -> tuple[State, int]:
    """Of `Gibbs`: climb, unless the chains alone do; at most as many sweeps as burn-in has on top of it.

    Args:
        engine: of the chains.
        state: of the chains.
        steps: of burn-in.
        updates: steps of a sweep.
        weight: log p*(s*), by which to tell whether to climb; None: climb anyhow.
        trace: of the run to come.
    """
    sweeps, done = steps // updates, 0
    if weight is not None and steps:
        done = int(steps * PROBED)
        state = engine.warm(state, done)
        state, shared, made = overlap(engine, state, weight, steps - done)
        done += made
        if shared >= ENOUGH_OVERLAP:
            return state, done
    wanted = int(sweeps * (1 - ENDED)) - done // updates
    state, climbed = climb(engine, state, wanted, sweeps, trace, updates)
    done += climbed * updates
    if trace.climb is None:
        return state, done
    ended = math.ceil(steps * ENDED)
    return engine.warm(state, ended), done + ended
