"""A page in Markdown of what is best across models, from records alone: tables, pictures, where it was measured."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from spinbench import __version__
from spinbench.errors import SpinbenchError
from spinbench.measuring.record_types import Record
from spinbench.reporting.content import places
from spinbench.reporting.profiles import pictures, tables
from spinbench.reporting.profiles.profile import Profile

BEGIN, END = "<!-- profile -->", "<!-- end of profile -->"
"""What stands between them in a page that exists is replaced; the rest of it, prose, is kept."""

ALTERNATIVE = "Performance profiles: on which share of the models each method is within a factor of the best"


def write(found: Profile, records: Sequence[Record], path: Path) -> list[Path]:
    """Write the page, or its part between the marks, and the pictures beside it; returns the pictures.

    Raises:
        SpinbenchError: the page cannot be written, or what stands there has no marks.
    """
    drawn = pictures.save(found.boards, path.with_name(f"{path.stem}.png"))
    body = "\n".join([BEGIN, "", *_body(found, records, drawn), END])
    try:
        before = path.read_text(encoding="utf-8") if path.exists() else f"# Methods across models\n\n{BEGIN}{END}\n"
        head, begun, rest = before.partition(BEGIN)
        _, ended, tail = rest.partition(END)
        if not (begun and ended):
            raise SpinbenchError(f"{path} is no page of profiles: it lacks the marks {BEGIN} and {END}")
        path.write_text(f"{head}{body}{tail}", encoding="utf-8")
    except OSError as error:
        raise SpinbenchError(f"{path} cannot be written: {error.strerror or error}") from error
    return drawn


def _body(found: Profile, records: Sequence[Record], drawn: Sequence[Path]) -> Iterator[str]:
    yield from (f"{sentence}\n" for sentence in tables.sentences(found))
    for picture in drawn:
        yield f"![{ALTERNATIVE}]({picture.name})\n"
    yield "## Best by class\n"
    heads, classes = tables.best_by_class(found.boards)
    yield from _table(["class", "models", *heads], classes)
    for board in found.boards:
        lines = tables.lines(board)
        columns = tables.shown_columns(lines)
        yield f"## {tables.title(board)}\n".replace("|error of log Z|", "Error of log Z")
        heads = [tables.HEADINGS[i] for i in columns]
        yield from _table(heads, [[line[i] for i in columns] for line in lines])
    yield "## Where and when\n"
    yield from _where(records)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|---{'|---:' * (len(heads) - 1)}|"
    for row in rows:
        yield f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |"
    yield ""


def _where(records: Sequence[Record]) -> Iterator[str]:
    days = sorted({time.strftime("%Y-%m-%d", time.gmtime(record.started_at)) for record in records})
    yield f"- measured {' to '.join(dict.fromkeys([days[0], days[-1]]))}, spinbench {__version__}"
    shared = sum(bool(record.oversubscribed) for record in records)
    if shared:
        yield f"- {shared} of {len(records)} cells shared their core with other work for a fifth of their time or more"
    for place in places(records):
        facts = "; ".join(f"{name}: {fact}" for name, fact in place["facts"].items() if name != "host")
        yield f"- {place['cells']} cells: {facts}"
    yield ""
