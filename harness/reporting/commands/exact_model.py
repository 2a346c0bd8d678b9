"""`spinbench exact` of one model: log Z, how it was found, and the marginals."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from rich.text import Text

from spinbench.errors import IntractableError, SpinbenchError
from spinbench.foundation.remarks import printable
from spinbench.inference.result import SUFFIXES
from spinbench.reporting.commands.answer import of_marginals
from spinbench.reporting.commands.exact_solving import Outcome, Question, Settings, Solved, solve_side_by_side
from spinbench.reporting.commands.running import check_outputs
from spinbench.reporting.display import console, shown

ALLOWED_SUFFIXES = tuple(suffix for suffix in SUFFIXES if suffix != ".MPE")
"""The heaviest state takes an elimination of its own: `spinbench run --method exact --target map` finds it."""


def check_options(outputs: Sequence[Path], results: Path | None, jobs: int) -> None:
    """Raises SpinbenchError where an option is not for one model."""
    check_outputs(outputs, ALLOWED_SUFFIXES)
    if results is not None or jobs != 1:
        raise SpinbenchError("--uai-results and --jobs belong to a folder of models, and one model was given")


def show(name: str, evidence: str | None, settings: Settings, outputs: Sequence[Path]) -> int:
    """Print the exact answer for a model of that name or in that file, and write it to files.

    Returns:
        The exit status: 0, or 1 where the answer is refused or the child process does not end with one.

    Raises:
        SpinbenchError: the model is none, or Z = 0.
    """
    question = Question(name, evidence, settings, tuple(outputs))
    outcome = _follow(question)
    if outcome.solved is None:
        if isinstance(outcome.error, SpinbenchError) and not isinstance(outcome.error, IntractableError):
            raise outcome.error
        print(f"spinbench: {printable(' '.join(outcome.message.split()))}", file=sys.stderr)
        return 1
    output = console()
    for line in _sentences(outcome.solved, outcome.seconds):
        output.print(Text(printable(line)), soft_wrap=True)
    for path in outputs:
        output.print(Text(f"written: {printable(shown(path))}"), soft_wrap=True)
    if not outputs and outcome.solved.result.marginals is not None:
        output.print(of_marginals(outcome.solved.result))
        output.print(Text("--output FILE.csv, .MAR or .PR has all of it"), soft_wrap=True)
    return 0


def _follow(question: Question) -> Outcome:
    """The outcome; on a terminal, what it takes is shown meanwhile."""
    news = solve_side_by_side({"": question}, jobs=1)
    working, _, outcome = next(news)  # the process is forked before a thread draws
    with console().status("") as status:
        while outcome is None:
            status.update(working.get("", ""))
            working, _, outcome = next(news)
    return outcome


def _sentences(solved: Solved, seconds: float) -> list[str]:
    result = solved.result
    how, took = describe(solved), f"{result.seconds.run:.2g} s, loading of code {result.seconds.compile:.2g} s"
    if solved.cached:
        took = f"from the cache, once found in {result.seconds.run:.2g} s"
    lines = [f"{result.model}: log Z = {result.log_z:.10f} (exact)", f"by {how} on {result.backend}: {took}"]
    if count := result.diagnostics.get("open_marginals"):
        lines.append(f"marginals of {count:.0f} variables take more memory than --max-gib allows")
    return [*lines, f"the whole took {seconds:.2f} s"]


def describe(solved: Solved) -> str:
    """The solver, with the width, entries, memory and slices of its elimination where it has one."""
    known = solved.result.diagnostics
    width, entries, slices = known.get("width", solved.width), known.get("log2_entries"), known.get("slices", 1)
    parts = [f"{solved.result.settings.get('solver', '')}" + ("" if width is None else f" of width {width:.0f}")]
    parts += [] if entries is None else [f"2^{entries:.1f} entries"]
    parts += [f"{known['memory_gib']:.2g} GiB"] if "memory_gib" in known else []
    parts += [f"{slices:.0f} slices"] if slices > 1 else []
    return ", ".join(parts)
