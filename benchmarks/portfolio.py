"""What `advise` expects of methods on a model: the table that it ships, from recorded runs, and how well it chooses.

    python benchmarks/portfolio.py record RUNS.csv [--seconds 2] [--part 0/2] [FAMILY …]
    python benchmarks/portfolio.py fit RUNS.csv > harness/inference/advising/portfolio.json
    python benchmarks/portfolio.py report RUNS.csv [--seconds 2] [--part 0/2] [FAMILY …]

`record` runs each method for so many CPU seconds on models of which exact answers are known and adds a row for each
run. Runs that are in the file are not made again. `report` leaves out one family of models at a time: `advise` has the
same CPU seconds as every recorded run, knows no exact answer and a table without that family, and its error is held
against that of the best method, which is known in hindsight.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import itertools
import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.advising import portfolio
from spinbench.inference.advising.candidates import Candidate, default
from spinbench.inference.advising.features import features
from spinbench.inference.advising.ranking import TARGETS, Target, flat
from spinbench.models import FactorGraph, Model, catalogue, generators, networks

# Errors below them count as them: nats, and probabilities.
LEAST_ERROR: dict[Target, float] = {"marginals": 1e-5, "log_z": 1e-4}
# What a lack of an answer counts as where methods are compared: as many times the least error of the model.
NO_ANSWER = 100.0
# Larger errors, and no answer, count as them in the table: a method that refuses is no better on easy models.
LARGEST_ERROR: dict[Target, float] = {"marginals": 0.5, "log_z": 30.0}


def random_tables(rows: int, states: int, spread: float, zeros: float, order: int, seed: int) -> FactorGraph:
    """A grid of variables with random tables, some of whose entries are hard zeros but for one state's."""
    rng = np.random.default_rng([seed, rows, states, order])
    number = rows * rows
    scopes: list[tuple[int, ...]] = [(v,) for v in range(number)]
    scopes += [(v, v + 1) for v in range(number) if (v + 1) % rows]
    scopes += [(v, v + rows) for v in range(number - rows)]
    if order > 2:
        scopes += [tuple(rng.choice(number, order, replace=False).tolist()) for _ in range(rows)]
    good, factors = rng.integers(states, size=number), []
    for scope in scopes:
        table = rng.normal(0.0, spread, (states,) * len(scope))
        if len(scope) > 1:
            table[rng.random(table.shape) < zeros] = -np.inf
            table[tuple(good[v] for v in scope)] = 0.0
        factors.append((scope, table))
    return FactorGraph.from_log_tables([states] * number, factors, name=f"states{states}_order{order}_zeros{zeros:g}")


def potts(rows: int, states: int, coupling: float, seed: int) -> FactorGraph:
    """A ferromagnet of several states on a grid, in weak random fields."""
    rng = np.random.default_rng(seed)
    factors: list[tuple[tuple[int, ...], np.ndarray]] = [
        ((v,), rng.normal(0.0, 0.1, states)) for v in range(rows * rows)
    ]
    edges = [(v, v + 1) for v in range(rows * rows) if (v + 1) % rows]
    edges += [(v, v + rows) for v in range(rows * (rows - 1))]
    factors += [(edge, coupling * np.eye(states)) for edge in edges]
    return FactorGraph.from_log_tables([states] * rows**2, factors, name=f"potts{states}")


_GRID, _REGULAR, _GLASS = generators.grid, generators.random_regular, generators.regular_glass
_SK, _RBM, _NETWORK = generators.sherrington_kirkpatrick, generators.rbm, networks.bayesian_network
FAMILIES: dict[str, dict[str, Callable[[], Model]]] = {
    "grids": {
        "grid 16 (1, 2)": partial(_GRID, 16, 16, 1.0, 2.0, seed=1),
        "grid 24 (1, 1)": partial(_GRID, 24, 24, 1.0, 1.0, seed=2),
        "grid 24 (0.5, 3) centred": partial(_GRID, 24, 24, 0.5, 3.0, "frustrated_centred", seed=3),
        "grid 25 (1, 4)": partial(_GRID, 25, 25, 1.0, 4.0, seed=4),
        "planar glass 20": partial(generators.planar_glass, 20, 20, 0.8, seed=5),
    },
    "ferromagnets": {
        "torus 11 (0.3)": partial(generators.torus, 11, 11, 0.3, 0.1),
        "torus 11 (0.43)": partial(generators.torus, 11, 11, 0.43, 0.02),
        "torus 10 (0.6)": partial(generators.torus, 10, 10, 0.6, 0.02),
        "random field 24": partial(generators.random_field, 24, 24, 0.44, 0.2, seed=6),
        "random field 20": partial(generators.random_field, 20, 20, 0.8, 0.8, seed=7),
    },
    "sparse glasses": {
        "regular 3 (1, 1)": partial(_REGULAR, 120, 3, 1.0, 1.0, seed=8),
        "regular 3 (1, 3)": partial(_REGULAR, 110, 3, 1.0, 3.0, seed=9),
        "regular 4 (1, 2)": partial(_REGULAR, 60, 4, 1.0, 2.0, seed=10),
        "glass 3 (1)": partial(_GLASS, 120, 3, 1.0, seed=11),
        "glass 3 (2)": partial(_GLASS, 110, 3, 2.0, seed=12),
        "chimera": partial(generators.chimera, 4, 4, 4, 1.0, 1.0, seed=13),
    },
    "dense": {
        "SK 24 (0.5)": partial(_SK, 24, 0.5, 0.05, seed=14),
        "SK 24 (1)": partial(_SK, 24, 1.0, 0.05, seed=15),
        "SK 24 (2)": partial(_SK, 24, 2.0, 0.05, seed=16),
        "complete 24 (0.5)": partial(generators.complete, 24, 1.0, 0.5, seed=17),
        "complete 24 (1.5)": partial(generators.complete, 24, 1.0, 1.5, seed=18),
    },
    "machines": {
        "rbm 60 20 (0.5)": partial(_RBM, 60, 20, 1.0, 0.5, seed=19),
        "rbm 60 20 (1)": partial(_RBM, 60, 20, 1.0, 1.0, seed=20),
        "rbm 22 22 (2)": partial(_RBM, 22, 22, 0.5, 2.0, seed=21),
        "digits_rbm16": partial(catalogue.load, "boltzmann/digits_rbm16"),
        "digits_lattice": partial(catalogue.load, "boltzmann/digits_lattice"),
    },
    "many states": {
        "4 states (1)": partial(random_tables, 9, 4, 1.0, 0.0, 2, 22),
        "3 states (2)": partial(random_tables, 10, 3, 2.0, 0.0, 2, 23),
        "potts 3": partial(potts, 11, 3, 0.9, 24),
        "potts 5": partial(potts, 8, 5, 1.3, 25),
        "2 states, order 3": partial(random_tables, 10, 2, 1.5, 0.0, 3, 26),
    },
    "zeros": {
        "3 states, zeros 0.2": partial(random_tables, 10, 3, 1.0, 0.2, 2, 27),
        "4 states, zeros 0.5": partial(random_tables, 9, 4, 1.0, 0.5, 2, 28),
        "2 states, order 3, zeros 0.2": partial(random_tables, 10, 2, 1.0, 0.2, 3, 29),
        "5 states, zeros 0.6": partial(random_tables, 8, 5, 1.0, 0.6, 2, 30),
    },
    "networks": {
        "network 30 (0.3)": partial(_NETWORK, 6, 30, 2, 0.3, 2, 10, 31),
        "network 30 (0.8)": partial(_NETWORK, 6, 30, 2, 0.8, 2, 12, 32),
        "network 20, 3 states (0.5)": partial(_NETWORK, 5, 20, 2, 0.5, 3, 8, 33),
        "network 25, 3 states (0)": partial(_NETWORK, 4, 25, 2, 0.0, 3, 8, 34),
        "network 18, 3 parents (0.7)": partial(_NETWORK, 5, 18, 3, 0.7, 2, 8, 35),
        "alarm": partial(catalogue.load, "libdai/alarm"),
    },
    "shortcuts": {
        "tree 120 + 25": partial(generators.shortcut_tree, 120, 25, 1.0, 3.0, seed=36),
        "tree 200 + 60": partial(generators.shortcut_tree, 200, 60, 1.0, 1.0, seed=37),
        "tree 160 + 60": partial(generators.shortcut_tree, 160, 60, 1.0, 4.0, seed=38),
    },
}


def models(families: list[str]) -> Iterator[tuple[str, str, Callable[[], Model]]]:
    """Family, name, and what makes the model, of families in turn; of all where none is named."""
    lists = [[(family, name, make) for name, make in FAMILIES[family].items()] for family in families or FAMILIES]
    for row in itertools.zip_longest(*lists):
        yield from (each for each in row if each is not None)


def record(path: Path, seconds: float, part: str, families: list[str]) -> None:
    """Add a row for each run that the file lacks, of one part of the models."""
    number, parts = map(int, part.split("/"))
    done = set[tuple[str, str]]()
    if path.exists():
        rows = pd.read_csv(path)
        done = set(zip(rows["model"], rows["method"], strict=True))
    for family, name, make in list(models(families))[number::parts]:
        model = make()
        every = default(portfolio.read_table().methods)
        candidates = [each for each in every if (name, each.name_with_settings) not in done]
        if not candidates:
            continue
        exact = spinbench.exact(model)
        for candidate in candidates:
            label = candidate.name_with_settings
            row = {"family": family, "model": name, "method": label, "seconds": seconds}
            errors = run_error(model, exact, candidate, seconds)
            line = pd.DataFrame([row | errors])
            line.to_csv(path, mode="a", header=not path.exists(), index=False)
            print(line.to_string(index=False, header=False), flush=True)


def tabulate(runs: pd.DataFrame) -> dict[str, Any]:
    """What is shipped, of rows of runs."""
    made = {name: make for _, name, make in models([])}
    names = [name for name in made if name in set(runs["model"])]
    methods = list(dict.fromkeys(runs["method"]))
    content: dict[str, Any] = {
        "command": "python benchmarks/portfolio.py fit",
        "versions": {package: importlib.metadata.version(package) for package in ("spinbench", "numpy", "numba")},
        "seconds": float(runs["seconds"].iloc[0]),
        "runs": len(runs),
        "models": names,
        "methods": methods,
        "features": [np.round(features(made[name]()), 3).tolist() for name in names],
        "log10_errors": {},
    }
    for target in TARGETS:
        errors = runs.pivot_table(target, "model", "method").reindex(index=names, columns=methods)
        errors = errors.fillna(np.inf).clip(LEAST_ERROR[target], LARGEST_ERROR[target])
        content["log10_errors"][target] = np.log10(errors).round(2).to_numpy().tolist()
    return content


def run_error(model: Model, exact: spinbench.Result, candidate: Candidate, seconds: float) -> dict[Target, float]:
    """Error of each target after so many CPU seconds; infinite where there is no answer."""
    try:
        result = spinbench.run(model, candidate.method_with_settings, candidate.backend, f"{seconds:g} s cpu")
    except (SpinbenchError, ArithmeticError, np.linalg.LinAlgError):
        return dict.fromkeys(TARGETS, np.inf)
    return {target: error_of(result, exact, target) for target in TARGETS}


def error_of(result: spinbench.Result, exact: spinbench.Result, target: Target) -> float:
    """Error of the target; infinite where there is none."""
    if target == "log_z":
        if result.log_z is None or exact.log_z is None or result.log_z_kind not in ("estimate", "exact"):
            return np.inf
        return abs(result.log_z - exact.log_z)
    estimate, true = flat(result.marginals), flat(exact.marginals)
    if estimate is None or true is None or not np.isfinite(estimate).all():
        return np.inf
    return float(np.sqrt(np.mean((estimate - true) ** 2)))


def report(runs: pd.DataFrame, seconds: float, part: str, families: list[str]) -> None:
    """A line for each model and target: errors of `advise` and of the best method, and geometric means of their ratio.

    The best is that of the two that were best in the recorded runs.
    """
    rows = []
    number, parts = map(int, part.split("/"))
    for family, name, make in list(models(families))[number::parts]:
        recorded = runs[runs["model"] == name].set_index("method")
        if recorded.empty:
            continue
        without = tabulate(runs[runs["family"] != family])
        vars(portfolio)["read_table"] = partial(portfolio.parse_table, without)
        model = make()
        exact = spinbench.exact(model)
        candidates = default(portfolio.read_table().methods)
        best = {label for target in TARGETS for label in recorded[target].nsmallest(2).index}
        errors = [run_error(model, exact, each, seconds) for each in candidates if each.name_with_settings in best]
        for target in TARGETS:
            advice = None
            with contextlib.suppress(SpinbenchError):
                entrants = [(each.method_with_settings, each.backend) for each in candidates]
                advice = spinbench.advise(model, f"{seconds:g} s cpu", target, entrants)
            least = max(min(error[target] for error in errors), LEAST_ERROR[target])
            error = max(error_of(advice.answer, exact, target), LEAST_ERROR[target]) if advice else NO_ANSWER * least
            row = {"family": family, "model": name, "target": target, "error": error, "best": least}
            winner = {"winner": advice.answer.method if advice else "", "resolved": bool(advice and advice.resolved)}
            rows.append(row | winner)
            print(*rows[-1].values(), sep="\t", flush=True)
    table = pd.DataFrame(rows)
    ratios = np.log(table["error"] / table["best"])
    print(np.exp(ratios.groupby(table["target"]).mean()).round(2).to_string())


def dump(value: object) -> str:
    """JSON with a row a line."""
    text = json.dumps(value)
    return text.replace("], [", "],\n[")


def main() -> None:
    """Do what the first argument says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=("record", "fit", "report"))
    parser.add_argument("runs", type=Path)
    parser.add_argument("--seconds", type=float, default=2.0, help="of the CPU, of each run")
    parser.add_argument("--part", default="0/1", help="which of how many parts of the models")
    parser.add_argument("families", nargs="*", help="of models; default: all")
    options = parser.parse_args()
    if options.action == "record":
        record(options.runs, options.seconds, options.part, options.families)
    elif options.action == "fit":
        content = tabulate(pd.read_csv(options.runs))
        print("{" + ",\n".join(f"{json.dumps(key)}: {dump(value)}" for key, value in content.items()) + "}")
    else:
        report(pd.read_csv(options.runs), options.seconds, options.part, options.families)


if __name__ == "__main__":
    main()
