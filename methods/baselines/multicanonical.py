"""Multicanonical sampling: all values of D = log p* between those of β = 0 and of β = 1 are visited alike.

A state has the weight e^θ(D), θ being linear between knots from the mean of D at β = 0 to that at β = 1, level below
the first (β = 0) and of slope 1 above the last (β = 1). Where θ is minus the logarithm of the density of states, the
histogram of D is flat. It begins with the slope β at the mean of D at β, as a pilot's annealing has it, falls in
burn-in where chains are, all chains together, by amounts inverse to the number of steps, and then stays. Variables are
updated one after another, given the rest, as by Gibbs sampling of e^θ. What lies beyond the end knots counts as there.

    marginals  ratios of means with the weights w = e^(D - θ(D)), which reach 1 at the last knot.
    log Z      log Z at β = 0, which is known, and the logarithm of E[e^(D - θ)] / E[e^-θ]. States of β = 0 that chains
               have not seen are missing in the second, which looks from the other side show: Bennett's ratio with θ at
               independent draws has to agree.
    doubts     besides those of chains: fewer round trips between both ends than chains, or than 20.

Berg and Neuhaus, "Multicanonical ensemble: a new approach to simulate first-order phase transitions", Phys. Rev. Lett.
1992; Wang and Landau, "Efficient, multiple-range random walk algorithm to calculate the density of states", Phys. Rev.
Lett. 2001; steps that fall as 1 / t: Belardinelli and Pereyra, Phys. Rev. E 2007. At β < 1 hard zeros are soft.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Conformance, Estimate, Method, Model, Program, Reduction, Trace
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_whole
from spinbench.mathematics.bennett import beside, ratio
from spinbench.mathematics.claims import Claim, log_z_parts
from spinbench.mathematics.graphs.factor_tables import factor_tables, links
from spinbench.mathematics.graphs.table_layouts import table_sweep
from spinbench.methods.baselines.flat import FlatHistogramProgram, Tables
from spinbench.methods.gibbs.host_arrays import HostArrays
from spinbench.methods.tempering.estimates import Travel, estimate_log_z_ratio
from spinbench.methods.tempering.pilot import anneal_particles, cumulative_barriers
from spinbench.methods.tempering.replicas import GraphReplicas, build_graph_tables
from spinbench.methods.weighted_means import FloatArray, importance_marginals, state_pairs

# Bins between knots per unit of the barrier that the pilot run measures; smallest and largest number of bins.
BINS_PER_BARRIER, MIN_BINS, MAX_BINS = 4.0, 4, 64
# Smallest range of D in nats that the knots cover.
MIN_KNOT_RANGE = 0.1
# θ beyond the range that chains have visited is lower by this many nats: an independent draw there has no weight in
# Bennett's ratio, and a finite number avoids NaN.
UNREACHABLE_NATS = 100.0


@dataclass(frozen=True)
class Multicanonical(Method[Tables]):
    """Multicanonical sampling: chains visit all values of D = log p* about equally often and are reweighted to p.

    Attributes:
        bins: between knots, 2 or more; 0: four for a unit of the pilot's barrier Λ, 4 to 64.
    """

    bins: int = 0

    name: ClassVar[str] = "multicanonical"
    summary: ClassVar[str] = "flat histograms of the log weight, reweighted; log Z from β = 0; any factor graph"
    model_form = "categorical"
    conformance = Conformance(burn_in_first=True)

    def __post_init__(self) -> None:
        check_whole(self, "bins", 2, zero=True)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """s (R, C) weights in states, w (C,) weights; up, down, levels (1, C) of log Z; trips (C,)."""
        summed: dict[str, Reduction] = dict.fromkeys(("s", "w", "up", "down", "trips"), "sum")
        return summed | {"levels": "last"}

    def plan(self, model: Model) -> Tables:
        """Tables of the updates; knots by a pilot."""
        deadline.require(1.1e-4 * (model.num_variables + links(model)))
        tables = factor_tables(model)
        betas, log_weights = anneal_particles(
            GraphReplicas(HostArrays()), build_graph_tables(tables), model.cardinalities
        )
        barrier = cumulative_barriers(betas, log_weights)[-1]
        bins = self.bins or int(np.clip(np.ceil(BINS_PER_BARRIER * barrier), MIN_BINS, MAX_BINS))
        knots, levels = initial_levels(betas, log_weights.mean(axis=1), bins)
        return Tables(
            table_sweep(tables, "raster", single=True),
            knots,
            levels,
            *state_pairs(model.cardinalities),
            np.array(model.cardinalities, dtype=np.float64),
            np.array(tables.log_constant + np.log(model.cardinalities).sum()),
            np.array(barrier),
        )

    def program(self, backend: Backend) -> Program:
        """Over `backend`'s arrays."""
        return FlatHistogramProgram(backend).program()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Marginals and log Z with their errors."""
        trips, chains = float(trace.total("trips").sum()), trace.total("trips").shape[-1]
        # A flat landscape: all states have about the same weight, so that round trips have no meaning and are not
        # required.
        is_level = tables.knots[-1] - tables.knots[0] < 2 * MIN_KNOT_RANGE
        travel = Travel(0.0 if is_level else np.inf, trips, chains, np.inf, 1.0, 0.0)
        estimate = importance_marginals(model, trace, not travel.is_sufficient, travel.visits)
        reweighted = estimate_log_z_ratio(trace, travel)
        # Marginals and log Z are means of the same weights: if there are too few weights for one, there are too few for
        # the other.
        if any("too short" in doubt for doubt in estimate.doubts):
            reweighted = Claim(reweighted.value, np.inf, np.inf)
        reweighted = _combine_with_bennett(trace, reweighted).plus(float(tables.base))
        doubts = estimate.doubts
        if not np.isfinite(reweighted.error_bound):
            doubts = (*doubts, "log Z unresolved")
        return replace(
            estimate,
            **log_z_parts(reweighted, {"reweighted": reweighted}),
            diagnostics={**estimate.diagnostics, "round_trips": trips, "barrier": float(tables.barrier)},
            doubts=doubts,
        )


def _combine_with_bennett(trace: Trace, reweighted: Claim) -> Claim:
    """An estimate beside that with another one of E[e^-θ]."""
    # Without looks there is no second estimate to compare with.
    if not trace.looks:
        return reweighted
    forward = trace.looked("there")
    other = ratio(forward, np.maximum(trace.looked("free").ravel(), forward.min() - UNREACHABLE_NATS))
    down = float(trace.mean("down").mean())
    if not 0 < down < np.inf:
        return Claim(reweighted.value, np.inf, np.inf)
    return beside(reweighted, other._replace(value=reweighted.value + float(np.log(down)) + other.value))


def initial_levels(betas: FloatArray, means: FloatArray, bins: int) -> tuple[FloatArray, FloatArray]:
    """(knots, θ): between the means of D at β = 0 and 1, with the slope β where D has its mean at β."""
    # The mean of D rises with β (its derivative is a variance). Noise of the pilot run may break the order, which
    # np.interp needs.
    rising = np.maximum.accumulate(means)
    knots = np.linspace(rising[0], max(rising[-1], rising[0] + MIN_KNOT_RANGE), bins + 1)
    slopes = np.interp((knots[1:] + knots[:-1]) / 2, rising, betas)
    return knots, np.append(0.0, np.cumsum(slopes * np.diff(knots)))
