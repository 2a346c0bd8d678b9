"""`spinbench gate` on the command line."""

from __future__ import annotations

from argparse import Namespace

from spinbench.errors import SpinbenchError
from spinbench.foundation import atomic
from spinbench.history import gate
from spinbench.history.calibration import calibrate
from spinbench.history.regression_test.formatting import format_verdict
from spinbench.inference.budget import parse_seconds
from spinbench.measuring.environment import require_history_root
from spinbench.reporting.commands.json_answers import print_document


def run(arguments: Namespace) -> int:
    """Compare two commits, or print how often the gate errs.

    Returns:
        The exit status: 1 if the gate found a regression, or is undecided where that is to fail; else 0.
    """
    if arguments.calibrate:
        if arguments.json:
            raise SpinbenchError("--calibrate and --json were given; its table is no document of the gate")
        print(calibrate(require_history_root(), arguments.machine))
        return 0
    atomic.check_outputs(arguments.output, gate.SUFFIXES)
    seconds = None
    if arguments.pairs is not None:
        seconds, _ = parse_seconds(arguments.pairs, "--pairs", cpu=False)
    report = gate.gate(require_history_root(), arguments.base, arguments.head, machine=arguments.machine, pairs=seconds)
    for path in arguments.output:
        gate.write_report(report, path)
    verdict = report.judgement.verdict
    if arguments.annotate and verdict != "PASS":
        kind = {"FAIL": "error", "UNDECIDED": "warning"}[verdict]
        print(f"::{kind} title=spinbench gate::{format_verdict(report.judgement)}")
    print(report)
    status = report.exit_status
    if verdict == "UNDECIDED":
        status = int(arguments.undecided == "fail")
    return print_document(arguments, status, report)
