"""Exact answers of many models of one structure at once: the passes of `tree`, over all of them side by side."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from spinbench.api import Estimate
from spinbench.backends.jax import JaxBackend
from spinbench.backends.jax.exact.programs import default_device
from spinbench.backends.jax.exact.tree import JaxTree
from spinbench.errors import IntractableError, ModelError, UnsupportedError
from spinbench.models import Model
from spinbench.models.origin import laid_out
from spinbench.reference import DEFAULT_MAX_BYTES
from spinbench.reference.problem import Problem


def solve(models: Sequence[Model], *, device: str = "cpu", max_bytes: int = DEFAULT_MAX_BYTES) -> list[Estimate]:
    """log Z and all marginals of each of the models, in float64, of those variables that evidence leaves.

    Args:
        models: of the same numbers of states and tables over the same variables, also without what zeros exclude.
        device: "cpu" or "gpu".
        max_bytes: memory of a batch, in bytes; more models are taken one batch after another.

    Returns:
        An exact `Estimate` for each: log Z in nats; marginals (N,) float64 of p(s = 1) where all variables are binary,
        else N arrays (K_v,).

    Raises:
        UnsupportedError: their structures differ.
        IntractableError: one model takes more memory.
        ModelError: no state of some model has positive weight.
    """
    problems = [Problem(model) for model in models]
    if not problems:
        return []
    first = JaxTree.build(problems[0])
    if not first.complete or first.memory(marginals=True) > max_bytes:
        raise IntractableError(f"{models[0].name}: elimination takes more than {max_bytes / 2**30:.3g} GiB")
    for problem in problems:
        if _structure(problem) != _structure(problems[0]):
            raise UnsupportedError(
                f"{problem.name} has other tables or states than {models[0].name}; a batch needs the same"
            )
    at_once = max(1, max_bytes // first.memory(marginals=True))
    parts = [problems[k : k + at_once] for k in range(0, len(problems), at_once)]
    with JaxBackend(precision="float64", device=device).scope():
        return [answer for part in parts for answer in _batch(first, part)]


def _structure(problem: Problem) -> object:
    return problem.cardinalities, tuple(problem.network.tables)


def _batch(first: JaxTree, problems: Sequence[Problem]) -> list[Estimate]:
    import jax

    trees = [JaxTree(problem, first.order) for problem in problems]
    buckets = first.buckets()
    arenas = jax.device_put(np.stack([tree.arena() for tree in trees]), default_device())
    shifts, arenas = first.went_up(buckets, arenas)
    totals = np.array(shifts).reshape(len(shifts), len(trees))
    flat = np.concatenate([np.empty((len(trees), 0)), *first.went_down(buckets, arenas)], axis=1)
    return [_answer(*each) for each in zip(problems, totals.T, flat, strict=True)]


def _answer(problem: Problem, shifts: np.ndarray, flat: np.ndarray) -> Estimate:
    log_z = math.fsum([problem.network.constant, *shifts.tolist()])
    if log_z == -math.inf:
        raise ModelError(f"{problem.name}: no state has positive weight")
    cards = problem.model.cardinalities
    states = problem.decode_marginals(flat)
    return Estimate(
        **laid_out(cards, marginals=states[1::2] if set(cards) <= {2} else states), log_z=log_z, log_z_kind="exact"
    )
