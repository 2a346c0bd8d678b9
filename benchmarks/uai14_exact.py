"""The page of exact answers to UAI-2014 MAR, from the table of `spinbench exact` and the published values.

    spinbench exact FOLDER --budget 600s --output ANSWERS.csv
    python benchmarks/uai14_exact.py ANSWERS.csv PUBLISHED.csv > docs/uai14.md

PUBLISHED.csv has the columns `model` (a file's name without its suffix) and `log10_partition`, as the competition
published it. The page's head describes the machine that this script runs on, which is to be the one that answered.
Of several answers to a model the last of those with most marginals counts.
"""

from __future__ import annotations

import argparse
import datetime
import importlib.metadata
import importlib.util
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import psutil

from spinbench.measuring import environment

PACKAGES = ("spinbench", "NumPy", "Numba", "goatd", "pyganak")
MARGINALS = ("all", "some", "none")
NUMBERS = ["budget_seconds", "max_gib", "log_z", "log10_z", "entries", "memory_gib", "cpu_seconds"]

PAGE = """\
# UAI-2014 MAR, exactly

Exact answers of `spinbench exact` to models of the UAI-2014 competition's task MAR, beside the published
values of log10 Z. The second command writes this page from the table that the first one writes:

```sh
spinbench exact models --budget 600s --output answers.csv
python benchmarks/uai14_exact.py answers.csv published.csv > docs/uai14.md
```

Machine: {cores} cores of {cpu}, {memory:.3g} GiB. Versions: Python {python}, {versions}. Date: {date}. \
Each model is allowed {allowed}.

## Summary

{summary}

Where both values differ, [Corrections](uai14-corrections.md) says which of them is wrong.

## Models

log Z is in nats. Width, entries and memory are predictions; a dash means that there is none.

{models}"""


def read_answers(path: Path, published: pd.Series[str]) -> pd.DataFrame:
    """One row a model, by names without suffixes, sorted, with the published value where there is one."""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    table[NUMBERS] = table[NUMBERS].apply(pd.to_numeric, errors="coerce")
    table["model"] = table["model"].str.partition(".")[0]
    table["answered"] = table["status"] == "answered"
    table["quality"] = -table["marginals"].map(MARGINALS.index)
    best = table.sort_values(["model", "answered", "quality"], kind="stable").groupby("model").tail(1)
    return best.set_index("model").join(published.rename("published")).reset_index()


def version(package: str) -> str:
    """Of a package that may not be there."""
    if importlib.util.find_spec(package.lower()) is None:
        return "is not installed"
    return importlib.metadata.version(package)


def agrees(log10_z: float, published: str) -> bool:
    """Whether an answer rounds to the published value, or to its neighbour in the last digit that is written."""
    unit = 10.0 ** int(Decimal(published).as_tuple().exponent)
    return abs(log10_z - float(published)) < unit


def largest(table: pd.DataFrame, column: str, unit: str) -> str:
    """The largest figure, and whose it is."""
    if table[column].isna().all():
        return "–"
    row = table.loc[table[column].idxmax()]
    return f"{row['model']}, {row[column]:.3g} {unit}"


def markdown_table(rows: list[tuple[str, ...]]) -> str:
    """A table whose first row is its head."""
    lines = [f"| {' | '.join(row)} |" if any(row) else "|" + " |" * len(row) for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def summarize_answers(answers: pd.DataFrame, published: int) -> str:
    """Figures over all models."""
    answered = answers[answers["answered"]]
    compared_answers = answered.dropna(subset="published")
    equal = sum(map(agrees, compared_answers["log10_z"], compared_answers["published"]))
    counts = answered["marginals"].value_counts().reindex(MARGINALS, fill_value=0)
    rows: list[tuple[str, ...]] = [
        ("", ""),
        (f"models in the table, of {published} published", str(len(answers))),
        ("answered", str(len(answered))),
        ("log10 Z equal to the published value, to its digits", f"{equal} of {len(compared_answers)}"),
        ("marginals of all variables, of some, log Z alone", ", ".join(map(str, counts))),
        ("CPU seconds in all", f"{answers['cpu_seconds'].sum():.0f}"),
        ("the slowest model", largest(answers, "cpu_seconds", "CPU seconds")),
        ("the most memory, by prediction", largest(answered, "memory_gib", "GiB")),
    ]
    if cached := (answered["cached"] == "yes").sum():
        rows.append(("answers that come from the cache, so that their seconds are those of reading", str(cached)))
    return markdown_table(rows)


def models(answers: pd.DataFrame) -> str:
    """A line a model."""
    answers["published log10 Z"] = answers["published"]
    answers["difference"] = answers["log10_z"] - answers["published"].astype(float)
    answers["log2 entries"] = np.log2(answers["entries"])
    answers["log10 Z"] = answers["log10_z"].where(answers["answered"])
    answers["log Z"] = answers["log_z"].map("{:.6f}".format).where(answers["answered"], answers["status"])
    answers.loc[~answers["answered"], ["solver", "width", "slices"]] = ""
    answers = answers.rename(columns={"memory_gib": "memory, GiB", "cpu_seconds": "CPU seconds"})
    digits = {
        **{"model": "", "log Z": "", "log10 Z": ".6f", "published log10 Z": "", "difference": "+.1e", "solver": ""},
        **{"width": "", "log2 entries": ".1f", "memory, GiB": ".2g", "slices": "", "CPU seconds": ".1f"},
        "marginals": "",
    }
    columns = []
    for name, form in digits.items():
        missing = answers[name].isna() | (answers[name] == "")
        columns.append(["–" if gap else format(cell, form) for cell, gap in zip(answers[name], missing, strict=True)])
    return markdown_table([tuple(digits), *zip(*columns, strict=True)])


def main() -> None:
    """Print the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("answers", type=Path, help="what `spinbench exact FOLDER --output` writes")
    parser.add_argument("published", type=Path, help="columns model and log10_partition")
    arguments = parser.parse_args()
    published = pd.read_csv(arguments.published, dtype=str, index_col="model")["log10_partition"].str.strip()
    answers = read_answers(arguments.answers, published)
    limits = answers[["budget_seconds", "max_gib"]].drop_duplicates().sort_values(["budget_seconds", "max_gib"])
    machine = environment.describe()
    print(
        PAGE.format(
            **{name: machine[name] for name in ("cores", "cpu", "python")},
            memory=psutil.virtual_memory().total / 2**30,
            versions=", ".join(f"{name} {version(name)}" for name in PACKAGES),
            date=f"{datetime.date.today():%-d %B %Y}",
            allowed=" or ".join(f"{seconds:g} s and {gib:.3g} GiB" for seconds, gib in limits.to_numpy()),
            summary=summarize_answers(answers, len(published)),
            models=models(answers),
        )
    )


if __name__ == "__main__":
    main()
