"""`spinbench advise`, `spinbench bracket` and `spinbench mixing`: for people, while they run and when they are over."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from spinbench.api.bounds import Bound
from spinbench.inference.advising.advice import Advice, Entry
from spinbench.inference.advising.advise import advise
from spinbench.inference.advising.entrant import Entrant
from spinbench.inference.bracketing.bracket import bracket
from spinbench.inference.bracketing.interval import Interval
from spinbench.inference.mixing import mixing
from spinbench.measuring.races import Occasion
from spinbench.reporting.commands.running import describe_log_z, open_model
from spinbench.reporting.display import console, new_table, say, shown
from spinbench.reporting.leaderboard import short
from spinbench.reporting.summary import history

STYLE: dict[str, Any] = {"show_edge": False, "pad_edge": False}
"""Of tables about a race."""


def run_advise(arguments: Namespace) -> int:
    """Race on a model, and print what comes of it; the exit status is 1 where the answer is unresolved."""
    model, source = open_model(arguments.model, arguments.evidence)
    names = None if arguments.candidates is None else [name.strip() for name in arguments.candidates.split(",")]
    occasion = None if arguments.records is None else Occasion.now(arguments.records, source)
    output = console()
    with Live(console=output, auto_refresh=False, transient=True) as live:

        def watch(entrants: Sequence[Entrant], now: str) -> None:
            if output.is_terminal:
                live.update(_running(entrants, now), refresh=True)

        found = advise(model, arguments.budget, arguments.target, names, arguments.seed, source=source, watch=watch)
    _print(found)
    if occasion is not None:
        _keep(occasion, found)
    return int(not found.resolved)


def _keep(occasion: Occasion, found: Advice) -> None:
    written = occasion.write(found)
    if not written:
        say("nothing raced, so that there are no records")
        return
    say(f"{len(written)} records: {shown(occasion.folder)}")
    for line in history([occasion.folder]):
        say(line)


def _running(entrants: Sequence[Entrant], now: str) -> Table:
    found = new_table(
        now, ("candidate", "runs", "seconds", "says"), numbers=("runs", "seconds"), whole=("candidate",), **STYLE
    )
    for entrant in entrants:
        said = entrant.fate or ("" if entrant.result is None else entrant.result.status)
        style = "dim" if entrant.fate else ""
        found.add_row(entrant.candidate.label, str(entrant.rounds), f"{entrant.spent:.2f}", said, style=style)
    return found


def _print(found: Advice) -> None:
    console().print(Text(f"{found.verdict} ({found.level})", style="bold green" if found.resolved else "bold yellow"))
    for line in describe_log_z(found.answer):
        say(line)
    if found.target == "marginals" and found.race:
        say(f"marginals ± {found.error:.2g} (root mean square)")
    samples = f", {found.answer.samples} samples" if found.race else ""
    took = f"the whole took {found.seconds:.2f} s of {found.budget:g} s"
    say(f"by {found.answer.method} on {found.answer.backend}{samples}; {took}")
    for what, line in (("to try next", found.next), ("no exact answer", found.inexact)):
        if line:
            say(f"{what}: {line}")
    if found.race:
        console().print(_raced(found.race))
        for line in _others(found.race):
            console().print(Text(line, style="dim"))
    for what, line in (("again", found.command), ("in Python", found.python)):
        if line:
            say(f"{what}: {line}")


def _raced(race: Sequence[Entry]) -> Table:
    numbers = ("runs", "seconds", "claims", "distance")
    columns = ("candidate", *numbers, "what came of it")
    found = new_table("the race", columns, numbers=numbers, whole=("candidate",), **STYLE)
    for entry in sorted(race, key=lambda entry: (entry.fate != "won", entry.runs == 0)):
        if _ran(entry):
            texts = (str(entry.runs), f"{entry.seconds:.2f}", short(entry.error), short(entry.distance))
            doubt = f"{entry.status}; " if entry.status not in ("", "ok") else ""
            style = "bold" if entry.fate == "won" else "dim" if not entry.runs else ""
            found.add_row(*map(Text, (entry.candidate, *texts, doubt + entry.fate)), style=style)
    return found


def _ran(entry: Entry) -> bool:
    return entry.runs > 0 or entry.seconds > 0


def _others(race: Sequence[Entry]) -> list[str]:
    """Who has not run, a line for each reason."""
    fates = dict.fromkeys(entry.fate for entry in race if not _ran(entry))
    return [f"{', '.join(e.candidate for e in race if e.fate == fate and not _ran(e))}: {fate}" for fate in fates]


def run_bracket(arguments: Namespace) -> int:
    """Bracket a model's log Z and print what is known; the exit status is 1 where it is unresolved.

    On a terminal, one line on standard error follows the bracket; elsewhere, there is one a change of 4 digits.
    """
    model, _ = open_model(arguments.model, arguments.evidence)
    how = {name: getattr(arguments, name) for name in ("gap", "seed", "delta", "assumed")}
    output, last = Console(stderr=True, highlight=False), ""
    with Live(console=output, auto_refresh=False, transient=True) as live:

        def show(known: Interval, who: str) -> None:
            nonlocal last
            if output.is_terminal:
                line = Text(describe_progress(known, who), overflow="ellipsis", no_wrap=True)
                live.update(line, refresh=True)
            elif (news := _sides(known, 4)) != last:
                last = news
                print(describe_progress(known, who), file=sys.stderr)

        found = bracket(model, arguments.budget, progress=show, **how)
    for line in lines(found):
        print(line)
    return int(found.verdict == "unresolved")


def describe_progress(known: Interval, who: str) -> str:
    """Where a bracket stands, and who is at work."""
    return f"{known.seconds:6.2f} s  {_sides(known)}  {who}"


def lines(known: Interval) -> list[str]:
    """The answer, and why the others gave none."""
    first, *others = known.sentences()
    others.append(f"code was loaded in {known.loading_seconds:.2g} s before")
    if known.verdict != "exact":
        others += [f"no bound from {who}: {why}" for who, why in known.refused.items()]
    return [f"{known.model}: {first}", *(f"  {line}" for line in others)]


def _sides(known: Interval, digits: int = 6) -> str:
    def side(bound: Bound | None, none: str) -> str:
        return none if bound is None else f"{bound.value:.{digits}g}"

    certain, probable = (
        f"[{side(low, '-inf')}, {side(high, 'inf')}]"
        for low, high in ((known.lower, known.upper), (known.probable_lower, known.probable_upper))
    )
    return certain if not known.delta else f"{certain}  {1 - known.delta:.6g}: {probable}"


def run_mixing(arguments: Namespace) -> int:
    """Print after how many sweeps Gibbs sampling has forgotten its starts; the exit status is 1 where it has not."""
    model, _ = open_model(arguments.model, arguments.evidence)
    found = mixing(model, budget=arguments.budget, tv=arguments.tv, seed=arguments.seed)
    first, *others = found.sentences()
    print("\n".join([f"{model.name}: {first}", *(f"  {line}" for line in others)]))
    return int(found.sweeps is None)
