"""Answers as the JSON document that a command prints with `--json`.

Names are those of what the Python functions return; docs/reference/json.md explains them. JSON has no infinity and no
NaN: both are null, as is what there is none of. Commands add names within a version; a name that changes its meaning or
goes raises `VERSION`.
"""

from __future__ import annotations

import dataclasses
import json
from argparse import Namespace
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

# Only for types: a command should not import the code of other commands.
if TYPE_CHECKING:
    from spinbench.auditing.audit import Audit
    from spinbench.history.gate import GateReport
    from spinbench.inference.advising.advice import Advice
    from spinbench.inference.bracketing.interval import Interval
    from spinbench.inference.mixing import Mixing
    from spinbench.inference.result import Result

VERSION = 1
# Names in the parts of a document, in order; `interval` has all that `spinbench.bracket` returns.
NAMES = {
    "answer": "model method backend settings seed chains samples burn_in precision device status evidence log_z "
    "log_z_se log_z_error_bound log_z_kind bounds marginals best_state best_log_weight reached seconds diagnostics "
    "notes best_names",
    "answer.evidence.NAME": "level error_bound reason",
    "advice": "target resolved level error verdict next inexact budget seconds cpu interrupted command python race",
    "advice.race[]": "candidate method backend settings runs seconds status error distance fate",
    "mixing": "model method backend verdict sweeps tv met times seconds",
    "audit": "model passes alpha truth draws effective beta beta_se beta_by r_hat notes checks",
    "audit.checks[]": "name p_value fails detail",
    "gate": "machine base head verdict findings changes notes",
    "gate.findings[]": "metric level place verdict base head ratio low high p detectable reason",
    "gate.changes[]": "place verdict error title base head",
    "list": "pairs families shipped read written metrics broken",
    "list.pairs[]": "method backend tier reason",
}


def print_document(
    arguments: Namespace,
    status: int,
    answer: Result | Advice | Interval | Mixing | Audit | GateReport | dict[str, object] | None = None,
    message: str | None = None,
) -> int:
    """Print a command's document where `--json` asks for it.

    Args:
        arguments: of the command; `stdout` is where the document goes.
        status: the command's exit status.
        answer: what its function returns, or the names of `list`; None where there is no answer.
        message: why there is none.

    Returns:
        The exit status.
    """
    if arguments.json:
        head = {"version": VERSION, "command": arguments.command, "exit_status": status}
        parts = {"message": message} if answer is None else _parts(arguments.command, answer)
        # msgspec first, since it writes infinity and NaN as null; then json, since it writes ASCII, which every
        # terminal's encoding contains.
        line = json.dumps(msgspec.json.decode(msgspec.json.encode(head | parts, enc_hook=_encode)))
        print(line, file=arguments.stdout)
    return status


def _parts(command: str, answer: Any) -> dict[str, object]:
    """The command's own part of the document, and an answer where there is one."""
    match command:
        case "run" | "exact":
            return {"answer": _result_fields(answer)}
        case "advise":
            race = [_fields("advice.race[]", entry) for entry in answer.race]
            return {"answer": _result_fields(answer.answer), "advice": _fields("advice", answer, race=race)}
        case "bracket":
            return {"interval": answer}
        case "mixing":
            return {"mixing": _fields("mixing", answer)}
        case "list":
            return {"list": answer}
        case "gate":
            return {"gate": _gate_fields(answer)}
        case _:
            checks = [_fields("audit.checks[]", check, fails=answer.fails(check)) for check in answer.checks]
            return {"audit": _fields("audit", answer, checks=checks)}


def _gate_fields(report: GateReport) -> dict[str, object]:
    judgement = report.judgement
    return _fields(
        "gate",
        report,
        verdict=judgement.verdict,
        findings=[_fields("gate.findings[]", finding, metric=finding.metric.name) for finding in judgement.findings],
        changes=[_fields("gate.changes[]", change) for change in judgement.changes],
        notes=[*judgement.notes, *judgement.exclusions],
    )


def _result_fields(answer: Result) -> dict[str, object]:
    marginals, best_state, best_names = None, None, None
    if answer.marginals is not None:
        marginals = answer.columns()
    elif answer.heaviest_weight is not None:
        best_state = answer.best_state
    if best_state is not None and answer.source.names.labels:
        assignment = answer.source.names.assignment(best_state.tolist())
        best_names = [(str(name), str(state)) for name, state in assignment.items()]
    return _fields(
        "answer",
        answer,
        evidence={name: _fields("answer.evidence.NAME", each) for name, each in answer.evidence.items()},
        marginals=marginals,
        best_state=best_state,
        best_names=best_names,
        best_log_weight=answer.heaviest_weight,
        seconds=dataclasses.asdict(answer.seconds),
    )


def _fields(part: str, source: object, **others: object) -> dict[str, object]:
    """What a part holds, attributes of the source but for those that are given."""
    return {name: others[name] if name in others else getattr(source, name) for name in NAMES[part].split()}


def _encode(value: object) -> object:
    """Of what msgspec does not know: arrays as lists, other values as text."""
    match value:
        case np.ndarray() | np.generic():
            return value.tolist()
        case Mapping():
            return dict(value)
    return str(value)
