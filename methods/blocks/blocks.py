"""Gibbs sampling in blocks: many variables at once, drawn exactly given the others, on any factor graph.

A block is all that greedy elimination reaches with tables of at most `size` entries (`planning`); it is summed out
bucket by bucket and drawn in reverse order, so that a step, every block once, keeps p(x). Overlapping blocks take
turns, each leaving out other variables.

Marginals: the block's exact ones given the rest (Rao-Blackwellised), averaged over the blocks that hold the variable.

log Z, for a fixed state s*: where T(s* <- s) is the probability that a transition ends in s*, of which each variable is
drawn once, in disjoint blocks, and R the same in reverse order,

    chib_bar p(s) T(s* <- s) = p(s*) R(s <- s*), so p*(s*) / T(s* <- s) is Z times the ratio of two laws, p at the
             chains' states and R(. <- s*) at reversed transitions from s*. Bennett's ratio joins both, and their
             overlap tells whether the chains know the states that carry 1 / Z (`mathematics.bennett.ratio`).
    stones   p*^β from β = 0, where Z is known, to β = 1, by sweeps of the same blocks that take the place of burn-in
             (`mathematics.stepping_stones`); not where there are hard zeros.
    auto     chib_bar where its overlap is seen to be large early on, else stones.

Where one block holds all variables both are exact, and log Z is of the kind "exact".

Jensen, Kong and Kjærulff, "Blocking Gibbs sampling in very large probabilistic expert systems", Int. J. Human-Computer
Studies 1995; Hamze and de Freitas, "From fields to trees", UAI 2004; Chib, "Marginal likelihood from the Gibbs output",
JASA 1995.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from spinbench.api import Backend, Engine, Estimate, Method, MethodProfile, Model, Program, Reduction, State, Trace
from spinbench.errors import UnsupportedError
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_choice, check_whole
from spinbench.mathematics import bennett, claims, stepping_stones
from spinbench.mathematics.graphs.factor_tables import FloatArray, factor_tables, links
from spinbench.mathematics.rounding import EPS
from spinbench.methods.blocks.planning import MAX_BLOCKS
from spinbench.methods.blocks.program import BlocksProgram
from spinbench.methods.blocks.tables import Tables, build_tables
from spinbench.methods.gibbs import probes, stones
from spinbench.methods.weighted_means import ChainMeans, chain_estimate
from spinbench.models.conditionals import split_fields
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.problem import Problem

LogZ = Literal["auto", "chib_bar", "stones", "none"]
# States that cannot reach s* in one sweep get a log probability this many nats below all others: they have no weight in
# Bennett's ratio, which stays finite.
_UNREACHABLE_NATS = 50.0


@dataclass(frozen=True)
class Blocks(Method[Tables]):
    """Gibbs sampling of blocks of variables of bounded width, each drawn exactly given the others.

    Attributes:
        size: entries of a table at most. Larger blocks mix better and cost more; no variable may have more states.
        blocks: of a step at least, where one block does not hold all variables; more where some variable is in none.
        log_z: which estimate of log Z is reported.
    """

    size: int = 32
    blocks: int = 2
    log_z: LogZ = "auto"

    name: ClassVar[str] = "blocks"
    summary: ClassVar[str] = "Gibbs sampling of blocks of bounded width, each drawn exactly; any factor graph"
    profile = MethodProfile(family="chains at one temperature")
    model_form = "categorical"
    heaviest = "annealed"

    def __post_init__(self) -> None:
        check_whole(self, "size", 2)
        check_whole(self, "blocks", 2, MAX_BLOCKS)
        check_choice(self, "log_z", LogZ)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p: (R, C) probabilities of states, see `Tables.rows`."""
        return {"p": "sum"}

    def plan(self, model: Model) -> Tables:
        """The blocks and the buckets they are summed out in.

        Raises:
            UnsupportedError: a variable of more than `size` states.
        """
        deadline.require(2.7e-5 * (model.num_variables + links(model)))
        flat = factor_tables(model)
        if (max_states := int(flat.cardinalities.max())) > self.size:
            raise UnsupportedError(
                f"blocks: a variable of {model.name} has {max_states} states; size={self.size} takes at most "
                f"{self.size}"
            )
        return build_tables(flat, self.size, self.blocks)

    def program(self, backend: Backend) -> Program:
        """Blocks over `backend`'s arrays; see `spinbench.methods.blocks.program`."""
        return BlocksProgram(backend, has_probes=self.log_z != "none").program()

    def warm_up(self, tables: Tables, engine: Engine, state: State, steps: int, trace: Trace) -> tuple[State, int]:
        """Probes; stepping stones, where they are asked for, or needed. Neither where there are hard zeros."""
        # A single block is drawn exactly and needs no warm-up. With hard zeros, states that are possible at β < 1 may
        # be impossible at β = 1.
        if len(tables.transition) == 1 or np.isneginf(tables.values).any():
            return state, 0
        state, probed = probes.run_probes(engine, state, steps, "p", trace)
        if self.log_z not in ("auto", "stones"):
            return state, probed
        state, done = stones.warm_up(engine, state, steps, 1, 0.0 if self.log_z == "auto" else None, trace)
        return state, probed + done

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals with their errors, R-hat and effective sample sizes; log Z by what ran."""
        chains = trace.mean("p")
        means = chains.mean(axis=-1)
        if len(tables.transition) == 1:
            return _exact_estimate(model, means, trace.samples, chains.shape[-1], log_z=self.log_z != "none")
        lost_probes, visits = probes.count_lost_probes(trace, "p")
        estimate = chain_estimate(model, trace, ChainMeans(means, trace.series("p")), lost_probes > 0, visits)
        log_z_by_name, diagnostics = log_z_estimates(tables, trace, mixed="marginals not mixed" not in estimate.doubts)
        reported = next(iter(log_z_by_name.values()), None)
        if trace.probes:
            diagnostics["probes_astray"] = float(lost_probes)
        resolved = self.log_z == "none" or (reported is not None and np.isfinite(reported.error_bound))
        doubts = estimate.doubts
        if not resolved:
            doubts = (*estimate.doubts, "log Z unresolved")
        return replace(
            estimate,
            **claims.log_z_parts(reported, log_z_by_name),
            diagnostics=diagnostics,
            doubts=doubts,
        )


def _exact_estimate(model: Model, means: FloatArray, samples: int, chains: int, *, log_z: bool) -> Estimate:
    """Of one block that holds everything: its sums are those of all states, but for the rounding of their mean. log Z
    is summed once more, in float64 whatever the chains have."""
    zeros = np.zeros_like(means)
    rounding = zeros + EPS * np.sqrt(samples)
    parts = {"marginals": means, "marginals_se": rounding, "ess": zeros + samples * chains, "r_hat": zeros + 1}
    estimate = Estimate(**split_fields(model.cardinalities, **parts))
    if not log_z:
        return estimate
    # Chains in float32 also sum in float32; a log Z that is reported as exact is computed again in float64.
    value, _ = BucketTree.build(Problem(model, search_seconds=0.0)).solve(marginals=False)
    return replace(estimate, log_z=value, log_z_kind="exact")


def log_z_estimates(tables: Tables, trace: Trace, *, mixed: bool) -> tuple[dict[str, claims.Claim], dict[str, float]]:
    """The estimate that the run allows, by name, with its errors; diagnostics.

    Args:
        tables: tables of the method.
        trace: of the run.
        mixed: whether chains are where the law is, as far as they and probes show: else what they look at is not it.
    """
    if not trace.looks:
        return {}, {}
    name, diagnostics = "chib_bar", {}
    if trace.climb is None:
        bridge = _two_sided_ratio(trace)
    else:
        name, diagnostics = "stones", {"stones_rungs": float(len(trace.climb.betas))}
        bridge = stepping_stones.stepping_stones(trace.climb.betas, trace.climb.slopes, trace.looked("slope"))
        bridge = bridge._replace(value=bridge.value + _log_num_states(tables))
    bridge = bridge._replace(supported=bridge.supported and mixed)
    diagnostics |= {"log_z_overlap": bridge.overlap, "log_z_weight_ess": bridge.weight}
    if trace.wanted:
        diagnostics["stones_burn_in_needed"] = float(trace.wanted)
    return {name: bridge.claim.plus(float(tables.constant))}, diagnostics


def _log_num_states(tables: Tables) -> float:
    """Log of the number of all states."""
    # A variable may have a bucket in several blocks and is counted once.
    _, first = np.unique(tables.variable, return_index=True)
    return float(np.log(tables.cards[first, 0]).sum())


def _two_sided_ratio(trace: Trace) -> bennett.Ratio:
    """Bennett's ratio of p and of reversed transitions from s*, from log p*(s*) / T(s* <- s) at both."""
    forward, backward = -trace.looked("log_t"), -trace.looked("log_r").ravel()
    is_reached = np.isfinite(forward)
    if not is_reached.any():
        return bennett.Ratio(float(backward.mean()), np.inf, np.inf, 0.0, 0.0, supported=False)
    farthest = max(forward[is_reached].max(), backward.max()) + _UNREACHABLE_NATS
    return bennett.ratio(np.where(is_reached, forward, farthest), backward)
