"""`spinbench audit`: whether samples of any sampler are draws of a model's law."""

from __future__ import annotations

from argparse import Namespace

from rich.text import Text

from spinbench.auditing.audit import Audit, audit
from spinbench.reporting.commands.running import check_outputs, open_model
from spinbench.reporting.display import console, new_table, say

WORST = 8
"""Frequencies that are shown."""


def run(arguments: Namespace) -> int:
    """Audit samples and print what comes of it; the exit status is 1 where they fail."""
    check_outputs(arguments.output, [".csv"])
    model, _ = open_model(arguments.model, arguments.evidence)
    found = audit(arguments.samples, model, alpha=arguments.alpha, budget=arguments.budget, seed=arguments.seed)
    first, *others = found.sentences()
    say(f"{found.model}: {first}")
    for line in others:
        say(f"  {line}")
    _print_checks(found)
    _print_worst(found)
    for path in arguments.output:
        found.save(path)
    return int(not found.passes)


def _print_checks(found: Audit) -> None:
    table = new_table(None, ["check", "p-value", "verdict", "worst"], numbers=["p-value"], show_edge=False)
    for check in found.checks:
        verdict = "fails" if found.fails(check) else "passes"
        table.add_row(*map(Text, (check.name, f"{check.p_value:.2g}", verdict, check.detail)))
    console().print(table)


def _print_worst(found: Audit) -> None:
    if not found.rows:
        return
    numbers = ["observed", "expected", "z", "p-value"]
    table = new_table(None, ["variables", "states", *numbers], numbers=numbers, show_edge=False)
    for row in sorted(found.rows, key=lambda row: row.p_value)[:WORST]:
        names = (" ".join(map(str, row.variables)), " ".join(map(str, row.states)))
        values = (f"{row.observed:.4f}", f"{row.expected:.4f}", f"{row.z:+.1f}", f"{row.p_value:.2g}")
        table.add_row(*map(Text, (*names, *values)))
    console().print(table)
    say("p-values of these rows are of each alone; --output FILE.csv has all of them")
