"""Line coverage of each folder: `python benchmarks/coverage_by_folder.py RECORD_DIR`, JSON on standard output.

RECORD_DIR holds `coverage.json`, which `coverage json` writes, and `durations.jsonl` (benchmarks/frozen/README.md).
Bodies of functions that Numba compiles run outside Python and count as not covered, though the tests run them: how many
of a folder's statements these are stands beside.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
TOTALS = ("statements", "covered", "compiled", "covered of compiled")


def numba_lines(file: str) -> set[int]:
    """Lines of the bodies of functions that a decorator of Numba compiles, by its name."""
    lines = set[int]()
    if not file.startswith("backends/numba/"):
        return lines
    for node in ast.walk(ast.parse((ROOT / file).read_bytes())):
        if isinstance(node, ast.FunctionDef) and any("jit" in ast.unparse(d).lower() for d in node.decorator_list):
            lines.update(range(node.body[0].lineno, (node.end_lineno or 0) + 1))
    return lines


def count_tests(folder: Path) -> dict[str, int]:
    """How many tests ended, and how many of them failed."""
    phases = [json.loads(line) for line in (folder / "durations.jsonl").read_text(encoding="utf-8").splitlines()]
    failed = {test for test, _, _, outcome in phases if outcome == "failed"}
    return {"tests": len({test for test, phase, _, _ in phases if phase == "teardown"}), "failed": len(failed)}


def main(records: Path) -> None:
    """Print the table, of each folder with all below it."""
    totals: dict[str, dict[str, int]] = defaultdict(lambda: dict.fromkeys(TOTALS, 0))
    for name, file_coverage in json.loads((records / "coverage.json").read_text())["files"].items():
        compiled = numba_lines(name)
        covered, missed = set(file_coverage["executed_lines"]), set(file_coverage["missing_lines"])
        counts = len(covered | missed), len(covered), len((covered | missed) & compiled), len(covered & compiled)
        for folder in ["all", *map(str, Path(name).parents)][:-1]:
            for total, count in zip(TOTALS, counts, strict=True):
                totals[folder][total] += count
    folders = dict[str, dict[str, float]]()
    for folder, of_folder in sorted(totals.items()):
        python = of_folder["statements"] - of_folder["compiled"]
        share = (of_folder["covered"] - of_folder["covered of compiled"]) / python if python else 1.0
        folders[folder] = {**of_folder, "percent of Python": round(100 * share, 1)}
    commit = subprocess.check_output(["git", "describe", "--always", "--abbrev=12"], cwd=ROOT, text=True).strip()
    compiled_folders = [folder for folder, of_folder in sorted(totals.items()) if of_folder["compiled"]]
    run: dict[str, Any] = {"commit": commit, **count_tests(records), "folders with compiled code": compiled_folders}
    print(json.dumps({"run": run, "folders": folders}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
