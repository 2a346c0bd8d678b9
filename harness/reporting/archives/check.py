"""Cells of an archive or a submission, measured again."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from spinbench.measuring.record_types import Record
from spinbench.measuring.trust import ROUNDING_ERROR
from spinbench.reporting import replay


def check_cells(records: Sequence[Record], cells: int, seed: int) -> Iterator[tuple[Record, str]]:
    """Measure some cells again, drawn at random of those whose numbers are vouched for.

    Yields:
        Each record, and what is not reproduced; an empty text if all is.
    """
    sound = [record for record in records if record.status == "ok" and record.result.status == "ok"]
    for record in random.Random(seed).sample(sound, min(cells, len(sound))):
        again = replay.rerun(record).repeated
        yield record, ", ".join(_differences(record, again))


def _differences(record: Record, again: Record) -> Iterator[str]:
    """What differs by more than its error."""
    if again.status != "ok":
        yield f"it {again.status}: {again.error}"
        return
    if record.files != again.files:
        yield "its model's files are others"
    bounds = {"marginal_rmse": "largest_marginal_error", "log_z_error": "largest_log_z_error"}
    for name, bound in bounds.items():
        before, now = record.metric(name).value, again.metric(name).value
        # Both answers lie within their bounds around the exact one.
        allowed = sum(getattr(one.result, bound) or 0.0 for one in (record, again)) + ROUNDING_ERROR
        if before is None or now is None:
            if before != now:
                yield f"{name}: {before} then, {now} now"
        elif abs(before - now) > allowed:
            yield f"{name}: {before:.3g} then, {now:.3g} now, {allowed:.2g} is allowed"
