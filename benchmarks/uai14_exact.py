"""The page of exact answers to UAI-2014 MAR, from the table of `spinbench exact` and the published values.

    spinbench exact FOLDER --budget 600s --output ANSWERS.csv
    python benchmarks/uai14_exact.py ANSWERS.csv PUBLISHED.csv > docs/uai14.md

PUBLISHED.csv has the columns `model` (a file's name without its suffix) and `log10_partition`, as the competition
published it. The page's head describes the machine that this script runs on, which is to be the one that answered.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import importlib.metadata
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path

import psutil

from spinbench.measuring import environment

PACKAGES = ("spinbench", "NumPy", "Numba", "goatd", "pyganak")
PREFERENCE = ("all", "some", "none")
"""Of several answers to a model, the one with most marginals counts."""
COLUMNS = (
    *("model", "log Z", "log10 Z", "published log10 Z", "difference", "solver", "width"),
    *("log2 entries", "memory, GiB", "slices", "CPU seconds", "marginals"),
)

Row = Mapping[str, str]


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, help="what `spinbench exact FOLDER --output` writes")
    parser.add_argument("published", type=Path, help="columns model and log10_partition")
    arguments = parser.parse_args()
    answers = read_answers(arguments.answers)
    published = {row["model"]: row["log10_partition"].strip() for row in read_rows(arguments.published)}
    print("\n".join([*head(list(answers.values())), *summary(answers, published), *table(answers, published)]))


def read_rows(path: Path) -> list[Row]:
    """The rows of a CSV file."""
    with path.open(newline="", encoding="utf-8-sig") as file:
        return list(csv.DictReader(file))


def read_answers(path: Path) -> dict[str, Row]:
    """One row a model, by names without suffixes, sorted: an answer rather than none, of several the last best one."""
    answers: dict[str, Row] = {}
    for row in read_rows(path):
        name = row["model"].partition(".")[0]
        if name not in answers or rank(row) <= rank(answers[name]):
            answers[name] = row
    return dict(sorted(answers.items()))


def rank(row: Row) -> tuple[bool, int]:
    """Lower is better."""
    return row["status"] != "answered", PREFERENCE.index(row["marginals"])


def head(rows: Sequence[Row]) -> Iterator[str]:
    """What was run, and where."""
    seen, memory = environment.describe(), psutil.virtual_memory().total / 2**30
    limits = {(float(row["budget_seconds"]), float(row["max_gib"])) for row in rows}
    allowed = " or ".join(f"{seconds:g} s and {gib:.3g} GiB" for seconds, gib in sorted(limits))
    yield "# UAI-2014 MAR, exactly\n"
    yield "Exact answers of `spinbench exact` to models of the UAI-2014 competition's task MAR, beside the published"
    yield "values of log10 Z. The second command writes this page from the table that the first one writes:\n"
    yield "```sh\nspinbench exact models --budget 600s --output answers.csv"
    yield "python benchmarks/uai14_exact.py answers.csv published.csv > docs/uai14.md\n```\n"
    yield (
        f"Machine: {seen['cores']} cores of {seen['cpu']}, {memory:.3g} GiB. Versions: Python {seen['python']}, "
        f"{', '.join(f'{name} {version(name)}' for name in PACKAGES)}. Date: {datetime.date.today():%-d %B %Y}. "
        f"Each model is allowed {allowed}.\n"
    )


def version(package: str) -> str:
    """Of a package that may not be there."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "is not installed"


def summary(answers: Mapping[str, Row], published: Mapping[str, str]) -> Iterator[str]:
    """Figures over all models."""
    answered = {name: row for name, row in answers.items() if row["status"] == "answered"}
    known = {name: row for name, row in answered.items() if name in published}
    equal = sum(agrees(row, published[name]) for name, row in known.items())
    marginals = Counter(row["marginals"] for row in answered.values())
    cpu = {name: float(row["cpu_seconds"]) for name, row in answers.items()}
    memory = {name: float(row["memory_gib"] or 0) for name, row in answered.items()}
    yield "## Summary\n\n| | |\n|---|---|"
    yield f"| models in the table, of {len(published)} published | {len(answers)} |"
    yield f"| answered | {len(answered)} |"
    yield f"| log10 Z equal to the published value, to its digits | {equal} of {len(known)} |"
    yield f"| marginals of all variables, of some, log Z alone | {', '.join(str(marginals[k]) for k in PREFERENCE)} |"
    yield f"| CPU seconds in all | {sum(cpu.values()):.0f} |"
    yield f"| the slowest model | {most(cpu, 'CPU seconds')} |"
    yield f"| the most memory, by prediction | {most(memory, 'GiB')} |"
    if cached := sum(row["cached"] == "yes" for row in answered.values()):
        yield f"| answers that come from the cache, so that their seconds are those of reading | {cached} |"
    yield "\nWhere both values differ, [Corrections](uai14-corrections.md) says which of them is wrong.\n"


def agrees(row: Row, published: str) -> bool:
    """Whether an answer rounds to the published value, or to its neighbour in the last digit that is written."""
    unit = 10.0 ** int(Decimal(published).as_tuple().exponent)
    return abs(float(row["log10_z"]) - float(published)) < unit


def most(figures: Mapping[str, float], unit: str) -> str:
    """The largest figure, and whose it is."""
    name = max(figures, key=figures.__getitem__, default="")
    return f"{name}, {figures[name]:.3g} {unit}" if name else "–"


def table(answers: Mapping[str, Row], published: Mapping[str, str]) -> Iterator[str]:
    """A line a model."""
    yield "## Models\n\nlog Z is in nats. Width, entries and memory are predictions; a dash means that there is none.\n"
    yield f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
    for name, row in answers.items():
        known = published.get(name, "–")
        if row["status"] != "answered":
            yield f"| {name} | {row['status']} | – | {known} {'| – ' * 6}| {float(row['cpu_seconds']):.1f} | none |"
            continue
        difference = f"{float(row['log10_z']) - float(known):+.1e}" if name in published else "–"
        entries = f"{math.log2(float(row['entries'])):.1f}" if row["entries"] else "–"
        memory = f"{float(row['memory_gib']):.2g}" if row["memory_gib"] else "–"
        yield (
            f"| {name} | {float(row['log_z']):.6f} | {float(row['log10_z']):.6f} | {known} | {difference} | "
            f"{row['solver']} | {row['width'] or '–'} | {entries} | {memory} | {row['slices']} | "
            f"{float(row['cpu_seconds']):.1f} | {row['marginals']} |"
        )


if __name__ == "__main__":
    main()
