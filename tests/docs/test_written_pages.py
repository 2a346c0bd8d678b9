"""Pages of benchmarks, of UAI-2014, of records and of the floors are what scripts, records and contracts say."""

from __future__ import annotations

import csv
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from types import CodeType, FrameType
from typing import Any

import pytest
from markdown_blocks import DOCS, ROOT, page_name_patterns

import spinbench
from spinbench import cli
from spinbench.foundation import plugins
from spinbench.models import generators


def test_the_page_is_written_by_its_command() -> None:
    command = [sys.executable, "-X", "utf8", ROOT / "benchmarks" / "page.py"]
    written = subprocess.run(command, capture_output=True, check=True).stdout.decode()
    assert written == (DOCS / "benchmarks.md").read_text(encoding="utf-8")


def test_the_page_of_a_table(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    folder, table, published = tmp_path / "models", tmp_path / "answers.csv", tmp_path / "published.csv"
    folder.mkdir()
    for seed in range(3):
        spinbench.save(generators.grid(3, 3, seed=seed), folder / f"m{seed}.uai")
    (folder / "m3.uai").write_text("MARKOV 1")
    assert cli.main(["exact", str(folder), "--output", str(table)]) == 1
    log10 = [spinbench.exact(spinbench.load(folder / f"m{seed}.uai")).log_z / 2.302585093 for seed in range(3)]
    published.write_text(f"model,log10_partition\nm0,{log10[0]:.4f}\nm1,{log10[1] + 1:.4f}\nm9,1.5\n")
    script = ROOT / "benchmarks" / "uai14_exact.py"
    done = subprocess.run([sys.executable, script, table, published], capture_output=True, text=True, check=True)
    assert "| models in the table, of 3 published | 4 |\n| answered | 3 |\n" in done.stdout
    assert "| log10 Z equal to the published value, to its digits | 1 of 2 |" in done.stdout
    lines = [line for line in done.stdout.splitlines() if line.startswith(("| m0", "| m1", "| m2", "| m3"))]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines]
    assert [len(row) for row in rows] == [12] * 4
    assert [row[3] for row in rows] == [f"{log10[0]:.4f}", f"{log10[1] + 1:.4f}", "–", "–"]
    assert rows[3][1] == "failed"
    assert float(rows[1][4]) < -0.99


def test_the_page_has_the_columns_that_the_script_writes() -> None:
    page = (DOCS / "uai14.md").read_text(encoding="utf-8")
    assert page.startswith("# UAI-2014 MAR, exactly\n")
    assert "| model | log Z | log10 Z | published log10 Z | difference | solver | width | log2 entries |" in page


def test_each_column_is_on_the_page(tmp_path: Path) -> None:
    patterns = page_name_patterns("records_page")
    words = ["model=grid", "model.rows=3", "method=gibbs", "backend=numpy", "budget=samples", "budget.samples=20"]
    folder = spinbench.sweep(*words, f"sweep_dir={tmp_path}")
    columns = set(spinbench.read(folder, kind="arrow").column_names)
    assert cli.main(["report", "--tables", str(folder)]) == 0
    for name in ("cells", "leaderboard", "trajectories"):
        with (tmp_path / "report" / f"{name}.csv").open(encoding="utf-8") as file:
            columns |= set(next(csv.reader(file)))
    columns -= {"model", "method", "backend", "seed"}  # labels, which the page has in words
    assert [name for name in columns if not any(pattern.fullmatch(name) for pattern in patterns)] == []


FLOORS = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_table_has_the_floors_of_the_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    (layers,) = (contract["layers"] for contract in contracts if contract["type"] == "layers")
    table = _section("# The shape of spinbench").partition("|---|---|")[2]
    paths = [ROOT / path for path in re.findall(r"^\| `([^`]+)` \|", table, re.MULTILINE)]
    assert [path.name.removesuffix(".py") for path in paths] == [
        name for layer in layers for name in layer.split(" | ")
    ]
    assert all(path.exists() for path in paths)


def test_the_walk_enters_each_room_as_the_page_says(tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    spinbench.save(generators.grid(6, 6, seed=1), path)

    def walk() -> None:
        spinbench.run(spinbench.load(path), method="gibbs", backend="numba", budget=100)

    walk()  # imports and compiles
    plugins.forget()  # which are looked up once in a process
    written = [_room(line) for line in re.findall(r"^\d+\. `([^`]+)`", _section("## A walk"), re.MULTILINE)]
    assert len(written) == 14
    assert list(dict.fromkeys(_room(file) for file in _entered(walk))) == written


def test_a_run_enters_no_more_functions_than_it_does() -> None:
    """A reader has to follow each: less is welcome, and the number here goes down with them."""
    model = generators.grid(4, 4, seed=0)

    def walk() -> None:
        spinbench.run(model, "gibbs", "numpy", 50, seed=0)

    walk()
    most = 300 if sys.version_info >= (3, 12) else 332  # comprehensions are functions before 3.12
    assert len(_called(walk)) <= most


def _entered(walk: Callable[[], None]) -> list[str]:
    """Files of the checkout whose functions are called, in the order of their first calls."""
    return list(dict.fromkeys(Path(code.co_filename).relative_to(ROOT).as_posix() for code in _called(walk)))


def _called(walk: Callable[[], None]) -> list[CodeType]:
    """Functions of the checkout, but for tests and an environment in it, in the order of their first calls."""
    found: dict[CodeType, None] = {}

    def look(frame: FrameType, event: str, argument: Any) -> None:
        file = Path(frame.f_code.co_filename)
        others = map(file.is_relative_to, (ROOT / "tests", sys.prefix))
        if event == "call" and file.is_relative_to(ROOT) and not any(others):
            found.setdefault(frame.f_code)

    before = sys.getprofile()
    sys.setprofile(look)
    try:
        walk()
    finally:
        sys.setprofile(before)
    return list(found)


def _room(path: str) -> str:
    """A folder; models are one room with their files."""
    place = PurePosixPath(path)
    folder = place.parent if place.suffix else place
    return "harness/models" if folder.is_relative_to("harness/models") else str(folder)


def _section(title: str) -> str:
    """Of the page, up to the next heading."""
    return re.split(r"^#+ ", FLOORS.partition(f"{title}\n")[2], maxsplit=1, flags=re.MULTILINE)[0]


def test_all_are_collected() -> None:
    command = [sys.executable, "-m", "pytest", "benchmarks", "-p", "no:cacheprovider", "--collect-only", "-q"]
    # pytest-benchmark does not time in what looks like a worker of pytest-xdist
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_XDIST")}
    done = subprocess.run(command, cwd=ROOT, env=variables, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_scaling.py::test_slope[chains]" in done.stdout
    assert "test_scaling.py::test_gauged" in done.stdout
