"""Exact log Z, marginals and samples, by a table of solvers, and read from the disk where they are known."""

from __future__ import annotations

import time

import numpy as np

from spinbench.errors import ModelError
from spinbench.models import Model
from spinbench.models.forney.model import ForneyModel
from spinbench.reference import cache as store
from spinbench.reference.answer import ExactAnswer
from spinbench.reference.choice import candidates, check_method, first
from spinbench.reference.network import IntArray
from spinbench.reference.problem import Problem
from spinbench.reference.solvers import NUMPY_SOLVERS, Solvers

DEFAULT_MAX_BYTES = 2**30


def solve(
    model: Model,
    *,
    method: str = "auto",
    marginals: bool = True,
    max_bytes: int = DEFAULT_MAX_BYTES,
    cache: bool = True,
    solvers: Solvers = NUMPY_SOLVERS,
) -> ExactAnswer:
    """Exact log Z and, unless turned off, all single-variable marginals.

    Args:
        model: any model; 1-of-K groups, hard zeros and variables of one state are fine.
        method: one of `METHODS`; "auto" takes the cheapest that fits the model and the memory.
        marginals: whether marginals are wanted.
        max_bytes: memory that the solver may take; checked before it takes any.
        cache: whether to look the answer up, and to store it, on disk.
        solvers: what to choose from; `spinbench.inference.answers.solve` has compiled ones, too.

    Raises:
        ModelError: no state has positive weight (Z = 0).
        IntractableError: too wide for the memory, or too many states.
        UnsupportedError: the named method does not fit this kind of model, or is not among `solvers`.
        UnknownNameError: there is no such method.
    """
    check_method(method, solvers)
    if cache and (found := store.load(model, method, marginals=marginals)) is not None:
        return found
    begin, loaded = time.perf_counter(), solvers.loading_seconds()
    problem = Problem(model)
    solver, (log_z, flat) = first(
        problem,
        candidates(problem, method, solvers, sampling=False),
        max_bytes,
        lambda solver: solver.solve(marginals=marginals),
        marginals=marginals,
    )
    decoded = None if flat is None else problem.decode_marginals(flat)
    elapsed, compiling = time.perf_counter() - begin, solvers.loading_seconds() - loaded
    answer = ExactAnswer(
        log_z,
        decoded,
        model.cardinalities,
        solver.name,
        solver.width,
        seconds=elapsed - compiling,
        compile_seconds=compiling,
        backend=solver.backend,
    )
    if cache:
        store.save(model, method, answer)
    return answer


def sample(
    model: Model,
    count: int,
    seed: int | np.random.Generator = 0,
    *,
    method: str = "auto",
    max_bytes: int = DEFAULT_MAX_BYTES,
    solvers: Solvers = NUMPY_SOLVERS,
) -> IntArray:
    """Exact independent draws, (count, N) int64; the same seed and solver give the same draws.

    Raises:
        ModelError: Z = 0, or a negative count.
        IntractableError, UnsupportedError, UnknownNameError: as for `solve`; some closed forms give no samples.
    """
    check_method(method, solvers)
    if count < 0:
        raise ModelError(f"{model.name}: {count} samples were asked for; the count must not be negative")
    problem = Problem(model)
    rng = np.random.default_rng(seed)
    chosen = candidates(problem, method, solvers, sampling=True)
    _, states = first(problem, chosen, max_bytes, lambda solver: solver.sample(count, rng), marginals=True)
    return problem.coding.decode_states(states)


def forney_log_z(model: ForneyModel, *, max_bytes: int = DEFAULT_MAX_BYTES) -> float:
    """log Z of a Forney model.

    Raises:
        ModelError: Z = 0.
        IntractableError: too wide for the memory.
    """
    if not model.num_edges:
        return model.log_constant
    return solve(model.to_factor_graph(), marginals=False, cache=False, max_bytes=max_bytes).log_z
