"""Probes: before a run its chains are melted and cooled a few times, to see whether the run gets to where they end.

Chains that all are in one well agree, whatever R-hat is, and a well that holds a tenth of the mass is where none of
eight chains begins in two runs of five. A probe is a chain that comes from β = 0 and spends a few steps at β = 1; where
the run's chains know the whole law, some stretch of theirs, as long, has been wherever a probe ends. The last ones
are where the run's chains begin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine, State
from spinbench.api.burn_in import Probes
from spinbench.api.trace import Trace

FloatArray = npt.NDArray[np.float64]

BETAS = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 0.9])
"""At which chains are cooled. Quenched ones would end in wells that hold nothing."""
ROUNDS = 4
"""Probes that each chain is."""
SHARE = 1 / 2
"""Of burn-in."""
FEWEST_STEPS = len(BETAS) + 2
"""Of a round: less tells nothing."""
ASTRAY = 0.2
"""Probability by which a probe has to be outside of all that the run has seen."""
CHANCE = 0.02
"""Of probes, or one: so many may be caught in wells that hold nothing."""


def send(engine: Engine, state: State, steps: int, statistic: str, trace: Trace) -> tuple[State, int]:
    """As `Method.warm_up`: `trace.probes` is what is seen of a summed statistic, if `steps` of burn-in suffice.

    Half of a round's steps burn in and a quarter is kept.
    """
    each = int(steps * SHARE) // ROUNDS
    if each < FEWEST_STEPS:
        return state, 0
    sweeps, kept, seen = max(each // 4 // len(BETAS), 1), max(each // 4, 1), []
    burnt = max(each - sweeps * len(BETAS) - kept, 0)
    for _ in range(ROUNDS):
        state, _ = engine.climb(state, BETAS, sweeps)
        state, found = engine.advance(engine.warm(state, burnt), kept)
        seen.append(found[statistic] / kept)
    trace.probes[statistic] = Probes(np.concatenate(seen, axis=-1), kept, steps)
    return state, ROUNDS * (sweeps * len(BETAS) + burnt + kept)


def astray(trace: Trace, statistic: str) -> tuple[int, float]:
    """How many probes ended where no chain has been for as long in all of the run, and how many draws it is at most.

    Where chains began in such a place, as the last probes, and have left it in burn-in, there is a way out, and back as
    often as the place weighs. None is lost then, but to leave took up to the whole of burn-in, and a run has so many
    chances to come back as it is longer than that. Else the draws are infinite. So few as may be chance are none.
    """
    if statistic not in trace.probes:
        return 0, np.inf
    probes, series = trace.probes[statistic], trace.series(statistic)
    chains = series.shape[-1]
    joined = int(np.clip(np.ceil(probes.steps * len(series) / trace.samples), 1, len(series)))
    windows = series[: len(series) // joined * joined].reshape(-1, joined, *series.shape[1:]).mean(axis=1)
    above = probes.means > windows.max(axis=(0, 2))[:, None] + ASTRAY
    below = probes.means < windows.min(axis=(0, 2))[:, None] - ASTRAY
    lost = (above | below).any(axis=0)
    if probes.began and trace.climb is None:
        if lost[-chains:].any():
            return 0, trace.samples * chains / max(probes.burn_in, 1)
        lost = lost[:-chains]
    return (int(lost.sum()) if lost.sum() > max(1.0, CHANCE * len(lost)) else 0), np.inf
