"""Answers as the JSON document that a command prints with `--json`."""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np

from spinbench.reporting.commands import json_document as fields
from spinbench.reporting.commands.gate_document import ChangeFields, FindingFields, GateFields

# Only for types: a command should not import the code of other commands.
if TYPE_CHECKING:
    from spinbench.auditing.audit import Audit
    from spinbench.history.gate import GateReport
    from spinbench.inference.advising.advice import Advice
    from spinbench.inference.bracketing.interval import Interval
    from spinbench.inference.mixing import Mixing
    from spinbench.inference.result import Result

Part = TypeVar("Part", bound=msgspec.Struct)


def print_document(
    arguments: Namespace,
    status: int,
    answer: Result | Advice | Interval | Mixing | Audit | GateReport | None = None,
    message: str | None = None,
) -> int:
    """Print a command's document where `--json` asks for it.

    Args:
        arguments: of the command; `stdout` is where the document goes.
        status: the command's exit status.
        answer: what its function returns; None where there is no answer.
        message: why there is none.

    Returns:
        The exit status.
    """
    if arguments.json:
        parts = {} if answer is None else _parts(arguments.command, answer)
        document = fields.Document(
            version=fields.VERSION, command=arguments.command, exit_status=status, message=message, **parts
        )
        # msgspec first, since it writes infinity and NaN as null; then json, since it writes ASCII, which every
        # terminal's encoding contains.
        line = json.dumps(msgspec.json.decode(msgspec.json.encode(document, enc_hook=_encode)))
        print(line, file=arguments.stdout)
    return status


def _parts(command: str, answer: Any) -> dict[str, Any]:
    """The command's own part of the document, and an answer where there is one."""
    match command:
        case "run" | "exact":
            return {"answer": _result_fields(answer)}
        case "advise":
            race = [_copy(fields.Candidate, entry) for entry in answer.race]
            return {"answer": _result_fields(answer.answer), "advice": _copy(fields.AdviceFields, answer, race=race)}
        case "bracket":
            return {"interval": answer}
        case "mixing":
            return {"mixing": _copy(fields.MixingFields, answer)}
        case "gate":
            return {"gate": _gate_fields(answer)}
        case _:
            checks = [_copy(fields.CheckFields, check, fails=answer.fails(check)) for check in answer.checks]
            return {"audit": _copy(fields.AuditFields, answer, checks=checks)}


def _gate_fields(report: GateReport) -> GateFields:
    judgement = report.judgement
    findings = [
        _copy(FindingFields, finding, metric=finding.metric.name, place=list(finding.place))
        for finding in judgement.findings
    ]
    changes = [_copy(ChangeFields, change, place=list(change.place)) for change in judgement.changes]
    notes = [*judgement.notes, *judgement.exclusions]
    return _copy(GateFields, report, verdict=judgement.verdict, findings=findings, changes=changes, notes=notes)


def _result_fields(answer: Result) -> fields.Answer:
    marginals, best_state, best_names = None, None, None
    if answer.marginals is not None:
        marginals = answer.columns()
    elif answer.heaviest_weight is not None:
        best_state = answer.best_state
    if best_state is not None and answer.source.names.labels:
        assignment = answer.source.names.assignment(best_state.tolist())
        best_names = [(str(name), str(state)) for name, state in assignment.items()]
    return _copy(
        fields.Answer,
        answer,
        evidence={name: _copy(fields.Support, each) for name, each in answer.evidence.items()},
        bounds=list(answer.bounds),
        marginals=marginals,
        best_state=best_state,
        best_names=best_names,
        best_log_weight=answer.heaviest_weight,
        seconds=dataclasses.asdict(answer.seconds),
    )


def _copy(part: type[Part], source: object, **others: object) -> Part:
    """The fields of a part, from the attributes of the same names but for those that are given."""
    names = [field.name for field in msgspec.structs.fields(part) if field.name not in others]
    return part(**{name: getattr(source, name) for name in names}, **others)


def _encode(value: object) -> object:
    """Of what msgspec does not know: arrays as lists, other values as text."""
    match value:
        case np.ndarray() | np.generic():
            return value.tolist()
        case Mapping():
            return dict(value)
    return str(value)
