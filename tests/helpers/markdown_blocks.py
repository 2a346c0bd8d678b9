"""The fenced blocks of a page, and what stands before them for the tests.

A comment on the line before a block says how the tests treat it:

    <!-- tests run: COMMAND -->    run this in place of a command that takes minutes
    <!-- tests skip this: WHY -->
"""

from __future__ import annotations

import importlib
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]

_BLOCK = re.compile(
    r"(?:^ *<!-- tests (?P<order>run|skip this): (?P<words>.*?) -->\n)?"
    r"^(?P<indent> *)```(?P<language>\w*)\n(?P<text>.*?)^(?P=indent)```$",
    re.MULTILINE | re.DOTALL,
)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, its text without indentation, the line it starts at; what the tests run instead."""

    language: str
    text: str
    line: int
    instead: str | None = None
    skipped: bool = False

    @property
    def tested(self) -> str:
        """What the tests run."""
        return self.instead or self.text


def blocks(page: Path) -> list[Block]:
    """All of a page, in order."""
    source = page.read_text(encoding="utf-8")
    return [
        Block(
            language=found["language"],
            text=textwrap.dedent(found["text"]),
            line=source.count("\n", 0, found.start()) + 1,
            instead=found["words"] if found["order"] == "run" else None,
            skipped=found["order"] == "skip this",
        )
        for found in _BLOCK.finditer(source)
    ]


def commands(block: Block) -> list[str]:
    """Lines of a shell block that call spinbench, without comments; continued lines joined, here-documents left out;
    names from a file are two, and a loop's variable is 0."""
    text = re.sub(r"\$\(<\w+\)", "one,two", block.text)
    text = re.sub(r"\$\w+", "0", text)
    text = re.sub(r"<<'(\w+)'\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL).replace("\\\n", " ")
    lines = (re.sub(r"(^|\s)#.*", "", line).strip() for line in text.splitlines())
    parts = [part.strip() for line in lines for part in re.split(r"&&|;|\|", line)]
    return [part for part in parts if part.startswith("spinbench ")]


def check_printed(source: str, printed: str) -> None:
    """Each `print(…)  # numbers` has printed these numbers."""
    expected = re.findall(r"^print\(.*\) +# ([-+.e\d ]*\d)$", source, re.MULTILINE)
    lines = iter(printed.splitlines())
    for wanted in expected:
        assert wanted in lines, f"{wanted} was not printed, or not in its turn:\n{printed}"


def page_name_patterns(hook: str) -> list[re.Pattern[str]]:
    """Of the names in the first column of a page that a module of docs/hooks writes; NAME stands for any."""
    sys.path.insert(0, str(DOCS / "hooks"))
    try:
        text: str = importlib.import_module(hook).text()
    finally:
        sys.path.pop(0)
    return [re.compile(re.escape(name).replace("NAME", r".+")) for name in names_on(text)]


def names_on(page: str) -> list[str]:
    """Of the first columns of a page's tables."""
    return re.findall(r"^\| `([^`]+)`", page, re.MULTILINE)


def names_of_answers() -> list[str]:
    """Those that the page of JSON explains."""
    return names_on((DOCS / "reference" / "json.md").read_text(encoding="utf-8"))


def names_off_the_page(content: object) -> set[str]:
    """Of the values of a JSON document, those that the page of JSON does not explain."""
    patterns = [re.compile(re.escape(name).replace("NAME", r".+")) for name in names_of_answers()]
    return {name for name in _names(content) if not any(pattern.fullmatch(name) for pattern in patterns)}


def _names(content: object, name: str = "") -> Iterator[str]:
    """Of all values, joined by dots; entries of lists of objects by []."""
    match content:
        case dict():
            for key, value in content.items():
                yield from _names(value, f"{name}.{key}".lstrip("."))
        case [dict(), *_]:
            for entry in content:
                yield from _names(entry, f"{name}[]")
        case None | []:
            # Parts that there are none of have no names.
            pass
        case _:
            yield name
