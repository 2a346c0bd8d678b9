"""What the bounds among a model's records say of log Z, and which answers contradict them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from spinbench.measuring.record_types import Record

STANDARD_ERRORS = 4.0
"""An estimate with a standard error may lie outside the bracket by so many of them."""
ROUNDING = 1e-9
"""A bound may pass the exact log Z, and an estimate a bound, by this share of its size (of 1 nat if that is more)."""

AGREEMENT = 1e-6
"""An exact answer may differ from another one by this share of its size: it may have been found in float32."""

VIOLATED = "bound violated"
WRONG = "not the exact answer"
OUTSIDE = "outside the bracket"
UNLIKELY = "outside the probable bracket"
FLAGS = (VIOLATED, WRONG, OUTSIDE, UNLIKELY)
DISQUALIFYING = (VIOLATED, WRONG, OUTSIDE)


@dataclass(frozen=True)
class Bracket:
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

    def sentence(self) -> str | None:
        """What the leaderboard says below its table; None where log Z is known, or no bound is."""
        certain = self._certain()
        if self.exact is not None or not any(self.probable_methods):
            return certain
        low, high = self.probable
        named = zip(self.probable, self.probable_methods, strict=True)
        sides = (f"{value:.6g} ({by})" if by else "none" for value, by in named)
        width = f", {high - low:.3g} nats wide" if math.isfinite(high - low) else ""
        likely = f"with probability {1 - self.delta:.6g} in [{', '.join(sides)}]{width}"
        return f"{certain}; {likely}" if certain else f"log Z {likely}"

    def _certain(self) -> str | None:
        if self.exact is not None or not (self.lower_method or self.upper_method):
            return None
        low = f"{self.lower:.6g} ({self.lower_method})" if self.lower_method else "no lower bound"
        high = f"{self.upper:.6g} ({self.upper_method})" if self.upper_method else "no upper bound"
        if self.lower > self.upper + _slack(self.upper):
            return f"contradictory bounds on log Z: {low} > {high}"
        width = f", {self.upper - self.lower:.3g} nats wide" if self.lower_method and self.upper_method else ""
        return f"log Z in [{low}, {high}]{width}"

    def flag(self, record: Record) -> str | None:
        """`VIOLATED` for a bound on the wrong side of the exact log Z, or of a bound from the other side.

        `WRONG` for an answer that calls itself exact and is not.
        `OUTSIDE` for an estimate of an unknown log Z that no value within the bracket explains.
        """
        found = _answer(record)
        if found is None:
            return None
        value, spread, kind = found
        if kind == "estimate":
            slack = STANDARD_ERRORS * spread if spread else 0.0
            low, high = self.lower - _slack(self.lower) - slack, self.upper + _slack(self.upper) + slack
            if self.exact is not None:
                return None
            if not low <= value <= high:
                return OUTSIDE
            below, above = self.probable
            return None if below - _slack(below) - slack <= value <= above + _slack(above) + slack else UNLIKELY
        if kind == "exact" and self.exact is not None:
            return None if abs(value - self.exact) <= AGREEMENT * max(abs(self.exact), 1.0) else WRONG
        low, high = (self.lower, self.upper) if self.exact is None else (self.exact, self.exact)
        wrong = (kind == "lower" and value > high + _slack(high)) or (kind == "upper" and value < low - _slack(low))
        return VIOLATED if wrong else None


def bracket(records: Sequence[Record]) -> Bracket:
    """Of the records of one model, whatever methods, backends and settings they are of.

    A bound counts whether or not its iteration has converged: `Estimate.log_z_kind` promises that it holds.
    """
    exact: float | None = None
    lower, upper = (-math.inf, ""), (math.inf, "")
    for record in records:
        known = record.exact_log_z if record.status == "ok" else None
        exact = known if exact is None else exact
        if (found := _answer(record)) is None:
            continue
        value, _, kind = found
        named = (value, record.axes.method)
        if kind == "exact" and exact is None:
            exact = value
        elif kind == "lower":
            lower = max(lower, named)
        elif kind == "upper":
            upper = min(upper, named)
    for bound in _bounds(records, "certified"):
        if bound.side == "lower":
            lower = max(lower, (bound.value, bound.by))
        else:
            upper = min(upper, (bound.value, bound.by))
    bounds = _bounds(records, "probable")
    low = max([(b.value, b.by) for b in bounds if b.side == "lower"], default=(-math.inf, ""))
    high = min([(b.value, b.by) for b in bounds if b.side == "upper"], default=(math.inf, ""))
    delta = min(sum(bound.delta for bound in bounds), 1.0)
    return Bracket(exact, lower[0], upper[0], lower[1], upper[1], (low[0], high[0]), (low[1], high[1]), delta)


def _bounds(records: Sequence[Record], grade: str) -> list[Any]:
    """Those of a grade that any record names; one without a value is infinite, and bounds nothing."""
    told = [record.result.bounds for record in records if record.status == "ok"]
    return [bound for bounds in told for bound in bounds if bound.grade == grade and bound.value is not None]


def _answer(record: Record) -> tuple[float, float | None, str] | None:
    """log Z, its standard error, and what it is."""
    if record.status != "ok" or record.result.log_z is None:
        return None
    return record.result.log_z, record.result.log_z_se, str(record.result.log_z_kind)


def _slack(value: float) -> float:
    return ROUNDING * max(abs(value), 1.0) if math.isfinite(value) else 0.0
