"""What racing reaches: `spinbench.advise` on models with exact answers, of which it is told nothing.

    python benchmarks/races.py [--target log_z] [--seeds 3] [--seconds 1] [--first 0] [MODEL …]

The error of each answer is held against its own claim. Root mean squares over the races of a model are held against
those of whoever was best in hindsight with the seconds of the winner's last run, of the best of those who had all of
the race's seconds, and of `gibbs`: a single error of log Z is small by luck as often as not, and the least of eight
always. Mini-buckets and blocks are small here, since large ones would be exact. Models are drawn with the seed
`--first`: those that were looked at in development are not those that a figure is taken from.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.advising.candidates import parse
from spinbench.inference.advising.ranking import Target, flat
from spinbench.inference.registry import make_method
from spinbench.models import FactorGraph, Model, catalogue, generators

ENTRANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    *(("gibbs", {}), ("wmb", {"ibound": 7}), ("bp", {}), ("pt", {}), ("smc", {}), ("blocks", {"size": 256})),
    *(("swendsen_wang", {}), ("blocks", {})),
)
# Floors of errors: smaller ones count as these.
SMALLEST_ERROR: dict[Target, float] = {"marginals": 1e-4, "log_z": 1e-3}
GROSS_ERROR = 0.05
SHIPPED = (
    *("uai14/DBN_14", "uai14/CSP_12", "uai14/ObjectDetection_11", "uai14/Segmentation_14", "libdai/alarm"),
    *("uai14hard/Alchemy_11", "uai14hard/CSP_11", "uai14hard/Grids_15", "boltzmann/digits_rbm16"),
)


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


DRAWN: dict[str, Callable[..., Model]] = {
    "grid 10 (1, 0.5)": partial(generators.grid, 10, 10, 1.0, 0.5),
    "grid 10 (1, 2)": partial(generators.grid, 10, 10, 1.0, 2.0),
    "grid 10 (1, 4)": partial(generators.grid, 10, 10, 1.0, 4.0),
    "grid 10 (0.1, 3)": partial(generators.grid, 10, 10, 0.1, 3.0),
    "grid 16 (1, 2) standard": partial(generators.grid, 16, 16, 1.0, 2.0),
    "grid 16 (0.5, 2) frustrated_centred": partial(generators.grid, 16, 16, 0.5, 2.0, "frustrated_centred"),
    "grid 16 (1, 1) standard": partial(generators.grid, 16, 16, 1.0, 1.0),
    "SK 22 0.5": partial(generators.sherrington_kirkpatrick, 22, 0.5, 0.05),
    "SK 22 1": partial(generators.sherrington_kirkpatrick, 22, 1.0, 0.05),
    "SK 22 1.5": partial(generators.sherrington_kirkpatrick, 22, 1.5, 0.05),
    "complete 20": partial(generators.complete, 20, 1.0, 0.5),
    "regular 3 (1)": partial(generators.random_regular, 48, 3, 1.0, 1.0),
    "regular 3 (3)": partial(generators.random_regular, 48, 3, 1.0, 3.0),
    "regular 4 (2)": partial(generators.random_regular, 48, 4, 1.0, 2.0),
    "glass 1": partial(generators.regular_glass, 50, 3, 1.0),
    "glass 2": partial(generators.regular_glass, 50, 3, 2.0),
    "chimera": partial(generators.chimera, 2, 2, 4, 1.0, 1.0),
    "rbm 30 (0.5)": partial(generators.rbm, 30, 12, 1.0, 0.5),
    "rbm 20 (1.5)": partial(generators.rbm, 20, 12, 1.0, 1.5),
    "shortcuts": partial(generators.shortcut_tree, 120, 25, 1.0, 3.0),
    "random field": partial(generators.random_field, 12, 12),
    "3 states, order 2, zeros 0": partial(random_tables, 7, 3, 1.0, 0.0, 2),
    "4 states, order 2, zeros 0": partial(random_tables, 7, 4, 2.0, 0.0, 2),
    "3 states, order 2, zeros 0.2": partial(random_tables, 7, 3, 1.0, 0.2, 2),
    "2 states, order 3, zeros 0": partial(random_tables, 7, 2, 1.5, 0.0, 3),
}
GIVEN: dict[str, Callable[[], Model]] = {
    "torus 10 0.3": partial(generators.torus, 10, 10, 0.3, 0.1),
    "torus 10 0.44": partial(generators.torus, 10, 10, 0.44, 0.02),
    "torus 10 0.7": partial(generators.torus, 10, 10, 0.7, 0.02),
    **{name: partial(catalogue.load, name) for name in SHIPPED},
}


def candidates() -> list[Any]:
    """Methods with settings."""
    return [make_method(name, dict(settings)) for name, settings in ENTRANTS]


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


def errors(model: Model, exact: spinbench.Result, target: Target, seconds: float, seed: int) -> dict[str, float]:
    """Of each candidate that has so many seconds; infinite where it cannot."""
    by_label = dict[str, float]()
    for candidate in parse(candidates())[0]:
        method, budget = candidate.method_with_settings, f"{max(seconds, 0.01):.4g} s"
        try:
            result = spinbench.run(model, method, candidate.backend, budget, seed=seed)
        except (SpinbenchError, ArithmeticError, np.linalg.LinAlgError):
            by_label[candidate.label] = np.inf
        else:
            by_label[candidate.label] = error_of(result, exact, target)
    return by_label


def race(name: str, model: Model, target: Target, seed: int, seconds: float) -> dict[str, Any]:
    """A row: whether it was resolved, by whom, error and claim, and the errors of all candidates with the winner's
    seconds ("then LABEL") and, at a model's first race, with all of the race's ("whole LABEL")."""
    exact = spinbench.exact(model)
    row: dict[str, Any] = {"model": name, "seed": seed, "resolved": False, "winner": "", "error": np.nan}
    try:
        advice = spinbench.advise(model, f"{seconds:g} s", target, candidates(), seed)
    except SpinbenchError as error:
        print(f"{name}: {error}")
        return {**row, "claim": np.nan}
    answer = advice.answer
    winner = next((entry.candidate for entry in advice.race if entry.fate == "won"), "exact")
    row |= {"resolved": advice.resolved, "winner": winner, "claim": advice.error}
    row["error"] = error_of(answer, exact, target)
    then = errors(model, exact, target, answer.seconds.burn_in + answer.seconds.run, seed + 1)
    whole = {} if seed else errors(model, exact, target, seconds, seed + 1)
    row |= {f"then {label}": value for label, value in then.items()}
    return row | {f"whole {label}": value for label, value in whole.items()}


def error_ratios(races: pd.DataFrame, floor: float) -> dict[str, pd.Series[float]]:
    """Ratios of root mean square errors, for each model."""
    numbers = races.select_dtypes("number").drop(columns=["seed", "claim"]) ** 2
    rms = np.sqrt(numbers.groupby(races["model"]).mean()).clip(lower=floor)
    then, whole = (rms.filter(regex=f"^{prefix} ").min(axis=1) for prefix in ("then", "whole"))
    return {
        "regret, the winner's seconds": rms["error"] / then,
        "regret, all of the race's": rms["error"] / whole,
        "gibbs / winner": rms.get("then gibbs.numba", then * np.nan) / rms["error"],
    }


def summarize_races(races: pd.DataFrame, target: Target) -> pd.DataFrame:
    """What stands below the races: each figure, of how many, and its value."""
    floor = SMALLEST_ERROR[target]
    answered = races[np.isfinite(races["error"])]
    resolved = answered[answered["resolved"]]
    rows: list[tuple[str, str, Any]] = []
    for label, part in (("all", answered), ("resolved", resolved)):
        for name, ratios in error_ratios(part, floor).items():
            logarithms = np.log(ratios[np.isfinite(ratios) & (ratios > 0)])
            rows.append((f"{name}, {label}", f"{ratios.notna().sum()} models", f"{np.exp(logarithms.mean()):.2f}"))
    apart = resolved["error"] > 3 * resolved["claim"]
    gross = apart & (resolved["error"] > GROSS_ERROR)
    beyond = resolved["error"] > 3 * resolved["claim"].clip(lower=floor / 3)
    of_resolved = f"{len(resolved)} resolved"
    rows += [
        ("resolved", f"{len(races)} races", len(resolved)),
        (f"over {GROSS_ERROR:g} and over 3 claims off", of_resolved, gross.sum()),
        ("over 3 claims off", of_resolved, beyond.sum()),
        ("no answer", f"{len(races)} races", len(races) - len(answered)),
    ]
    return pd.DataFrame(rows, columns=["of", "number", "value"])


def main() -> None:
    """Print a line a race, its error and claim and the best of the others, and the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=list(SMALLEST_ERROR), default="marginals")
    parser.add_argument("--seeds", type=int, default=3, help="races of each model")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a race")
    parser.add_argument("--first", type=int, default=0, help="seed of the models")
    parser.add_argument("models", nargs="*", help="names of models, or parts of them; default: all")
    options = parser.parse_args()
    models = {name: partial(make, seed=options.first) for name, make in DRAWN.items()} | GIVEN
    races = []
    for name, make in models.items():
        if options.models and not any(part in name for part in options.models):
            continue
        for seed in range(options.seeds):
            row = race(name, make(), options.target, seed, options.seconds)
            others = [
                {label: row[label] for label in row if label.startswith(prefix)} for prefix in ("then ", "whole ")
            ]
            best = [min(labels, key=labels.__getitem__) for labels in others if labels]
            numbers = [f"{row['error']:.3g}", f"{row['claim']:.3g}", *(f"{label} {row[label]:.3g}" for label in best)]
            status = "resolved" if row["resolved"] else "unresolved"
            print(name, seed, status, row["winner"], *numbers, sep="\t", flush=True)
            races.append(row)
    print(summarize_races(pd.DataFrame(races), options.target).to_string(index=False))


if __name__ == "__main__":
    main()
