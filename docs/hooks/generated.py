"""What is generated while the site is built.

Pages from plugins' classes, conf/*.yaml, the command's parser and the notebook, which is executed; places in the
navigation for pages that mkdocs.yml does not name.
"""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path
from typing import Any

import command_line_page
import configuration_page
import methods_page
import notebook_page
import records_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File, Files

PAGES = {
    "reference/methods.md": methods_page.text,
    "reference/configuration.md": configuration_page.text,
    "reference/command-line.md": command_line_page.text,
    "reference/records.md": records_page.text,
}
ROOT = Path(__file__).resolve().parents[2]
SECTIONS = {"how-to": "How to", "reference": "Reference"}
"""Where the navigation shows a folder's pages; those of other folders explain."""


@event_priority(100)  # before mkdocstrings reads its options
def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Shows mkdocstrings, which reads source and not objects, the package under its import name."""
    options: dict[str, Any] = config.plugins["mkdocstrings"].config["handlers"].setdefault("python", {})
    options["paths"] = [str(package_tree())]
    _complete(config["nav"], Path(config["docs_dir"]))
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the generated pages."""
    for name, text in PAGES.items():
        files.append(File.generated(config, name, content=text()))
    for name, content in notebook_page.files().items():
        files.append(File.generated(config, name, content=content))
    return files


def _complete(nav: list[dict[str, Any]], docs: Path) -> None:
    """Appends pages that no entry names to their sections, under their own titles."""
    sections = {title: part for entry in nav for title, part in entry.items() if isinstance(part, list)}
    named = {path for entry in nav for part in entry.values() for path in _paths(part)}
    for page in sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*.md")):
        if page not in named:
            sections[SECTIONS.get(page.partition("/")[0], "Explanations")].append(page)


def _paths(part: Any) -> list[str]:
    """Of an entry of the navigation: a page, or a list of titled pages."""
    return [part] if isinstance(part, str) else [path for entry in part for path in entry.values()]


def package_tree() -> Path:
    """A folder in which `spinbench` holds links to the folders of the checkout; removed at exit."""
    tree = Path(tempfile.mkdtemp(prefix="spinbench-docs-"))
    atexit.register(shutil.rmtree, tree, ignore_errors=True)
    package = tree / "spinbench"
    package.mkdir()
    for source in (*(ROOT / "harness").iterdir(), ROOT / "backends", ROOT / "methods", ROOT / "conf"):
        (package / source.name).symlink_to(source)
    return tree
