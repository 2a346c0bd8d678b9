"""What is in the JSON document that `spinbench gate --json` prints; see `json_document`."""

from __future__ import annotations

import msgspec


class FindingFields(msgspec.Struct, frozen=True, kw_only=True):
    """A number at head against base.

    Attributes:
        metric: its name.
        level: cell, group (of method and backend) or all.
        place: model, method, backend and settings of the cell; "all" stands for what is pooled.
        verdict: worse, better, undecided, not worse than 10 %, identical or shown.
        base, head: geometric means over seeds; null for what is pooled.
        ratio, low, high: head over base, above 1 is worse, and its 95 % interval; null where nothing was tested.
        p: of worse or of better, whichever is less, corrected.
        detectable: the ratio that would have been found with probability 0.8.
        reason: why nothing was tested.
    """

    metric: str
    level: str
    place: list[str]
    verdict: str
    base: float | None
    head: float | None
    ratio: float | None
    low: float | None
    high: float | None
    p: float | None
    detectable: float | None
    reason: str


class ChangeFields(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that works on one side only, or whose numbers rest on other evidence.

    Attributes:
        place: of the cell.
        verdict: fails, mended, weaker or stronger.
        error, title, base, head: why it does not work, or which evidence it has, and its levels.
    """

    place: list[str]
    verdict: str
    error: str
    title: str
    base: str
    head: str


class GateFields(msgspec.Struct, frozen=True, kw_only=True):
    """Two commits compared.

    Attributes:
        machine, base, head: whose history, and full hashes.
        verdict: PASS, FAIL or UNDECIDED.
        findings, changes: numbers, the worse first, and cells.
        notes: sentences on what was not judged or compared.
    """

    machine: str
    base: str
    head: str
    verdict: str
    findings: list[FindingFields]
    changes: list[ChangeFields]
    notes: list[str]
