"""Two sets of records side by side: which differences are beyond noise, paired over seeds and models.

The differences of one metric are taken between equal seeds of equal cells. As few seeds leave a cell's own variance
badly known, cells lend each other strength as in `history.significance`. The difference over all models of a method
and backend is the mean of its models', and its noise that of the seeds within them: it speaks of these models. All
p-values together are corrected by Holm's procedure.
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import numpy.typing as npt

from spinbench.errors import SpinbenchError
from spinbench.history import axes
from spinbench.history.axes import Metric
from spinbench.history.journal import numbers
from spinbench.history.significance import Noise, fit, holm, moderate
from spinbench.measuring.records import Record

ALPHA = 0.01
"""Probability that any difference at all is called one although there is none."""
ALL_MODELS = "all models"

FloatArray = npt.NDArray[np.float64]
Verdict = Literal["better", "worse", "within noise", "only A", "only B"]
_NOTHING = 1e-12
"""Spreads and differences below this are rounding errors."""


@dataclass(frozen=True)
class Difference:
    """A metric of a cell, or of all models of a method and backend, on two sides.

    Attributes:
        model: label, or `ALL_MODELS`.
        method, backend: labels.
        settings: those that differ between the sides, "chains=8 (the series has 16)".
        metric: which.
        a, b: the values in the centre (geometric mean on a log scale, else the mean); None where there is none.
        pairs: seeds that both sides have, over all models.
        p: two-sided, corrected.
        verdict: of B against A.
    """

    model: str
    method: str
    backend: str
    settings: str
    metric: Metric
    a: float | None
    b: float | None
    pairs: int
    p: float
    verdict: Verdict

    @property
    def ratio(self) -> float | None:
        """B / A; above 1 is worse."""
        return self.b / self.a if self.a and self.b is not None else None


@dataclass(frozen=True)
class Comparison:
    """Both sides of everything.

    Attributes:
        differences: those beyond noise first, then by p.
        left_out: sentences about what has no counterpart.
    """

    differences: tuple[Difference, ...]
    left_out: tuple[str, ...]

    def beyond_noise(self) -> list[Difference]:
        """What changed."""
        return [one for one in self.differences if one.verdict != "within noise"]


@dataclass(frozen=True)
class _Cell:
    """A metric's values of equal seeds, scaled; and the mean difference with its variance."""

    place: tuple[str, str, str, str]
    a: FloatArray
    b: FloatArray
    variance: float = 0.0
    freedom: float = math.inf

    @property
    def differences(self) -> FloatArray:
        return self.b - self.a


def compare(a: Sequence[Record], b: Sequence[Record], alpha: float = ALPHA) -> Comparison:
    """Compare B with A.

    Raises:
        SpinbenchError: they have no cell in common.
    """
    metrics = {metric.name: metric for family in axes.families().values() for metric in family.metrics}
    matched, left_out = _match(a, b)
    if not matched:
        raise SpinbenchError("A and B have no cell in common: no model, method and backend that both measured")
    found: list[Difference] = []
    p_values: list[float] = []
    for metric in metrics.values():
        cells = []
        for place, (before, after) in matched.items():
            old, new = _values(before, metric), _values(after, metric)
            seeds = sorted(set(old) & set(new))
            if seeds:
                left, right = (_scaled(metric, [side[seed] for seed in seeds]) for side in (old, new))
                cells.append(_Cell(place, left, right))
            elif bool(old) != bool(new):
                a_value, b_value = (
                    _centre(metric, _scaled(metric, [*side.values()])) if side else None for side in (old, new)
                )
                found.append(Difference(*place, metric, a_value, b_value, 0, 0.0, "only A" if old else "only B"))
        for difference, p in _judge(metric, cells):
            found.append(difference)
            p_values.append(p)
    tested = iter(holm(p_values))
    judged = []
    for one in found:
        if one.verdict == "within noise":
            p = next(tested)
            beyond: Verdict = "worse" if one.a is not None and one.b is not None and one.b > one.a else "better"
            one = replace(one, p=p, verdict=beyond if p < alpha else "within noise")
        judged.append(one)
    judged.sort(key=lambda one: (one.verdict == "within noise", one.p, one.model != ALL_MODELS))
    return Comparison(tuple(judged), tuple(left_out))


def _judge(metric: Metric, cells: Sequence[_Cell]) -> Iterable[tuple[Difference, float]]:
    """Each cell's difference and that of each method and backend over its models, with uncorrected p-values."""
    own = [_noise(cell.differences) for cell in cells]
    common = fit([noise for noise in own if noise.freedom and noise.variance > _NOTHING**2])
    groups: dict[tuple[str, str, str], list[_Cell]] = defaultdict(list)
    for cell, noise in zip(cells, own, strict=True):
        known = _with_variance(metric, cell, noise, common)
        groups[cell.place[1:]].append(known)
        yield _difference(metric, cell.place, [known]), _p([known])
    for (method, backend, settings), members in groups.items():
        if len(members) > 1:
            yield _difference(metric, (ALL_MODELS, method, backend, settings), members), _p(members)


def _with_variance(metric: Metric, cell: _Cell, own: Noise, common: Noise | None) -> _Cell:
    """The variance of the mean difference: of the seeds, moderated; else the usual one of single values."""
    count = len(cell.differences)
    if np.abs(cell.differences).max() <= _NOTHING or (own.freedom and own.variance <= _NOTHING**2):
        return cell  # nothing varies
    if own.freedom:
        used = moderate(own, common) if common else own
        return replace(cell, variance=used.variance / count, freedom=used.freedom)
    used = common or Noise(2 * metric.noise**2, math.inf)
    return replace(cell, variance=used.variance, freedom=used.freedom)


def _p(cells: Sequence[_Cell]) -> float:
    """Two-sided, of the mean of the cells' mean differences; degrees of freedom after Satterthwaite (1946)."""
    from scipy.special import ndtr, stdtr

    mean = float(np.mean([cell.differences.mean() for cell in cells]))
    parts = [cell.variance / len(cells) ** 2 for cell in cells]
    variance = sum(parts)
    if variance <= _NOTHING**2:
        return 1.0 if abs(mean) <= _NOTHING else 0.0
    score = -abs(mean) / math.sqrt(variance)
    spent = sum(part**2 / cell.freedom for part, cell in zip(parts, cells, strict=True))
    return float(2 * (stdtr(variance**2 / spent, score) if spent > 0 else ndtr(score)))


def _difference(metric: Metric, place: tuple[str, str, str, str], cells: Sequence[_Cell]) -> Difference:
    a = _centre(metric, np.array([cell.a.mean() for cell in cells]))
    b = _centre(metric, np.array([cell.b.mean() for cell in cells]))
    return Difference(*place, metric, a, b, sum(len(cell.a) for cell in cells), 1.0, "within noise")


def _match(
    a: Sequence[Record], b: Sequence[Record]
) -> tuple[dict[tuple[str, str, str, str], tuple[list[Record], list[Record]]], list[str]]:
    """Cells of both sides by (model, method, backend, differing settings).

    Settings are equal where both sides have them; a cell with one setting on each side is matched with differing ones.
    """
    sides = [_by_cell(a), _by_cell(b)]
    found: dict[tuple[str, str, str, str], tuple[list[Record], list[Record]]] = {}
    lonely = [0, 0]
    for place in sorted(set(sides[0]) | set(sides[1])):
        left, right = (dict(side.get(place, {})) for side in sides)
        both = left.keys() & right.keys()
        for protocol in sorted(both):
            name = "" if len(both) == 1 else f"settings {protocol[:6]}"
            found[*place, name] = left.pop(protocol), right.pop(protocol)
        if not both and len(left) == len(right) == 1:
            (old,), (new,) = left.values(), right.values()
            changed = axes.differences(_settings(new[0]), _settings(old[0]))
            found[*place, ", ".join(changed).replace("(the series has", "(A has")] = old, new
            left, right = {}, {}
        lonely[0] += len(left)
        lonely[1] += len(right)
    left_out = [
        f"cells of {name} without a counterpart in {other}: {count}"
        for count, name, other in zip(lonely, ("A", "B"), ("B", "A"), strict=True)
        if count
    ]
    return found, left_out


def _by_cell(records: Iterable[Record]) -> dict[tuple[str, str, str], dict[str, list[Record]]]:
    found: dict[tuple[str, str, str], dict[str, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        if record["status"] != "skipped":
            cell = record["axes"]
            found[cell["model"], cell["method"], cell["backend"]][record["protocol"]].append(record)
    return found


def _settings(record: Record) -> dict[str, object]:
    return {key: value for key, value in record["config"].items() if key not in ("seed", "model")}


def _values(records: Iterable[Record], metric: Metric) -> Mapping[int, float]:
    """The metric of each seed; several records of one seed give their median."""
    found: dict[int, list[float]] = defaultdict(list)
    for record in records:
        found[record["config"].get("seed", 0)] += numbers(record["metrics"].get(metric.name, {}))
    return {seed: statistics.median(values) for seed, values in found.items() if values}


def _scaled(metric: Metric, values: Sequence[float]) -> FloatArray:
    raised = np.maximum(np.asarray(values, dtype=np.float64), metric.floor)
    return np.log(raised) if metric.scale == "log" else raised


def _centre(metric: Metric, scaled: FloatArray) -> float:
    mean = float(scaled.mean())
    return math.exp(mean) if metric.scale == "log" else mean


def _noise(differences: FloatArray) -> Noise:
    freedom = len(differences) - 1
    return Noise(float(differences.var(ddof=1)) if freedom else 0.0, freedom)
