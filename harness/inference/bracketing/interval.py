"""Between which numbers log Z lies, and who says so."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from spinbench.api.bounds import CERTAIN, Bound, Finding
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.checks.evidence import LOG_Z_TOLERANCE, OUTWARD, Level, bracket_of

Verdict = Literal["exact", "resolved", "unresolved"]


@dataclass(frozen=True)
class Interval:
    """What is known of a model's log Z.

    Attributes:
        lower, upper: the best exact or certified bounds; None where there is none.
        probable_lower, probable_upper: the best bounds of any of the grades exact, certified and probable.
        delta: with which probability, at most, any of the probable bounds that were looked at is wrong.
        assumed_upper: the least bound that holds, but for a probability of its delta, if tempering has mixed; nothing
            else here depends on it.
        log_z, log_z_se, log_z_by: the best estimate within the bracket, its standard error, and whose it is; an
            exact answer where there is one. None where nobody says more than the bracket does.
        verdict: "exact"; "resolved", where the bracket is as narrow as was asked for or, where no gap was, an estimate
            is believed; or "unresolved".
        seconds: spent, loading of compiled code left out.
        loading_seconds: that loading, or compilation, took.
        refused: who gave nothing, and why.
        model: its name.
        level: what the middle of a bracket rests on that is as narrow as was asked for, or as an error bound has to be;
            else what the estimate within it does.
    """

    lower: Bound | None
    upper: Bound | None
    probable_lower: Bound | None
    probable_upper: Bound | None
    delta: float
    log_z: float | None
    log_z_se: float | None
    log_z_by: str
    verdict: Verdict
    seconds: float
    loading_seconds: float
    refused: Mapping[str, str] = field(default_factory=dict)
    model: str = "model"
    assumed_upper: Bound | None = None
    level: Level = "doubtful"

    @property
    def width(self) -> float:
        """Nats between the certified bounds; inf where one is missing."""
        return _width(self.lower, self.upper)

    @property
    def probable_width(self) -> float:
        """Nats between the probable bounds; inf where one is missing."""
        return _width(self.probable_lower, self.probable_upper)

    def sentences(self) -> list[str]:
        """What it says, a line each."""
        if self.verdict == "exact":
            return [f"log Z = {self.log_z:.9g}, exact ({self.log_z_by})", f"exact, in {format_seconds(self.seconds)}"]
        lines = [f"log Z certainly in {_describe_bracket(self.lower, self.upper)}"]
        if self.delta:
            probable = _describe_bracket(self.probable_lower, self.probable_upper)
            lines.append(f"with probability {1 - self.delta:.6g} in {probable}")
        if (above := self.assumed_upper) is not None:
            assumption = f"at most {above.value:.9g} with probability {1 - above.delta:.6g} ({above.by})"
            lines.append(f"if tempering has mixed, {assumption}")
        if self.log_z is not None:
            lines.append(f"estimate {self.log_z:.9g} ± {self.log_z_se or 0.0:.2g} ({self.log_z_by})")
        return [*lines, f"{self.verdict} ({self.level}), in {format_seconds(self.seconds)}"]

    def _repr_html_(self) -> str:
        """What a notebook shows."""
        from spinbench.inference.notebook.display import interval_html

        return interval_html(self)

    def __repr__(self) -> str:
        return f"Interval({self.model!r}: {'; '.join(self.sentences())})"


def summarise(
    findings: Sequence[Finding],
    gap: float | None,
    seconds: float,
    loading_seconds: float,
    refused: Mapping[str, str],
    model: str,
) -> Interval:
    """All that was found.

    Args:
        findings: of all sources.
        gap: nats within which log Z is to be known, or None.
        seconds, loading_seconds, refused, model: as of `Interval`.
    """
    bounds = _bounds(findings)
    certain = [bound for bound in bounds if bound.grade in CERTAIN]
    low, high = _best(bounds, "lower"), _best(bounds, "upper")
    best = _estimate(findings, *bracket_of(bounds))
    exact = next((bound for bound in bounds if bound.grade == "exact"), None)
    verdict: Verdict = "unresolved"
    if (gap is None and best.believed) or (gap is not None and _width(low, high) <= gap):
        verdict = "resolved"
    if exact is not None:
        best, verdict = Finding((), exact.value, 0.0, 0.0, True, exact.by), "exact"
    looks = {(bound.by, finding.look, bound.side): bound.delta for finding in findings for bound in _bounds([finding])}
    sure_low, sure_high = _best(certain, "lower"), _best(certain, "upper")
    level: Level = "doubtful"
    narrow = max(2 * LOG_Z_TOLERANCE, gap or 0.0)
    if exact is not None:
        level = "exact"
    elif _width(sure_low, sure_high) <= narrow:
        level = "certified"
    elif _width(low, high) <= narrow:
        level = "bounded"
    elif best.believed:
        level = "converged"
    return Interval(
        sure_low,
        sure_high,
        low,
        high,
        delta=min(sum(looks.values()), 1.0),
        log_z=best.log_z,
        log_z_se=best.log_z_se,
        log_z_by=best.by,
        verdict=verdict,
        seconds=seconds,
        loading_seconds=loading_seconds,
        refused=dict(refused),
        model=model,
        assumed_upper=_best(_bounds(findings, assumed=True), "upper"),
        level=level,
    )


def _bounds(findings: Sequence[Finding], *, assumed: bool = False) -> list[Bound]:
    return [bound for finding in findings for bound in finding.bounds if (bound.grade == "assumed") == assumed]


def _estimate(findings: Sequence[Finding], low: float, high: float) -> Finding:
    """That of the least error bound, among those believed or else all, within the bracket and narrower than it; one
    without an estimate where there is none."""
    inside = []
    for finding in findings:
        error = finding.log_z_error_bound or 0.0
        if finding.log_z is not None and error < (high - low) / 2 and low - error <= finding.log_z <= high + error:
            inside.append(finding)
    unknown = Finding(())
    return min(inside, key=lambda finding: (not finding.believed, finding.log_z_error_bound or 0.0), default=unknown)


def _best(bounds: list[Bound], side: str) -> Bound | None:
    finite = [bound for bound in bounds if bound.side == side and math.isfinite(bound.value)]
    return min(finite, key=lambda bound: OUTWARD[side] * bound.value, default=None)


def _width(low: Bound | None, high: Bound | None) -> float:
    if low is None or high is None:
        return math.inf
    return max(high.value - low.value, 0.0)


def _describe_bracket(low: Bound | None, high: Bound | None) -> str:
    sides = ("none" if bound is None else f"{bound.value:.9g} ({bound.by})" for bound in (low, high))
    width = _width(low, high)
    return f"[{', '.join(sides)}]" + (f", {width:.3g} nats wide" if math.isfinite(width) else "")
