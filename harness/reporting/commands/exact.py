"""`spinbench exact`: the answer for one model, or for a folder of them."""

from __future__ import annotations

import itertools
import shlex
import sys
from argparse import Namespace
from pathlib import Path

from spinbench.errors import IntractableError, SpinbenchError
from spinbench.foundation.atomic import check_outputs
from spinbench.foundation.overrides import is_assignment
from spinbench.foundation.remarks import format_seconds, printable
from spinbench.models import specs
from spinbench.models.files import evid
from spinbench.models.files.text import read_text
from spinbench.reporting.commands import exact_folder
from spinbench.reporting.commands.exact_solving import Outcome, Question, Settings, Solved, poll_side_by_side
from spinbench.reporting.commands.json_answers import print_document
from spinbench.reporting.commands.model_io import MAX_PRINTED_MARGINALS, open_model, print_marginals
from spinbench.reporting.progress_display import console, print_line, short_path

# Default budget for each model of a folder.
DEFAULT_BUDGET = "60s"
# A .MPE file with the heaviest state is not among them: `spinbench run --method exact --target map` writes it.
ALLOWED_SUFFIXES = (".MAR", ".PR", ".csv", ".order")


def run(arguments: Namespace) -> int:
    """Print exact answers, and write them to files.

    Returns:
        The exit status: 0, 1 where an answer is refused or the child process does not end with one, 2 where an answer
        is printed and a file of it cannot be written.

    Raises:
        SpinbenchError: an option does not fit, the model is none, or Z = 0.
    """
    name, budget = arguments.model, arguments.budget
    # An empty name, such as that of an unset variable, is no folder, though `Path` takes it for the current one.
    in_folder = bool(name) and name not in specs.names() and Path(name).is_dir()
    if arguments.joint:
        return _print_joint(arguments, in_folder=in_folder)
    if in_folder and budget is None:
        budget = DEFAULT_BUDGET
    jobs = max(arguments.jobs, 1)
    settings = Settings.parse(arguments.solver, arguments.max_gib, budget, jobs, marginals=arguments.marginals)
    if in_folder:
        if arguments.json:
            raise SpinbenchError(f"--json was given with the folder {name}; --output FILE.csv writes its answers")
        return exact_folder.solve_folder(arguments, settings)
    check_outputs(arguments.output, ALLOWED_SUFFIXES)
    if arguments.uai_results is not None or arguments.jobs != 1:
        raise SpinbenchError("--uai-results and --jobs belong to a folder of models, and one model was given")
    question = Question(name, arguments.evidence, settings, tuple(arguments.output), order=arguments.order)
    samples = _read_samples(arguments.evidence)
    if len(samples) > 1 and (arguments.output or arguments.json):
        raise SpinbenchError(
            f"{arguments.evidence} holds {len(samples)} evidence samples, and --output and --json are of one answer"
        )
    if len(samples) <= 1:
        return _answer_model(arguments, question)
    statuses = []
    for k, sample in enumerate(samples, 1):
        print_line(f"evidence sample {k} of {len(samples)}")
        try:
            statuses.append(_answer_model(arguments, question._replace(evidence=sample)))
        except SpinbenchError as error:
            print(f"spinbench: {printable(str(error))}", file=sys.stderr)
            statuses.append(2)
    return max(statuses)


def _read_samples(evidence: str | None) -> list[dict[int, int]]:
    """Those of a file of evidence in numbers, which may hold several."""
    if evidence is None or is_assignment(evidence) or evid.has_words(text := read_text(Path(evidence))):
        return []
    return evid.parse_samples(text, Path(evidence).name)


def _print_joint(arguments: Namespace, *, in_folder: bool) -> int:
    """The most probable states of some variables together."""
    given = {
        "a folder": in_folder,
        "--json": arguments.json,
        "--output": arguments.output,
        "--budget": arguments.budget,
        "--order": arguments.order,
        "--solver": arguments.solver != "auto",
        "--no-marginals": not arguments.marginals,
    }
    if useless := [option for option, value in given.items() if value]:
        raise SpinbenchError(
            f"{useless[0]} was given with --joint, which prints; spinbench.joint gives the whole table"
        )
    # Not imported above: it loads what runs methods, which other answers do without.
    from spinbench.inference.maximising.joint import joint

    model, _ = open_model(arguments.model, arguments.evidence)
    # Numbers and labels are those of the file, whatever is observed.
    source = model.origin or model
    by_word = {str(v): v for v in (source.labels or range(source.num_variables))}
    names = [by_word.get(word, word) for word in arguments.joint]
    table = joint(model, names, max_gib=arguments.max_gib)
    for state, probability in itertools.islice(table.most_probable(), MAX_PRINTED_MARGINALS):
        words = " ".join(f"{variable}={value}" for variable, value in state.items())
        print_line(printable(f"{probability:.10f}  {words}"))
    if table.probabilities.size > MAX_PRINTED_MARGINALS:
        print_line(f"{table.probabilities.size} states in all")
    return 0


def _answer_model(arguments: Namespace, question: Question) -> int:
    outcome = _solve_with_progress(question)
    if outcome.solved is None:
        if isinstance(outcome.error, SpinbenchError) and not isinstance(outcome.error, IntractableError):
            raise outcome.error
        message = " ".join(outcome.message.split())
        if isinstance(outcome.error, IntractableError):
            evidence = []
            if question.evidence is not None:
                evidence = ["--evidence", str(arguments.evidence)]
            words = shlex.join([str(question.source), *evidence])
            message += f"; spinbench advise {words} estimates and spinbench bracket {words} bounds log Z"
        print(f"spinbench: {printable(message)}", file=sys.stderr)
        return print_document(arguments, 1, message=message)
    for line in _answer_sentences(outcome.solved, outcome.seconds):
        print_line(printable(line))
    unwritten = outcome.solved.unwritten
    for path in question.outputs:
        if path not in unwritten:
            print_line(f"written: {printable(short_path(path))}")
    for message in unwritten.values():
        print(f"spinbench: {printable(message)}", file=sys.stderr)
    if not question.outputs and outcome.solved.result.marginals is not None:
        print_marginals(outcome.solved.result)
    status = 2 if unwritten else 0
    return print_document(arguments, status, outcome.solved.result)


def _solve_with_progress(question: Question) -> Outcome:
    """The outcome; on a terminal, what it takes is shown meanwhile."""
    updates = poll_side_by_side({"": question}, jobs=1)
    # The child is forked before the status display starts its thread.
    working, _, outcome = next(updates)
    with console().status("") as status:
        while outcome is None:
            status.update(working.get("", ""))
            working, _, outcome = next(updates)
    return outcome


def _answer_sentences(solved: Solved, seconds: float) -> list[str]:
    result = solved.result
    solver, seconds_of_run = solved.describe(), format_seconds(result.seconds.run)
    duration = f"{seconds_of_run}, loading of code {format_seconds(result.seconds.compile)}"
    if solved.cached:
        duration = f"from the cache, once found in {seconds_of_run}"
    lines = [f"{result.model}: log Z = {result.log_z:z.10f} (exact)", f"by {solver} on {result.backend}: {duration}"]
    if count := result.diagnostics.get("open_marginals"):
        lines.append(f"marginals of {count:.0f} variables take more than --max-gib or --budget allows")
    return [*lines, f"the whole took {seconds:.2f} s"]
