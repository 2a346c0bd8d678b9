"""Error against wall-clock over the seeds of a row, and the Pareto front of (seconds, error)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.measuring.record_types import Record

FloatArray = npt.NDArray[np.float64]
Quantity = Literal["marginal_rmse", "log_z_error"]
Points = list[tuple[float, float]]

TITLES: dict[Quantity, str] = {"marginal_rmse": "RMSE of the marginals", "log_z_error": "|error of log Z|"}
# Number of points of a curve over several seeds.
_N_TIMES = 40


@dataclass(frozen=True)
class ErrorCurve:
    """An error over the seconds of burn-in and sampling.

    Attributes:
        seconds: (T,) increasing, positive.
        middle: (T,) median over the seeds; low, high: (T,) the least and the greatest.
        seeds: how many.
    """

    seconds: FloatArray
    middle: FloatArray
    low: FloatArray
    high: FloatArray
    seeds: int

    def corners(self) -> Points:
        """(seconds, error) for the Pareto front: the middle's error stays below it from then on; a dip is luck."""
        stays = np.maximum.accumulate(self.middle[::-1])[::-1]
        return list(zip(self.seconds.tolist(), stays.tolist(), strict=True))


def is_exact(record: Record) -> bool:
    """Whether the record's error is of rounding and not of sampling."""
    return record.result.log_z_kind == "exact"


def setup_seconds(record: Record) -> float:
    """Seconds of planning and compiling, before burn-in."""
    return record.result.timing.plan + record.result.timing.compile


def error_points(record: Record, quantity: Quantity = "marginal_rmse", *, include_setup: bool = False) -> Points:
    """(seconds, error) of the checkpoints of an approximate method that logarithmic axes can show.

    Seconds are those of burn-in and sampling; of the whole run, planning and compiling are among them.

    An error of log Z that changes its sign was small in between by chance: both of its neighbours count as the larger.
    """
    if record.status != "ok" or is_exact(record):
        return []
    checkpoints = [point for point in record.checkpoints if getattr(point, quantity) and point.seconds > 0]
    errors = [float(getattr(point, quantity)) for point in checkpoints]
    if quantity == "log_z_error":
        exact = record.exact_log_z
        checkpoints = [point for point in checkpoints if None not in (point.log_z, exact)]
        errors = [float(point.log_z_error or 0.0) for point in checkpoints]
        signs = [(point.log_z or 0.0) > (exact or 0.0) for point in checkpoints]
        errors = [
            max(errors[j] for j in range(max(i - 1, 0), min(i + 2, len(errors))) if j == i or signs[j] != signs[i])
            for i in range(len(errors))
        ]
    offset = setup_seconds(record) if include_setup else 0.0
    return [(offset + point.seconds, error) for point, error in zip(checkpoints, errors, strict=True)]


def error_curve(
    records: Iterable[Record], quantity: Quantity = "marginal_rmse", *, include_setup: bool = False
) -> ErrorCurve | None:
    """The curve of records that differ in their seed; None where none has a trajectory with errors.

    Checkpoints of different seeds are at different times. Each seed is interpolated on logarithmic axes within its
    own range, and the curve goes over those times at which at least half of the seeds have a value.
    """
    series = [
        seed_points
        for record in records
        if (seed_points := error_points(record, quantity, include_setup=include_setup))
    ]
    if not series:
        return None
    if len(series) == 1:
        seconds, errors = np.array(series[0]).T
        return ErrorCurve(seconds, errors, errors, errors, 1)
    times = np.geomspace(
        min(seed_points[0][0] for seed_points in series), max(seed_points[-1][0] for seed_points in series), _N_TIMES
    )
    logs = [np.log(np.array(seed_points)).T for seed_points in series]
    errors = np.array([np.interp(np.log(times), x, y, left=np.nan, right=np.nan) for x, y in logs])
    covered = np.isfinite(errors).sum(axis=0) * 2 >= len(series)
    # Missing values (NaN) sort to the end.
    errors = np.sort(np.exp(errors[:, covered]), axis=0)
    count, place = np.isfinite(errors).sum(axis=0), np.arange(errors.shape[1])
    median = (errors[(count - 1) // 2, place] + errors[count // 2, place]) / 2
    return ErrorCurve(times[covered], median, errors[0], errors[count - 1, place], len(series))


def pareto_front(candidates: Sequence[tuple[float, float]]) -> list[int]:
    """Indices of the points than which none is both earlier and more accurate, in order of time."""
    front: list[int] = []
    smallest_error = np.inf
    for i in sorted(range(len(candidates)), key=candidates.__getitem__):
        if candidates[i][1] < smallest_error:
            front.append(i)
            smallest_error = candidates[i][1]
    return front
