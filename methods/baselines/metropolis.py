"""Metropolis sampling: variable by variable, a state is proposed and accepted by its weight given the rest.

    uniform             one of the K - 1 other states j, accepted with min(1, p_j / p_k), p given the rest: Metropolis,
                        Rosenbluth, Rosenbluth, Teller and Teller, "Equation of state calculations by fast computing
                        machines", J. Chem. Phys. 1953.
    metropolised_gibbs  j with p_j / (1 - p_k), accepted with min(1, (1 - p_k) / (1 - p_j)); it leaves a state more
                        often than Gibbs sampling does: Liu, "Peskun's theorem and a modified discrete-state Gibbs
                        sampler", Biometrika 1996.

Both are the same where variables have two states. The probability of each outcome is summed over proposals, so that a
step takes one uniform number. Sweeps go colour by colour, as those of `gibbs`; a variable whose two states weigh the
same changes each time, and several of them keep their relation. There is no log Z.

Marginals: the mean of p(x_v = k | rest) as of the last step of v, or of the states.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from spinbench.api import (
    Array,
    Backend,
    Estimate,
    Index,
    Method,
    MethodProfile,
    Model,
    Program,
    Reduction,
    Trace,
    to_factor_graph,
)
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_choice
from spinbench.mathematics.graphs.factor_tables import links
from spinbench.mathematics.graphs.table_layouts import Section
from spinbench.mathematics.heat_bath.table_updates import TableBath
from spinbench.methods.gibbs.estimate import gibbs_estimate
from spinbench.methods.gibbs.graph_plan import GraphTables, plan_graph
from spinbench.methods.gibbs.program import GibbsProgram, ProgramOptions
from spinbench.methods.gibbs.sweeps import GraphSweeps
from spinbench.methods.weighted_means import MARGINAL_STATISTICS, Marginals

Proposal = Literal["uniform", "metropolised_gibbs"]


@dataclass(frozen=True)
class Metropolis(Method[GraphTables]):
    """Single-site Metropolis sampling: a new state of one variable is proposed, then accepted or rejected.

    Attributes:
        proposal: see above.
        marginals: which estimate is reported.
    """

    proposal: Proposal = "uniform"
    marginals: Marginals = "rao_blackwell"

    name: ClassVar[str] = "metropolis"
    summary: ClassVar[str] = "single-site Metropolis sampling on any factor graph; Metropolised Gibbs by setting"
    model_form = "categorical"
    profile = MethodProfile(single_site=True, family="chains at one temperature")

    def __post_init__(self) -> None:
        check_choice(self, "proposal", Proposal)
        check_choice(self, "marginals", Marginals)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p or s: (R, C), of what `marginal_rows` names."""
        return {MARGINAL_STATISTICS[self.marginals]: "sum"}

    def plan(self, model: Model) -> GraphTables:
        """Tables of the sweeps."""
        deadline.require(1.6e-5 * (model.num_variables + links(model)))
        return plan_graph(to_factor_graph(model), raster=False, single_updates=False, needs_mode=False)

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays: Gibbs sampling's, with another step."""
        options = ProgramOptions(
            random_scan=False,
            single_updates=False,
            rao_blackwell=self.marginals == "rao_blackwell",
            has_probes=False,
            has_temperatures=False,
            records_log_t=False,
        )
        sweeps = GraphSweeps(backend, MetropolisBath(backend, proposal=self.proposal))
        return GibbsProgram(backend, options, lambda _: sweeps).program()

    def estimate(self, model: Model, tables: GraphTables, trace: Trace) -> Estimate:
        """Marginals with what they may claim, R-hat and effective sample sizes."""
        return gibbs_estimate(to_factor_graph(model), tables, trace, "none", single_updates=False)


class MetropolisBath(TableBath):
    """Sweeps in which a variable's next state depends on the one that it has."""

    def __init__(self, backend: Backend, *, proposal: Proposal) -> None:
        super().__init__(backend)
        self._proposal = proposal

    def choose(self, section: Section, b: Index, weights: Array, x: Array, u: Array) -> tuple[Array, Array]:
        """See `TableBath.choose`."""
        xp, take = self._xp, self._backend.take
        is_current = self._numbers(weights) == take(x, take(section.rows, b))
        current_weight = xp.sum(xp.where(is_current, weights, 0.0), axis=0)
        if self._proposal == "uniform":
            # K - 1 of each variable, K its number of states.
            sizes = xp.max(take(section.states, b), axis=0)[:, None]
            accepted = xp.where(
                weights > current_weight, 1.0, weights / xp.where(current_weight > 0, current_weight, 1.0)
            )
            moves = accepted / xp.astype(sizes, weights.dtype)
        else:
            total = xp.sum(weights, axis=0)
            rest = xp.sum(xp.where(is_current, 0.0, weights), axis=0)
            # p_j / (1 - p_k) · min(1, (1 - p_k) / (1 - p_j)) = p_j / max(1 - p_k, 1 - p_j); the sum of weights cancels.
            moves = weights / xp.where(is_current, 1.0, xp.maximum(rest, total - weights))
        move_probability = xp.sum(xp.where(is_current, 0.0, moves), axis=0)
        stay = xp.where(move_probability < 1, 1 - move_probability, 0.0)
        states, _ = self._draw_states_and_totals(xp.where(is_current, stay, moves), u)
        return states, xp.sum(weights, axis=0)
