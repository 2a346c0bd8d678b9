"""`spinbench advise`, `bracket`, `mixing` and `audit`: for people, while they run and when they are over."""

from __future__ import annotations

import sys
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.live import Live
from rich.text import Text

from spinbench.auditing.audit import Audit, audit
from spinbench.foundation.atomic import check_outputs
from spinbench.foundation.interruptions import STATUS
from spinbench.foundation.remarks import format_seconds
from spinbench.inference.advising.advise import advise
from spinbench.inference.bracketing.bracket import bracket
from spinbench.inference.mixing import mixing
from spinbench.measuring.races import RaceRecorder
from spinbench.reporting.commands.json_answers import print_document
from spinbench.reporting.commands.model_io import open_model
from spinbench.reporting.commands.running import describe_log_z
from spinbench.reporting.leaderboard import format_number
from spinbench.reporting.progress_display import console, new_table, print_line, short_path
from spinbench.reporting.summary import enter_into_history

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from spinbench.api.bounds import Bound
    from spinbench.inference.advising.advice import Advice, Entry
    from spinbench.inference.advising.entrant import Entrant
    from spinbench.inference.bracketing.interval import Interval

# Style of tables about a race.
TABLE_STYLE: dict[str, Any] = {"show_edge": False, "pad_edge": False}
# Largest number of frequencies that are printed.
MAX_ROWS = 8


def run_advise(arguments: Namespace) -> int:
    """Race on a model, and print what comes of it, also when interrupted; the exit status is 1 where the answer is
    unresolved, and that of an interruption then."""
    model, source = open_model(arguments.model, arguments.evidence)
    names = None
    if arguments.candidates is not None:
        names = [name.strip() for name in arguments.candidates.split(",")]
    occasion = None
    if arguments.records is not None:
        occasion = RaceRecorder.begin(arguments.records, source)
    output = console()
    with Live(console=output, auto_refresh=False, transient=True) as live:

        def watch(entrants: Sequence[Entrant], progress: str) -> None:
            if output.is_terminal:
                live.update(_progress_table(entrants, progress), refresh=True)

        advice = advise(model, arguments.budget, arguments.target, names, arguments.seed, source=source, watch=watch)
    _print_advice(advice)
    if occasion is not None:
        _write_race_records(occasion, advice)
    status = STATUS if advice.interrupted else int(not advice.resolved)
    return print_document(arguments, status, advice)


def _write_race_records(occasion: RaceRecorder, advice: Advice) -> None:
    paths = occasion.write(advice)
    if not paths:
        print_line("nothing raced, so that there are no records")
        return
    print_line(f"{len(paths)} records: {short_path(occasion.folder)}")
    for line in enter_into_history([occasion.folder]):
        print_line(line)


def _progress_table(entrants: Sequence[Entrant], now: str) -> Table:
    table = new_table(
        now,
        ("candidate", "runs", "seconds", "says"),
        number_columns=("runs", "seconds"),
        unfolded_columns=("candidate",),
        **TABLE_STYLE,
    )
    for entrant in entrants:
        message = entrant.fate or getattr(entrant.result, "status", "")
        style = "dim" if entrant.fate else ""
        table.add_row(entrant.candidate.label, str(entrant.rounds), f"{entrant.spent:.2f}", message, style=style)
    return table


def _print_advice(advice: Advice) -> None:
    console().print(
        Text(f"{advice.verdict} ({advice.level})", style="bold green" if advice.resolved else "bold yellow")
    )
    for line in describe_log_z(advice.answer):
        print_line(line)
    if advice.target == "marginals" and advice.race:
        print_line(f"marginals ± {advice.error:.2g} (root mean square)")
    samples = f", {advice.answer.samples} samples" if advice.race else ""
    duration = f"the whole took {advice.seconds:.2f} s of {advice.budget:g} s{' of the CPU' if advice.cpu else ''}"
    print_line(f"by {advice.answer.method} on {advice.answer.backend}{samples}; {duration}")
    for label, line in (("to try next", advice.next), ("no exact answer", advice.inexact)):
        if line:
            print_line(f"{label}: {line}")
    if advice.race:
        console().print(_race_table(advice.race))
        for line in _describe_idle_candidates(advice.race):
            console().print(Text(line, style="dim"))
    for label, line in (("again", advice.command), ("in Python", advice.python)):
        if line:
            print_line(f"{label}: {line}")


def _race_table(race: Sequence[Entry]) -> Table:
    numbers = ("runs", "seconds", "error", "distance")
    columns = ("candidate", *numbers, "outcome")
    table = new_table("the race", columns, number_columns=numbers, unfolded_columns=("candidate",), **TABLE_STYLE)
    for entry in sorted(race, key=lambda entry: (entry.fate != "won", entry.runs == 0)):
        if _has_run(entry):
            texts = (str(entry.runs), f"{entry.seconds:.2f}", format_number(entry.error), format_number(entry.distance))
            remarks = [text for text in (entry.status, entry.fate) if text not in ("", "ok")]
            style = "" if entry.runs else "dim"
            if entry.fate == "won":
                style = "bold"
            table.add_row(*map(Text, (entry.candidate, *texts, "; ".join(remarks))), style=style)
    return table


def _has_run(entry: Entry) -> bool:
    return entry.runs > 0 or entry.seconds > 0


def _describe_idle_candidates(race: Sequence[Entry]) -> list[str]:
    """Who has not run, a line for each reason."""
    fates = dict.fromkeys(entry.fate for entry in race if not _has_run(entry))
    return [f"{', '.join(e.candidate for e in race if e.fate == fate and not _has_run(e))}: {fate}" for fate in fates]


def run_bracket(arguments: Namespace) -> int:
    """Bracket a model's log Z and print what is known; the exit status is 1 where it is unresolved.

    On a terminal, one line on standard error follows the bracket; elsewhere, there is one a change of 4 digits.
    """
    model, _ = open_model(arguments.model, arguments.evidence)
    options = {name: getattr(arguments, name) for name in ("gap", "seed", "delta", "assumed")}
    output, last = Console(stderr=True, highlight=False), ""
    with Live(console=output, auto_refresh=False, transient=True) as live:

        def show(interval: Interval, solver: str) -> None:
            nonlocal last
            if output.is_terminal:
                line = Text(describe_progress(interval, solver), overflow="ellipsis", no_wrap=True)
                live.update(line, refresh=True)
            elif not arguments.quiet and (news := _format_interval(interval, 4)) != last:
                last = news
                print(describe_progress(interval, solver), file=sys.stderr)

        interval = bracket(model, arguments.budget, progress=show, **options)
    for line in describe_interval(interval):
        print(line)
    return print_document(arguments, int(interval.verdict == "unresolved"), interval)


def describe_progress(interval: Interval, solver: str) -> str:
    """Where a bracket stands, and who is at work."""
    return f"{interval.seconds:6.2f} s  {_format_interval(interval)}  {solver}"


def describe_interval(interval: Interval) -> list[str]:
    """The answer, and why the others gave none."""
    first, *others = interval.sentences()
    others.append(f"code was loaded in {format_seconds(interval.loading_seconds)} before")
    if interval.verdict != "exact":
        others += [f"no bound from {solver}: {reason}" for solver, reason in interval.refused.items()]
    return [f"{interval.model}: {first}", *(f"  {line}" for line in others)]


def _format_interval(interval: Interval, digits: int = 6) -> str:
    def side(bound: Bound | None, none: str) -> str:
        if bound is None:
            return none
        return f"{bound.value:.{digits}g}"

    certain, probable = (
        f"[{side(low, '-inf')}, {side(high, 'inf')}]"
        for low, high in ((interval.lower, interval.upper), (interval.probable_lower, interval.probable_upper))
    )
    if not interval.delta:
        return certain
    return f"{certain}  {1 - interval.delta:.6g}: {probable}"


def run_mixing(arguments: Namespace) -> int:
    """Print after how many sweeps Gibbs sampling has forgotten its starts; the exit status is 1 where it has not."""
    model, _ = open_model(arguments.model, arguments.evidence)
    mixing_time = mixing(model, budget=arguments.budget, tv=arguments.tv, seed=arguments.seed)
    first, *others = mixing_time.sentences()
    print("\n".join([f"{model.name}: {first}", *(f"  {line}" for line in others)]))
    return print_document(arguments, int(mixing_time.sweeps is None), mixing_time)


def run_audit(arguments: Namespace) -> int:
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
