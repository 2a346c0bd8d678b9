"""Probes: before a run its chains are melted and cooled a few times, to see whether the run gets to where they end.

Chains that all are in one well agree, whatever R-hat is, and a well that holds a tenth of the mass is where none of
eight chains begins in two runs of five. A probe is a chain that comes from β = 0 and spends a few steps at β = 1; where
the run's chains know the whole law, some stretch of theirs, as long, has been wherever a probe ends. The last ones
are where the run's chains begin.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine, State, Trace
from spinbench.api.burn_in import Probes

FloatArray = npt.NDArray[np.float64]

# Inverse temperatures of the cooling. Quenched probes would end in wells of negligible weight and raise false warnings.
COOLING_BETAS = np.array([0.0, 0.1, 0.25, 0.45, 0.7, 0.9])
# Rounds of probes, one probe per chain in each: four rounds of eight chains are 32 probes, all of which miss a well of
# weight 0.1 in one run of thirty.
N_ROUNDS = 4
# Share of burn-in that probes take; the rest is burn-in of the chains from where the probes end.
BURN_IN_SHARE = 1 / 2
# Smallest number of steps of a round: one at each temperature, one of burn-in, one that is recorded.
MIN_ROUND_STEPS = len(COOLING_BETAS) + 2
# A probe has to leave the range of the run's means by this probability to count, so that noise of a short run is not
# taken for a well.
MIN_PROBABILITY_GAP = 0.2
# Share of probes (at least one) that may end in wells of negligible weight without a warning.
MAX_CHANCE_SHARE = 0.02


def run_probes(engine: Engine, state: State, steps: int, statistic: str, trace: Trace) -> tuple[State, int]:
    """As `Method.warm_up`: `trace.probes` is what is seen of a summed statistic, if `steps` of burn-in suffice.

    Half of a round's steps burn in and a quarter is kept.
    """
    round_steps = int(steps * BURN_IN_SHARE) // N_ROUNDS
    if round_steps < MIN_ROUND_STEPS:
        return state, 0
    sweeps, recorded_steps, means = max(round_steps // 4 // len(COOLING_BETAS), 1), max(round_steps // 4, 1), []
    burn_in_steps = max(round_steps - sweeps * len(COOLING_BETAS) - recorded_steps, 0)
    for _ in range(N_ROUNDS):
        state, _ = engine.temper(state, COOLING_BETAS, sweeps)
        state, statistics = engine.advance(engine.warm(state, burn_in_steps), recorded_steps)
        means.append(statistics[statistic] / recorded_steps)
    trace.probes[statistic] = Probes(np.concatenate(means, axis=-1), recorded_steps, steps)
    return state, N_ROUNDS * (sweeps * len(COOLING_BETAS) + burn_in_steps + recorded_steps)


def count_lost_probes(trace: Trace, statistic: str) -> tuple[int, float]:
    """How many probes ended where no chain has been for as long in all of the run, and how many draws it is at most.

    Where chains began in such a place, as the last probes, and have left it in burn-in, there is a way out, and back as
    often as the place weighs. None is lost then, but to leave took up to the whole of burn-in, and a run has so many
    chances to come back as it is longer than that. Else the draws are infinite. So few as may be chance are none.
    """
    if statistic not in trace.probes:
        return 0, np.inf
    probes, series = trace.probes[statistic], trace.series(statistic)
    chains = series.shape[-1]
    batches_per_window = int(np.clip(np.ceil(probes.steps * len(series) / trace.samples), 1, len(series)))
    windows = (
        series[: len(series) // batches_per_window * batches_per_window]
        .reshape(-1, batches_per_window, *series.shape[1:])
        .mean(axis=1)
    )
    above = probes.means > windows.max(axis=(0, 2))[:, None] + MIN_PROBABILITY_GAP
    below = probes.means < windows.min(axis=(0, 2))[:, None] - MIN_PROBABILITY_GAP
    lost = (above | below).any(axis=0)
    if probes.began and trace.climb is None:
        if lost[-chains:].any():
            return 0, trace.samples * chains / max(probes.burn_in, 1)
        lost = lost[:-chains]
    count = int(lost.sum())
    if count <= max(1.0, MAX_CHANCE_SHARE * len(lost)):
        count = 0
    return count, np.inf
