"""How often numbers lie outside their error bounds at each level of evidence, on random models with exact answers.

    python benchmarks/calibration.py [--first 0] [--models 20] [--methods gibbs pt] [--samples 500 5000] [--csv FILE]
    python benchmarks/calibration.py --misleading [--seconds 10]

Models are drawn with the seeds `--first`, `--first` + 1, …, of all kinds in turn; `--models` is how many of each kind.
A marginal counts for each state of each variable, but for one state of binary variables. An error counts as outside
where it is beyond the error bound of its number, whatever the level. `--misleading` runs models that are made to
mislead, of some of which only a lower bound on log Z is known: what contradicts it is outside. `--seconds` adds a race
of `spinbench.advise` to the methods.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from misleading_models import MISLEADING, Truth, solve
from portfolio import random_tables

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.advising.ranking import Target
from spinbench.inference.checks.evidence import LEVELS, LOG_Z_TOLERANCE, MARGINAL_TOLERANCE
from spinbench.models import FactorGraph, Model, generators
from spinbench.models.evidence import condition

TARGETS: tuple[Target, ...] = ("marginals", "log_z")
METHODS = ("gibbs", "block_gibbs", "dhmc", "pt", "swendsen_wang", "smc", "wmb", "importance")
# Errors below this are rounding of sums in another order.
ROUNDING = 1e-8
# Ranges of the root mean square of error / standard error: for nearly all groups of runs and for all of them,
# respectively.
CALIBRATED, TOLERATED = (0.8, 1.25), (0.67, 1.5)


def tables(rng: np.random.Generator, states: int, order: int = 2, zeros: float = 0.0) -> FactorGraph:
    """Random tables on a grid of 3 × 3."""
    return random_tables(3, states, rng.uniform(0.3, 1.5), zeros, order, draw_seed(rng))


def observed_triples(rng: np.random.Generator) -> Model:
    """Factors of three variables, two of which are observed."""
    model = tables(rng, 3, 3)
    chosen = rng.choice(model.num_variables, 2, replace=False).tolist()
    return condition(model, {v: int(rng.integers(3)) for v in chosen})


def draw_seed(rng: np.random.Generator) -> int:
    """For a generator of models."""
    return int(rng.integers(2**31))


def grid(rng: np.random.Generator) -> Model:
    """Of the DHMC paper's weights."""
    rows, cols = rng.integers(3, 9, 2).tolist()
    return generators.grid(rows, cols, rng.uniform(0.1, 1.5), rng.uniform(0.3, 2.5), seed=draw_seed(rng))


def frustrated_grid(rng: np.random.Generator) -> Model:
    """A grid of weak fields and couplings of both signs."""
    rows, cols = rng.integers(3, 8, 2).tolist()
    return generators.grid(rows, cols, 0.5, rng.uniform(0.3, 2.0), "frustrated_centred", seed=draw_seed(rng))


def regular(rng: np.random.Generator) -> Model:
    """Of degree 3."""
    fields, couplings = rng.uniform(0.1, 1.5), rng.uniform(0.3, 2.0)
    return generators.random_regular(2 * int(rng.integers(5, 16)), 3, fields, couplings, seed=draw_seed(rng))


def dense(rng: np.random.Generator) -> Model:
    """A glass of which all pairs are coupled."""
    beta, field = rng.uniform(0.2, 1.5), rng.uniform(0.0, 0.5)
    return generators.sherrington_kirkpatrick(int(rng.integers(6, 17)), beta, field, seed=draw_seed(rng))


RANDOM: dict[str, Callable[[np.random.Generator], Model]] = {
    **{"grid": grid, "regular": regular, "dense": dense, "frustrated": frustrated_grid},
    "K-ary": partial(tables, states=4),
    "triples": partial(tables, states=2, order=3),
    "zeros": partial(tables, states=3, zeros=0.2),
    "observed": observed_triples,
}


class Run(NamedTuple):
    """Attributes: method, samples; result; levels of "marginals" and "log_z"."""

    method: str
    samples: int
    result: spinbench.Result
    levels: Mapping[str, str]


def runs(model: Model, methods: Sequence[str], lengths: Sequence[int], seconds: float, seed: int) -> Iterator[Run]:
    """Of each method and length, and races of so many seconds; methods that refuse the model are left out."""
    for method, samples in itertools.product(methods, lengths):
        with contextlib.suppress(SpinbenchError):
            result = spinbench.run(model, method, "numba", samples, seed=seed)
            yield Run(method, samples, result, {name: each.level for name, each in result.evidence.items()})
    if seconds:
        for target in TARGETS:
            advice = spinbench.advise(model, f"{seconds:g} s", target, seed=seed)
            yield Run("advise", 0, advice.answer, {target: advice.level})


def numbers(result: spinbench.Result, quantity: str) -> list[np.ndarray]:
    """Values, standard errors and error bounds of a quantity; NaN where there are none."""
    if quantity == "log_z":
        parts = (result.log_z, result.log_z_se, result.evidence["log_z"].error_bound)
        return list(np.array(parts, dtype=np.float64)[:, None])
    arrays = (result.marginals, result.marginals_se, result.marginals_error_bound)
    return [np.full(1, np.nan) if each is None else np.hstack(each) for each in arrays]


def compare(run: Run, truth: Truth) -> Iterator[dict[str, Any]]:
    """A line for each quantity: how many numbers, how many of them outside, the mean square of error / standard error,
    and the largest error."""
    for quantity, level in run.levels.items():
        true = {"log_z": np.array([truth.log_z])}.get(quantity, truth.marginals)
        if true is None:
            continue
        values, se, bounds = numbers(run.result, quantity)
        errors = values - true
        if quantity == "log_z" and truth.is_bound:
            errors, se = np.minimum(errors, 0.0), np.full(1, np.nan)
        allowed = {"exact": np.zeros(1)}.get(level, bounds)
        varies = np.isfinite(se) & (se > ROUNDING)
        yield {
            **{"method": run.method, "samples": run.samples, "quantity": quantity, "level": level},
            "numbers": errors.size,
            "outside": int((np.abs(errors) > allowed + ROUNDING * max(1.0, abs(truth.log_z))).sum()),
            "error": float(np.abs(errors).max()),
            "z2": float(np.mean((errors[varies] / se[varies]) ** 2)) if varies.any() else np.nan,
        }


def measure(options: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """The lines of all runs, until the minutes are over."""
    kinds, end = MISLEADING if options.misleading else RANDOM, time.monotonic() + 60 * options.minutes
    seeds = range(options.first, options.first + options.models)
    for seed, (number, kind) in itertools.product(seeds, enumerate(kinds)):
        if time.monotonic() > end:
            return
        rng = np.random.default_rng([seed, number])
        model, truth = MISLEADING[kind](rng) if options.misleading else solve(RANDOM[kind](rng))
        for run in runs(model, options.methods, options.samples, options.seconds, seed):
            yield from ({"kind": kind, "seed": seed, **line} for line in compare(run, truth))


def summarize_levels(lines: pd.DataFrame) -> pd.DataFrame:
    """Of each quantity and level: runs, numbers, those outside, runs that have some, and the largest error."""
    lines = lines.assign(level=pd.Categorical(lines["level"], LEVELS), wrong=lines["outside"] > 0)
    lines["right"] = lines["error"] <= lines["quantity"].map(
        {"log_z": LOG_Z_TOLERANCE, "marginals": MARGINAL_TOLERANCE}
    )
    grouped = lines.groupby(["quantity", "level"], observed=True)
    sums = grouped[["numbers", "outside", "wrong", "right"]].sum()
    table = pd.concat([grouped.size().rename("runs"), sums, grouped["error"].max()], axis=1)
    table["share outside"] = table["outside"] / table["numbers"]
    return table.rename(columns={"wrong": "runs outside", "right": "runs within tolerance", "error": "largest error"})


def summarize_errors(lines: pd.DataFrame) -> pd.DataFrame:
    """Root mean square of error / standard error of each kind of model, method and length, without doubtful runs."""
    trusted = lines[(lines["level"] != "doubtful") & lines["z2"].notna()]
    groups = trusted.groupby(["quantity", "method", "samples", "kind"])["z2"]
    return np.sqrt(groups.mean()).unstack("kind").round(2)


def main() -> None:
    """Print both tables, and what share of the second's groups is calibrated."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0, help="seed of the first models")
    parser.add_argument("--models", type=int, default=20, help="of each kind")
    parser.add_argument("--methods", nargs="*", default=METHODS)
    parser.add_argument("--samples", nargs="*", type=int, default=[500, 5000], help="of each chain")
    parser.add_argument("--seconds", type=float, default=0.0, help="of races of advise; 0: none")
    parser.add_argument("--minutes", type=float, default=np.inf, help="after which no model is begun")
    parser.add_argument("--misleading", action="store_true", help="models that are made to mislead")
    parser.add_argument("--csv", help="file of the lines of all runs")
    options = parser.parse_args()
    lines = pd.DataFrame(measure(options))
    if options.csv:
        lines.to_csv(options.csv, index=False)
    print(f"{len(lines[['kind', 'seed']].drop_duplicates())} models")
    print(summarize_levels(lines).to_string(), end="\n\n")
    if not options.misleading:
        errors = summarize_errors(lines)
        print(errors.to_string(na_rep="–"))
        groups = errors.stack().dropna().to_numpy(np.float64)
        for low, high in (CALIBRATED, TOLERATED):
            print(f"{low} to {high}: {((low <= groups) & (groups <= high)).sum()} of {groups.size}")


if __name__ == "__main__":
    main()
