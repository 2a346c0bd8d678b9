"""Parallel tempering: replicas of a model at inverse temperatures β from 0 to 1 trade places.

A *ladder* has R rungs, at β_1 = 0 < … < β_R = 1, and at each a replica with the law p*^β / Z_β, p* without its
normalisation. A step is a Gibbs sweep of every replica at its β, then swaps of neighbours, of which the lower has an
even number in one step and an odd one in the next: with that alternation replicas travel, and a ladder makes round
trips at a rate that more rungs do not lower (Syed, Bouchard-Côté, Deligiannidis, Doucet, "Non-reversible parallel
tempering", JRSS B 2022). Geyer, "Markov chain Monte Carlo maximum likelihood", 1991; Hukushima and Nemoto, J. Phys.
Soc. Japan 1996.

**A chain of a run is a whole ladder**: 16 chains are 16 ladders, each of R replicas, and independent of each other.

    rungs      a pilot anneals particles on the host while the run is planned, and finds the barrier Λ; there are
               2 Λ + 1 rungs, 4 to 64. Where they lie is adapted in burn-in, to equal rejection, and then stays.
    marginals  the mean of p(x_v | rest) of the replicas at β = 1.
    log Z      log Z at β = 0, which is known, and Bennett's ratio between neighbours
               (`estimates.estimate_log_z_ratio`).
    doubts     besides those of chains: unless Λ < 1/2, fewer than 20 round trips, or than two of each replica times
               the share of trips that is missing to what the swap rates predict; states that meet a hard zero.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from spinbench.api import (
    Backend,
    Conformance,
    Estimate,
    Method,
    MethodProfile,
    Model,
    PairwiseModel,
    Program,
    Reduction,
    Trace,
    conditional_range,
    to_pairwise,
)
from spinbench.foundation.parameters import check_whole
from spinbench.mathematics.claims import log_z_parts
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import state_rows
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.estimates import chain_means, estimate_log_z_ratio, summarise_travel
from spinbench.methods.tempering.pilot import FloatArray, estimate_barriers, place_rungs
from spinbench.methods.tempering.program import Tables, TemperingProgram
from spinbench.methods.tempering.replicas import (
    GraphTables,
    PairTables,
    build_graph_tables,
    build_pair_tables,
)
from spinbench.methods.weighted_means import chain_estimate

IntArray = npt.NDArray[np.int64]
# Largest number of rungs that may be requested.
MAX_RUNGS = 1024


@dataclass(frozen=True)
class ParallelTempering(Method[Tables]):
    """Parallel tempering: replicas at inverse temperatures from 0 to 1 exchange their states.

    Attributes:
        rungs: of a ladder, 2 or more; 0: as many as the pilot finds that the model needs.
        sweeps: of every replica between swaps.
    """

    rungs: int = 0
    sweeps: int = 1

    name: ClassVar[str] = "pt"
    removed: ClassVar[Mapping[str, str]] = {
        "updates": "the method swendsen_wang moves clusters",
        "blocks": "the method blocks draws many variables at once",
        "houdayer": "more sweeps or more chains reach the same errors",
    }
    summary: ClassVar[str] = "parallel tempering with non-reversible swaps; log Z by bridges between rungs"
    profile = MethodProfile(family="tempering")
    model_form = "categorical"
    conformance = Conformance(burn_in_first=True)
    heaviest = "cooled"

    def __post_init__(self) -> None:
        check_whole(self, "rungs", 2, MAX_RUNGS, zero=True)
        check_whole(self, "sweeps", 1)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """p (M, L); up, down, rejected, levels (R - 1, L); trips, lost (L,)."""
        summed: dict[str, Reduction] = dict.fromkeys(("p", "up", "down", "rejected", "trips", "lost"), "sum")
        return summed | {"levels": "last"}

    def plan(self, model: Model) -> Tables:
        """Tables of the sweeps, and a ladder by the pilot."""
        tables, rows, signs, base = plan_replicas(model)
        pilot = estimate_barriers(tables.over(HostArrays()), tables, model.cardinalities)
        low, high = np.zeros(len(rows)), np.ones(len(rows))
        if isinstance(tables, PairTables):
            low, high = conditional_range(to_pairwise(model))
        return Tables(place_rungs(*pilot, self.rungs), tables, rows, signs, low, high, base)

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return TemperingProgram(backend, self.sweeps).program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals and log Z with their errors."""
        travel = summarise_travel(trace)
        means = chain_means(trace, tables.rows, tables.signs)._replace(low=tables.low, high=tables.high)
        estimate = chain_estimate(model, trace, means, not travel.is_sufficient, travel.visits)
        bridge = estimate_log_z_ratio(trace, travel).plus(float(tables.base))
        doubts = estimate.doubts
        if not np.isfinite(bridge.error_bound):
            doubts = (*estimate.doubts, "log Z unresolved")
        return replace(
            estimate,
            **log_z_parts(bridge, {"bridge": bridge}),
            diagnostics={"rungs": float(len(tables.betas)), **travel.diagnostics},
            doubts=doubts,
        )


def plan_replicas(model: Model) -> tuple[PairTables | GraphTables, IntArray, FloatArray, FloatArray]:
    """The tables of what is swept, and `rows`, `signs` and `base` of `Tables`."""
    base = float(np.log(model.cardinalities).sum())
    if is_binary_pairwise(model):
        pairs = to_pairwise(model)
        tables = build_pair_tables(pairs)
        return tables, np.argsort(tables.order), np.ones(model.num_variables), np.array(base + pairs.log_constant)
    graph = factor_tables(model)
    return build_graph_tables(graph), *state_rows(np.array(model.cardinalities)), np.array(base + graph.log_constant)


def is_binary_pairwise(model: Model) -> bool:
    """Whether biases and couplings of binary variables are all there is."""
    return isinstance(model, PairwiseModel) or (
        not model.has_zeros and model.all_binary and all(len(factor.scope) <= 2 for factor in model.factors)
    )
