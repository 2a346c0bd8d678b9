"""A gate's report as files that a CI service shows: Markdown for a job's summary, and JUnit's XML."""

from __future__ import annotations

import html
from pathlib import Path
from xml.etree import ElementTree

from spinbench.errors import SpinbenchError
from spinbench.foundation import atomic
from spinbench.history.gate import GateReport
from spinbench.history.regression_test import formatting, judge

SUFFIXES = (".md", ".xml")
SUITE = "spinbench gate"


def check_files(paths: list[Path]) -> None:
    """Raises SpinbenchError where a report could not be written to one of these files."""
    for path in paths:
        if path.suffix not in SUFFIXES:
            raise SpinbenchError(f"--output {path} was given; {', '.join(SUFFIXES)} are the suffixes that are allowed")
        if not path.absolute().parent.is_dir():
            raise SpinbenchError(f"--output {path} was given; there is no such folder")


def write_report(report: GateReport, path: Path) -> None:
    """Write a report as its file's suffix says."""
    text = format_markdown(report) if path.suffix == ".md" else format_junit(report)
    atomic.write_bytes(path, text.encode())


def format_markdown(report: GateReport) -> str:
    """The verdict, both commits, a table of what changed, and the remarks."""
    rows = [list(row) for row in formatting.change_rows(report.judgement)]
    table = []
    if rows:
        rows.insert(1, ["---"] * len(rows[0]))
        table = [f"| {' | '.join(map(_escape, row))} |" for row in rows]
    remarks = [*formatting.format_remarks(report.judgement), *report.left_out, report.summary()]
    parts = [
        f"**{_escape(formatting.format_verdict(report.judgement))}**",
        "\n".join(f"- {_escape(line)}" for line in report.heads),
        "\n".join(table),
        "\n".join(f"- {_escape(line)}" for line in remarks),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def format_junit(report: GateReport) -> str:
    """A test case for each tested number, and for each cell that fails or is mended."""
    suite = ElementTree.Element("testsuite", name=SUITE)
    for finding in judge.sort_findings(report.judgement.findings):
        if finding.p is not None:
            _add_finding(suite, finding)
    for failure in report.judgement.failures:
        case = _add_case(suite, failure.place.group, failure.place.model)
        if failure.verdict == "fails":
            ElementTree.SubElement(case, "failure", message=_printable(failure.error))
    for outcome, tag in (("failures", "failure"), ("skipped", "skipped")):
        suite.set(outcome, str(len(suite.findall(f"*/{tag}"))))
    suite.set("tests", str(len(suite)))
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _add_finding(suite: ElementTree.Element, finding: judge.Finding) -> None:
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
