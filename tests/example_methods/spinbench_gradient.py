"""Gibbs with gradients: a proposal that a derivative makes, on every backend that differentiates."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import (
    Array,
    Backend,
    Estimate,
    Key,
    Method,
    PairwiseModel,
    Program,
    Reduction,
    Trace,
    marginal_claims,
)
from spinbench.errors import UnsupportedError

# A step of N proposals takes N^3 operations.
MAX_VARIABLES = 64


class Tables(NamedTuple):
    """a: (N,) biases. W: (N, N) couplings."""

    a: Any
    W: Any


@dataclass(frozen=True)
class GradientGibbs(Method):
    """Gibbs with gradients (Grathwohl, Swersky, Hashemi, Duvenaud and Maddison, "Oops I took a gradient", ICML 2021).

    A proposal flips s_i with probability q(i | s) ∝ exp(d_i / 2), d_i = (1 - 2 s_i) ∂ log p*(s) / ∂ s_i, and is taken
    with probability min(1, p*(s') q(i | s') / (p*(s) q(i | s))). A step makes N of them.
    """

    name: ClassVar[str] = "gradient_gibbs"
    summary: ClassVar[str] = "Gibbs with gradients"
    requires: ClassVar[tuple[str, ...]] = ("grad",)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        return {"s": "sum"}

    def plan(self, model: PairwiseModel) -> Tables:  # type: ignore[override]
        if model.num_variables > MAX_VARIABLES:
            raise UnsupportedError(f"{model.name}: gradient_gibbs takes at most {MAX_VARIABLES} variables")
        if model.groups:
            raise UnsupportedError(f"{model.name}: gradient_gibbs knows no variables of more than two states")
        return Tables(model.biases, model.dense())

    def program(self, backend: Backend) -> Program:
        xp = backend.xp

        def log_weight(s: Array, tables: Tables) -> Array:
            """(C,) log p*, of real s, too."""
            return xp.sum((tables.a[:, None] + 0.5 * xp.matmul(tables.W, s)) * s, axis=0)

        gradient = backend.grad(lambda s, tables: xp.sum(log_weight(s, tables)))

        def proposal(s: Array, tables: Tables) -> Array:
            """(N, C) log q(i | s)."""
            half = (0.5 - s) * gradient(s, tables)
            top = xp.max(half, axis=0)
            return half - top - xp.log(xp.sum(xp.exp(half - top), axis=0))

        def flip(key: Key, tables: Tables, s: Array) -> Array:
            here = proposal(s, tables)
            u = backend.uniform(backend.fold_in(key, 0), (1, s.shape[1]))
            passed = xp.count_nonzero(xp.cumulative_sum(xp.exp(here), axis=0) <= u, axis=0)
            chosen = xp.arange(s.shape[0])[:, None] == xp.minimum(passed, s.shape[0] - 1)
            new = xp.where(chosen, 1.0 - s, s)
            gain = xp.where(chosen, proposal(new, tables) - here, 0.0)
            ratio = log_weight(new, tables) - log_weight(s, tables) + xp.sum(gain, axis=0)
            v = backend.uniform(backend.fold_in(key, 1), ratio.shape)
            return xp.where(v < xp.exp(xp.minimum(ratio, 0.0)), new, s)

        def step(key: Key, tables: Tables, s: Array) -> Array:
            return backend.fori_loop(0, s.shape[0], lambda i, s: flip(backend.fold_in(key, i), tables, s), s)

        return Program(lambda key, tables, start: start, step, lambda tables, s: {"s": s})

    def estimate(self, model: PairwiseModel, tables: Tables, trace: Trace) -> Estimate:  # type: ignore[override]
        means = trace.mean("s").mean(axis=-1)
        found = marginal_claims(trace.series("s"), trace.samples, np.zeros(len(means)), np.ones(len(means)))
        doubts = (f"marginals {found.doubt}",) if found.doubt else ()
        return Estimate(
            marginals=means,
            marginals_se=found.se,
            marginals_error_bound=found.error_bounds,
            r_hat=found.r_hat,
            doubts=doubts,
        )
