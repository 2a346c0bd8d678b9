"""A Gaussian upper bound on log Z of dense binary models, and independent draws whose weights it bounds.

`gaussian_fit` has the bound. Its Gaussian is drawn from: the weight of a draw u, e^U Π cosh u_i / (the bound on it), is
at most e^U, always, with mean Z, and p(s_i = 1 | u) = 1 / (1 + e^{-2 u_i}). So log Z has bounds on both sides that hold
with a known probability, as those of `wmb` do, and whatever the width of the graph.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.api import (
    Array,
    Backend,
    Estimate,
    Key,
    Method,
    MethodProfile,
    Model,
    PairwiseModel,
    Program,
    Reduction,
    Trace,
)
from spinbench.api.bounds import BoundRequest, Finding, MethodBounds
from spinbench.errors import UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_setting
from spinbench.mathematics.claims import t_factor
from spinbench.mathematics.statistics import effective_sample_size
from spinbench.methods.buckets import betting
from spinbench.methods.buckets.weighing import bracket, doubts, log_z_errors, unseen
from spinbench.methods.chain_program import IndependentSteps
from spinbench.methods.relaxed.gaussian_fit import GaussianFit, fit_seconds, fit_upper_bound
from spinbench.methods.weighted_means import group_sums, ratio_means, with_bounds
from spinbench.models import to_pairwise

# The bound is asked for if the mean degree is above N / DENSE, where it was tighter than mini-buckets.
DENSE = 4
# Largest number of variables: each step of the fit inverts matrices with this many rows, of 72 MB each.
MAX_VARIABLES = 3000


class DrawState(NamedTuple):
    """Of the last step. Attributes: log_w (C,) of their weights; p (N, C) p(s_i = 1 | u)."""

    log_w: Array
    p: Array


@dataclass(frozen=True)
class GaussianBound(Method[GaussianFit]):
    """A Gaussian upper bound on log Z, computed while planning, and independent draws of bounded weight.

    Attributes:
        delta: probability with which the probable bracket may miss log Z, half of it on each side.
    """

    delta: float = 1e-3

    name: ClassVar[str] = "gaussian_bound"
    summary: ClassVar[str] = "Gaussian upper bound on log Z of dense binary models, and draws of bounded weight"
    profile = MethodProfile(family="weighted draws")
    model_form = "pairwise"
    kind = "draws"

    def __post_init__(self) -> None:
        check_setting(self, "delta", 0 < self.delta < 1, "a number between 0 and 1")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """Weights relative to the bound: log_weight, log_square (C,) and rows (N, C), log Σ w, log Σ w² and
        log Σ w p(s_i = 1 | u)."""
        return dict.fromkeys(("log_weight", "log_square", "rows"), "logsumexp")

    def plan(self, model: Model) -> GaussianFit:
        """The bound.

        Raises:
            UnsupportedError: variables of more than two states, or too many.
        """
        assert isinstance(model, PairwiseModel)
        if model.groups:
            raise UnsupportedError(f"gaussian_bound: {model.name} has variables of more than two states; wmb takes any")
        if model.num_variables > MAX_VARIABLES:
            raise UnsupportedError(
                f"gaussian_bound: {model.name} has {model.num_variables} variables, and at most {MAX_VARIABLES} are "
                "allowed; wmb takes any"
            )
        deadline.require(fit_seconds(model.num_variables))
        return fit_upper_bound(model)

    def program(self, backend: Backend) -> Program:
        """A step is a draw of each chain, with its weight relative to the bound."""
        return BoundedDrawsProgram(backend).program()

    def estimate(self, model: Model, tables: GaussianFit, trace: Trace) -> Estimate:
        """Self-normalised marginals and the mean weight, between the bounds."""
        weights = _collect_weights(trace)
        bounds = bracket(float(tables.value), float(tables.slack), weights, self.delta, self.name)
        sums, parts, _ = group_sums(trace, "log_weight", "rows")
        means, standard = ratio_means(sums, parts)
        return Estimate(
            **with_bounds(means, t_factor(sums.size - 1) * standard, unseen(weights)),
            ess=effective_sample_size(means, standard, trace.samples * trace.chains),
            **log_z_errors(float(tables.value), weights),
            bounds=bounds,
            diagnostics={
                "weight_ess": weights.effective,
                **{f"{bound.grade}_{bound.side}": bound.value for bound in bounds},
            },
            doubts=doubts(weights),
        )


class BoundedDrawsProgram(IndependentSteps):
    """Init, step and observe."""

    def init(self, key: Key, t: GaussianFit, start: Array) -> DrawState:
        """Of no draw."""
        none = 0.0 * start
        return DrawState(self._xp.sum(none, axis=0), none)

    def step(self, key: Key, t: GaussianFit, state: DrawState) -> DrawState:
        """A draw of every chain."""
        xp, half = self._xp, t.slopes[:, None] / 2
        u = t.mean[:, None] + t.root @ self._backend.normal(key, state.p.shape)
        # Jaakkola and Jordan's quadratic bound on each log cosh (Statistics and Computing 2000); the slack of a draw is
        # its log weight.
        over = self._log_cosh(u) - half * u**2 - (self._log_cosh(t.xi) - t.slopes * t.xi**2 / 2)[:, None]
        log_w = xp.sum(over, axis=0)
        # The bound holds for every u: a weight above 1 is a rounding error.
        return DrawState(xp.where(log_w < 0, log_w, 0.0), self._sigmoid(2 * u))

    def observe(self, t: GaussianFit, state: DrawState) -> dict[str, Array]:
        """The statistics of `GaussianBound.reductions`."""
        xp, some = self._xp, state.p > 0
        rows = xp.where(some, xp.log(xp.where(some, state.p, 1.0)), -xp.inf)
        return {"log_weight": state.log_w, "log_square": 2 * state.log_w, "rows": state.log_w + rows}

    def _log_cosh(self, u: Array) -> Array:
        xp = self._xp
        return xp.abs(u) + xp.log1p(xp.exp(-2 * xp.abs(u))) - float(np.log(2))


def _collect_weights(trace: Trace) -> betting.Weights:
    """As betting takes them, in one bin."""
    total, square = trace.total("log_weight"), trace.total("log_square")
    log_sum, number = float(np.logaddexp.reduce(total)), float(trace.samples * len(total))
    counts, sums = np.array([number]), np.array([np.exp(log_sum)])
    return betting.Weights(number, log_sum, float(np.logaddexp.reduce(square)), np.array([1.0, 0.0]), counts, sums)


class GaussianBounds(MethodBounds):
    """Of dense models: elsewhere wmb is better."""

    name = GaussianBound.name
    share, order, looks = 0.3, 40, 1

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        model = to_pairwise(request.model, one_of_k=False)
        if DENSE * 2 * model.num_edges < model.num_variables**2:
            raise UnsupportedError(
                f"{model.name} is not dense: of {DENSE} variables, less than one is a neighbour in the mean"
            )
        return super().find(request)
