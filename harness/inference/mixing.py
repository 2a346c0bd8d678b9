"""`spinbench.mixing`: after how many sweeps a sampler's law is close to the model.

Pairs of coupled chains run until they have met or a budget is spent; their meeting times bound the distance to
stationarity.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple, cast

import numpy as np

from spinbench.api.coupling import Coupling, Pairs
from spinbench.errors import BudgetError, SpinbenchError, UnsupportedError
from spinbench.foundation import deadline, defaults, plugins
from spinbench.foundation.remarks import format_seconds
from spinbench.inference import initial_states, registry, request
from spinbench.inference.budget import Budget, check_probability, check_whole, parse_seconds
from spinbench.mathematics.graphs.factor_tables import IntArray
from spinbench.models import Model, PairwiseModel
from spinbench.models.groups import merge_groups

# Numbers of coupled pairs: to find the lag, in the first batch, and in all.
PILOTS, FIRST, MOST = 8, 64, 1024
# Share of the budget for finding the lag.
PILOT_SHARE = 0.25
# Quantile of the pilot pairs' meeting times that is used as lag.
QUANTILE = 0.9
# Share of the remaining budget that further pairs are planned to take.
ROOM = 0.5

# For an upper limit at 95 % confidence: standard errors, and (rule of three) number of larger values that no pair has
# shown.
_NORMAL, _UNSEEN = 1.645, 3.0


class Distance(NamedTuple):
    """Of the law after t sweeps. Attributes: mean: the estimated bound; most: its upper confidence limit."""

    mean: float
    most: float


@dataclass(frozen=True)
class Mixing:
    """How long a sampler takes to forget its starts.

    The distance in total variation between the law of s_t and the model is at most
    E max(0, ⌈(τ - L - t) / L⌉) for the meeting time τ of chains that are L sweeps apart (Biswas, Jacob and Vanetti,
    "Estimating convergence of Markov chains with L-lag couplings", NeurIPS 2019, theorem 2.5); the mean over
    independent pairs estimates it. A part of the states that no pair has entered is not seen.

    Attributes:
        sweeps: after which the bound is below `tv` with a confidence of 95 %; None: not resolved.
        estimate: after which the estimated bound is below `tv`; None where a pair has not met.
        tv: the distance that was asked for.
        lag: L.
        times: (P,) meeting times τ in sweeps of the chain ahead; -1 of pairs that have not met.
        seconds: spent, loading of compiled code left out.
        ran: sweeps that were made at most.
        method, backend, model: their names.
    """

    sweeps: int | None
    estimate: int | None
    tv: float
    lag: int
    times: IntArray
    seconds: float
    ran: int
    method: str = defaults.METHOD
    backend: str = ""
    model: str = "model"

    @property
    def verdict(self) -> Literal["resolved", "not resolved"]:
        """Whether `sweeps` is known."""
        return "not resolved" if self.sweeps is None else "resolved"

    @property
    def met(self) -> float:
        """The share of pairs that have met."""
        return float((self.times >= 0).mean())

    def distance(self, t: int) -> Distance:
        """Of the law after t sweeps; infinite where a pair has not met."""
        return distance(self.times, self.lag, t)

    def sentences(self) -> list[str]:
        """What it says, a line each."""
        pairs = f"{len(self.times)} pairs, lag {self.lag}"
        if self.met < 1:
            met = int((self.times >= 0).sum())
            return [f"not resolved: {met} of {pairs}, have met in {self.ran} sweeps and {format_seconds(self.seconds)}"]
        about = f"the estimate is {self.estimate}; {pairs}, in {format_seconds(self.seconds)}"
        if self.sweeps is None:
            return [f"not resolved: too few pairs for 95 % confidence in a distance below {self.tv:g}; {about}"]
        return [f"{self.method}: total variation below {self.tv:g} after {self.sweeps} sweeps, 95 % sure; {about}"]

    def __repr__(self) -> str:
        return f"Mixing({self.model!r}: {'; '.join(self.sentences())})"


def _run(coupling: Coupling[Pairs], pairs: Pairs, lag: int, until: float) -> int:
    """Sweeps until all pairs have met, or the clock is beyond `until`; their number."""
    done, more = 0, 1
    while (pairs.met < 0).any() and deadline.now() < until:
        since = deadline.now()
        coupling.advance(pairs, lag, done + 1, done + more)
        done += more
        took = max(deadline.now() - since, 1e-6)
        left = max(until - deadline.now(), 0.0)
        more = max(1, min(2 * more, int(more * left / (2 * took))))
    return done


def mixing(
    model: Model,
    method: str = defaults.METHOD,
    budget: Budget | int | str = "10 s",
    *,
    tv: float = 0.01,
    seed: int = 0,
    scan: Literal["chromatic", "raster"] = "chromatic",
    backend: str | None = None,
) -> Mixing:
    """After how many sweeps a sampler's law is closer than `tv` to the model, from the starts that its runs have.

    Pairs of chains are coupled until they meet: 8 that choose the lag, then 64, then as many more as the budget has
    room for, 1024 at most. A pair that has not met when the budget is spent leaves it "not resolved".

    Args:
        model: any model; a 1-of-K group counts as one variable.
        method: whose sweeps; gibbs, or one that a plugin couples.
        budget: wall-clock ("10 s") or the CPU's ("10 s cpu"); loading and compiling code is not counted.
        tv: the distance in total variation.
        seed: of all random numbers.
        scan: the order of a sweep, as of gibbs.
        backend: numba or numpy; sweeps are compiled for either, and their numbers are the same.

    Raises:
        UnsupportedError: another method.
        SpinbenchError: an argument is out of range.
        BudgetError: hard zeros leave so little that chains have not found their starts within the budget.
    """
    _check_arguments(model, method, tv, seed, scan)
    seconds, cpu = parse_seconds(budget, "mixing")
    if isinstance(model, PairwiseModel) and model.groups:
        model = merge_groups(model)
    cls = load_coupling(method)
    if backend not in (None, *cls.backends):
        raise UnsupportedError(
            f"mixing: backend={backend!r} was given; coupled sweeps run on {' and '.join(cls.backends)}"
        )
    registry.require_support(method, cls.backends[0], "float64")
    chains, none = cls(model, scan), np.zeros((model.num_variables, 0))
    chains.advance(chains.start((0,), none, none), 1, 1, 1)  # compiles, or loads, what makes sweeps
    try:
        with deadline.budgets_on(cpu=cpu), deadline.within(seconds):
            begun = deadline.now()
            lag, times, ran = _lag(chains, model, seed, begun + PILOT_SHARE * seconds)
            if lag:
                times, ran = _times(chains, model, seed, lag, begun + seconds)
            spent = deadline.now() - begun
    except deadline.OverdueError:
        raise BudgetError(f"mixing: starts of positive weight of {model.name} took longer than {seconds:g} s") from None
    sure, estimate = first_below(times, max(lag, 1), tv)
    return Mixing(sure, estimate, tv, max(lag, 1), times, spent, ran, method, backend or cls.backends[0], model.name)


def _check_arguments(model: Model, method: str, tv: object, seed: object, scan: str) -> None:
    request.check_model(model)
    load_coupling(method)
    check_probability("tv", tv)
    check_whole("seed", seed, 0)
    if scan not in ("chromatic", "raster"):
        raise SpinbenchError(f"scan={scan!r} was given; chromatic or raster is needed")


def load_coupling(method: str) -> type[Coupling[Pairs]]:
    """That of a method.

    Raises:
        UnsupportedError: it has none.
        BrokenPluginError: it failed on import, or is no `Coupling`.
    """
    if method not in (coupled := plugins.entry_points("couplings")):
        raise UnsupportedError(f"mixing: method={method!r} was given; {', '.join(coupled)} is coupled, and no other")
    return cast("type[Coupling[Pairs]]", plugins.load("couplings", method, _invalid_class_reason))


def _invalid_class_reason(plugin: object) -> str:
    right = isinstance(plugin, type) and issubclass(plugin, Coupling) and bool(getattr(plugin, "backends", ()))
    return "" if right else "is no subclass of spinbench.api.Coupling with backends"


def _start_pairs(chains: Coupling[Pairs], model: Model, seed: int, stage: int, pairs: int) -> Pairs:
    """Both chains of each pair at independent starts, as runs have them."""
    key = (seed, 0x4D4958, stage)
    states = initial_states.spread_starts(model, 2 * pairs, int(np.random.SeedSequence(key).generate_state(1)[0]), True)
    mixed = states[:, np.random.default_rng(key).permutation(2 * pairs)]
    return chains.start(key, mixed[:, :pairs], mixed[:, pairs:])


def _lag(chains: Coupling[Pairs], model: Model, seed: int, until: float) -> tuple[int, IntArray, int]:
    """(L, 0 where pilots have not met; their meeting times; sweeps)."""
    pilots = _start_pairs(chains, model, seed, 0, PILOTS)
    ran = _run(chains, pilots, 1, until)
    if (pilots.met < 0).any():
        return 0, pilots.met, ran
    return int(np.ceil(np.quantile(pilots.met, QUANTILE))), pilots.met, ran


def _times(chains: Coupling[Pairs], model: Model, seed: int, lag: int, until: float) -> tuple[IntArray, int]:
    """(meeting times of as many pairs as there is time for; sweeps)."""
    since = deadline.now()
    pairs = _start_pairs(chains, model, seed, 1, FIRST)
    ran = _run(chains, pairs, lag, until)
    if (pairs.met < 0).any():
        return pairs.met, ran
    each = (deadline.now() - since) / FIRST
    more = min(int(ROOM * (until - deadline.now()) / each), MOST - FIRST)
    if more < 1:
        return pairs.met, ran
    further = _start_pairs(chains, model, seed, 2, more)
    ran = max(ran, _run(chains, further, lag, until))
    return np.concatenate([pairs.met, further.met]), ran


def distance(times: IntArray, lag: int, t: int) -> Distance:
    """See `Mixing.distance`.

    The limit allows for rare long meetings, of which so few pairs may show none; none that is many lags longer.
    """
    if (times < 0).any():
        return Distance(np.inf, np.inf)
    excess = np.maximum(0, -((t + lag - times) // lag))
    mean, count = float(excess.mean()), len(times)
    return Distance(mean, mean + _NORMAL * float(excess.std()) / np.sqrt(count) + _UNSEEN / count)


def first_below(times: IntArray, lag: int, tv: float) -> tuple[int | None, int | None]:
    """(sweeps after which the limit of the distance is below `tv`, those after which its mean is); None: never."""
    if (times < 0).any():
        return None, None
    ends = max(int(times.max()) - lag, 0)

    def first(column: int) -> int | None:
        if not distance(times, lag, ends)[column] < tv:
            return None
        low, high = -1, ends
        while high - low > 1:
            middle = (low + high) // 2
            if distance(times, lag, middle)[column] < tv:
                high = middle
            else:
                low = middle
        return high

    return first(1), first(0)
