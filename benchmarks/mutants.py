"""Small faults, one at a time, and whether the tests notice: mutants by the syntax tree, spread over all folders.

    python benchmarks/mutants.py RECORD_DIR --output benchmarks/frozen/mutants.csv --seconds 3600

RECORD_DIR holds `.coverage` and `durations.jsonl` of one run of all tests (benchmarks/frozen/README.md). A mutant is
tried in a copy of the committed tree against tests that ran its line. Numba's compiled code is not seen by coverage:
there it is tests of the mirrored folders, and of Python code beside it. Mutants that the output lists are skipped, so
that a run can be continued; their order is random.
"""

from __future__ import annotations

import argparse
import ast
import csv
import itertools
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import NamedTuple

from records import Records, read_records

ROOT = Path(__file__).resolve().parents[1]
MIN_PER_FOLDER = 3
MAX_TESTS, MAX_TEST_SECONDS, TIMEOUT_SECONDS = 40, 30.0, 120.0
NUMBA = "backends/numba/"
COLUMNS = ("file", "line", "column", "change", "outcome", "tests", "seconds", "killer")
PAIRS: tuple[tuple[type, type], ...] = (
    *((ast.Lt, ast.GtE), (ast.Gt, ast.LtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot), (ast.In, ast.NotIn)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.Div)),
)
SWAPS = {old: new for pair in PAIRS for old, new in (pair, pair[::-1])} | {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult}


class Mutant(NamedTuple):
    file: str
    line: int
    column: int
    change: str
    statement: int  # first line of the enclosing statement
    source: str  # text of the whole mutated file


def walk_with_statement(tree: ast.AST, statement: int = 0) -> Iterator[tuple[ast.expr | ast.stmt, int]]:
    """Nodes and the lines of their statements; not annotations, decorators, and f-strings, which lack positions."""
    for name, value in ast.iter_fields(tree):
        for child in value if isinstance(value, list) else [value]:
            if name in ("annotation", "returns", "decorator_list") or not isinstance(child, ast.AST):
                continue
            line = child.lineno if isinstance(child, ast.stmt) else statement
            if isinstance(child, ast.expr | ast.stmt):
                yield child, line
            if not isinstance(child, ast.JoinedStr):
                yield from walk_with_statement(child, line)


def mutate_node(node: ast.AST) -> tuple[str, str] | None:
    """(kind, new source) of a mutant of a node."""
    match node:
        case ast.Compare(left=left, ops=[op, *others], comparators=right):
            return "comparison", f"({ast.unparse(ast.Compare(left, [SWAPS[type(op)](), *others], right))})"
        case ast.BinOp(left=ast.JoinedStr() | ast.Constant(value=str())) | ast.BinOp(right=ast.JoinedStr()):
            return None  # strings are not mutated
        case ast.BinOp(op=op) | ast.AugAssign(op=op) | ast.BoolOp(op=op) if type(op) in SWAPS:
            new = ast.unparse(type(node)(**{**dict(ast.iter_fields(node)), "op": SWAPS[type(op)]()}))
            kind = "and/or" if isinstance(node, ast.BoolOp) else "arithmetic"
            return kind, new if isinstance(node, ast.AugAssign) else f"({new})"
        case ast.Constant(value=bool(value)):
            return "boolean", repr(not value)
        case ast.Constant(value=int(value) | float(value)):
            return "constant", repr(value + 1)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return "not", f"({ast.unparse(operand)})"
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            return "return", "return None"
    return None


def list_mutants(file: str) -> Iterator[Mutant]:
    """All mutants of a file, in its order."""
    text = (ROOT / file).read_bytes()
    lines = text.splitlines(keepends=True)
    for node, statement in walk_with_statement(ast.parse(text)):
        if mutation := mutate_node(node):
            begin = len(b"".join(lines[: node.lineno - 1])) + node.col_offset
            end = len(b"".join(lines[: (node.end_lineno or 0) - 1])) + (node.end_col_offset or 0)
            source = (text[:begin] + mutation[1].encode() + text[end:]).decode()
            description = f"{mutation[0]}: {ast.unparse(node)[:60]} -> {mutation[1][:60]}".replace("\n", " ")
            yield Mutant(file, node.lineno, node.col_offset, description, statement, source)


def tree_part(file: str) -> str:
    """The part of the tree that a mutant counts for: two levels, three of Numba's."""
    return "/".join(Path(file).parent.parts[: 3 if file.startswith(NUMBA) else 2])


def count_statements(file: str) -> int:
    return sum(isinstance(node, ast.stmt) for node in ast.walk(ast.parse((ROOT / file).read_bytes())))


def sample_mutants(count: int, seed: int) -> list[Mutant]:
    """About so many in random order, of each folder in proportion to its statements, each kind of change as likely."""
    rng, mutants = random.Random(seed), dict[tuple[object, ...], Mutant]()
    command = ["git", "ls-files", *(f"{top}/*.py" for top in ("harness", "methods", "backends"))]
    folders = defaultdict[str, list[str]](list)
    for file in subprocess.check_output(command, cwd=ROOT, text=True).split():
        folders[tree_part(file)].append(file)
    sizes = {folder: sum(map(count_statements, files)) for folder, files in folders.items()}
    for folder, files in folders.items():
        kinds = defaultdict[str, list[Mutant]](list)
        for mutant in itertools.chain.from_iterable(map(list_mutants, files)):
            kinds[mutant.change.partition(":")[0]].append(mutant)
        for _ in range(max(MIN_PER_FOLDER, round(count * sizes[folder] / sum(sizes.values()))) if kinds else 0):
            mutant = rng.choice(kinds[rng.choice(sorted(kinds))])
            mutants[mutant[:4]] = mutant
    return rng.sample(list(mutants.values()), len(mutants))


def select_tests(mutant: Mutant, records: Records) -> list[str]:
    """Those of the mirrored folders first, then one of each file in turn, the fastest first."""
    folder, lines = tree_part(mutant.file), records.tests[mutant.file]
    same_method = "/".join(("methods", Path(folder).name)) if mutant.file.startswith(NUMBA) else folder
    mirrored = f"tests/{folder}/", f"tests/{same_method}/"
    tests = lines.get(mutant.statement, set()) | lines.get(mutant.line, set())
    if not tests and (mutant.statement in lines or mutant.line in lines):  # run on import and not by a test
        tests = set().union(*lines.values())
    if not tests and mutant.file.startswith(NUMBA):
        beside = (lines for file, lines in records.tests.items() if file.startswith(f"{folder}/"))
        tests = set().union(*(ran_by for lines in beside for ran_by in lines.values()))
        tests |= {test for test in records.seconds if test.startswith(mirrored[0])}
    ranks, keys = defaultdict[str, int](int), dict[str, tuple[bool, int, float]]()
    for test in sorted(tests, key=lambda test: (records.seconds[test], test)):
        file = test.partition("::")[0]
        keys[test] = (not file.startswith(mirrored), ranks[file], records.seconds[test])
        ranks[file] += 1
    chosen, seconds = list[str](), 0.0
    for test in sorted(keys, key=keys.__getitem__):
        if len(chosen) < MAX_TESTS and (not chosen or seconds + records.seconds[test] <= MAX_TEST_SECONDS):
            chosen.append(test)
            seconds += records.seconds[test]
    return chosen


def make_scratch_clone(folder: Path, cache: Path | None) -> Path:
    """A clone, and beside it the package under its import name, which comes before what is installed."""
    tree, site = folder / "tree", folder / "site" / "spinbench"
    subprocess.run(["git", "clone", "--quiet", "--shared", ROOT, tree], check=True)
    site.mkdir(parents=True)
    for part in [*(tree / "harness").iterdir(), *(tree / top for top in ("backends", "methods", "conf"))]:
        (site / part.name).symlink_to(part)
    if cache:
        shutil.copytree(cache, folder / "cache")
    return folder


def try_mutant(mutant: Mutant, tests: list[str], scratch: Path) -> tuple[str, str]:
    """(outcome, the test that failed); compiled code gets an empty cache, as all kernels compile anew."""
    tree, file = scratch / "tree", scratch / "tree" / mutant.file
    original = file.read_bytes()
    # tests that need a clean checkout must not see the mutated file as changed
    subprocess.run(["git", "update-index", "--assume-unchanged", mutant.file], cwd=tree, check=True)
    limit = ["timeout", "--kill-after=5", str(TIMEOUT_SECONDS)]
    command = [*limit, sys.executable, "-m", "pytest", "-x", "-q", "-n0", "-p", "no:cacheprovider", *tests]
    with tempfile.TemporaryDirectory(dir=scratch) as empty:
        cache = empty if mutant.file.startswith(NUMBA) else str(scratch / "cache")
        variables = {**os.environ, "PYTHONPATH": str(scratch / "site"), "SPINBENCH_CACHE_DIR": cache}
        file.write_text(mutant.source, encoding="utf-8")
        done = subprocess.run(command, cwd=tree, env=variables, capture_output=True, text=True, check=False)
        file.write_bytes(original)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    killer = next(iter(failed), "").partition(" ")[2].partition(" - ")[0]
    outcomes = {0: "survived", 124: "timeout", 137: "timeout", -9: "timeout"}
    return outcomes.get(done.returncode, "killed"), killer


def main() -> None:
    """Tries mutants until all are done or the time is up."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", type=Path, help="folder with .coverage and durations.jsonl")
    parser.add_argument("--output", type=Path, required=True, help="a CSV file that rows are appended to")
    parser.add_argument("--cache", type=Path, help="a warm SPINBENCH_CACHE_DIR that each process gets a copy of")
    for name, default in {"count": 300, "seed": 0, "processes": 2, "seconds": 3600}.items():
        parser.add_argument(f"--{name}", type=int, default=default, help=f"{default} unless given")
    options = parser.parse_args()
    records, until = read_records(options.records), time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder, options.output.open("a+", encoding="utf-8", newline="") as output:
        output.seek(0)
        done = {(row["file"], row["line"], row["column"], row["change"]) for row in csv.DictReader(output)}
        writer = csv.writer(output, lineterminator="\n")
        if not output.tell():
            writer.writerow(COLUMNS)
        scratches = SimpleQueue[Path]()
        for number in range(options.processes):
            scratches.put(make_scratch_clone(Path(folder, str(number)), options.cache))

        def attempt(mutant: Mutant) -> None:
            if tuple(map(str, mutant[:4])) in done or time.monotonic() > until:
                return
            tests, scratch, since = select_tests(mutant, records), scratches.get(), time.monotonic()
            outcome, killer = try_mutant(mutant, tests, scratch) if tests else ("not covered", "")
            scratches.put(scratch)
            writer.writerow((*mutant[:4], outcome, len(tests), round(time.monotonic() - since, 1), killer))
            output.flush()

        with ThreadPoolExecutor(options.processes) as pool:
            list(pool.map(attempt, sample_mutants(options.count, options.seed)))


if __name__ == "__main__":
    main()
