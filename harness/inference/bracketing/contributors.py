"""Who can give bounds on log Z, for which share of a budget, and what each does with it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from spinbench.api.bounds import Bound
from spinbench.errors import IntractableError, SpinbenchError, UnsupportedError
from spinbench.inference import registry
from spinbench.inference.answers import ALL_SOLVERS, compiled_solvers
from spinbench.inference.bracketing import annealing, lower_buckets, mini_buckets, reverse, states
from spinbench.inference.bracketing.interval import News
from spinbench.inference.probing.weighed import BY as BEST_STATES
from spinbench.inference.runner import run
from spinbench.models import FactorGraph, Model, PairwiseModel, generators, to_pairwise
from spinbench.models.simplification import simplified
from spinbench.reference.choice import Limits, candidates, first
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver

BACKENDS = ("numba", "numpy")
"""In the order in which they are asked."""


class Task(NamedTuple):
    """What a contributor is asked.

    Attributes:
        model: whose log Z.
        name: of the contributor.
        seconds: that it should take.
        seed: of its random numbers.
        delta: with which probability its probable bounds may be wrong.
        max_gib: memory, in GiB.
    """

    model: Model
    name: str
    seconds: float
    seed: int
    delta: float
    max_gib: float


@dataclass(frozen=True)
class Contributor:
    """Somebody who gives bounds.

    Attributes:
        name: of a method, or "best states".
        share: of the budget; 0: all that is left.
        kept: share that those before it leave it, however long they take.
    """

    name: str
    share: float
    kept: float = 0.0


PLAN = (
    Contributor(BEST_STATES, 0.05),
    Contributor("mf", 0.05),
    Contributor("exact", 0.2),
    Contributor("gaussian_bound", 0.3),
    Contributor("trw", 0.04),
    Contributor("g_mf", 0.04),
    Contributor("g_bp", 0.06),
    Contributor(annealing.NAME, 0.08),
    Contributor(lower_buckets.NAME, 0.3, kept=0.1),
    Contributor(mini_buckets.NAME, 0.0, kept=0.5),
)
"""First what is quick, so that there is a bracket at once."""
ASSUMING = Contributor(reverse.NAME, 0.15)
"""Where what assumes that draws are draws of the model is asked for, too."""


LOOKS = len(mini_buckets.ROUNDS) + 2
"""Draws that give probable bounds, each of which has the same share of delta."""
DENSE = 4
"""Of so many variables one is a neighbour, at least."""


def contribute(task: Task) -> Iterator[News]:
    """What the contributor finds.

    Raises:
        SpinbenchError: it cannot.
    """
    yield from _DOING.get(task.name, _run)(task)


def load(model: Model) -> None:
    """Load, or compile, what the methods of the plan run: on a model of this kind, but a small one."""
    small: Model = PairwiseModel.from_edges([0.1, 0.2, 0.3], [(0, 1), (1, 2), (0, 2)], [0.1, 0.2, 0.3])
    if isinstance(model, FactorGraph):
        table = [[0.1, 0.2], [0.3, 0.4]]
        small = FactorGraph.from_tables([2, 2, 2], [((0, 1), table), ((1, 2), table), ((0, 2), table)])
    for each in PLAN:
        if each.name not in _DOING:
            run(small, each.name, _backend(each.name), 8, chains=2, simplify=False)
    list(annealing.news(small, _backend(annealing.NAME), 0, 0.01, 0.1))
    list(lower_buckets.news(small, _backend(lower_buckets.NAME), 0.1, 0.1))
    list(mini_buckets.Rounds(small, _backend(mini_buckets.NAME), 0).news(1.0))
    if registry.support("exact", "numba").runs:
        kinds = compiled_solvers().kinds
        for name, fitting in (("rbm", generators.rbm(2, 2)), ("grid", generators.grid(2, 2)), ("bucket_tree", small)):
            kinds[name].build(Problem(fitting)).solve(marginals=False)


def _states(task: Task) -> Iterator[News]:
    for bound in states.below(task.model, task.seed):
        yield News((bound,))


def _exact(task: Task) -> Iterator[News]:
    """Where the solver itself expects to be ready in time."""

    def solved(solver: Solver) -> float:
        seconds = solver.predict_seconds(marginals=False)
        if seconds > task.seconds:
            raise IntractableError(f"{solver.name} would take about {seconds:.2g} s")
        return solver.solve(marginals=False)[0]

    problem = Problem(simplified(task.model).model)
    solvers = candidates(problem, "auto", ALL_SOLVERS, sampling=False)
    _, log_z = first(problem, solvers, Limits(int(task.max_gib * 2**30)), solved, marginals=False)
    yield News(tuple(Bound(log_z, side, "exact", by="exact") for side in ("lower", "upper")))


def _buckets(task: Task) -> Iterator[News]:
    backend, until = _backend(task.name), time.perf_counter() + task.seconds
    share = task.delta / LOOKS
    rounds = mini_buckets.Rounds(task.model, backend, task.seed, delta=share, max_gib=task.max_gib)
    yield from rounds.news(until - time.perf_counter())


def _annealing(task: Task) -> Iterator[News]:
    yield from annealing.news(task.model, _backend(task.name), task.seed, task.seconds, task.delta / LOOKS)


def _reverse(task: Task) -> Iterator[News]:
    yield from reverse.news(task.model, task.seed, task.seconds, task.delta)


def _lower_buckets(task: Task) -> Iterator[News]:
    yield from lower_buckets.news(task.model, _backend(task.name), task.seconds, task.max_gib)


def _gaussian(task: Task) -> Iterator[News]:
    """Where models are dense: elsewhere wmb is better."""
    model = to_pairwise(task.model, one_of_k=False)
    if DENSE * 2 * model.num_edges < model.num_variables**2:
        raise UnsupportedError(
            f"{model.name} is not dense: of {DENSE} variables, less than one is a neighbour in the mean"
        )
    yield from _run(task, delta=task.delta / LOOKS)


def _run(task: Task, **settings: Any) -> Iterator[News]:
    found = run(
        task.model,
        task.name,
        _backend(task.name),
        f"{task.seconds:g} s",
        seed=task.seed,
        checkpoints=1,
        **settings,
    )
    estimate = found.log_z_kind == "estimate"
    value, error = (found.log_z, found.log_z_se) if estimate else (None, None)
    yield News(found.bounds, value, error, estimate and found.status == "ok", task.name)


def _backend(method: str) -> str:
    """The first that runs it here.

    Raises:
        SpinbenchError: none does.
    """
    told = {backend: registry.support(method, backend) for backend in BACKENDS}
    found = next((backend for backend, support in told.items() if support.runs), None)
    if found is None:
        raise SpinbenchError("; ".join(support.reason for support in told.values()))
    return found


_DOING: dict[str, Callable[[Task], Iterator[News]]] = {
    BEST_STATES: _states,
    "exact": _exact,
    "gaussian_bound": _gaussian,
    annealing.NAME: _annealing,
    reverse.NAME: _reverse,
    lower_buckets.NAME: _lower_buckets,
    mini_buckets.NAME: _buckets,
}
