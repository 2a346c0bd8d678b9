"""Did a commit make anything less accurate or slower, beyond noise? asv's own comparison always exits with 0.

A report is also a file that CI services show: Markdown for a job's summary, and JUnit's XML.
"""

from __future__ import annotations

import html
import math
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree

from spinbench.errors import HistoryError
from spinbench.foundation import atomic
from spinbench.foundation.git import Checkout
from spinbench.foundation.remarks import format_count
from spinbench.history import builds
from spinbench.history.commits import collect_sides
from spinbench.history.pairs import measure_pairs
from spinbench.history.recorder import History
from spinbench.history.regression_test import formatting
from spinbench.history.regression_test.judge import Finding, Judgement, judge
from spinbench.history.regression_test.measurements import Place, Sides

SUFFIXES = (".md", ".xml")
SUITE = "spinbench gate"


@dataclass(frozen=True)
class GateReport:
    """Two commits compared.

    Attributes:
        base, head: full hashes; titles: the first lines of their messages.
        judgement: what was found.
    """

    machine: str
    base: str
    head: str
    titles: tuple[str, str]
    judgement: Judgement

    @property
    def exit_status(self) -> int:
        """1 if anything got worse, or fails that worked; else 0."""
        return int(self.judgement.red)

    def __str__(self) -> str:
        """The report for people, the verdict last."""
        lines = [*self.heads, *formatting.format_changes(self.judgement), *self.remarks()]
        return "\n".join([*lines, formatting.format_verdict(self.judgement)])

    @property
    def heads(self) -> tuple[str, str]:
        """Both commits, a line each."""
        return (f"base {self.base[:8]} {self.titles[0]}", f"head {self.head[:8]} {self.titles[1]}")

    def remarks(self) -> list[str]:
        """What would have been found, what was not judged or compared, and how many of what."""
        return [*formatting.format_remarks(self.judgement), *self.judgement.exclusions, self.summary()]

    def summary(self) -> str:
        """One sentence."""
        return f"on {self.machine}: {formatting.format_summary(self.judgement)}"


def gate(
    root: Path,
    base: str | None = None,
    head: str | None = None,
    *,
    machine: str | None = None,
    pairs: float | None = None,
) -> GateReport:
    """Compare what the history knows of two commits.

    Args:
        root: the checkout, or a folder inside it.
        base: a commit; by default the newest recorded one before `head`, on its branch if there is one.
        head: a commit; by default the newest recorded one of the current branch.
        machine: whose history; by default this machine's.
        pairs: seconds in which costs are measured again, by pairs of processes, those first that rose most; None:
            what the history knows is all.

    Raises:
        HistoryError: there is no history, a commit has no results, or the commits have nothing in common.
    """
    history = History.open(root, machine)
    return compare_commits(history, *_choose_commits(history, base, head), pairs)


def compare_commits(history: History, base: str, head: str, pairs: float | None = None) -> GateReport:
    """The same of two full hashes that have results.

    Raises:
        HistoryError: the commits have nothing in common.
    """
    sides = collect_sides(history, base, head)
    if not sides.common:
        why = "; ".join(sides.exclusions) or "neither has a record"
        raise HistoryError(f"there is nothing to compare between {base[:8]} and {head[:8]}: {why}")
    judgement = judge(sides)
    if pairs is not None:
        judgement = _judge_by_pairs(history.checkout, (base, head), sides, judgement, pairs)
    return GateReport(
        machine=history.machine,
        base=base,
        head=head,
        titles=(history.checkout.subject(base), history.checkout.subject(head)),
        judgement=judgement,
    )


def _judge_by_pairs(
    checkout: Checkout, commits: tuple[str, str], sides: Sides, judgement: Judgement, seconds: float
) -> Judgement:
    """The judgement after the costs that rose most, by what is known of them, were measured by pairs."""
    rises: dict[Place, float] = {}
    for finding in judgement.findings:
        if finding.metric.judged == "cost" and finding.ratio is not None:
            rises[finding.place] = max(finding.ratio, rises.get(finding.place, 0.0))
    cells = {
        place: sides.cells[place]
        for place in sorted(rises, key=lambda place: -rises[place])
        if place in sides.cells and sides.cells[place][0]["budget"].get("samples")
    }
    try:
        base, head = (builds.build(checkout, commit).python for commit in commits)
    except HistoryError as error:
        return replace(judgement, notes=(*judgement.notes, f"costs were not measured by pairs: {error}"))
    measured, refusals = measure_pairs((base, head), cells, seconds, _report_pair)
    judgement = judge(sides, measured)
    if rest := len(cells) - len(measured) - len(refusals):
        refusals.append(f"{format_count(rest, 'cell')} not measured by pairs, for lack of time")
    return replace(judgement, notes=(*judgement.notes, *refusals))


def _report_pair(place: Place, logs: Sequence[float]) -> None:
    """While it goes on, on standard error."""
    ratio, starts = math.exp(sum(logs) / len(logs)), format_count(len(logs), "start")
    line = f"spinbench: {formatting.format_place(place)}: x{ratio:.2f} in {starts} by pairs"
    print(line, file=sys.stderr, flush=True)


def _choose_commits(history: History, base: str | None, head: str | None) -> tuple[str, str]:
    """The hashes to compare."""
    recorded, checkout = history.commits(), history.checkout

    def choose(commits: Iterable[str], subject: str) -> str:
        """The first of these commits that has results."""
        for commit in commits:
            if commit in recorded:
                return commit
        hint = "run `spinbench sweep` on a clean checkout of it"
        raise HistoryError(f"{subject} results in the history of {history.machine}; {hint}")

    if head is None:
        head_commit = choose(checkout.ancestors("HEAD"), "no commit of the current branch has")
    else:
        head_commit = choose([checkout.resolve(head)], f"commit {head} has no")
    if base is None:
        # commits merged into head are part of head's change, so that its own line comes first
        older = [*checkout.line(head_commit)[1:], *checkout.ancestors(head_commit)[1:]]
        base_commit = choose(older, f"no commit before {head_commit[:8]} has")
    else:
        base_commit = choose([checkout.resolve(base)], f"commit {base} has no")
    if base_commit == head_commit:
        raise HistoryError(f"base and head are both {base_commit[:8]}; give two commits")
    return base_commit, head_commit


def write_report(report: GateReport, path: Path) -> None:
    """Write a report as its file's suffix says."""
    text = format_markdown(report) if path.suffix.lower() == ".md" else format_junit(report)
    atomic.write_bytes(path, text.encode())


def format_markdown(report: GateReport) -> str:
    """The verdict, both commits, a table of what changed, and the remarks."""
    rows = [list(row) for row in formatting.change_rows(report.judgement)]
    table = []
    if rows:
        rows.insert(1, ["---"] * len(rows[0]))
        table = [f"| {' | '.join(map(_escape, row))} |" for row in rows]
    parts = [
        f"**{_escape(formatting.format_verdict(report.judgement))}**",
        "\n".join(f"- {_escape(line)}" for line in report.heads),
        "\n".join(table),
        "\n".join(f"- {_escape(line)}" for line in report.remarks()),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def format_junit(report: GateReport) -> str:
    """A test case for each tested number, and for each cell that fails or is mended."""
    suite = ElementTree.Element("testsuite", name=SUITE)
    for finding in report.judgement.findings:
        if finding.p is not None:
            _add_finding(suite, finding)
    for change in report.judgement.changes:
        if change.error:
            case = _add_case(suite, change.place.group, change.place.model)
            if change.verdict == "fails":
                ElementTree.SubElement(case, "failure", message=_printable(change.error))
    for outcome, tag in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(outcome, str(len(suite.findall(f"*/{tag}"))))
    suite.set("tests", str(len(suite)))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_finding(suite: ElementTree.Element, finding: Finding) -> None:
    case = _add_case(suite, finding.place.group, f"{finding.place.model}, {finding.metric.title}")
    message = formatting.describe_finding(finding)
    if finding.verdict == "worse":
        ElementTree.SubElement(case, "failure", message=_printable(message))
    elif finding.verdict == "undecided":
        ElementTree.SubElement(case, "skipped", message=_printable(f"undecided: {message}"))


def _add_case(suite: ElementTree.Element, group: str, name: str) -> ElementTree.Element:
    return ElementTree.SubElement(suite, "testcase", classname=_printable(group), name=_printable(name))


def _escape(text: str) -> str:
    """As Markdown shows it, in a table, too."""
    return html.escape(_printable(text), quote=False).replace("|", "&#124;")


def _printable(text: str) -> str:
    """Without characters that XML has not."""
    return "".join(character if character.isprintable() else " " for character in text)
