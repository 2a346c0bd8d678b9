"""The example notebook as it runs: a page of Markdown, and the pictures that its cells draw."""

from __future__ import annotations

import base64
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

NOTEBOOK = Path(__file__).resolve().parents[1] / "example.ipynb"
TIMEOUT = 600
"""Seconds of a cell, within which kernels may have to be compiled."""
QUICK_VARIABLE = "SPINBENCH_DOCS_QUICK"
"""Set for `mkdocs serve`, say, it spares each build the ten seconds that the cells take: they have no outputs then."""


def files() -> dict[str, str | bytes]:
    """The page and its pictures, by their places in the documentation."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    return rendered(notebook if os.environ.get(QUICK_VARIABLE) else executed(notebook))


def executed(notebook: NotebookNode) -> NotebookNode:
    """The notebook with its outputs, of a kernel that runs in a folder of its own.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell raises.
    """
    variables = {name: value for name, value in os.environ.items() if name != "MPLBACKEND"}  # pictures are outputs
    with tempfile.TemporaryDirectory() as folder:
        place = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=TIMEOUT, kernel_name="python3", resources=place).execute(env=variables)
    return notebook


def rendered(notebook: NotebookNode) -> dict[str, str | bytes]:
    """An executed notebook, as `files` has it."""
    pictures: dict[str, str | bytes] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts += [_fenced(cell.source, "python"), *_outputs(cell, pictures)]
    parts.append(f"[This page as a notebook]({NOTEBOOK.name})")
    return {f"{NOTEBOOK.stem}.md": "\n\n".join(parts) + "\n", **pictures}


def _outputs(cell: NotebookNode, pictures: dict[str, str | bytes]) -> Iterator[str]:
    """Each in the richest of the forms that it has."""
    for output in cell.outputs:
        data = output.get("data", {})
        if output.output_type == "stream":
            yield _fenced(output.text, "text")
        elif "image/png" in data:
            name = f"{NOTEBOOK.stem}-{len(pictures) + 1}.png"
            pictures[name] = base64.b64decode(data["image/png"])
            yield f"![What the cell draws]({name})"
        elif "text/html" in data:
            yield f'<div class="output">{data["text/html"]}</div>'
        else:
            yield _fenced(data["text/plain"], "text")


def _fenced(text: str, language: str) -> str:
    return f"```{language}\n{text.rstrip()}\n```"
