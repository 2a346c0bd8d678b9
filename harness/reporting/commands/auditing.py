"""`spinbench audit`: whether samples of any sampler are draws of a model's law."""

from __future__ import annotations

from argparse import Namespace

from spinbench.auditing.audit import Audit, audit
from spinbench.reporting.commands.json_answers import print_document
from spinbench.reporting.commands.model_io import check_outputs, open_model
from spinbench.reporting.progress_display import console, new_table, print_line

# Largest number of frequencies that are printed.
MAX_ROWS = 8


def run(arguments: Namespace) -> int:
    """Audit samples and print what comes of it; the exit status is 1 where they fail."""
    check_outputs(arguments.output, [".csv"])
    model, _ = open_model(arguments.model, arguments.evidence)
    audit_result = audit(arguments.samples, model, alpha=arguments.alpha, budget=arguments.budget, seed=arguments.seed)
    first, *others = audit_result.sentences()
    print_line(f"{audit_result.model}: {first}")
    for line in others:
        print_line(f"  {line}")
    _print_checks(audit_result)
    _print_worst_frequencies(audit_result)
    for path in arguments.output:
        audit_result.save(path)
    return print_document(arguments, int(not audit_result.passes), audit_result)


def _print_checks(audit_result: Audit) -> None:
    verdicts = {True: "fails", False: "passes"}
    rows = [
        (check.name, f"{check.p_value:.2g}", verdicts[audit_result.fails(check)], check.detail)
        for check in audit_result.checks
    ]
    columns = ["check", "p-value", "verdict", "worst"]
    console().print(new_table(None, columns, rows, number_columns=["p-value"], show_edge=False))


def _print_worst_frequencies(audit_result: Audit) -> None:
    if not audit_result.rows:
        return
    numbers = ["observed", "expected", "z", "p-value"]
    rows = [
        (
            *(" ".join(map(str, names)) for names in (row.variables, row.states)),
            *(f"{row.observed:.4f}", f"{row.expected:.4f}", f"{row.z:+.1f}", f"{row.p_value:.2g}"),
        )
        for row in sorted(audit_result.rows, key=lambda row: row.p_value)[:MAX_ROWS]
    ]
    console().print(new_table(None, ["variables", "states", *numbers], rows, number_columns=numbers, show_edge=False))
    print_line("p-values of these rows are of each alone; --output FILE.csv has all of them")
