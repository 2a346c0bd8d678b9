"""Tempered transitions: from β = 1 up to β = 0 and down again, and what is found there is accepted or not.

    a Gibbs sweep at β_T = 1;
    up: i = T-1 … 1: one sweep at β_i, its variables in order; at β_0 = 0 independent draws;
    down: i = 1 … T-1: one sweep at β_i, its variables in reverse order;
    accepted with min(1, Π_i [p_i(x_i) / p_i+1(x_i)] Π_i [p_i+1(y_i) / p_i(y_i)]), p_i = p*^β_i,

x_i, y_i being what the way up and the way down leave β_i+1 and β_i with. Each sweep is the other's reversal, so that p
stays. Neal, "Sampling from multimodal distributions using tempered transitions", Statistics and Computing 1996. How
many are accepted falls with Λ² / T, Λ being the barrier that a pilot finds: T is 0.6 of its square, 4 to 64.

The product on the way down, which begins with independent draws, has the mean Z / Z_0, and the way up is its reversal
(Crooks, J. Stat. Phys. 1998): log Z is Bennett's ratio of both (`mathematics.bennett.ratio`).

Marginals: the mean of p(x_v = k | rest) of the sweeps at β = 1. Where fewer transitions than chains were accepted, or
than 20, they are not believed, unless Λ < 1/2.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Estimate, Method, MethodProfile, Model, Program, Reduction, Trace
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_whole
from spinbench.mathematics.bennett import Ratio, ratio
from spinbench.mathematics.claims import log_z_parts
from spinbench.mathematics.graphs.factor_tables import factor_tables, links
from spinbench.mathematics.graphs.table_layouts import state_rows
from spinbench.methods.baselines.round_trips import Tables, TemperedTransitionsProgram
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.estimates import MIN_ROUND_TRIPS, NEGLIGIBLE_BARRIER, chain_means
from spinbench.methods.tempering.pilot import estimate_barriers, place_rungs
from spinbench.methods.tempering.replicas import GraphReplicas, build_graph_tables
from spinbench.methods.weighted_means import chain_estimate

# Temperatures per unit of Λ². Where sweeps mix, the logarithm of the acceptance ratio is normal with variance 2π Λ² / T
# and minus half of that as mean; about a tenth of the transitions is then accepted, which costs the least work per
# accepted transition.
TEMPERATURES_PER_SQUARED_BARRIER = 0.6
MIN_TEMPERATURES, MAX_TEMPERATURES = 4, 64
# Nats below the lowest value on the way up; stands for a hard zero met on the way down.
UNREACHABLE_NATS = 100.0


@dataclass(frozen=True)
class TemperedTransitions(Method[Tables]):
    """Gibbs sweeps and tempered transitions, proposals that heat a state to β = 0 and cool it down again.

    Attributes:
        temperatures: T of a transition; 0: as many as the pilot's barrier asks for.
    """

    temperatures: int = 0

    name: ClassVar[str] = "tempered_transitions"
    summary: ClassVar[str] = "Gibbs sweeps and tempered transitions up to β = 0 and back; log Z from both ways"
    profile = MethodProfile(family="tempering")
    model_form = "categorical"

    def __post_init__(self) -> None:
        check_whole(self, "temperatures", 0)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p (R, C), accepted (C,)."""
        return dict.fromkeys(("p", "accepted"), "sum")

    def plan(self, model: Model) -> Tables:
        """Tables of the sweeps; temperatures by the pilot."""
        deadline.require(1.1e-4 * (model.num_variables + links(model)))
        tables = factor_tables(model)
        graph = build_graph_tables(tables)
        betas, barriers = estimate_barriers(GraphReplicas(HostArrays()), graph, model.cardinalities)
        needed = np.ceil(TEMPERATURES_PER_SQUARED_BARRIER * barriers[-1] ** 2)
        count = self.temperatures or int(np.clip(needed, MIN_TEMPERATURES, MAX_TEMPERATURES))
        rows, signs = state_rows(tables.cardinalities)
        base = np.array(tables.log_constant + np.log(model.cardinalities).sum())
        return Tables(place_rungs(betas, barriers, count + 1), graph, rows, signs, base, np.array(barriers[-1]))

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return TemperedTransitionsProgram(backend).program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals and log Z with their errors."""
        means = chain_means(trace, tables.rows, tables.signs)
        chains = means.series.shape[-1]
        accepted, has_low_barrier = float(trace.total("accepted").sum()), bool(tables.barrier < NEGLIGIBLE_BARRIER)
        is_sufficient = has_low_barrier or accepted >= max(MIN_ROUND_TRIPS, chains)
        visits = np.inf if has_low_barrier else max(accepted, 1.0)
        estimate = chain_estimate(model, trace, means, not is_sufficient, visits)
        bridge = _two_sided_ratio(trace)
        estimates, overlap, doubts = {}, {}, (*estimate.doubts, "log Z unresolved")
        if bridge is not None:
            estimates = {"both_ways": bridge.claim.plus(float(tables.base))}
            overlap = {"log_z_overlap": bridge.overlap}
            if np.isfinite(estimates["both_ways"].error_bound):
                doubts = estimate.doubts
        return replace(
            estimate,
            **log_z_parts(estimates.get("both_ways"), estimates),
            diagnostics={
                "acceptance": accepted / (trace.samples * chains),
                "temperatures": float(len(tables.betas) - 1),
                "barrier": float(tables.barrier),
                **overlap,
            },
            doubts=doubts,
        )


def _two_sided_ratio(trace: Trace) -> Ratio | None:
    """log Z / Z_0 from the products of the way up, from chains, and of the way down, from independent draws."""
    if not trace.looks:
        return None
    forward = -trace.looked("up")
    return ratio(forward, np.maximum(trace.looked("down").ravel(), forward.min() - UNREACHABLE_NATS))
