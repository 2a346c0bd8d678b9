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
from typing import Any, ClassVar

import numpy as np

from spinbench.api import Backend, Estimate, Method, Program, Reduction
from spinbench.api.trace import Trace
from spinbench.foundation.settings import check_whole
from spinbench.mathematics.bennett import Ratio, ratio
from spinbench.mathematics.claims import log_z_parts
from spinbench.mathematics.graphs.factor_tables import factor_tables, links
from spinbench.mathematics.graphs.table_layouts import state_rows
from spinbench.methods.baselines.round_trips import RoundTrips, Tables
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.estimates import FEWEST_TRIPS, LOW_BARRIER, signed_means
from spinbench.methods.tempering.pilot import barrier, ladder
from spinbench.methods.tempering.replicas import GraphReplicas, graph_tables
from spinbench.methods.weighted_means import chain_estimate
from spinbench.models import Model

STEPS = 0.6
"""Temperatures for a unit of Λ²: where sweeps mix, one transition of ten is accepted, at about the least work for each:
the logarithm of the product is normal with variance 2π Λ² / T, and minus half of it as mean."""
FEWEST, MOST = 4, 64
UNREACHED = 100.0
"""Nats below all that was seen on the way up: there the way down meets hard zeros."""


@dataclass(frozen=True)
class TemperedTransitions(Method):
    """Settings.

    Attributes:
        temperatures: T of a transition; 0: as many as the pilot's barrier asks for.
    """

    temperatures: int = 0

    name: ClassVar[str] = "tempered_transitions"
    summary: ClassVar[str] = "Gibbs sweeps and tempered transitions up to β = 0 and back; log Z from both ways"
    takes: ClassVar[Any] = "categorical"

    def __post_init__(self) -> None:
        check_whole(self, "temperatures", 0)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p (R, C), accepted (C,)."""
        return dict.fromkeys(("p", "accepted"), "sum")

    def planning_seconds(self, model: Model) -> float:
        """Of levels, in Python."""
        return 1.1e-4 * (model.num_variables + links(model))

    def plan(self, model: Model) -> Tables:
        """Tables of the sweeps; temperatures by the pilot."""
        tables = factor_tables(model)
        graph = graph_tables(tables)
        betas, barriers = barrier(GraphReplicas(HostArrays()), graph, model.cardinalities)
        count = self.temperatures or int(np.clip(np.ceil(STEPS * barriers[-1] ** 2), FEWEST, MOST))
        rows, signs = state_rows(tables.cardinalities)
        base = np.array(tables.log_constant + np.log(model.cardinalities).sum())
        return Tables(ladder(betas, barriers, count + 1), graph, rows, signs, base, np.array(barriers[-1]))

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return RoundTrips(backend).program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals and log Z with their errors."""
        means = signed_means(trace, tables.rows, tables.signs)
        chains = means.series.shape[-1]
        accepted, low = float(trace.total("accepted").sum()), bool(tables.barrier < LOW_BARRIER)
        enough = low or accepted >= max(FEWEST_TRIPS, chains)
        visits = np.inf if low else max(accepted, 1.0)
        found = chain_estimate(model, trace, means, not enough, visits)
        both = _both_ways(trace)
        reported = None if both is None else both.claim.plus(float(tables.base))
        resolved = reported is not None and np.isfinite(reported.error_bound)
        return replace(
            found,
            **log_z_parts(reported, {} if reported is None else {"both_ways": reported}),
            diagnostics={
                "acceptance": accepted / (trace.samples * chains),
                "temperatures": float(len(tables.betas) - 1),
                "barrier": float(tables.barrier),
                **({} if both is None else {"log_z_overlap": both.overlap}),
            },
            doubts=(*found.doubts, *([] if resolved else ["log Z unresolved"])),
        )


def _both_ways(trace: Trace) -> Ratio | None:
    """log Z / Z_0 from the products of the way up, from chains, and of the way down, from independent draws."""
    if not trace.looks:
        return None
    forward = -trace.looked("up")
    return ratio(forward, np.maximum(trace.looked("down").ravel(), forward.min() - UNREACHED))
