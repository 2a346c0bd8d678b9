"""Importance and rejection sampling, from proposals that know their density (`proposals`).

Both take independent draws x ~ q with weights w = p*(x) / q(x), E w = Z. `importance` averages states with their
weights (Kahn and Marshall, "Methods of reducing sample size in Monte Carlo computations", 1953); `rejection` accepts
each with probability w / e^B, where B bounds log w, and what is accepted are exact draws (von Neumann, "Various
techniques used in connection with random digits", 1951). log Z is the logarithm of the mean weight of all draws.

There is nothing that mixes, and nothing to say of chains; but weights tell of what was drawn only. What has not been
drawn has a probability of at most 3 / n under q, and weighs e^B at most for each, and together no more than moments of
the weights allow (`weight_moments`): where that may exceed `MAX_UNSEEN_SHARE` of Z, or fewer than `MIN_EFFECTIVE_DRAWS`
draws in effect carry the sum, log Z and weighted means are doubted. Where lowest and highest weight are the same, as on
forests, q is p.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import Backend, Estimate, Method, MethodProfile, Model, Program, Reduction, Trace
from spinbench.errors import UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_choice
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import BOUND, UNSEEN, LogZParts, error_bound, t_factor
from spinbench.mathematics.graphs.factor_tables import factor_tables, links
from spinbench.methods.baselines.draws import DrawsProgram, Tables, build_draw_tables
from spinbench.methods.baselines.proposals import Kind, build_proposal
from spinbench.methods.baselines.weight_moments import ORDERS, bound_missed_share
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.population.estimates import summarise_runs
from spinbench.methods.weighted_means import with_bounds
from spinbench.models.conditionals import split_fields, uniform_marginals

# Effective number of draws from which the standard error of their scatter is trusted: with fewer, a few draws carry the
# weight, and the scatter misses heavier states that were not drawn.
MIN_EFFECTIVE_DRAWS = 100.0
# Estimates get a warning if draws may have missed more than this share of Z, by the rule of three and upper bounds on
# weights. The tail of the drawn weights in their place trusts draws of one well of two: log Z of five such models was
# 0.5 to 4 nats off.
MAX_UNSEEN_SHARE = 0.05
# Draws of the pilot run that estimates the acceptance rate.
PILOT_DRAWS = 2000
# Weights whose upper and lower bounds differ by less (nats) count as constant.
EQUAL_WEIGHT_NATS = 1e-9
# Smallest acceptance rate: below it, a run of some 10^6 draws keeps fewer than `MIN_EFFECTIVE_DRAWS`.
MIN_ACCEPTANCE = 1e-4
# Largest number of proposals in a step of rejection sampling. A step has as many proposals as give one accepted draw on
# average; the limit keeps steps short on models with rare acceptance.
MAX_TRIES = 100


@dataclass(frozen=True)
class ProposalMethod(Method[Tables]):
    """Common settings of importance and rejection sampling.

    Attributes:
        proposal: q: beliefs of pairs along a spanning forest, the mean field product, or the uniform law.
    """

    proposal: Kind = "bp_tree"

    model_form = "categorical"
    kind = "draws"
    profile = MethodProfile(family="weighted draws")

    def __post_init__(self) -> None:
        check_choice(self, "proposal", Kind)

    def plan(self, model: Model) -> Tables:
        """The proposal and its bound."""
        deadline.require(4.5e-5 * links(model))
        tables = factor_tables(model)
        return build_draw_tables(tables, build_proposal(tables, self.proposal))

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return DrawsProgram(backend, rejects="kept" in self.reductions).program()


@dataclass(frozen=True)
class Importance(ProposalMethod):
    """Self-normalised importance sampling."""

    name: ClassVar[str] = "importance"
    summary: ClassVar[str] = "importance sampling from mean field, a tree of beliefs or the uniform law"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """z, square: (C,) log w and twice that; p: (M, C) log w of draws with the state."""
        return dict.fromkeys(("z", "square", "p"), "logsumexp")

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Means with weights, and the logarithm of their mean."""
        weights, runs = summarise_weights(tables, trace), summarise_runs(model.cardinalities, trace)
        ess = statistics.effective_sample_size(runs.means, runs.mcse, weights.num_draws)
        parts = with_bounds(runs.means, runs.se, float(np.hypot(runs.unseen, weights.unseen)))
        constant = float(tables.constant)
        return Estimate(
            **split_fields(model.cardinalities, **parts, ess=ess),
            **weights.log_z_fields(constant),
            diagnostics=weights.diagnostics(constant),
            doubts=weights.doubts,
        )


@dataclass(frozen=True)
class Rejection(ProposalMethod):
    """Exact independent draws by rejection sampling."""

    name: ClassVar[str] = "rejection"
    summary: ClassVar[str] = "exact draws by rejection from mean field, a tree of beliefs or the uniform law"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """z, square: (C,) log w and twice that; s: (M, C), kept: (C,): accepted draws with the state, and all."""
        return {"z": "logsumexp", "square": "logsumexp", "s": "sum", "kept": "sum"}

    def plan(self, model: Model) -> Tables:
        """The proposal and its bound.

        Raises:
            UnsupportedError: too few draws would be accepted.
        """
        deadline.require(3 * 4.5e-5 * links(model))  # with draws that tell how many would be accepted
        tables = super().plan(model)
        rate = np.exp(log_mean_pilot_weight(tables) - float(tables.bounds[1]))
        if rate < MIN_ACCEPTANCE:
            raise UnsupportedError(
                f"rejection: of draws of proposal={self.proposal} for {model.name} about {rate:.1g} would be accepted, "
                f"and {MIN_ACCEPTANCE:g} are needed; importance weighs the same draws"
            )
        return tables._replace(tries=np.array(np.ceil(min(1 / rate, MAX_TRIES)), dtype=np.int32))

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Means of accepted draws, and the logarithm of the mean weight of all."""
        weights, accepted = summarise_weights(tables, trace), float(trace.total("kept").sum())
        means = uniform_marginals(model.cardinalities)
        if accepted:
            means = np.clip(trace.total("s").sum(axis=-1) / accepted, 0.0, 1.0)
        mcse = np.sqrt(means * (1 - means) / max(accepted - 1, 1.0))
        parts: dict[str, Any] = {
            **with_bounds(means, float(t_factor(accepted - 1)) * mcse, UNSEEN / max(accepted, 1.0))
        }
        parts["ess"] = np.full(len(means), accepted)
        constant = float(tables.constant)
        doubts = []
        if accepted < MIN_EFFECTIVE_DRAWS:
            doubts.append("marginals too short")
        if not weights.are_sufficient:
            doubts.append("log Z unresolved")
        return Estimate(
            **split_fields(model.cardinalities, **parts),
            **weights.log_z_fields(constant),
            diagnostics={**weights.diagnostics(constant), "acceptance": accepted / weights.num_draws},
            doubts=tuple(doubts),
        )


def log_mean_pilot_weight(tables: Tables) -> float:
    """Log of the mean weight of draws on the host, without the model's constant."""
    rng, draws = np.random.default_rng(0), DrawsProgram(HostArrays(), rejects=False)
    log_w = draws.step(rng, tables, draws.init(rng, tables, np.zeros((len(tables.sizes), PILOT_DRAWS)))).log_w
    return float(np.logaddexp.reduce(log_w) - np.log(PILOT_DRAWS))


class WeightSummary(NamedTuple):
    """Of all draws. Attributes: num_draws; log_mean of their weights; effective_draws (Σ w)² / Σ w²; unseen: the
    share of Z that they may not have shown, by bounds on weights; bounds: of log weights."""

    num_draws: int
    log_mean: float
    effective_draws: float
    unseen: float
    bounds: tuple[float, float]

    @property
    def are_equal(self) -> bool:
        """Whether all are the same: q is p."""
        return self.bounds[1] - self.bounds[0] < EQUAL_WEIGHT_NATS

    @property
    def are_sufficient(self) -> bool:
        """Whether what they tell may be believed."""
        return self.are_equal or (self.effective_draws >= MIN_EFFECTIVE_DRAWS and self.unseen <= MAX_UNSEEN_SHARE)

    @property
    def doubts(self) -> tuple[str, ...]:
        """Of weighted means."""
        if self.are_sufficient:
            return ()
        return ("marginals too short", "log Z unresolved")

    def log_z_fields(self, constant: float) -> LogZParts:
        """Log Z with its errors: draws that were not seen weigh no more than the bounds say."""
        if self.are_equal:
            return {"log_z": self.bounds[1] + constant, "log_z_kind": "exact"}
        if not self.effective_draws:
            return {"log_z_se": np.inf}
        relative = max(1 / self.effective_draws - 1 / self.num_draws, 0.0)
        se = np.inf
        if self.are_sufficient:
            se = float(t_factor(self.effective_draws - 1) * np.sqrt(relative))
        bound = float(error_bound(se, self.unseen))
        return {"log_z": self.log_mean + constant, "log_z_se": se, "log_z_error_bound": bound}

    def diagnostics(self, constant: float) -> dict[str, float]:
        """Diagnostics."""
        return {
            "draws": float(self.num_draws),
            "effective_draws": self.effective_draws,
            "log_weight_bound": self.bounds[1] + constant,
            "unseen": min(self.unseen, 1.0),
        }


def summarise_weights(tables: Tables, trace: Trace) -> WeightSummary:
    """From "z" and "square"."""
    num_draws = trace.samples * trace.total("z").shape[-1] * int(tables.tries)
    total, square = (float(np.logaddexp.reduce(trace.total(name))) for name in ("z", "square"))
    tries = float(np.log(tables.tries))
    # "z" and "square" sum means over `tries` proposals, hence the factor `tries`.
    effective_draws = 0.0
    if np.isfinite(total):
        effective_draws = min(float(np.exp(2 * total - square + tries)), float(num_draws))
    low, high = tables.bounds.tolist()
    log_mean = total + tries - float(np.log(num_draws))
    # Moments of weights over Z, which itself is known to within its scatter.
    scatter = BOUND * np.sqrt(max(1 / max(effective_draws, 1.0) - 1 / num_draws, 0.0))
    moments = np.asarray(tables.moments) - np.array(ORDERS) * (log_mean - scatter)
    # Clipped at e^600, which is finite and far above every share that matters.
    largest = UNSEEN * float(np.exp(min(high - log_mean, 600.0))) / num_draws
    # Half of what the rule of three leaves, which error bounds count twice.
    unseen = min(bound_missed_share(moments, 2 * UNSEEN / num_draws) / 2, largest)
    return WeightSummary(num_draws, log_mean, effective_draws, unseen, (low, high))
