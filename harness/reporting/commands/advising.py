"""`spinbench advise`: a race for people, while it runs and when it is over."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spinbench.inference.advising.advice import Advice, Entry
from spinbench.inference.advising.advise import advise
from spinbench.inference.advising.entrant import Entrant
from spinbench.inference.advising.ranking import Target
from spinbench.measuring.races import Occasion
from spinbench.reporting.commands.answer import of_log_z, opened
from spinbench.reporting.display import console, shown
from spinbench.reporting.leaderboard import short
from spinbench.reporting.summary import history


def show(
    name: str,
    evidence: str | None,
    *,
    budget: str,
    target: Target,
    candidates: Sequence[str] | None,
    seed: int,
    records: Path | None = None,
) -> int:
    """Race on a model of that name or in that file, and print what comes of it.

    Args:
        name, evidence: of the model.
        budget, target, candidates, seed: as of `spinbench.advise`.
        records: a folder for the records of the race, which enter the history; None: it leaves none.

    Returns:
        The exit status: 0, or 1 where the answer is unresolved.
    """
    model, source = opened(name, evidence)
    occasion = None if records is None else Occasion.now(records, source)
    output = console()
    with Live(console=output, auto_refresh=False, transient=True) as live:

        def watch(entrants: Sequence[Entrant], now: str) -> None:
            if output.is_terminal:
                live.update(_running(entrants, now), refresh=True)

        found = advise(model, budget, target, candidates, seed, source=source, watch=watch)
    _print(output, found)
    if occasion is not None:
        _keep(output, occasion, found)
    return int(not found.resolved)


def _keep(output: Console, occasion: Occasion, found: Advice) -> None:
    written = occasion.write(found)
    if not written:
        output.print("nothing raced, so that there are no records")
        return
    output.print(f"{len(written)} records: {shown(occasion.folder)}", soft_wrap=True)
    for line in history([occasion.folder]):
        output.print(Text(line), soft_wrap=True)


def _running(entrants: Sequence[Entrant], now: str) -> Table:
    found = _table(now, "candidate", "runs", "seconds", "says")
    for entrant in entrants:
        said = entrant.fate or ("" if entrant.result is None else entrant.result.status)
        style = "dim" if entrant.fate else ""
        found.add_row(entrant.candidate.label, str(entrant.rounds), f"{entrant.spent:.2f}", said, style=style)
    return found


def _print(output: Console, found: Advice) -> None:
    output.print(Text(found.verdict, style="bold green" if found.resolved else "bold yellow"))
    for line in _answer(found):
        output.print(Text(line), soft_wrap=True)
    if found.next:
        output.print(Text(f"to try next: {found.next}"), soft_wrap=True)
    if found.inexact:
        output.print(Text(f"no exact answer: {found.inexact}"), soft_wrap=True)
    if found.race:
        output.print(_raced(found.race))
        for line in _others(found.race):
            output.print(Text(line, style="dim"))
    for what, line in (("again", found.command), ("in Python", found.python)):
        if line:
            output.print(Text(f"{what}: {line}"), soft_wrap=True)


def _answer(found: Advice) -> list[str]:
    answer, lines = found.answer, of_log_z(found.answer)
    if found.target == "marginals" and found.race:
        lines.append(f"marginals ± {found.error:.2g} (root mean square)")
    took = f"{found.seconds:.2f} s of {found.budget:g} s"
    samples = f", {answer.samples} samples" if found.race else ""
    return [*lines, f"by {answer.method} on {answer.backend}{samples}; the whole took {took}"]


def _raced(race: Sequence[Entry]) -> Table:
    found = _table("the race", "candidate", "runs", "seconds", "claims", "distance", "what came of it")
    for entry in sorted(race, key=lambda entry: (entry.fate != "won", entry.runs == 0)):
        if _ran(entry):
            cells = (
                entry.candidate,
                str(entry.runs),
                f"{entry.seconds:.2f}",
                short(entry.error),
                short(entry.distance),
            )
            doubt = f"{entry.status}; " if entry.status not in ("", "ok") else ""
            style = "bold" if entry.fate == "won" else "dim" if not entry.runs else ""
            found.add_row(*map(Text, (*cells, doubt + entry.fate)), style=style)
    return found


def _ran(entry: Entry) -> bool:
    return entry.runs > 0 or entry.seconds > 0


def _others(race: Sequence[Entry]) -> list[str]:
    """Who has not run, a line for each reason."""
    fates = dict.fromkeys(entry.fate for entry in race if not _ran(entry))
    return [f"{', '.join(e.candidate for e in race if e.fate == fate and not _ran(e))}: {fate}" for fate in fates]


def _table(title: str, *headings: str) -> Table:
    found = Table(title=title, title_justify="left", box=SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for name in headings:
        words = name in ("candidate", "says", "what came of it")
        last = name == headings[-1]
        found.add_column(name, justify="left" if words else "right", overflow="fold", no_wrap=not last)
    return found
