"""`spinbench exact` of a folder: each model in a process of its own, and a table that a later call goes on with."""

from __future__ import annotations

import hashlib
import math
from argparse import Namespace
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

from spinbench.errors import SpinbenchError
from spinbench.foundation.atomic import check_outputs
from spinbench.foundation.remarks import escape_cell, escape_unprintable
from spinbench.inference.budget import is_whole
from spinbench.models import formats
from spinbench.models.files.format import strip_packed_suffix
from spinbench.models.files.packed import PACKERS
from spinbench.reporting.commands.exact_solving import Outcome, Question, Settings, poll_side_by_side
from spinbench.reporting.commands.exact_table import AnswerTable, Row
from spinbench.reporting.progress_display import Display, console, print_line, short_path

# A refused model is tried again once this many times the earlier memory is free: free memory changes from call to call.
RETRY_MEMORY_FACTOR = 1.25
STATUS_STYLES = {"answered": "green", "refused": "yellow", "timeout": "yellow", "failed": "red"}


class ModelFiles(NamedTuple):
    """A model of a folder: its file, that of its evidence, and a digest of what they hold; empty if unreadable."""

    path: Path
    evidence: Path | None
    digest: str

    @property
    def name(self) -> str:
        """The file's name, which keeps a.uai apart from a.fg."""
        return self.path.name


def solve_folder(arguments: Namespace, settings: Settings) -> int:
    """Answer for all models in a folder, a line each.

    Args:
        arguments: of the command line; the folder has files of the formats that are registered, and FILE.evid beside
            FILE has its evidence.
        settings: how answers are looked for.

    Returns:
        The exit status: 0, or 1 where a model has no answer.

    Raises:
        SpinbenchError: an option is not for a folder, or something cannot be read or written.
    """
    outputs, jobs, results = arguments.output, arguments.jobs, arguments.uai_results
    if arguments.evidence is not None:
        raise SpinbenchError("--evidence belongs to one model; in a folder, the evidence of FILE lies in FILE.evid")
    if arguments.order is not None:
        raise SpinbenchError("--order belongs to one model, and a folder of models was given")
    if len(outputs) > 1:
        raise SpinbenchError(f"--output was given {len(outputs)} times; a folder of models has one table, a .csv file")
    check_outputs(outputs, (".csv",))
    if not is_whole(jobs, 1):
        raise SpinbenchError(f"--jobs {jobs} was given; a whole number, 1 or more, is needed")
    output = next(iter(outputs), None)
    models = list(_find_models(Path(arguments.model)))
    try:
        if results is not None:
            results.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpinbenchError(f"{results}: the folder cannot be made ({error.strerror or error})") from None
    with nullcontext() if output is None else AnswerTable(output) as table:
        counts, questions = Counter[str](), dict[str, Question]()
        for model in models:
            files = _result_paths(model, settings, results)
            row = None
            if table is not None:
                row = table.find_row(model.name, model.digest, _settings_cell(settings))
            if row is not None and _is_settled(row, settings, files):
                counts[row["status"]] += 1
            else:
                questions[model.name] = Question(model.path, model.evidence, settings, files, in_folder=True)
        _print_settled_counts(counts, len(models))
        by_name = {model.name: model for model in models}
        with Display(console(), len(questions), auto_refresh=False) as display:
            for working, name, outcome in poll_side_by_side(questions, jobs):
                display.start_cell(
                    ", ".join(f"{escape_unprintable(model_name)} {status}" for model_name, status in working.items())
                )
                if outcome is not None:
                    row = _table_row(by_name[name], settings, outcome)
                    if table is not None:
                        table.append(row)
                    counts[outcome.status] += 1
                    display.finish_cell_with(
                        escape_unprintable(name), _outcome_sentence(row, outcome), STATUS_STYLES[outcome.status]
                    )
    return _print_summary(counts, output, results)


def _find_models(folder: Path) -> Iterator[ModelFiles]:
    try:
        paths = sorted(
            path
            for path in folder.iterdir()
            if formats.formats_by_name(path.name) and not path.name.startswith(".") and _is_file_or_broken_link(path)
        )
    except OSError as error:
        raise SpinbenchError(f"{folder}: the folder cannot be read ({error.strerror or error})") from None
    if not paths:
        raise SpinbenchError(f"{folder} holds no models; files that end in {', '.join(formats.suffixes())} are read")
    for path in paths:
        evidence_paths = (
            path.with_name(f"{name}.evid{suffix}")
            for name in (path.name, strip_packed_suffix(path.name))
            for suffix in ("", *PACKERS)
        )
        evidence = next(filter(_is_file_or_broken_link, evidence_paths), None)
        yield ModelFiles(path, evidence, _content_digest(path, evidence))


def _is_file_or_broken_link(path: Path) -> bool:
    """A broken link is a model or evidence that is missing, as git-annex leaves them: not to be passed over."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _content_digest(path: Path, evidence: Path | None) -> str:
    """The SHA-256 of a file; with evidence, of the digests of both."""
    digests = []
    try:
        for file_path in filter(None, (path, evidence)):
            with file_path.open("rb") as file:
                digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    except OSError:
        # The child process reports the error.
        return ""
    if len(digests) == 1:
        return digests[0]
    return hashlib.sha256(" ".join(digests).encode()).hexdigest()


def _result_paths(model: ModelFiles, settings: Settings, results: Path | None) -> tuple[Path, ...]:
    if results is None:
        return ()
    suffixes = [suffix for suffix, asked in ((".PR", True), (".MAR", settings.marginals)) if asked]
    return tuple(results / f"{model.name}{suffix}" for suffix in suffixes)


def _is_settled(row: Row, settings: Settings, outputs: Sequence[Path]) -> bool:
    """Whether a row needs no other try: an answer, or a refusal that no larger budget or memory might change.

    A failure may have had a cause outside the file, such as other programs' memory or a full disk.
    """
    try:
        more_memory = settings.max_gib > RETRY_MEMORY_FACTOR * float(row["max_gib"])
        more_time = settings.seconds > float(row["budget_seconds"])
    except ValueError:
        return False
    if row["status"] == "answered":
        has_all_marginals = row["marginals"] != "some"
        has_outputs = all(path.exists() for path in outputs if has_all_marginals or path.suffix != ".MAR")
        return has_outputs and (has_all_marginals or not more_memory)
    return row["status"] in ("refused", "timeout") and not (more_memory or more_time)


def _settings_cell(settings: Settings) -> str:
    return f"solver={settings.solver} marginals={YES_NO[settings.marginals]}"


def _table_row(model: ModelFiles, settings: Settings, outcome: Outcome) -> Row:
    row = {
        "model": escape_cell(model.name),
        "evidence": escape_cell((model.evidence or Path()).name),
        "status": outcome.status,
        "seconds": f"{outcome.seconds:.3f}",
        "cpu_seconds": f"{outcome.cpu_seconds:.3f}",
        "message": escape_cell(_strip_model_name(outcome.message, model)),
        "settings": _settings_cell(settings),
        "budget_seconds": repr(settings.seconds),
        "max_gib": repr(settings.max_gib),
        "digest": model.digest,
    }
    if outcome.solved is None:
        return {**dict.fromkeys(("log_z", "log10_z", *_SOLVER_COLUMNS), ""), **row, "marginals": "none"}
    solved = outcome.solved
    log_z, diagnostics = float(solved.result.log_z or 0.0), solved.result.diagnostics
    entries = diagnostics.get("log2_entries")
    sizes = (
        ("width", diagnostics.get("width", solved.width), ".0f"),
        ("memory_gib", diagnostics.get("memory_gib"), ".4g"),
    )
    return {
        **row,
        **dict.fromkeys(_SOLVER_COLUMNS, ""),
        **{name: f"{size:{form}}" for name, size, form in sizes if size is not None},
        "log_z": repr(log_z),
        "log10_z": repr(log_z / math.log(10)),
        "solver": str(solved.result.settings.get("solver", "")),
        "entries": "" if entries is None else f"{2.0 ** min(entries, 1023.0):.0f}",
        "slices": f"{diagnostics.get('slices', 1):.0f}",
        "cached": YES_NO[solved.cached],
        "marginals": solved.marginals,
    }


YES_NO = {True: "yes", False: "no"}
_SOLVER_COLUMNS = ("solver", "width", "entries", "memory_gib", "slices", "cached")


def _strip_model_name(message: str, model: ModelFiles) -> str:
    """A sentence without the model's name before it, which stands in a column of its own."""
    for name in (str(model.path), model.name, Path(strip_packed_suffix(model.name)).stem):
        message = message.removeprefix(f"{name}: ")
    return " ".join(message.split())


def _outcome_sentence(row: Row, outcome: Outcome) -> str:
    if outcome.solved is None:
        return f"{outcome.status} after {outcome.seconds:.1f} s: {row['message']}"
    solved = outcome.solved
    parts = [f"log Z = {solved.result.log_z:z.10f}", solved.describe(), f"{outcome.seconds:.1f} s"]
    if solved.cached:
        parts.append("from the cache")
    if solved.marginals == "some":
        parts.append("some marginals out of reach")
    return ", ".join(parts)


def _print_settled_counts(counts: Counter[str], total: int) -> None:
    if counts["answered"]:
        print(f"{counts['answered']} of {total} answered before")
    others = {status: count for status, count in counts.items() if status != "answered"}
    if others:
        refusals = " and ".join(f"{count} {status}" for status, count in others.items())
        print(f"{refusals} before, with no less time and memory; a larger --budget or --max-gib tries again")


def _print_summary(counts: Counter[str], output: Path | None, results: Path | None) -> int:
    others = [f"{counts[status]} {status}" for status in STATUS_STYLES if status != "answered" and counts[status]]
    print(", ".join([f"{counts['answered']} of {counts.total()} answered", *others]))
    for label, path in (("table", output), ("UAI results", results)):
        if path is not None:
            print_line(f"{label}: {escape_unprintable(short_path(path))}")
    return int(bool(others))
