"""Who can give bounds on log Z, for which share of a budget, and what each does with it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

from spinbench.api.bounds import Bound
from spinbench.errors import IntractableError, SpinbenchError, UnsupportedError
from spinbench.foundation import deadline
from spinbench.inference import answers, budget, registry, runner
from spinbench.inference.bracketing import annealing, mini_buckets
from spinbench.inference.bracketing.interval import Finding
from spinbench.inference.checks import best_states
from spinbench.models import FactorGraph, Model, PairwiseModel, generators, to_pairwise
from spinbench.models.simplification import compute_simplification
from spinbench.reference.choice import Limits, candidates, first_answer
from spinbench.reference.problem import Problem
from spinbench.reference.solver import Solver

# In order of preference.
BACKENDS = ("numba", "numpy")


class BoundRequest(NamedTuple):
    """What a source is asked.

    Attributes:
        model: whose log Z.
        name: of the source.
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
class BoundSource:
    """Somebody who gives bounds.

    Attributes:
        name: of a method, or "best states".
        share: of the budget; 0: all that is left.
        kept_share: share that those before it leave it, however long they take.
    """

    name: str
    share: float
    kept_share: float = 0.0


MEAN_FIELD = "mf"
# Sweeps of mean field, whose value is a bound before it has converged, too: after 20 it was within 1e-5 nats of its
# limit on grids, regular graphs and three networks of UAI 2014.
MEAN_FIELD_SWEEPS = 30
# Fast sources first, so that there is a bracket early.
PLAN = (
    BoundSource(best_states.BY, 0.05),
    BoundSource(MEAN_FIELD, 0.05),
    BoundSource("exact", 0.2),
    BoundSource("gaussian_bound", 0.3),
    BoundSource("trw", 0.04),
    BoundSource("g_mf", 0.04),
    BoundSource("g_bp", 0.06),
    BoundSource(annealing.NAME, 0.08),
    BoundSource(mini_buckets.LOWER, 0.3, kept_share=0.1),
    BoundSource(mini_buckets.UPPER, 0.0, kept_share=0.5),
)
# Additional source for bounds that assume that the final states of tempering are draws of the model.
ASSUMING = BoundSource(annealing.REVERSE, 0.15)


# Number of probable bounds from draws, which share delta equally.
LOOKS = len(mini_buckets.ROUNDS) + 2
# The Gaussian bound is used if the mean degree is above N / DENSE, where it was tighter than mini-buckets.
DENSE = 4


def find_bounds(request: BoundRequest) -> Iterator[Finding]:
    """What the source finds.

    Raises:
        SpinbenchError: it cannot.
    """
    yield from _SEARCHES.get(request.name, _run)(request)


def find_quick_bounds(model: Model, seed: int) -> Iterator[Bound]:
    """Lower bounds that need no compiler: mean field's, then what heavy states weigh together."""
    with suppress(UnsupportedError):
        yield from runner.run(model, MEAN_FIELD, BACKENDS[-1], MEAN_FIELD_SWEEPS, seed=seed).bounds
    yield from best_states.bounds_below(model, seed)


def load(model: Model) -> None:
    """Load, or compile, what the methods of the plan run: on a model of this kind, but a small one."""
    small: Model = PairwiseModel.from_edges([0.1, 0.2, 0.3], [(0, 1), (1, 2), (0, 2)], [0.1, 0.2, 0.3])
    if isinstance(model, FactorGraph):
        table = [[0.1, 0.2], [0.3, 0.4]]
        small = FactorGraph.from_tables([2, 2, 2], [((0, 1), table), ((1, 2), table), ((0, 2), table)])
    for each in PLAN:
        if each.name not in _SEARCHES:
            runner.run(small, each.name, _backend(each.name), 8, chains=2, simplify=False)
    list(annealing.anneal(small, _backend(annealing.NAME), 0, 0.01, 0.1))
    list(mini_buckets.raise_lower(small, _backend(mini_buckets.LOWER), 0.1, 0.1))
    list(mini_buckets.tighten(small, _backend(mini_buckets.UPPER), 0, 1.0))
    if registry.support("exact", "numba").runs:
        kinds = answers.numba_solvers().kinds
        for name, fitting in (("rbm", generators.rbm(2, 2)), ("grid", generators.grid(2, 2)), ("bucket_tree", small)):
            kinds[name].build(Problem(fitting)).solve(marginals=False)


def _exact(request: BoundRequest) -> Iterator[Finding]:
    """Where the solver itself expects to be ready in time."""

    def solve(solver: Solver) -> float:
        seconds = solver.predict_seconds(marginals=False)
        if seconds > request.seconds:
            raise IntractableError(f"{solver.name} would take about {seconds:.2g} s")
        return solver.solve(marginals=False)[0]

    problem = Problem(compute_simplification(request.model).model)
    solvers = candidates(problem, "auto", answers.ALL_SOLVERS, sampling=False)
    _, log_z = first_answer(problem, solvers, Limits(int(request.max_gib * 2**30)), solve, marginals=False)
    yield Finding(tuple(Bound(log_z, side, "exact", by="exact") for side in ("lower", "upper")))


def _gaussian(request: BoundRequest) -> Iterator[Finding]:
    """Where models are dense: elsewhere wmb is better."""
    model = to_pairwise(request.model, one_of_k=False)
    if DENSE * 2 * model.num_edges < model.num_variables**2:
        raise UnsupportedError(
            f"{model.name} is not dense: of {DENSE} variables, less than one is a neighbour in the mean"
        )
    yield from _run(request, delta=request.delta / LOOKS)


def _run(request: BoundRequest, **settings: Any) -> Iterator[Finding]:
    result = runner.run(
        request.model,
        request.name,
        _backend(request.name),
        budget.Budget(seconds=request.seconds, cpu=deadline.on_cpu()),
        seed=request.seed,
        checkpoints=1,
        **settings,
    )
    finding = Finding(result.bounds, by=request.name)
    if result.log_z_kind == "estimate":
        numbers = result.log_z, result.log_z_se, result.log_z_error_bound
        finding = Finding(result.bounds, *numbers, result.status == "ok", request.name)
    yield finding


def _backend(method: str) -> str:
    """The first that runs it here.

    Raises:
        SpinbenchError: none does.
    """
    supports = {backend: registry.support(method, backend) for backend in BACKENDS}
    first = next((backend for backend, support in supports.items() if support.runs), None)
    if first is None:
        raise SpinbenchError("; ".join(support.reason for support in supports.values()))
    return first


# Where draws give a bound each look has its share of delta; what is not named here is run.
_SEARCHES: dict[str, Callable[[BoundRequest], Iterator[Finding]]] = {
    best_states.BY: lambda request: (
        Finding((bound,)) for bound in best_states.bounds_below(request.model, request.seed)
    ),
    "exact": _exact,
    "gaussian_bound": _gaussian,
    annealing.NAME: lambda request: annealing.anneal(
        request.model, _backend(request.name), request.seed, request.seconds, request.delta / LOOKS
    ),
    annealing.REVERSE: lambda request: annealing.anneal_backwards(
        request.model, request.seed, request.seconds, request.delta
    ),
    mini_buckets.LOWER: lambda request: mini_buckets.raise_lower(
        request.model, _backend(request.name), request.seconds, request.max_gib
    ),
    mini_buckets.UPPER: lambda request: mini_buckets.tighten(
        request.model,
        _backend(request.name),
        request.seed,
        request.seconds,
        delta=request.delta / LOOKS,
        max_gib=request.max_gib,
    ),
}
