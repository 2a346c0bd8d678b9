"""`spinbench sweep … commits=RANGE`: the same cells at several commits, each of its own build.

Seeds are measured one after another and, within a seed, the commits in turn, there and back, so that a machine that
grows slower does so for all of them. What was measured enters the history at once, not when all is done.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from rich.console import Console

from spinbench.errors import HistoryError, SpinbenchError
from spinbench.foundation import git, interruptions, remarks
from spinbench.foundation.overrides import quote
from spinbench.history import builds, recorder
from spinbench.measuring import environment, records
from spinbench.measuring.record_types import Record
from spinbench.reporting import progress_display
from spinbench.reporting.past import verdicts
from spinbench.sweeping import composition
from spinbench.sweeping.arguments import Arguments
from spinbench.sweeping.sweep import open_folder

PICTURE = "commits.png"
# File in a child sweep's folder with its output.
TOLD = "output.txt"
# Seconds that a child sweep may take to end after an interruption.
PATIENCE = 30.0


@dataclass
class _Version:
    """A commit of the sweep.

    Attributes:
        build: of it.
        title: abbreviated hash and the first line of its message.
        lacks: what it cannot be asked for, with its own words, once it was asked.
        folders: of its child sweeps.
        foreign: whether it files results under another commit.
    """

    build: builds.Build
    title: str
    lacks: dict[str, str] = field(default_factory=dict)
    folders: list[Path] = field(default_factory=list)
    foreign: bool = False


def sweep(arguments: Arguments) -> int:
    """Run a sweep over commits, record it, and judge each commit against the one before it.

    Returns:
        The exit status: 0, 1 if a commit made something worse or a cell failed that worked, 130 after an interruption.

    Raises:
        SpinbenchError: nothing was measured, because an argument is wrong, or no commit can be built.
        HistoryError: there is no history here.
    """
    _check_no_search(composition.choices(arguments.of_cells, "hydra/sweeper"))
    checkout = git.Checkout.open(environment.require_history_root())
    commits = checkout.resolve_all(str(arguments.commits))
    seeds, methods, into = (composition.choices(arguments.of_cells, key) for key in ("seed", "method", "sweep_dir"))
    sweep_dirs = [line.partition("=")[2].strip("'\"") for line in into]
    folder = open_folder(arguments, next(reversed(sweep_dirs), None), None)
    output = progress_display.console()
    again = arguments.again(progress_display.short_path(folder))
    output.print(
        f"{remarks.format_count(len(commits), 'commit')} into {progress_display.short_path(folder)}", soft_wrap=True
    )
    output.print(f"after an interruption: {again}", soft_wrap=True)
    entered = 0
    try:
        with interruptions.interruptible():
            past = list(_build_commits(checkout, commits, output))
            for run_name, version, overrides in _child_sweeps(past, seeds, methods):
                line = [*_without(arguments, overrides), *overrides]
                place = folder / version.build.commit[:16] / run_name
                since = time.perf_counter()
                try:
                    status = _measure(checkout, version, line, place)
                finally:  # also after an interruption
                    measured = _read_commit_records(version, place)
                    if measured:
                        entered += _enter(checkout, place, output)
                duration = f"{time.perf_counter() - since:.1f} s"
                _report_child_sweep(version, status, overrides, place, measured, duration, output)
    except KeyboardInterrupt:
        output.print(f"interrupted; {entered} new records stand in the history, go on with: {again}", soft_wrap=True)
        return interruptions.STATUS
    return _conclude(checkout, past, entered, folder, output)


def _check_no_search(sweepers: Sequence[str]) -> None:
    """Refuse a search: it would find settings of its own at each commit."""
    for line in sweepers:
        if line.partition("=")[2] != "basic":
            raise SpinbenchError(f"{line} and commits= were given; commits are compared with the same settings alone")


def _build_commits(checkout: git.Checkout, commits: Sequence[str], output: Console) -> Iterator[_Version]:
    for commit in commits:
        title, since = f"{commit[:8]} {checkout.subject(commit)}", time.perf_counter()
        try:
            build = builds.build(checkout, commit)
        except HistoryError as error:
            output.print(f"{title}: left out, {error}", soft_wrap=True)
            continue
        output.print(f"{title}: built in {time.perf_counter() - since:.1f} s", soft_wrap=True)
        yield _Version(build, title)


def _child_sweeps(
    past: Sequence[_Version], seeds: Sequence[str], methods: Sequence[str]
) -> Iterator[tuple[str, _Version, list[str]]]:
    """Name, commit and overrides of each child sweep, in the order in which they run."""
    for turn, seed in enumerate(seeds or [""]):
        overrides, name = list(filter(None, [seed])), seed.replace("=", "-") or "all"
        for version in past if turn % 2 == 0 else past[::-1]:
            if not (version.lacks or version.foreign):
                yield name, version, overrides
            # This commit lacks some methods or settings: its other methods are swept one by one.
            if version.lacks and len(methods) > 1:
                for method in (method for method in methods if method not in version.lacks):
                    yield f"{name}-{method.replace('=', '-')}", version, [*overrides, method]


def _measure(checkout: git.Checkout, version: _Version, overrides: Sequence[str], folder: Path) -> int | None:
    """Sweep in a commit's environment; what it says goes into a file beside its records.

    Returns:
        The exit status; None where the build has vanished meanwhile.

    Raises:
        HistoryError: the build had vanished before, and cannot be made anew.
    """
    version.build = builds.build(checkout, version.build.commit)  # usually there already
    interpreter = str(version.build.python)
    command = [interpreter, "-P", "-m", "spinbench", "sweep", *overrides, f"sweep_dir={quote(str(folder))}"]
    folder.mkdir(parents=True, exist_ok=True)
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it hides builds
    variables[environment.HISTORY_VARIABLE] = str(version.build.tree)
    with (folder / TOLD).open("w", encoding="utf-8") as log:
        try:
            child = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=variables
            )
        except FileNotFoundError:
            return None
        status = _status(child)
    return status if version.build.is_whole else None


def _status(child: subprocess.Popen[bytes]) -> int:
    """A child sweep's exit status; it is asked to end where this one is, so that it keeps what it has measured."""
    with child:
        try:
            status = child.wait()
        except KeyboardInterrupt:
            child.terminate()
            try:
                child.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                child.kill()
            raise
    if status == interruptions.STATUS:
        raise KeyboardInterrupt
    return status


def _read_commit_records(version: _Version, folder: Path) -> list[Record]:
    """What a child sweep has measured; nothing where its build has vanished, or knows no history but its own."""
    if not version.build.is_whole or next(folder.rglob("record-*.json"), None) is None:
        return []
    measured = records.read_records(folder)
    version.foreign = {record.git.commit for record in measured} != {version.build.commit}
    return [] if version.foreign else measured


def _enter(checkout: git.Checkout, folder: Path, output: Console) -> int:
    """How many records are new in the history; the sweep goes on where they cannot enter now."""
    try:
        return recorder.History.open(checkout.root).record([folder]).new
    except HistoryError as error:
        output.print(f"not in the history so far: {error}", soft_wrap=True)
        return 0


def _report_child_sweep(
    version: _Version,
    status: int | None,
    overrides: Sequence[str],
    folder: Path,
    measured: Sequence[Record],
    took: str,
    output: Console,
) -> None:
    """Say what came of a child sweep, and note what its commit lacks."""
    if status is None:
        why = f"its build, {version.build.tree.parent}, vanished meanwhile; it is made anew when the sweep is resumed"
        output.print(f"{version.title}, {folder.name}: left out, {why}", soft_wrap=True)
    elif status not in (0, 1):
        lines = (folder / TOLD).read_text(encoding="utf-8", errors="replace").strip().splitlines()
        why = f"its sweep ended with status {status}"
        if lines:
            why = lines[-1].removeprefix("spinbench: ")
        method = next((line for line in overrides if line.startswith("method=") and "," not in line), "")
        version.lacks[method] = why
        output.print(f"{version.title}: {method or 'this sweep'} is left out, {why}", soft_wrap=True)
    elif version.foreign:
        why = f"it does not know {environment.HISTORY_VARIABLE} and files its results under another commit"
        output.print(f"{version.title}: left out, {why}", soft_wrap=True)
    else:
        version.folders.append(folder)
        statuses = Counter(record.status for record in measured)
        counts = ", ".join(f"{count} {status}" for status, count in sorted(statuses.items()))
        output.print(f"{version.title}, {folder.name}: {counts}, {took}", soft_wrap=True)


def _without(arguments: Arguments, overrides: Sequence[str]) -> list[str]:
    """What was given, but what a child sweep is told instead, and where to."""
    keys = {_key(line) for line in overrides} | {"sweep_dir"}
    return [*arguments.flags, "-m", *(line for line in arguments.of_cells if _key(line) not in keys)]


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+")


def _conclude(checkout: git.Checkout, past: Sequence[_Version], entered: int, folder: Path, output: Console) -> int:
    """Say what entered, and what each commit changed."""
    measured = [version for version in past if version.folders]
    if not measured:
        raise SpinbenchError("nothing could be measured at any of these commits")
    report = recorder.History.open(checkout.root).record([folder for version in measured for folder in version.folders])
    for line in replace(report, new=report.new + entered, duplicates=report.duplicates - entered).sentences():
        output.print(line, soft_wrap=True)
    if len(measured) == 1:
        output.print("one commit was measured, and there is nothing to compare it with")
        return 0
    row = verdicts.judge_commits(checkout.root, [version.build.commit for version in measured])
    for line in verdicts.describe_series(row):
        output.print(line, soft_wrap=True)
    if row.spans:
        verdicts.draw_ratios(measured[0].build.commit, row.spans, folder / PICTURE)
        output.print(f"picture: {progress_display.short_path(folder / PICTURE)}", soft_wrap=True)
    return int(row.red)
