"""The site builds without a warning; in the built pages no link is dead and nothing is loaded from another host."""

from __future__ import annotations

import html
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urldefrag, urlsplit

import pytest
import yaml
from markdown_blocks import ROOT

pytest.importorskip("mkdocs", reason="the site needs pip install -e '.[docs]'")
pytest.importorskip("material", reason="the site needs pip install -e '.[docs]'")

LOADING = {
    "script": "src",
    "img": "src",
    "iframe": "src",
    "source": "src",
    "video": "src",
    "audio": "src",
    "embed": "src",
}
LOADING_LINKS = {"stylesheet", "icon", "preload", "prefetch", "preconnect", "dns-prefetch", "modulepreload", "manifest"}


@dataclass
class Page(HTMLParser):
    """What a page refers to: `links` a reader follows, `loads` a browser fetches, `anchors` others may link to."""

    links: set[str] = field(default_factory=set)
    loads: set[str] = field(default_factory=set)
    anchors: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.add(found["href"])
        if tag in LOADING and found.get(LOADING[tag]):
            self.loads.add(found[LOADING[tag]])
        if tag == "link" and set(found.get("rel", "").split()) & LOADING_LINKS:
            self.loads.add(found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    variables = {**os.environ, "SPINBENCH_DOCS_QUICK": "1"}  # test_notebook.py executes the notebook
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Page]:
    found = {}
    for path in sorted(site.rglob("*.html")):
        found[path] = Page()
        found[path].feed(path.read_text(encoding="utf-8"))
    return found


def test_all_pages_are_there(site: Path) -> None:
    built = {path.relative_to(site).as_posix() for path in site.rglob("*.html")}
    sources = {
        path.relative_to(ROOT / "docs").with_suffix(".html").as_posix() for path in (ROOT / "docs").rglob("*.md")
    }
    assert sources <= built
    assert {
        "reference/methods.html",
        "reference/configuration.html",
        "reference/command-line.html",
        "example.html",
    } <= built


def test_all_pages_are_in_the_navigation(site: Path, pages: dict[Path, Page]) -> None:
    links = {urldefrag(link)[0] for link in pages[site / "index.html"].links} | {"index.html", "404.html"}
    assert {path.relative_to(site).as_posix() for path in pages} <= links


def test_no_link_is_dead(site: Path, pages: dict[Path, Page]) -> None:
    dead = []
    for path, page in pages.items():
        if path.name == "404.html":  # served for any address, so its links begin with /
            continue
        for link in sorted(page.links | page.loads):
            if urlsplit(link).scheme or link.startswith("//"):
                continue
            address, anchor = urldefrag(link)
            target = (path.parent / unquote(address.partition("?")[0])).resolve() if address else path
            if target.is_dir():
                target /= "index.html"
            if not target.exists():
                dead.append(f"{path.relative_to(site)}: {link}")
            elif anchor and target in pages and unquote(anchor) not in pages[target].anchors:
                dead.append(f"{path.relative_to(site)}: {link} (no such anchor)")
    assert dead == []


def test_nothing_comes_from_another_host(site: Path, pages: dict[Path, Page]) -> None:
    foreign = {load for page in pages.values() for load in page.loads if urlsplit(load).netloc}
    assert foreign == set()
    sheets = [path.read_text(encoding="utf-8") for path in site.rglob("*.css")]
    assert sheets
    assert not any(
        word in sheet for sheet in sheets for word in ("@import", "url(http", "url(//", 'url("http', "url('http")
    )


def test_the_reference_holds_what_it_is_generated_from(site: Path) -> None:
    configuration = (site / "reference" / "configuration.html").read_text(encoding="utf-8")
    options = [
        path.relative_to(ROOT / "conf") for path in (ROOT / "conf").rglob("*.yaml") if path.parent != ROOT / "conf"
    ]
    assert [path for path in options if _named(path) not in configuration] == []
    presets = yaml.safe_load((ROOT / "conf" / "presets.yaml").read_text(encoding="utf-8"))
    assert [name for group in presets.values() for name in group if name not in configuration] == []
    assert all(f"{group}={name}" in configuration for group, name in (("model", "grid"), ("backend", "jax")))
    assert "rao_blackwell" in configuration
    python = (site / "reference" / "python.html").read_text(encoding="utf-8")
    assert all(f'id="spinbench.{name}"' in python for name in ("load", "save", "run", "exact", "compare", "Result"))
    methods = (site / "reference" / "methods.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in methods for name in ("gibbs", "dhmc", "bp", "exact"))
    assert "leapfrog_steps" in methods
    command_line = (site / "reference" / "command-line.html").read_text(encoding="utf-8")
    assert all(f'id="{name}"' in command_line for name in ("sweep", "list", "report", "gate", "check"))


def test_signatures_are_broken_into_lines(site: Path) -> None:
    docs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert any(name.startswith("ruff") for name in docs["docs"])
    page = (site / "reference" / "python.html").read_text(encoding="utf-8")
    blocks = re.findall(r'<div class="[^"]*doc-signature.*?</pre>', page, re.DOTALL)
    assert blocks
    lines = [line for block in blocks for line in html.unescape(re.sub("<.*?>", "", block)).splitlines()]
    assert [line for line in lines if len(line) > 100] == []


def test_the_floors_are_drawn(site: Path) -> None:
    page = (site / "architecture.html").read_text(encoding="utf-8")
    picture = page.partition('<figure class="floors"><svg')[2].partition("</svg>")[0]
    assert all(f">{name}</text>" in picture for name in ("cli", "measuring", "inference", "backends", "errors"))
    assert picture.count("<circle") > 40
    assert "sweeping imports from measuring" in picture


def test_mathematics_is_rendered(site: Path) -> None:
    page = (site / "explanations" / "relaxation.html").read_text(encoding="utf-8")
    assert page.count('<span class="formula"><svg') > 20
    assert page.count('<div class="formula"><svg') > 2
    assert "$" not in page.partition("<article")[2].partition("</article")[0]
    assert "arithmatex" not in page


def _named(path: Path) -> str:
    """An option as the page of configurations writes it: GROUP=NAME."""
    return f"{path.parts[0]}={path.relative_to(path.parts[0]).with_suffix('').as_posix()}"
