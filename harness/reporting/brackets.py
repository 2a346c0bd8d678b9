"""What the bounds among a model's records say of log Z, and which answers contradict them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from spinbench.measuring.records import Record

STANDARD_ERRORS = 4.0
"""An estimate with a standard error may lie outside the bracket by so many of them."""
ROUNDING = 1e-9
"""A bound may pass the exact log Z, and an estimate a bound, by this share of its size (of 1 nat if that is more)."""

VIOLATED = "bound violated"
OUTSIDE = "outside the bracket"
FLAGS = (VIOLATED, OUTSIDE)


@dataclass(frozen=True)
class Bracket:
    """What is known of a model's log Z.

    Attributes:
        exact: log Z in nats, where an exact answer exists.
        lower, upper: the greatest lower and the least upper bound, in nats; infinite where no record has one.
        lower_method, upper_method: who found them; empty for none.
    """

    exact: float | None = None
    lower: float = -math.inf
    upper: float = math.inf
    lower_method: str = ""
    upper_method: str = ""

    def sentence(self) -> str | None:
        """What the leaderboard says below its table; None where log Z is known, or no bound is."""
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

        `OUTSIDE` for an estimate of an unknown log Z that no value within the bracket explains.
        """
        found = _answer(record)
        if found is None:
            return None
        value, spread, kind = found
        if kind == "estimate":
            slack = STANDARD_ERRORS * spread if spread else 0.0
            low, high = self.lower - _slack(self.lower) - slack, self.upper + _slack(self.upper) + slack
            return OUTSIDE if self.exact is None and not low <= value <= high else None
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
        known = (record["reference"] or {}).get("log_z") if record["status"] == "ok" else None
        exact = known if exact is None else exact
        if (found := _answer(record)) is None:
            continue
        value, _, kind = found
        named = (value, str(record["axes"]["method"]))
        if kind == "exact" and exact is None:
            exact = value
        elif kind == "lower":
            lower = max(lower, named)
        elif kind == "upper":
            upper = min(upper, named)
    return Bracket(exact, lower[0], upper[0], lower[1], upper[1])


def _answer(record: Record) -> tuple[float, float | None, str] | None:
    """log Z, its standard error, and what it is."""
    result = record["result"]
    if record["status"] != "ok" or result is None or result.get("log_z") is None:
        return None
    return float(result["log_z"]), result.get("log_z_se"), str(result["log_z_kind"])


def _slack(value: float) -> float:
    return ROUNDING * max(abs(value), 1.0) if math.isfinite(value) else 0.0
