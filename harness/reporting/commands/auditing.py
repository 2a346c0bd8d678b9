"""`spinbench audit`: whether samples of any sampler are draws of a model's law."""

from __future__ import annotations

from argparse import Namespace

from rich.text import Text

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
    table = new_table(None, ["check", "p-value", "verdict", "worst"], number_columns=["p-value"], show_edge=False)
    for check in audit_result.checks:
        verdict = "fails" if audit_result.fails(check) else "passes"
        table.add_row(*map(Text, (check.name, f"{check.p_value:.2g}", verdict, check.detail)))
    console().print(table)


def _print_worst_frequencies(audit_result: Audit) -> None:
    if not audit_result.rows:
        return
    numbers = ["observed", "expected", "z", "p-value"]
    table = new_table(None, ["variables", "states", *numbers], number_columns=numbers, show_edge=False)
    for row in sorted(audit_result.rows, key=lambda row: row.p_value)[:MAX_ROWS]:
        names = (" ".join(map(str, row.variables)), " ".join(map(str, row.states)))
        values = (f"{row.observed:.4f}", f"{row.expected:.4f}", f"{row.z:+.1f}", f"{row.p_value:.2g}")
        table.add_row(*map(Text, (*names, *values)))
    console().print(table)
    print_line("p-values of these rows are of each alone; --output FILE.csv has all of them")
