"""Pages whose commands are followed as they stand, the tutorial, the README's example, and those of the help texts."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from fresh_environment import fresh_environment
from markdown_blocks import DOCS, ROOT, Block, blocks, check_printed, commands
from small_sweeps import stored

import spinbench
from spinbench.command_help import COMMANDS
from spinbench.models import generators

COMPARING = DOCS / "how-to" / "compare-methods.md"


def test_its_commands_and_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SPINBENCH_HISTORY", str(tmp_path))
    spinbench.save(generators.grid(3, 3, seed=1), "my.uai")
    source = ""
    printed = io.StringIO()
    for block in blocks(COMPARING):
        if block.language == "sh":
            done = subprocess.run(["bash", "-ec", block.tested], capture_output=True, text=True, check=False)
            assert done.returncode == 0, f"line {block.line}: {done.stdout}{done.stderr}"
        else:
            source += block.text
            with contextlib.redirect_stdout(printed):
                exec(compile(block.text, str(COMPARING), "exec"), {"__name__": "page"})
    check_printed(source, printed.getvalue())
    assert len([*Path("multirun/compare/records").glob("*.json")]) == 8


OWN_MODEL = DOCS / "how-to" / "own-model.md"


def section(heading: str) -> list[Block]:
    """The blocks below a heading."""
    lines = OWN_MODEL.read_text(encoding="utf-8").splitlines()
    begin = lines.index(f"## {heading}")
    end = next(place for place in range(begin + 1, len(lines)) if lines[place].startswith("## "))
    return [one for one in blocks(OWN_MODEL) if begin < one.line <= end]


@pytest.mark.parametrize("files", [5, 200])
def test_its_commands(files: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    python, shell = section("Two hundred files")
    exec(python.text.replace("range(200)", f"range({files})"), {})
    assert len([*Path("many").iterdir()]) == files
    done = subprocess.run(["bash", "-ec", shell.text], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    records = stored(Path("multirun/many"))
    assert len(records) == 2 * files
    assert {record["status"] for record in records} <= {"ok", "oversubscribed", "marginals too short"}
    assert f"RMSE of the marginals after 500 samples, {files} models" in done.stdout
    assert f"{files} models" in Path("board.md").read_text(encoding="utf-8")
    assert "many/003.uai" in done.stdout


# What takes minutes, a network or both.
OMITTED = {"sweep", "warm", "check", "peers", "publish"}
CELLS = "method=gibbs backend=numpy budget=samples budget.samples=100"


def shell(script: str, folder: Path, allowed: tuple[int, ...] = (0,)) -> None:
    environment = {**os.environ, "SPINBENCH_HISTORY": str(folder), "COLUMNS": "150"}
    for person in ("AUTHOR", "COMMITTER"):
        environment |= {f"GIT_{person}_NAME": "reader", f"GIT_{person}_EMAIL": "reader@localhost"}
    done = subprocess.run(
        ["bash", "-ec", script], cwd=folder, env=environment, capture_output=True, text=True, timeout=280, check=False
    )
    assert done.returncode in allowed, f"{script}\n{done.stdout}{done.stderr}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository with a history over seven commits, a sweep's records, models and samples."""
    folder = tmp_path_factory.mktemp("reader")
    model = generators.grid(3, 3, seed=1)
    spinbench.save(model, folder / "my.uai")
    for name in ("models/a.uai", "data/a.uai", "data/b.uai", "model.uai"):
        (folder / name).parent.mkdir(exist_ok=True)
        shutil.copy(folder / "my.uai", folder / name)
    for name in ("my", "model"):
        (folder / f"{name}.uai.evid").write_text("1 0 1\n")
    states = spinbench.run(model, "gibbs", "numpy", 1000, keep=100).states
    np.savez(folder / "samples.npz", states=states)
    names = ",".join(f"x{variable}" for variable in range(model.num_variables))
    np.savetxt(folder / "samples.csv", states.reshape(-1, model.num_variables), "%d", ",", header=names, comments="")
    (folder / ".gitignore").write_text("*\n!asv.conf.json\n!benchmarks\n")
    shell("git init -q -b main && spinbench init . && git add -A && git commit -q -m first", folder)
    shell("for n in 1 2 3 4 5; do git commit -q --allow-empty -m $n; done", folder)
    shell(f"spinbench sweep -m model=grid model.rows=3 {CELLS} sweep_dir=multirun/before", folder)
    shell("git commit -q --allow-empty -m last", folder)
    shell(f"spinbench sweep -m model=grid model.rows=3 {CELLS} sweep_dir=multirun/tour", folder)
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*COMMANDS} - OMITTED))
def test_example_runs(name: str, folder: Path) -> None:
    shell(f"spinbench {name} {COMMANDS[name].example}", folder)


# Pages whose commands for spinbench run one by one, and what replaces words of theirs: names that the reader has, and
# what makes a command take seconds. Compiled kernels have tests of their own.
RUN_LINE_BY_LINE = (
    "index.md",
    "explanations/brackets.md",
    "explanations/mixing.md",
    "how-to/audit-samples.md",
    "how-to/own-model.md",
    "how-to/report.md",
    "how-to/search.md",
)
REPLACED = (
    (r"--budget \S+", "--budget 3s"),
    (r"multirun/(?:DATE_TIME|\d[\d_-]+|field|after)", "multirun/tour"),
    (r"\b0ccdeb\b", '"$(ls multirun/tour/records/*.json | head -1)"'),
    (r"^spinbench run .*", r"\g<0> --backend numpy"),
    (r"backend=\S+", "backend=numpy"),
    (r"^(spinbench sweep -m model=file .*)", r"\1 budget=samples budget.samples=100"),
)
# They take minutes, a network or records of other models, or another test runs them.
ELSEWHERE = ("experiment=", "publish", "many", "history", "gate", "--candidates", "--model")


def quick_lines(page: str) -> list[str]:
    """The commands of a page that run here, as they run here."""
    lines = [line for block in blocks(DOCS / page) if block.language == "sh" for line in commands(block)]
    lines = [line for line in lines if not any(word in line for word in ELSEWHERE)]
    for pattern, replacement in REPLACED:
        lines = [re.sub(pattern, replacement, line) for line in lines]
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("page", RUN_LINE_BY_LINE)
def test_commands_of_a_page_run(page: str, folder: Path) -> None:
    lines = quick_lines(page)
    assert lines
    for line in lines:
        # 1: done, but in so few seconds the answer is not good
        shell(line, folder, allowed=(0, 1))


TUTORIAL = [one for one in blocks(DOCS / "tutorial.md") if one.language in ("sh", "python")]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that stands for the clone, with the reader's own beside it."""
    clone = tmp_path_factory.mktemp("reader") / "spinbench"
    clone.mkdir()
    (clone / "docs").symlink_to(DOCS)
    return clone


@pytest.fixture(scope="module")
def environment(place: Path) -> dict[str, str]:
    pytest.importorskip("pip")
    made = fresh_environment(place.parent / "environment")
    return {**made, "SPINBENCH_HISTORY": str(place), "COLUMNS": "150"}  # writes no history


def run_block(block: Block, place: Path, environment: dict[str, str]) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.tested],
        cwd=place,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, f"line {block.line}: {block.tested}\n{done.stdout}{done.stderr}"
    return done.stdout


@pytest.mark.slow
def test_every_block_runs(place: Path, environment: dict[str, str]) -> None:
    """In order; Python at the end, since it needs no more than a file that the shell writes."""
    said = [run_block(one, place, environment) for one in TUTORIAL if one.language == "sh" and not one.skipped]
    assert any("gibbs on numba" in text for text in said)
    assert (place / "multirun" / "tour" / "report" / "report.html").exists()
    assert any(text.count("mine") >= 1 and " 0 failed" in text for text in said)
    source = "".join(one.text for one in TUTORIAL if one.language == "python")
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=place, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    check_printed(source, done.stdout)


README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_prints_what_its_comment_says() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "README.md", "exec"), {})
    lines = printed.getvalue().splitlines()
    assert float(lines[0]) == pytest.approx(-23.6872070585, rel=1e-9)
    log_z, error, kind = float(lines[1].split()[0]), float(lines[1].split()[2]), lines[1].split()[3]
    assert kind == "estimate"
    assert abs(log_z + 23.6872070585) < 5 * error


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#]+)\)", README)) - {""}))
def test_links_lead_somewhere(target: str) -> None:
    assert target.startswith("https://") or (ROOT / target).exists()
