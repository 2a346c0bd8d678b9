"""Exact answers from all solvers that there are: NumPy's, and compiled ones where they pay.

The solvers of `spinbench.reference` are those of the kernel exact.numpy; exact.numba brings its own for some of their
names, and one for grids. What is here joins the two: nothing is loaded that needs a compiler until it is worth it. And
it makes results of answers.
"""

from __future__ import annotations

import functools
import math
import time
from typing import TYPE_CHECKING

import numpy as np

from spinbench import reference
from spinbench.api import Estimate
from spinbench.api.bounds import stated
from spinbench.errors import SpinbenchError
from spinbench.inference import batch_timings, kernels, origins, registry, result
from spinbench.inference.budget import parse_seconds
from spinbench.inference.marginals import wrap_marginals
from spinbench.inference.stored_states.source import RunSource
from spinbench.reference import NUMPY_SOLVERS, ExactAnswer, Solvers, choice, memory
from spinbench.reference.elimination import bucket_tree, matrix_tree
from spinbench.reference.orders.order import ENTRY_SECONDS
from spinbench.reference.solvers import MANY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from spinbench.models import Model
    from spinbench.reference.network import IntArray
    from spinbench.reference.problem import Problem
    from spinbench.reference.solver import Solver

# NumPy has to be slower by this many seconds for loading compiled code to pay.
_LONG = 1.5


def loading_seconds() -> float:
    """What importing and compiling solvers has taken in this process so far."""
    if not _load_solvers.cache_info().currsize:
        return 0.0
    solvers, seconds = _load_solvers()
    return seconds + solvers.loading_seconds()


def numba_solvers() -> Solvers:
    """Those of the kernel exact.numba; loads Numba.

    Raises:
        UnavailableError: Numba is not installed.
        BrokenPluginError: it does not load.
    """
    return _load_solvers()[0]


@functools.cache
def _load_solvers() -> tuple[Solvers, float]:
    """The compiled solvers, and the seconds that importing them took."""
    since = time.perf_counter()
    registry.require_support("exact", "numba", "float64")
    # The constructor sets the folder of compiled code before any kernel is loaded.
    registry.backend_class("numba")()
    solvers: Solvers = kernels.load(kernels.candidates("exact", "numba")[0]).solvers
    return solvers, time.perf_counter() - since


class _Grid:
    """In compiled code alone: for grids only, and for narrow ones once NumPy's bucket trees have taken
    as long as loading it would: who has loaded it has not compiled it yet."""

    can_sample = False

    def __init__(self) -> None:
        self.spent, self.built = 0.0, False

    def passed_by(self, problem: Problem) -> bool:
        """Whether a bucket tree in NumPy has the answer before compiled code is loaded."""
        rows, columns = problem.sites.shape
        entries = rows * columns * 2.0 ** min(columns + 1, 1000)
        seconds = entries * (bucket_tree.BucketTree.entry_seconds + bucket_tree.BucketTree.message_seconds / 2)
        seconds += rows * columns * bucket_tree.BucketTree.variable_seconds
        if self.built or rows * columns > MANY or self.spent + seconds > _LONG:
            return False
        self.spent += seconds
        return True

    def build(self, problem: Problem) -> Solver:
        # Reading `sites` raises NotApplicableError if the model is not a grid.
        _ = problem.sites
        self.built = True
        return numba_solvers().kinds["grid"].build(problem)


class _WherePays:
    """Bucket trees in NumPy, or in compiled code where it is so much faster that loading it pays."""

    can_sample = True

    def passed_by(self, problem: Problem) -> bool:
        """Never: `build` chooses."""
        return False

    def build(self, problem: Problem) -> Solver:
        """NumPy's, unless the compiled one is predicted to be ahead by `_LONG`: it takes 2.5 `ENTRY_SECONDS` an
        entry or more, and is there for many variables, whose plan in Python takes longer than loading it."""
        if len(problem.cardinalities) > MANY:
            return numba_solvers().kinds["bucket_tree"].build(problem)
        solver = matrix_tree.MatrixTree.build(problem)
        entries = problem.order.entries if solver.planned else math.inf
        if solver.seconds > _LONG + 2.5 * ENTRY_SECONDS * entries:
            compiled = numba_solvers().kinds["bucket_tree"].build(problem)
            if compiled.seconds + _LONG < solver.seconds:
                return compiled
        return solver


ALL_SOLVERS = Solvers(
    {
        **NUMPY_SOLVERS.kinds,
        "grid": _Grid(),
        "bucket_tree": _WherePays(),
    },
    compiled_from=MANY,
    loading_seconds=loading_seconds,
)
"""Each in NumPy or in compiled code, whichever is done sooner, the loading of compiled code included."""


def solve(
    model: Model,
    *,
    method: str = "auto",
    marginals: bool = True,
    max_bytes: int | None = None,
    seconds: float = choice.DEFAULT_SECONDS,
    order: Sequence[int] | None = None,
    cache: bool = True,
) -> ExactAnswer:
    """As `spinbench.reference.solve`, with compiled code where it pays."""
    return reference.solve(
        model,
        method=method,
        marginals=marginals,
        max_bytes=max_bytes,
        seconds=seconds,
        order=order,
        cache=cache,
        solvers=ALL_SOLVERS,
    )


def sample(
    model: Model,
    count: int,
    seed: int | np.random.Generator = 0,
    *,
    method: str = "auto",
    max_bytes: int | None = None,
) -> IntArray:
    """As `spinbench.reference.sample`, with compiled code where it pays."""
    return reference.sample(model, count, seed, method=method, max_bytes=max_bytes, solvers=ALL_SOLVERS)


def bytes_allowed(max_gib: object) -> int:
    """Bytes that an exact answer may take: of a number of GiB, or by default (None) half of what is free.

    Raises:
        SpinbenchError: it is no such number.
    """
    if max_gib is None:
        return memory.default_max_bytes()
    if isinstance(max_gib, bool) or not (
        isinstance(max_gib, int | float | np.number) and 0 < max_gib <= memory.MAX_GIB
    ):
        raise SpinbenchError(f"exact: max_gib={max_gib!r} was given; a positive number is needed, 2^33 at most")
    return max(int(max_gib * 2**30), 1)


def seconds_allowed(budget: str | None) -> float:
    """Seconds that an exact answer may be predicted to take: of a text such as "60 s", or by default ten minutes.

    Raises:
        BudgetError: it is no such text, a number of samples, or of the CPU.
    """
    if budget is None:
        return choice.DEFAULT_SECONDS
    return parse_seconds(budget, "an exact answer", cpu=False)[0]


def result_of_exact(model: Model, answer: ExactAnswer, max_bytes: int, *, pairs: bool = False) -> result.Result:
    """The result of a model's exact answer; without marginals where the answer has none.

    Args:
        model: that was solved.
        answer: to it.
        max_bytes: memory that finding pairs and the heaviest state may take.
        pairs: as of `spinbench.exact`.
    """
    marginals = None
    if answer.flat is not None:
        marginals = answer.probabilities if model.all_binary else list(answer.marginals)
    answer_estimate = Estimate(
        marginals=marginals,
        log_z=answer.log_z,
        log_z_kind="exact",
        pairs=reference.pairs(model, max_bytes=max_bytes) if pairs else None,
    )
    estimate = wrap_marginals(origins.in_terms_of_origin(model, answer_estimate, draws=1))
    settings, order = {"solver": answer.method}, None
    if answer.cost is not None:
        order = answer.cost.order
        if answer.cost.order_digest:
            settings["order"] = answer.cost.order_digest
    return result.Result(
        marginals=estimate.marginals,
        marginals_se=None,
        log_z=answer.log_z,
        log_z_se=None,
        log_z_kind="exact",
        bounds=stated(answer.log_z, "exact", (), "exact"),
        ess=None,
        r_hat=None,
        seconds=batch_timings.Seconds(compile=answer.compile_seconds, run=answer.seconds),
        samples=1,
        tier="native",
        status="ok",
        method="exact",
        backend=answer.backend,
        model=model.name,
        diagnostics=answer.diagnostics,
        settings=settings,
        order=order,
        source=RunSource(pairs=(estimate.pairs, None), model=model, max_bytes=max_bytes),
    )
