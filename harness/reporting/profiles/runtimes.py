"""Runtime distributions: which share of many targets, on all models, a solver has reached after how many seconds.

As in COCO: Hansen, Auger, Ros, Mersmann, Tušar and Brockhoff, "COCO: a platform for comparing continuous optimizers in
a black-box setting", Optimization Methods and Software 36 (2021).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from spinbench.measuring import trust
from spinbench.measuring.record_types import Record

FloatArray = npt.NDArray[np.float64]
# RMSE of the marginals, from easy to hard.
TARGETS = np.logspace(-1, -4, 31)


def seconds_to_targets(points: Sequence[tuple[float, float]], targets: FloatArray = TARGETS) -> FloatArray:
    """(T,) seconds after which the error stays at or below each target, as `statistics.time_to_error`; infinite where
    it never does.

    Args:
        points: (seconds, error) of the checkpoints in order of time, both positive or the error 0.
        targets: (T,) positive.
    """
    if not points:
        return np.full(len(targets), np.inf)
    seconds, errors = np.array(points, dtype=np.float64).T
    # The largest error from each checkpoint on.
    ahead = np.maximum.accumulate(errors[::-1])[::-1]
    after = (ahead[:, None] > targets).sum(axis=0)
    reached: FloatArray = np.append(seconds, np.inf)[after]
    between = (after > 0) & (after < len(errors))
    high, low = errors[after[between] - 1], errors[after[between]]
    begin, end = seconds[after[between] - 1], reached[between]
    with np.errstate(divide="ignore"):
        # A drop to zero is taken to come at its checkpoint.
        share = np.where(low > 0, np.log(high / targets[between]) / np.log(high / low), 1.0)
    reached[between] = begin * (end / begin) ** share
    return reached


def runtime_distributions(records: Iterable[tuple[str, Record]]) -> dict[str, FloatArray]:
    """(S, R T) sorted seconds of each solver, of all runs and targets; infinite where a run does not reach a target, is
    doubted, or was not made.

    Args:
        records: each with its solver's name; those of one model and seed are a run.
    """
    runs: dict[tuple[str, object], int] = {}
    reached: dict[str, dict[int, FloatArray]] = defaultdict(dict)
    for solver, record in records:
        run = runs.setdefault((record.axes.model, record.config["seed"]), len(runs))
        points = [(each.seconds, each.marginal_rmse) for each in record.checkpoints if each.marginal_rmse is not None]
        run_seconds = seconds_to_targets(points if trust.is_trusted(record, "marginals") else [])
        reached[solver][run] = np.minimum(reached[solver].get(run, np.inf), run_seconds)
    missing = np.full(len(TARGETS), np.inf)
    return {
        solver: np.sort(np.concatenate([run_seconds.get(run, missing) for run in runs.values()]))
        for solver, run_seconds in reached.items()
        if any(np.isfinite(seconds).any() for seconds in run_seconds.values())
    }
