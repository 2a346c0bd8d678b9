"""Phases: places of much weight that nothing leads to, which a run may have missed as a whole.

At a transition of first order chains and populations that come from independent states stay in the wide phase, agree
with each other, and know nothing of a narrow one that weighs as much; and all of a few chains may have fallen into the
same one of two wells. So some states are drawn at which each factor would like to be, some at which the strongest
parities hold, and others at random; they are cooled, and swept at β = 1. Where each of these probes stays, states look
like draws of a product law, and the mixture of all of them is a proposal: the mean of the weights p* / q of its draws
is Z, and that of those with x_v = k is Z P(x_v = k). What it does not cover is missing from both, so that they are
bounds from below, but for chance. Where probes stay in wells that the run has not seen, draws of their laws are
annealed there, which bounds what the well weighs. A run that claims less is not believed. Of a model that is no such
thing all of these bounds are many nats too low, and say nothing.
"""

from __future__ import annotations

import dataclasses
from functools import lru_cache
from itertools import compress

import numpy as np

from spinbench.api import Estimate
from spinbench.api.estimate import is_doubted
from spinbench.inference.budget import Budget
from spinbench.inference.checks import probes, weight_bounds
from spinbench.mathematics import all_states, claims
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.models import Model, PairwiseModel

# Limits of the model's size: probes of larger models take too long.
MOST_VARIABLES, MOST_FACTORS, MOST_ENTRIES = 500, 5000, 2**18
# A mode counts as missed if it bounds a state's probability from below by more than this many times the run's estimate.
TIMES = 4.0
# A probe has to exceed the run's probability of a state by this much to be in a mode that the run has not seen.
APART = 0.5
# Largest number of modes that are examined per run.
WELLS = 4
# Smallest budget (seconds; samples of all chains) from which a run of marginals alone is probed. The requested budget
# counts and not the time taken, so that equal runs get equal verdicts.
LONG_SECONDS, LONG_SAMPLES = 0.5, 300_000
# Largest number of variables for which every run is probed, in some 25 ms.
FEW_VARIABLES = 16
# Nats that are added to the upper bound of a mode's weight, which is a random estimate.
SLACK = 2.0


def flag_missed_modes(model: Model, estimate: Estimate, *, long: bool = False) -> tuple[str, ...]:
    """Flags of an estimate that a mode contradicts which the run has missed.

    Probes are sent where it would be believed. Of a long run marginals are judged, too, for which no log Z is claimed.
    """
    bound = estimate.log_z_error_bound or 0.0
    grouped = isinstance(model, PairwiseModel) and bool(model.groups)
    if model.num_variables > MOST_VARIABLES or grouped or estimate.log_z_kind == "exact":
        return ()
    if estimate.log_z is None or is_doubted(estimate, "log Z") or not np.isfinite(bound):
        return _flags_of_marginals(model, estimate) if long else ()
    if estimate.log_z_kind != "estimate" or (bounds := _bounds(probes.Content(model))) is None:
        return ()
    claimed = _Claimed.of(estimate, estimate.log_z, bound)
    verdicts = [claimed.contradictions(least) for least in bounds.wide]
    if not all(map(any, zip(*verdicts, strict=True))):
        verdicts += [claimed.contradictions(bounds.weigh_probe_well(number)) for number in claimed.unseen(bounds)]
    return tuple(compress(("marginals not mixed", "log Z unresolved"), map(any, zip(*verdicts, strict=True))))


def _flags_of_marginals(model: Model, estimate: Estimate) -> tuple[str, ...]:
    """Of a run that claims no log Z: what it has seen is taken to weigh as much as annealing from there allows."""
    if is_doubted(estimate, "marginals") or estimate.marginals_error_bound is None:
        return ()
    bounds = _bounds(probes.Content(model))
    if bounds is None or not np.isfinite(bounds.mixture.z):
        return ()
    least = _Claimed.of(estimate, bounds.mixture.z, 0.0)
    hopeful = [*bounds.wide, *map(bounds.weigh_probe_well, least.unseen(bounds))]
    if not any(least.contradictions(bound)[0] for bound in hopeful):
        return ()
    widest = dataclasses.replace(
        least, log_z=float(np.logaddexp(least.log_z, bounds.log_z_estimate_from(least.marginals)))
    )
    if any(widest.contradictions(bound)[0] for bound in hopeful):
        return ("marginals not mixed",)
    return ()


def is_long(budget: Budget, chains: int, variables: int = MOST_VARIABLES) -> bool:
    """Whether probes cost little beside such a run, by what it was asked, so that the same run has the same verdict."""
    if variables <= FEW_VARIABLES:
        return True
    if budget.seconds is not None:
        return budget.seconds >= LONG_SECONDS
    return (budget.samples or 0) * chains >= LONG_SAMPLES


@dataclasses.dataclass(frozen=True)
class _Claimed:
    """Of a run. Attributes: log_z, error: its bound; marginals, bounds: (S,) probabilities of all states and their
    error bounds, if there are any."""

    log_z: float
    error: float
    marginals: probes.FloatArray
    bounds: probes.FloatArray

    @classmethod
    def of(cls, estimate: Estimate, log_z: float, error: float) -> _Claimed:
        if estimate.marginals is None or estimate.marginals_error_bound is None:
            return cls(log_z, error, np.ones(1), np.ones(1))
        return cls(
            log_z,
            error,
            all_states.marginals_of_all_states(estimate.marginals),
            all_states.errors_of_all_states(estimate.marginals_error_bound),
        )

    def contradictions(self, least: weight_bounds.Least) -> tuple[bool, bool]:
        """Whether marginals and log Z are: log Z also where it lacks states that the run has hardly seen, however wide
        its claims of their marginals are."""
        allowed = self.error + 1e-6
        upper = max(self.log_z + allowed, least.z)
        marginals = np.exp(least.states - upper) > self.marginals + self.bounds + 1e-6
        share = np.exp(np.minimum(least.states - self.log_z, 1.0))
        missed = (share > TIMES * self.marginals) & (share > self.marginals + self.bounds / claims.BOUND + allowed)
        return bool(marginals.any()), bool(least.z > self.log_z + allowed or missed.any())

    def unseen(self, bounds: weight_bounds.Bounds) -> list[int]:
        """Probes in different wells that the run has not seen and that may weigh more than it allows for.

        Those come first whose states are likeliest: others may be on their way, and no law describes them.
        """
        laws, allowed = bounds.probed.laws, (self.marginals + self.bounds / claims.BOUND)[:, None]
        needed = np.where(laws > allowed + APART, np.log(allowed + 1e-6), np.inf).min(axis=0)
        excess = bounds.probed.upper + SLACK - self.log_z - needed
        chosen: list[int] = []
        for number in np.argsort(bounds.probed.entropies - bounds.probed.upper).tolist():
            law = laws[:, number]
            other = all((np.abs(law - laws[:, observed]) > APART).any() for observed in chosen)
            if excess[number] > 0 and other and len(chosen) < WELLS:
                chosen.append(number)
        return chosen


@lru_cache(maxsize=16)
def _bounds(content: probes.Content) -> weight_bounds.Bounds | None:
    """None where probes would take too long."""
    flat = factor_tables(content.model)
    if len(flat.offsets) > MOST_FACTORS or len(flat.values) > MOST_ENTRIES:
        return None
    return weight_bounds.Bounds(flat)
