"""What the bounds among a model's records say of log Z, and which answers contradict them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from spinbench.measuring.record_types import Record

if TYPE_CHECKING:
    from spinbench.reporting.leaderboard import Row

# An estimate may lie outside the bracket by this many of its error bounds.
TOLERATED_BOUNDS = 4 / 3
# Tolerance, relative or in nats where |log Z| < 1, by which a bound may exceed the exact log Z and an estimate a bound.
ROUNDING_TOLERANCE = 1e-9

# Relative tolerance between two exact answers, one of which may be in float32.
EXACT_TOLERANCE = 1e-6

VIOLATED = "bound violated"
WRONG = "not the exact answer"
OUTSIDE = "outside the bracket"
UNLIKELY = "outside the probable bracket"
FLAGS = (VIOLATED, WRONG, OUTSIDE, UNLIKELY)
DISQUALIFYING = (VIOLATED, WRONG, OUTSIDE)


@dataclass(frozen=True)
class LogZBracket:
    """What is known of a model's log Z.

    Attributes:
        exact: log Z in nats, where an exact answer exists.
        lower, upper: the greatest lower and the least upper bound, in nats; infinite where no record has one.
        lower_method, upper_method: who found them; empty for none.
        probable: the same of bounds that hold with a probability.
        probable_methods: who found those; empty for none.
        delta: with which probability, at most, any of the probable bounds that were looked at is wrong.
    """

    exact: float | None = None
    lower: float = -math.inf
    upper: float = math.inf
    lower_method: str = ""
    upper_method: str = ""
    probable: tuple[float, float] = (-math.inf, math.inf)
    probable_methods: tuple[str, str] = ("", "")
    delta: float = 0.0

    @property
    def is_bounded(self) -> bool:
        """Whether any certified bound is known."""
        return bool(self.lower_method or self.upper_method)

    @property
    def width(self) -> float | None:
        """Nats between the certified bounds; None where one is missing."""
        width = self.upper - self.lower
        return width if math.isfinite(width) else None

    def sentence(self) -> str | None:
        """What certified and probable bounds say; None where log Z is known or there are none."""
        if self.exact is not None:
            return None
        parts = []
        if self.lower > self.upper + _rounding_slack(self.upper):
            low, high = f"{self.lower:.6g} ({self.lower_method})", f"{self.upper:.6g} ({self.upper_method})"
            parts.append(f"contradictory bounds on log Z: {low} > {high}")
        elif self.is_bounded:
            methods, none = (self.lower_method, self.upper_method), ("no lower bound", "no upper bound")
            parts.append(f"log Z in {_format_sides((self.lower, self.upper), methods, none)}")
        if any(self.probable_methods):
            subject = "" if parts else "log Z "
            sides = _format_sides(self.probable, self.probable_methods, ("none", "none"))
            parts.append(f"{subject}with probability {1 - self.delta:.6g} in {sides}")
        return "; ".join(parts) or None

    def flag_record(self, record: Record) -> str | None:
        """`VIOLATED` for a bound on the wrong side of the exact log Z, or of a bound from the other side.

        `WRONG` for an answer that calls itself exact and is not.
        `OUTSIDE` for an estimate of an unknown log Z that no value within the bracket explains.
        """
        if record.status != "ok" or record.result.log_z is None:
            return None
        value, kind = record.result.log_z, record.result.log_z_kind
        low, high = (self.lower, self.upper) if self.exact is None else (self.exact, self.exact)
        if kind == "estimate" and self.exact is None:
            error = TOLERATED_BOUNDS * (record.result.largest_log_z_error or 0.0)
            if _is_outside(value, low, high, error):
                return OUTSIDE
            if _is_outside(value, *self.probable, error):
                return UNLIKELY
        if kind == "exact" and self.exact is not None:
            if abs(value - self.exact) > EXACT_TOLERANCE * max(abs(self.exact), 1.0):
                return WRONG
            return None
        if (kind == "lower" and value > high + _rounding_slack(high)) or (
            kind == "upper" and value < low - _rounding_slack(low)
        ):
            return VIOLATED
        return None


def log_z_bracket(records: Iterable[Record]) -> LogZBracket:
    """Of the records of one model, whatever methods, backends and settings they are of.

    A bound counts whether or not its iteration has converged: `Estimate.log_z_kind` promises that it holds.
    """
    successes = [record for record in records if record.status == "ok"]
    answers = [(record.result.log_z, record.axes.method, record.result.log_z_kind) for record in successes]
    claims = [(value, method, str(kind)) for value, method, kind in answers if value is not None]
    bounds = [bound for record in successes for bound in record.result.bounds]
    certified, probable = (
        [(bound.value, bound.by, bound.side) for bound in bounds if bound.grade == grade and bound.value is not None]
        for grade in ("certified", "probable")
    )
    lower, upper = _tightest_bounds([*claims, *certified])
    low, high = _tightest_bounds(probable)
    exact_values = [record.exact_log_z for record in successes if record.exact_log_z is not None]
    exact_values += [value for value, _, kind in claims if kind == "exact"]
    deltas = [bound.delta for bound in bounds if bound.grade == "probable" and bound.value is not None]
    sides = (lower[0], upper[0], lower[1], upper[1], (low[0], high[0]), (low[1], high[1]))
    return LogZBracket(next(iter(exact_values), None), *sides, min(sum(deltas), 1.0))


def bracket_of_rows(rows: Iterable[Row]) -> LogZBracket:
    """What is known of log Z by the records behind a leaderboard's rows of one model."""
    return log_z_bracket(record for row in rows for record in row.records)


def _tightest_bounds(bounds: Sequence[tuple[float, str, str]]) -> tuple[tuple[float, str], tuple[float, str]]:
    """The greatest lower and the least upper of bounds (value, who found it, side), each with who found it."""
    lower = max([(value, method) for value, method, side in bounds if side == "lower"], default=(-math.inf, ""))
    upper = min([(value, method) for value, method, side in bounds if side == "upper"], default=(math.inf, ""))
    return lower, upper


def _format_sides(values: tuple[float, float], methods: tuple[str, str], none: tuple[str, str]) -> str:
    """Both sides of an interval, with who gave each, and its width where there are two."""
    sides = [f"{value:.6g} ({by})" if by else text for value, by, text in zip(values, methods, none, strict=True)]
    width = f", {values[1] - values[0]:.3g} nats wide" if all(map(math.isfinite, values)) else ""
    return f"[{', '.join(sides)}]{width}"


def _is_outside(value: float, low: float, high: float, errors: float) -> bool:
    return not low - _rounding_slack(low) - errors <= value <= high + _rounding_slack(high) + errors


def _rounding_slack(value: float) -> float:
    if math.isfinite(value):
        return ROUNDING_TOLERANCE * max(abs(value), 1.0)
    return 0.0
