"""Exact answers in child processes: one that is killed, or runs out of time or memory, costs its own model alone."""

from __future__ import annotations

import contextlib
import contextvars
import math
import queue
import resource
import threading
import time
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, NamedTuple

from spinbench.errors import IntractableError, SpinbenchError, UnsupportedError
from spinbench.foundation.child import DiedError, OverdueError, die_with_parent, run_in_child, yield_memory_first
from spinbench.foundation.platforms import one_blas_thread
from spinbench.inference import answers
from spinbench.inference.stored_states.source import RunSource
from spinbench.reference.choice import DEFAULT_SECONDS, check_method
from spinbench.reference.progress import PROGRESS, Progress
from spinbench.reporting.commands.model_io import open_model, read_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from spinbench.inference.result import Result
    from spinbench.reference.answer import ExactAnswer

Status = Literal["answered", "refused", "timeout", "failed"]
MarginalCoverage = Literal["all", "some", "none"]

# Seconds that one child is polled before the next, and by which the display lags behind.
TICK_SECONDS = 0.1
# Formats of the sizes of an elimination.
SIZES = {"log2_entries": "2^{:.1f} entries", "memory_gib": "{:.2g} GiB"}


@dataclass(frozen=True)
class Settings:
    """How answers are looked for.

    Attributes:
        solver: one of `spinbench.reference.solvers.methods()`.
        max_gib: memory that elimination may take, in GiB.
        seconds: wall-clock of each model; infinite where there is no limit.
        marginals: whether they are wanted.
    """

    solver: str
    max_gib: float
    seconds: float
    marginals: bool

    @classmethod
    def parse(
        cls, solver: str, max_gib: float | None, budget: str | None, jobs: int = 1, *, marginals: bool
    ) -> Settings:
        """From the words of a command; memory by default is half of what is free, divided by the jobs.

        Raises:
            SpinbenchError: one of them is not allowed.
        """
        check_method(solver, answers.ALL_SOLVERS)
        seconds = math.inf if budget is None else answers.seconds_allowed(budget)
        max_bytes = answers.bytes_allowed(max_gib) // (1 if max_gib is not None else jobs)
        return cls(solver, max_bytes / 2**30, seconds, marginals)


class Question(NamedTuple):
    """What a child process is asked.

    Attributes:
        source: a file, or, as text, what `open_model` takes.
        evidence: a file, VARIABLE=STATE, or states by variables.
        outputs: files that the answer is written to.
        in_folder: whether it is one of many. Its result comes back without marginals, which may be large, and a file of
            marginals is left out where some are NaN, which the UAI competitions' format has not.
        order: a file that lists the variables as they are to be eliminated.
    """

    source: str | Path
    evidence: str | Path | Mapping[int, int] | None
    settings: Settings
    outputs: tuple[Path, ...] = ()
    in_folder: bool = False
    order: Path | None = None


class Solved(NamedTuple):
    """An answer as it comes from a child process; `unwritten` says why which of one model's files could not be."""

    result: Result
    width: int | None
    cached: bool
    marginals: MarginalCoverage
    cpu_seconds: float
    unwritten: Mapping[Path, str]

    def describe(self) -> str:
        """The solver, with the width, entries, memory and slices of its elimination where it has one."""
        diagnostics, solver = self.result.diagnostics, f"{self.result.settings.get('solver', '')}"
        width, slices = diagnostics.get("width", self.width), diagnostics.get("slices", 1)
        if width is not None:
            solver += f" of width {width:.0f}"
        parts = [solver, *(form.format(diagnostics[name]) for name, form in SIZES.items() if name in diagnostics)]
        if slices > 1:
            parts.append(f"{slices:.0f} slices")
        return ", ".join(parts)


class Outcome(NamedTuple):
    """What came of a question; `error` says why there is no answer."""

    status: Status
    message: str
    solved: Solved | None
    error: Exception | None
    seconds: float
    cpu_seconds: float


def poll_side_by_side(
    questions: Mapping[str, Question], jobs: int
) -> Iterator[tuple[Mapping[str, str], str, Outcome | None]]:
    """Outcomes as they come.

    Args:
        questions: by the names of their models.
        jobs: questions at a time.

    Yields:
        The names that are being worked on, with how far they are, the name that was looked at last, and its outcome.
    """
    waiting, stages = deque(questions), dict[str, str]()
    running: dict[str, Iterator[str | Outcome]] = {}
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                started = waiting.popleft()
                running[started] = _follow_child(questions[started])
            for name in list(running):
                update = next(running[name])
                if isinstance(update, str):
                    stages[name] = update
                    yield stages, name, None
                else:
                    del running[name]
                    stages.pop(name, None)
                    yield stages, name, update
    finally:
        for updates in running.values():
            updates.close()  # type: ignore[attr-defined]


def _follow_child(question: Question) -> Iterator[str | Outcome]:
    """What a child process is at, each `TICK_SECONDS`: seconds so far, and what is predicted, memory, and the time of
    all or, of slices, of the rest; at the end its outcome."""
    started_at, outcome = time.perf_counter(), None
    stage, planned_at = "reading and planning", 0.0
    limit = question.settings.seconds
    child = run_in_child(_solve_question, question, limit, TICK_SECONDS)
    with contextlib.closing(child) as messages:  # type: ignore[type-var]
        while outcome is None:
            cpu_before = _cpu_seconds(resource.RUSAGE_CHILDREN)
            try:
                message = next(messages)
                seconds = time.perf_counter() - started_at
                if isinstance(message, Solved):
                    outcome = Outcome("answered", "", message, None, seconds, message.cpu_seconds)
                elif message is not None:
                    planned_at = planned_at if message.done else seconds
                    stage = message.describe(planned_at)
            except Exception as error:
                # Any exception: a broken file must not stop the other models. The CPU time is that of the child, which
                # has ended.
                seconds, cpu_seconds = (
                    time.perf_counter() - started_at,
                    _cpu_seconds(resource.RUSAGE_CHILDREN) - cpu_before,
                )
                late = f"there was no answer within {limit:g} s ({seconds:.0f} s, {stage})"
                outcome = Outcome(*_describe_error(error, late), None, error, seconds, cpu_seconds)
            if outcome is None:
                yield f"{seconds:.0f} s, {stage}"
    yield outcome


def _describe_error(error: Exception, late: str) -> tuple[Status, str]:
    """Of a child process; `late` says that its time is over."""
    match error:
        case IntractableError() | UnsupportedError():
            return "refused", str(error)
        case OverdueError():
            return "timeout", late
        case MemoryError():
            return "failed", "out of memory; a smaller --max-gib refuses such models at once"
        case SpinbenchError() | DiedError():
            return "failed", str(error)
    return "failed", f"{type(error).__name__}: {error}"


def _solve_question(question: Question) -> Iterator[Progress | Solved]:
    die_with_parent()
    yield_memory_first()
    settings, max_bytes = question.settings, int(question.settings.max_gib * 2**30)
    model, _ = open_model(str(question.source), question.evidence)
    order = None if question.order is None else read_order(question.order, model)
    answer_list: list[ExactAnswer] = []

    def solve_and_append() -> None:
        with one_blas_thread():
            answer = answers.solve(
                model,
                method=settings.solver,
                marginals=settings.marginals,
                max_bytes=max_bytes,
                seconds={math.inf: DEFAULT_SECONDS}.get(settings.seconds, settings.seconds),
                order=order,
            )
        answer_list.append(answer)

    yield from _run_with_progress(solve_and_append)
    (answer,) = answer_list
    result = answers.result_of_exact(model, answer, max_bytes)
    coverage = _marginal_coverage(result)
    unwritten: dict[Path, str] = {}
    for path in question.outputs:
        try:
            if not (question.in_folder and coverage == "some" and path.suffix == ".MAR"):
                result.save(path)
        except SpinbenchError as error:
            if question.in_folder:
                raise
            unwritten[path] = str(error)
    if question.in_folder:
        result = replace(result, marginals=None)
    result = replace(result, source=RunSource(model_names=result.source.names))  # without the model
    yield Solved(result, answer.width, answer.cached, coverage, _cpu_seconds(resource.RUSAGE_SELF), unwritten)


def _run_with_progress(action: Callable[[], None]) -> Iterator[Progress]:
    """Runs the action in a thread, and yields how far its slices are."""
    steps = queue.SimpleQueue[Progress]()
    token = PROGRESS.set(steps.put)
    context = contextvars.copy_context()
    PROGRESS.reset(token)
    errors: list[BaseException] = []

    def run() -> None:
        try:
            context.run(action)
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    while thread.is_alive() or not steps.empty():
        with contextlib.suppress(queue.Empty):
            yield steps.get(timeout=TICK_SECONDS)
    if errors:
        raise errors[0]


def _marginal_coverage(result: Result) -> MarginalCoverage:
    if result.marginals is None:
        return "none"
    return "some" if result.diagnostics.get("open_marginals") else "all"


def _cpu_seconds(who: int) -> float:
    usage = resource.getrusage(who)
    return usage.ru_utime + usage.ru_stime
