"""Importance and rejection sampling, from proposals that know their density (`proposals`).

Both take independent draws x ~ q with weights w = p*(x) / q(x), E w = Z. `importance` averages states with their
weights (Kahn and Marshall, "Methods of reducing sample size in Monte Carlo computations", 1953); `rejection` accepts
each with probability w / e^B, where B bounds log w, and what is accepted are exact draws (von Neumann, "Various
techniques used in connection with random digits", 1951). log Z is the logarithm of the mean weight of all draws.

There is nothing that mixes, and nothing to say of chains; but weights tell of what was drawn only. What has not been
drawn has a probability of at most 3 / n under q, and weighs e^B at most: where that may exceed `MOST_UNSEEN` of Z,
or fewer than `FEWEST` draws in effect carry the sum, log Z and weighted means are doubted. Where lowest and highest
weight are the same, as on forests, q is p.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from spinbench.api import Backend, Estimate, Method, Program, Reduction
from spinbench.api.trace import Trace
from spinbench.errors import UnsupportedError
from spinbench.foundation.settings import check_choice
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import UNSEEN, t_factor
from spinbench.mathematics.graphs.factor_tables import factor_tables, links
from spinbench.methods.baselines.draws import Draws, Tables, draw_tables
from spinbench.methods.baselines.proposals import Kind, forest
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.population.estimates import weighed
from spinbench.methods.weighted_means import with_bounds
from spinbench.models import Model
from spinbench.models.conditionals import split_fields, uniform_marginals

FEWEST = 100.0
"""Draws, in effect."""
MOST_UNSEEN = 0.05
"""Share of Z."""
PILOT = 2000
"""Draws that tell beforehand how many would be accepted."""
ALIKE = 1e-9
"""Nats between the bounds of weights that are all the same."""
RAREST = 1e-4
"""Share of draws accepted, below which there would be too few of them."""
MOST_TRIES = 100
"""Draws of a step of rejection sampling; as many as give one that is accepted, otherwise."""


@dataclass(frozen=True)
class Weighted(Method):
    """Settings of both.

    Attributes:
        proposal: q: beliefs of pairs along a spanning forest, the mean field product, or the uniform law.
    """

    proposal: Kind = "bp_tree"

    takes: ClassVar[Any] = "categorical"
    started: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_choice(self, "proposal", Kind)

    def planning_seconds(self, model: Model) -> float:
        """Of messages and a forest, in Python."""
        return 4.5e-5 * links(model)

    def plan(self, model: Model) -> Tables:
        """The proposal and its bound."""
        tables = factor_tables(model)
        return draw_tables(tables, forest(tables, self.proposal))

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return Draws(backend, rejects="kept" in self.reductions).program()


@dataclass(frozen=True)
class Importance(Weighted):
    """Self-normalised importance sampling."""

    name: ClassVar[str] = "importance"
    summary: ClassVar[str] = "importance sampling from mean field, a tree of beliefs or the uniform law"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """z, square: (C,) log w and twice that; p: (M, C) log w of draws with the state."""
        return dict.fromkeys(("z", "square", "p"), "logsumexp")

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Means with weights, and the logarithm of their mean."""
        weights, found = weights_of(tables, trace), weighed(model.cardinalities, trace)
        ess = statistics.effective_sample_size(found.means, found.mcse, weights.number)
        parts = with_bounds(found.means, found.se, float(np.hypot(found.unseen, weights.unseen)))
        constant = float(tables.constant)
        return Estimate(
            **split_fields(model.cardinalities, **parts, ess=ess),
            **weights.log_z(constant),
            diagnostics=weights.told(constant),
            doubts=() if weights.enough else ("marginals too short", "log Z unresolved"),
        )


@dataclass(frozen=True)
class Rejection(Weighted):
    """Exact draws by rejection."""

    name: ClassVar[str] = "rejection"
    summary: ClassVar[str] = "exact draws by rejection from mean field, a tree of beliefs or the uniform law"

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """z, square: (C,) log w and twice that; s: (M, C), kept: (C,): accepted draws with the state, and all."""
        return {"z": "logsumexp", "square": "logsumexp", "s": "sum", "kept": "sum"}

    def planning_seconds(self, model: Model) -> float:
        """And of draws that tell how many would be accepted."""
        return 3 * super().planning_seconds(model)

    def plan(self, model: Model) -> Tables:
        """The proposal and its bound.

        Raises:
            UnsupportedError: too few draws would be accepted.
        """
        tables = super().plan(model)
        rate = np.exp(pilot(tables) - float(tables.bounds[1]))
        if rate < RAREST:
            raise UnsupportedError(
                f"rejection: of draws of proposal={self.proposal} for {model.name} about {rate:.1g} would be accepted, "
                f"and {RAREST:g} are needed; importance weighs the same draws"
            )
        return tables._replace(tries=np.array(np.ceil(min(1 / rate, MOST_TRIES)), dtype=np.int32))

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Means of accepted draws, and the logarithm of the mean weight of all."""
        weights, kept = weights_of(tables, trace), float(trace.total("kept").sum())
        means = (
            np.clip(trace.total("s").sum(axis=-1) / kept, 0.0, 1.0) if kept else uniform_marginals(model.cardinalities)
        )
        standard = np.sqrt(means * (1 - means) / max(kept - 1, 1.0))
        parts = with_bounds(means, float(t_factor(kept - 1)) * standard, UNSEEN / max(kept, 1.0))
        parts["ess"] = np.full(len(means), kept)
        constant = float(tables.constant)
        doubts = ("marginals too short",) if kept < FEWEST else ()
        return Estimate(
            **split_fields(model.cardinalities, **parts),
            **weights.log_z(constant),
            diagnostics={**weights.told(constant), "acceptance": kept / weights.number},
            doubts=doubts if weights.enough else (*doubts, "log Z unresolved"),
        )


def pilot(tables: Tables) -> float:
    """Log of the mean weight of draws on the host, without the model's constant."""
    rng, draws = np.random.default_rng(0), Draws(HostArrays(), rejects=False)
    log_w = draws.step(rng, tables, draws.init(rng, tables, np.zeros((len(tables.sizes), PILOT)))).log_w
    return float(np.logaddexp.reduce(log_w) - np.log(PILOT))


class Weights(NamedTuple):
    """Of all draws. Attributes: number of them; log_mean of their weights; effective (Σ w)² / Σ w²; unseen: the share
    of Z that they may not have shown, by the bound on weights; bounds: of log weights."""

    number: int
    log_mean: float
    effective: float
    unseen: float
    bounds: tuple[float, float]

    @property
    def alike(self) -> bool:
        """Whether all are the same: q is p."""
        return self.bounds[1] - self.bounds[0] < ALIKE

    @property
    def enough(self) -> bool:
        """Whether what they tell may be believed."""
        return self.alike or (self.effective >= FEWEST and self.unseen <= MOST_UNSEEN)

    def log_z(self, constant: float) -> dict[str, Any]:
        """Log Z with its errors: draws that were not seen weigh no more and no less than the bounds say."""
        low, high = self.bounds
        if self.alike:
            return {"log_z": high + constant, "log_z_kind": "exact"}
        if not self.effective:
            return {"log_z_se": np.inf}
        relative = max(1 / self.effective - 1 / self.number, 0.0)
        farthest = max(np.exp(min(high - self.log_mean, 600.0)) - 1, 1 - np.exp(low - self.log_mean))
        se = float(t_factor(self.effective - 1) * np.sqrt(relative)) if self.enough else np.inf
        bound = float(np.hypot(se, UNSEEN * farthest / self.number))
        return {"log_z": self.log_mean + constant, "log_z_se": se, "log_z_error_bound": bound}

    def told(self, constant: float) -> dict[str, float]:
        """Diagnostics."""
        return {
            "draws": float(self.number),
            "effective_draws": self.effective,
            "log_weight_bound": self.bounds[1] + constant,
            "unseen": min(self.unseen, 1.0),
        }


def weights_of(tables: Tables, trace: Trace) -> Weights:
    """From "z" and "square"."""
    number = trace.samples * trace.total("z").shape[-1] * int(tables.tries)
    total, square = (float(np.logaddexp.reduce(trace.total(name))) for name in ("z", "square"))
    tries = float(np.log(tables.tries))
    effective = min(float(np.exp(2 * total - square + tries)), float(number)) if np.isfinite(total) else 0.0
    low, high = tables.bounds.tolist()
    log_mean = total + tries - float(np.log(number))
    unseen = UNSEEN * float(np.exp(min(high - log_mean, 600.0))) / number
    return Weights(number, log_mean, effective, unseen, (low, high))
