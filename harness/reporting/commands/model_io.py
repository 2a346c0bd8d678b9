"""Models and orders that commands read, and answers that they print and write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.text import Text

from spinbench.errors import ModelError
from spinbench.foundation.overrides import is_assignment
from spinbench.foundation.remarks import printable, remark
from spinbench.models import Model, families, load, specs
from spinbench.models.files.text import read_text
from spinbench.reporting.leaderboard import format_number
from spinbench.reporting.progress_display import console, new_table, print_line

if TYPE_CHECKING:
    from spinbench.inference.result import Result

# Largest number of states whose marginals are printed.
MAX_PRINTED_MARGINALS = 20


def open_model(name: str, evidence: str | Path | Mapping[int, int] | None) -> tuple[Model, Mapping[str, object]]:
    """A model, and its configuration in a sweep; a remark where a file of evidence beside it is not read."""
    if name in specs.names() and name != families.FILE and evidence is None:
        return specs.build({"name": name}), {"model": name}
    if not (Path(name).suffix or Path(name).exists()):
        specs.check_name(name, "file or model")
    if isinstance(evidence, Mapping):
        return load(name, evidence=evidence), {}
    files = {"model.path": name, "model.evidence": evidence}
    present = {key: file for key, file in files.items() if file is not None}
    paths = {key: file if is_assignment(file) else str(Path(file)) for key, file in present.items()}
    if evidence is None and Path(f"{name}.evid").is_file():
        remark(f"{name}.evid is there and is not read; --evidence {name}.evid observes what it says")
    return load(name, evidence=evidence), {"model": families.FILE, **paths}


def read_order(path: Path, model: Model) -> list[int]:
    """The variables that a file lists, by their numbers or all by their names, with spaces or commas between them.

    Raises:
        SpinbenchError: it cannot be read, a name is none of the model's, or a variable is not there once.
    """
    words = read_text(path).decode().replace(",", " ").split()
    by_number = {str(v): v for v in range(model.num_variables)}
    by_label = {str(label): v for v, label in enumerate(model.labels)}
    for numbers in (by_number, by_label):
        order = [numbers.get(word, -1) for word in words]
        if sorted(order) == list(range(model.num_variables)):
            return order
    if unknown := next((word for word in words if word not in by_number and word not in by_label), ""):
        raise ModelError(f"{model.name}: {path} names {unknown[:24]!r}, which is no variable's number or label")
    raise ModelError(
        f"{model.name}: {path} names {len(words)} variables, {len(set(words))} different ones; each of the model's "
        f"{model.num_variables} must be named once, all by numbers or all by labels"
    )


def print_marginals(answer: Result) -> None:
    """The first marginals, a line for each state."""
    columns = {name: values[:MAX_PRINTED_MARGINALS].tolist() for name, values in answer.columns().items()}
    # Columns of names replace those of numbers.
    for name in ("variable", "state"):
        columns[name] = columns.pop(f"{name}_name", columns[name])
    columns = {name.replace("_", " "): values for name, values in columns.items()}
    rows = [map(_format_cell, line) for line in zip(*columns.values(), strict=True)]
    console().print(new_table(None, columns, rows, number_columns=columns, show_edge=False))
    print_line("--output FILE.csv, .MAR or .PR has all of it")


def _format_cell(value: object) -> Text:
    if isinstance(value, float):
        return Text(format_number(value))
    return Text(printable(str(value)))
