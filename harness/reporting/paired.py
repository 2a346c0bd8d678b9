"""Two sets of records side by side: which differences are beyond noise, by the test that `spinbench gate` asks, too."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from spinbench.errors import SpinbenchError
from spinbench.history import axes
from spinbench.history.regression_test import judge, measurements
from spinbench.history.regression_test.judge import Failure, Finding, Judgement
from spinbench.history.regression_test.measurements import Place, Sides
from spinbench.measuring.record_types import Record

NOTEWORTHY = ("worse", "better")


@dataclass(frozen=True)
class Comparison:
    """Both sides of everything; B stands for the gate's head.

    Attributes:
        judgement: what was found.
        left_out: sentences about what has no counterpart.
    """

    judgement: Judgement
    left_out: tuple[str, ...]

    @property
    def differences(self) -> list[Finding]:
        """Of all metrics and cells, worst first."""
        return judge.worst(self.judgement.findings)

    @property
    def failures(self) -> tuple[Failure, ...]:
        """Cells that work on one side only."""
        return self.judgement.failures

    def beyond_noise(self) -> list[Finding]:
        """What changed."""
        return [one for one in self.differences if one.verdict in NOTEWORTHY]


def compare(a: Sequence[Record], b: Sequence[Record]) -> Comparison:
    """Compare B with A.

    Raises:
        SpinbenchError: they have no cell in common.
    """
    matched, left_out = _match(a, b)
    if not matched:
        raise SpinbenchError("A and B have no cell in common: no model, method and backend that both measured")
    metrics = axes.metrics()
    old, new = (
        measurements.runs([(place, record) for place, pair in matched.items() for record in pair[side]], metrics)
        for side in (0, 1)
    )
    return Comparison(judge.judge(Sides(old, new)), tuple(left_out))


def _match(
    a: Sequence[Record], b: Sequence[Record]
) -> tuple[dict[Place, tuple[list[Record], list[Record]]], list[str]]:
    """Cells of both sides by (model, method, backend, differing settings).

    Settings are equal where both sides have them; a cell with one setting on each side is matched with differing ones.
    """
    sides = [_by_cell(a), _by_cell(b)]
    found: dict[Place, tuple[list[Record], list[Record]]] = {}
    lonely = [0, 0]
    for place in sorted(set(sides[0]) | set(sides[1])):
        left, right = (dict(side.get(place, {})) for side in sides)
        both = left.keys() & right.keys()
        for protocol in sorted(both):
            name = "" if len(both) == 1 else f"settings {protocol[:6]}"
            found[Place(*place, name)] = left.pop(protocol), right.pop(protocol)
        if not both and len(left) == len(right) == 1:
            (old,), (new,) = left.values(), right.values()
            changed = axes.differences(_settings(new[0]), _settings(old[0]))
            found[Place(*place, ", ".join(changed).replace("(the series has", "(A has"))] = old, new
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
        if record.status != "skipped":
            cell = record.axes
            found[cell.model, cell.method, cell.backend][record.protocol].append(record)
    return found


def _settings(record: Record) -> dict[str, object]:
    return {key: value for key, value in record.config.items() if key not in ("seed", "model")}
