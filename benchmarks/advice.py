"""Answers of `spinbench.advise` that does without exact ones, beside published values of log10 Z.

    python benchmarks/advice.py PUBLISHED.csv FILE … [--budget 10] [--seed 0]

PUBLISHED.csv has the columns `model` (a file's name without its suffix) and `log10_partition`; evidence is read from
FILE.evid where there is such a file. Budgets are CPU seconds. A resolved answer is wrong where it is farther off than
both a tolerance of nats and a unit of the last published digit.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.advising.candidates import default
from spinbench.inference.advising.portfolio import read_table

# Nats: what counts as near, and as wrong beside "resolved".
NEAR, WRONG = 0.5, 0.5
# Published values that are wrong, as docs/uai14-corrections.md shows.
CORRECTIONS = {"linkage_15": -170.098655, "relational_1": 723.081188, "relational_4": 8024.603298}


def candidates() -> list[Any]:
    """All that race by default, without the exact answer."""
    return [(candidate.method_with_settings, candidate.backend) for candidate in default(read_table().methods)]


def answer(path: Path, published: Decimal, budget: float, seed: int) -> dict[str, Any]:
    """A row of the table."""
    evidence = Path(f"{path}.evid")
    model = spinbench.load(path, evidence=evidence if evidence.exists() else None)
    true = CORRECTIONS.get(path.stem, float(published) * math.log(10))
    digit = 10.0 ** int(published.as_tuple().exponent) * math.log(10)
    row = {"model": path.stem, "log Z": np.nan, "off": np.inf, "winner": "", "status": "no answer", "cpu": np.nan}
    try:
        advice = spinbench.advise(model, f"{budget:g} s cpu", "log_z", candidates(), seed)
    except SpinbenchError as error:
        return row | {"winner": str(error)[:60]}
    off = advice.answer.log_z - true if advice.answer.log_z is not None else np.inf
    status = "resolved" if advice.resolved else "unresolved"
    if advice.resolved and abs(off) > WRONG + digit:
        status = "WRONG"
    row |= {"log Z": advice.answer.log_z, "off": off, "winner": advice.answer.method, "status": status}
    row |= {"level": advice.level, "error": advice.error, "cpu": advice.seconds}
    return row


def read_published(path: Path) -> dict[str, Decimal]:
    """log10 Z by model, with the digits that were published."""
    table = pd.read_csv(path, dtype=str)
    return {name: Decimal(text) for name, text in zip(table["model"], table["log10_partition"], strict=True)}


def describe(rows: Sequence[dict[str, Any]]) -> str:
    """How many of them are near, resolved, wrong, or nothing."""
    table = pd.DataFrame(rows)
    counts = table["status"].value_counts()
    near = (table["off"].abs() <= NEAR).sum()
    return f"{len(table)} models: {near} within {NEAR:g} nats; " + ", ".join(f"{n} {s}" for s, n in counts.items())


def main() -> None:
    """Print a line a model, and the counts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("published", type=Path)
    parser.add_argument("files", type=Path, nargs="+")
    parser.add_argument("--budget", type=float, default=10.0, help="CPU seconds")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    published, rows = read_published(options.published), []
    for path in options.files:
        rows.append(answer(path, published[path.stem], options.budget, options.seed))
        print(
            *(f"{value:.6g}" if isinstance(value, float) else value for value in rows[-1].values()),
            sep="\t",
            flush=True,
        )
    print(describe(rows))


if __name__ == "__main__":
    main()
