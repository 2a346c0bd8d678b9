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

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate
from spinbench.inference.budget import Budget
from spinbench.inference.marginals import all_states
from spinbench.inference.probing.least import Bounds, Least
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.models import Model, PairwiseModel

FloatArray = npt.NDArray[np.float64]

MOST_VARIABLES, MOST_FACTORS, MOST_ENTRIES = 500, 5000, 2**18
"""Of larger models probes take too long."""
CLAIMS = 3.0
"""By which a run may be below."""
TIMES = 4.0
"""As often as a run claims, a state has to be there at least: what it sums has missed those."""
APART = 0.5
"""Probability of a state by which a probe has to be beyond the run's, to be in a well that it has not seen."""
WELLS = 4
"""That are looked into, for a run."""
LONG_SECONDS, LONG_SAMPLES = 0.5, 300_000
"""From which on a run that claims marginals alone is worth probes; samples of all chains together."""
SLACK = 2.0
"""Nats by which what a well weighs at most may be too low by chance."""


class Phases:
    """What runs of one model have to know of; probes are sent when an estimate would be believed."""

    def __init__(self, model: Model, sampler: bool, long: bool = False) -> None:
        """Of a long run marginals are judged, too, for which no log Z is claimed."""
        grouped = isinstance(model, PairwiseModel) and bool(model.groups)
        self._small = sampler and model.num_variables <= MOST_VARIABLES and not grouped
        self._content = _Content(model)
        self._long = long

    def doubted(self, said: Estimate) -> Estimate:
        """With doubts of what a phase contradicts that it has missed."""
        error = 0.0 if said.log_z_se is None else said.log_z_se
        if not self._small or said.log_z_kind == "exact":
            return said
        if said.log_z is None or said.doubted("log Z") or not np.isfinite(error):
            return self._doubted_of_marginals(said) if self._long else said
        bounds = _bounds(self._content) if said.log_z_kind == "estimate" else None
        if bounds is None:
            return said
        claimed = _Claimed.of(said, said.log_z, error)
        marginals, log_z = False, False
        for least in bounds.wide:
            of_all = claimed.contradicted(least)
            marginals, log_z = marginals or of_all[0], log_z or of_all[1]
        for number in () if log_z and marginals else claimed.unseen(bounds):
            of_well = claimed.contradicted(bounds.well(number))
            marginals, log_z = marginals or of_well[0], log_z or of_well[1]
        first = ("marginals not mixed",) if marginals and not said.doubted("marginals") else ()
        if not log_z:
            return dataclasses.replace(said, doubts=(*first, *said.doubts))
        return dataclasses.replace(said, doubts=(*first, *said.doubts, "log Z unresolved"), log_z_se=np.inf)

    def _doubted_of_marginals(self, said: Estimate) -> Estimate:
        """Of a run that claims no log Z: what it has seen is taken to weigh as much as annealing from there allows."""
        bounds = None if said.doubted("marginals") or said.marginals_se is None else _bounds(self._content)
        if bounds is None or not np.isfinite(bounds.mixture.z):
            return said
        least = _Claimed.of(said, bounds.mixture.z, 0.0)
        hopeful = [*bounds.wide, *map(bounds.well, least.unseen(bounds))]
        if not any(least.contradicted(bound)[0] for bound in hopeful):
            return said
        most = dataclasses.replace(least, log_z=float(np.logaddexp(least.log_z, bounds.at_most(least.found))))
        missed = any(most.contradicted(bound)[0] for bound in hopeful)
        return dataclasses.replace(said, doubts=("marginals not mixed", *said.doubts)) if missed else said


def is_long(budget: Budget, chains: int) -> bool:
    """Whether probes cost little beside such a run, by what it was asked, so that the same run has the same verdict."""
    if budget.seconds is not None:
        return budget.seconds >= LONG_SECONDS
    return (budget.samples or 0) * chains >= LONG_SAMPLES


@dataclasses.dataclass(frozen=True)
class _Claimed:
    """Of a run. Attributes: log_z, error; found, errors: (S,) of the probabilities of all states, if there are any."""

    log_z: float
    error: float
    found: FloatArray
    errors: FloatArray

    @classmethod
    def of(cls, said: Estimate, log_z: float, error: float) -> _Claimed:
        if said.marginals is None or said.marginals_se is None:
            return cls(log_z, error, np.ones(1), np.ones(1))
        return cls(log_z, error, all_states.of_marginals(said.marginals), all_states.of_errors(said.marginals_se))

    def contradicted(self, least: Least) -> tuple[bool, bool]:
        """Whether marginals and log Z are: log Z also where it lacks states that the run has hardly seen, however wide
        its claims of their marginals are."""
        allowed = CLAIMS * self.error + 1e-6
        most = max(self.log_z + allowed, least.z)
        marginals = np.exp(least.states - most) > self.found + CLAIMS * self.errors + 1e-6
        share = np.exp(np.minimum(least.states - self.log_z, 1.0))
        missed = (share > TIMES * self.found) & (share > self.found + self.errors + allowed)
        return bool(marginals.any()), bool(least.z > self.log_z + allowed or missed.any())

    def unseen(self, bounds: Bounds) -> list[int]:
        """Probes in different wells that the run has not seen and that may weigh more than it allows for.

        Those come first whose states are likeliest: others may be on their way, and no law describes them.
        """
        laws, allowed = bounds.probed.laws, (self.found + self.errors)[:, None]
        needed = np.where(laws > allowed + APART, np.log(allowed + 1e-6), np.inf).min(axis=0)
        excess = bounds.probed.most + SLACK - self.log_z - needed
        chosen: list[int] = []
        for number in np.argsort(bounds.probed.entropies - bounds.probed.most).tolist():
            law = laws[:, number]
            other = all((np.abs(law - laws[:, known]) > APART).any() for known in chosen)
            if excess[number] > 0 and other and len(chosen) < WELLS:
                chosen.append(number)
        return chosen


@dataclasses.dataclass(frozen=True, eq=False)
class _Content:
    """A model, equal to others of the same content, so that probes are sent once."""

    model: Model

    def __hash__(self) -> int:
        return hash(self.model.content_hash)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Content) and self.model.content_hash == other.model.content_hash


@lru_cache(maxsize=16)
def _bounds(content: _Content) -> Bounds | None:
    """None where probes would take too long."""
    flat = factor_tables(content.model)
    if len(flat.offsets) > MOST_FACTORS or len(flat.values) > MOST_ENTRIES:
        return None
    return Bounds(flat)
