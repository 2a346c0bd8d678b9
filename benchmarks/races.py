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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.advising.candidates import Entrants, parsed
from spinbench.inference.advising.ranking import Target, flat
from spinbench.inference.registry import make_method
from spinbench.models import FactorGraph, Model, catalogue
from spinbench.models.generators import (
    Kind,
    chimera,
    complete,
    grid,
    random_field,
    random_regular,
    rbm,
    regular_glass,
    sherrington_kirkpatrick,
    shortcut_tree,
    torus,
)

ENTRANTS: Entrants = (
    ("gibbs", {}),
    ("wmb", {"ibound": 7}),
    ("bp", {}),
    ("pt", {}),
    ("smc", {}),
    ("blocks", {"size": 256}),
    ("swendsen_wang", {}),
    ("blocks", {}),
)
FLOOR: dict[Target, float] = {"marginals": 1e-4, "log_z": 1e-3}
"""An error below it counts as it."""
GROSS: dict[Target, float] = {"marginals": 0.05, "log_z": 0.05}
SHIPPED = (
    *("uai14/DBN_14", "uai14/CSP_12", "uai14/ObjectDetection_11", "uai14/Segmentation_14", "libdai/alarm"),
    *("uai14hard/Alchemy_11", "uai14hard/CSP_11", "uai14hard/Grids_15", "boltzmann/digits_rbm16"),
)


class Row(NamedTuple):
    """One race.

    Attributes:
        model, seed: of it.
        resolved, winner: as it said.
        error, claim: of its answer; nan where it gave none.
        then: errors of each candidate with the winner's seconds.
        whole: with all of the race's; none after a model's first race.
    """

    model: str
    seed: int
    resolved: bool
    winner: str
    error: float
    claim: float
    then: Mapping[str, float]
    whole: Mapping[str, float]


def many_states(rows: int, states: int, spread: float, zeros: float, order: int, seed: int) -> FactorGraph:
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


def drawn(seed: int) -> Iterator[tuple[str, Callable[[], Model]]]:
    """Names and models."""
    for c1, c2 in ((1.0, 0.5), (1.0, 2.0), (1.0, 4.0), (0.1, 3.0)):
        yield f"grid 10 ({c1:g}, {c2:g})", partial(grid, 10, 10, c1, c2, seed=seed)
    kinds: tuple[tuple[float, float, Kind], ...] = (
        (1.0, 2.0, "standard"),
        (0.5, 2.0, "frustrated_centred"),
        (1.0, 1.0, "standard"),
    )
    for c1, c2, kind in kinds:
        yield f"grid 16 ({c1:g}, {c2:g}) {kind}", partial(grid, 16, 16, c1, c2, kind, seed=seed)
    for beta in (0.5, 1.0, 1.5):
        yield f"SK 22 {beta:g}", partial(sherrington_kirkpatrick, 22, beta, 0.05, seed=seed)
    yield "complete 20", partial(complete, 20, 1.0, 0.5, seed=seed)
    for coupling, field in ((0.3, 0.1), (0.44, 0.02), (0.7, 0.02)):
        yield f"torus 10 {coupling:g}", partial(torus, 10, 10, coupling, field)
    for degree, c2 in ((3, 1.0), (3, 3.0), (4, 2.0)):
        yield f"regular {degree} ({c2:g})", partial(random_regular, 48, degree, 1.0, c2, seed=seed)
    for beta in (1.0, 2.0):
        yield f"glass {beta:g}", partial(regular_glass, 50, 3, beta, seed=seed)
    yield "chimera", partial(chimera, 2, 2, 4, 1.0, 1.0, seed=seed)
    for visible, c2 in ((30, 0.5), (20, 1.5)):
        yield f"rbm {visible} ({c2:g})", partial(rbm, visible, 12, 1.0, c2, seed=seed)
    yield "shortcuts", partial(shortcut_tree, 120, 25, 1.0, 3.0, seed=seed)
    yield "random field", partial(random_field, 12, 12, seed=seed)
    for states, spread, zeros, order in ((3, 1.0, 0.0, 2), (4, 2.0, 0.0, 2), (3, 1.0, 0.2, 2), (2, 1.5, 0.0, 3)):
        name = f"{states} states, order {order}, zeros {zeros:g}"
        yield name, partial(many_states, 7, states, spread, zeros, order, seed=seed)
    for name in SHIPPED:
        yield name, partial(catalogue.load, name)


def candidates() -> list[Any]:
    """Methods with settings."""
    return [make_method(name, dict(settings)) for name, settings in ENTRANTS]


def off(result: spinbench.Result, exact: spinbench.Result, target: Target) -> float:
    """Error of the target; infinite where there is none."""
    if target == "log_z":
        if result.log_z is None or exact.log_z is None or result.log_z_kind not in ("estimate", "exact"):
            return np.inf
        return abs(result.log_z - exact.log_z)
    found, true = flat(result.marginals), flat(exact.marginals)
    if found is None or true is None or not np.isfinite(found).all():
        return np.inf
    return float(np.sqrt(np.mean((found - true) ** 2)))


def errors(model: Model, exact: spinbench.Result, target: Target, seconds: float, seed: int) -> dict[str, float]:
    """Of each candidate; infinite where it cannot."""
    found = dict[str, float]()
    for candidate in parsed(candidates(), model)[0]:
        made, budget = candidate.made, f"{max(seconds, 0.01):.4g} s"
        try:
            result = spinbench.run(model, made, candidate.backend, budget, seed=seed)
        except (SpinbenchError, ArithmeticError, np.linalg.LinAlgError):
            found[candidate.label] = np.inf
        else:
            found[candidate.label] = off(result, exact, target)
    return found


def race(name: str, model: Model, target: Target, seed: int, seconds: float) -> Row:
    exact = spinbench.exact(model)
    try:
        told = spinbench.advise(model, f"{seconds:g} s", target, candidates(), seed)
    except SpinbenchError as error:
        print(f"{name}: {error}")
        return Row(name, seed, False, "", np.nan, np.nan, {}, {})
    last = told.answer.seconds.burn_in + told.answer.seconds.run
    winner = next((entry.candidate for entry in told.race if entry.fate == "won"), "exact")
    then = errors(model, exact, target, last, seed + 1)
    whole = {} if seed else errors(model, exact, target, seconds, seed + 1)
    return Row(name, seed, told.resolved, winner, off(told.answer, exact, target), told.error, then, whole)


def told(row: Row) -> list[str]:
    """A line of a race: its error and claim, and the best of the others."""
    word = "resolved" if row.resolved else "unresolved"
    best = [min(found.items(), key=lambda of: of[1], default=("", np.nan)) for found in (row.then, row.whole)]
    numbers = [f"{row.error:.3g}", f"{row.claim:.3g}", *(f"{name} {error:.3g}" for name, error in best)]
    return [row.model, str(row.seed), word, row.winner, *numbers]


def mean(ratios: Iterable[float]) -> float:
    """Geometric."""
    kept = [ratio for ratio in ratios if np.isfinite(ratio) and ratio > 0]
    return float(np.exp(np.mean(np.log(kept)))) if kept else np.nan


def least(found: Sequence[Mapping[str, float]], floor: float) -> dict[str, float]:
    """Root mean squares over races, not below the floor."""
    return {name: rms([each[name] for each in found if each], floor) for name in next(filter(None, found), {})}


def rms(found: Sequence[float], floor: float) -> float:
    return max(float(np.sqrt(np.mean(np.square(found)))), floor)


def summary(rows: Sequence[Row], target: Target) -> Table:
    table, floor = Table("of", "number", "value"), FLOOR[target]
    told = [row for row in rows if np.isfinite(row.error)]
    resolved = [row for row in told if row.resolved]
    for word, part in (("all", told), ("resolved", resolved)):
        models = [[row for row in part if row.model == name] for name in dict.fromkeys(row.model for row in part)]
        own = [rms([row.error for row in races], floor) for races in models]
        then = [least([row.then for row in races], floor) for races in models]
        whole = [least([row.whole for row in races], floor) for races in models]
        charged = [e / min(other.values()) for e, other in zip(own, whole, strict=True) if other]
        told_of = {
            "regret, the winner's seconds": [e / min(other.values()) for e, other in zip(own, then, strict=True)],
            "regret, all of the race's": charged,
            "gibbs / winner": [other.get("gibbs.numba", np.inf) / e for e, other in zip(own, then, strict=True)],
        }
        for name, ratios in told_of.items():
            table.add_row(f"{name}, {word}", f"{len(ratios)} models", f"{mean(ratios):.2f}")
    wrong = [row for row in resolved if row.error > GROSS[target] and row.error > 3 * row.claim]
    beyond = [row for row in resolved if row.error > 3 * max(row.claim, floor / 3)]
    table.add_row("resolved", f"{len(rows)} races", str(len(resolved)))
    table.add_row(f"over {GROSS[target]:g} and over 3 claims off", f"{len(resolved)} resolved", str(len(wrong)))
    table.add_row("over 3 claims off", f"{len(resolved)} resolved", str(len(beyond)))
    table.add_row("no answer", f"{len(rows)} races", str(len(rows) - len(told)))
    return table


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", choices=list(FLOOR), default="marginals")
    parser.add_argument("--seeds", type=int, default=3, help="races of each model")
    parser.add_argument("--seconds", type=float, default=1.0, help="of a race")
    parser.add_argument("--first", type=int, default=0, help="seed of the models")
    parser.add_argument("models", nargs="*", help="names of models, or parts of them; default: all")
    given = parser.parse_args()
    rows: list[Row] = []
    for name, make in drawn(given.first):
        if given.models and not any(part in name for part in given.models):
            continue
        for seed in range(given.seeds):
            rows.append(race(name, make(), given.target, seed, given.seconds))
            print(*told(rows[-1]), sep="\t", flush=True)
    Console(width=120).print(summary(rows, given.target))


if __name__ == "__main__":
    main()
