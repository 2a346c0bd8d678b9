"""Checks that chains which start from exact draws keep the exact law."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from spinbench.api import State
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, GRAPHS, LAGS, NUM_REPLICAS, SHORT
from spinbench.testing.check import PAIR_CHECKS, CheckError, require, run_with_deadline, skip
from spinbench.testing.laws import wrong_laws
from spinbench.testing.laws.cases import CASES
from spinbench.testing.pair import Pair, Sample
from spinbench.testing.trial import BURN_IN, SEED, Trial, advance_batches, run_burn_in

# Factor on the usual number of chains, as long as steps of them are predicted to take no more than this many CPU
# seconds; chains that fit no cache take up to three times as long, and are left out beyond the other number.
MAX_CHAIN_FACTOR, MAX_STEP_SECONDS, MAX_SECONDS = 32, 1.0, 3.0


@PAIR_CHECKS.add("stationarity, {}", "sampler", over=(*SHORT, GRAPHS[0]))
def check_stationarity(pair: Pair, case: str) -> None:
    """Chains that start from exact draws keep the exact law: marginals, and the joint law where states are seen.

    Of methods that draw by themselves it is the joint law alone: means of few weighted draws are off.
    """
    sample, _ = _sample_from_exact_draws(pair, case, pair.chains)
    if pair.method.kind != "draws":
        _require_exact_marginals(pair, sample, pair.chains)
        if not pair.method.conformance.burn_in_first:
            _require_law_of_start(sample.bound, pair.chains)
    if case in CASES:
        _require_joint_law(pair, replace(sample, batches=sample.batches[-1:]))


@PAIR_CHECKS.add("stationarity, many chains", "sampler", "compiles_once")
def check_stationarity_of_many_chains(pair: Pair) -> None:
    """Many more chains keep the exact marginals, so that small errors of their law show."""
    if pair.method.kind == "draws":
        skip("its draws do not come from its chains")
    if getattr(pair.trial("dense").engine, "compiles", True):
        _sample_from_exact_draws(pair, "dense", pair.chains)  # what is timed is compiled
    since = time.process_time()
    _sample_from_exact_draws(pair, "dense", pair.chains)
    times = min(MAX_CHAIN_FACTOR, int(MAX_STEP_SECONDS / max(time.process_time() - since, 1e-3)))
    if times < 2:
        skip("a step is slow")
    task = f"a few steps of {times * pair.chains} chains"
    sample, state = run_with_deadline(
        MAX_SECONDS, task, lambda: _sample_from_exact_draws(pair, "dense", times * pair.chains)
    )
    _require_independent_movement(sample, sample.bound.engine.states(state))
    _require_exact_marginals(pair, sample, times * pair.chains)


def _require_independent_movement(sample: Sample, states: np.ndarray | None) -> None:
    """Of very many chains none stands still where others move, and none goes the way of another one; by their `states`
    in the end, where these are seen."""
    chains = max(array.shape[-1] for array in sample.batches[0][1].values())
    first, last = (
        np.concatenate([np.reshape(array, (-1, chains)) for array in batch.values() if array.shape[-1] == chains])
        for _, batch in (sample.batches[0], sample.batches[-1])
    )
    moved = first != last if states is None else _exact_start(sample.bound, states.shape[1]) != states
    moves = moved.any(axis=0).reshape(NUM_REPLICAS, -1).any(axis=1)
    still = np.flatnonzero(~moves) * (moved.shape[1] // NUM_REPLICAS)
    require(
        moves.all() or not moves.any(),
        f"of {moved.shape[1]} chains, some from {still.min(initial=moved.shape[1])} on stand still",
    )
    varies = np.isfinite(last).all(axis=1) & (np.ptp(last, axis=1) > 0)
    limits.require_no_correlation(f"the last of {LAGS} steps", last[varies])


def _sample_from_exact_draws(pair: Pair, case: str, chains: int) -> tuple[Sample, State]:
    """A few steps of chains that start from exact draws, and their state."""
    bound = pair.trial(case)
    state = bound.engine.init(SEED + 1, _exact_start(bound, chains))
    if pair.method.conformance.burn_in_first:
        state = run_burn_in(bound.engine, state, BURN_IN)
    state, batches = advance_batches(bound.engine, state, [1] * LAGS)
    return Sample(bound, batches), state


def _exact_start(bound: Trial, chains: int) -> npt.NDArray[np.int8]:
    """(N, chains) exact draws, as the method codes states."""
    start = bound.law.exact_draws(chains, SEED + 1)
    if bound.model.origin is None:
        return start
    return np.asarray(bound.model.origin.lower(start.T).T, dtype=np.int8)


def _require_law_of_start(bound: Trial, chains: int) -> None:
    """Chains whose states are seen begin with the law of their start, in these states or in others."""
    start = _exact_start(bound, chains)
    begun = bound.engine.states(bound.engine.init(SEED + 1, start))
    if begun is None:
        return
    levels = np.arange(int(start.max()) + 1)[:, None, None]
    first, other = ((states == levels).mean(axis=-1) for states in (start, begun))
    share = (first + other) / 2
    # The variance of a difference is at most four times that of a share, whatever both have to do with each other.
    allowed = 2 * limits.normal_limit(share.size) * np.sqrt(share * (1 - share) / chains)
    wrong = np.flatnonzero((np.abs(first - other) > allowed).any(axis=0))
    require(
        not wrong.size,
        f"chains do not begin in the states of their start: variables {wrong.tolist()} have states of another law",
    )


def _require_exact_marginals(pair: Pair, sample: Sample, chains: int) -> None:
    exact = sample.bound.law.marginals
    width = chains // NUM_REPLICAS
    slices = [slice(g * width, (g + 1) * width) for g in range(NUM_REPLICAS)]
    groups = np.stack([np.asarray(sample.bound.estimate(sample.batches, chosen).marginals) for chosen in slices])
    error = groups.mean(axis=0) - exact
    spread = groups.std(axis=0, ddof=1) / np.sqrt(NUM_REPLICAS)
    limit = limits.student_limit(NUM_REPLICAS - 1, len(error))
    allowed = limit * spread + FLOOR[pair.precision]
    if (bad := np.abs(error) > allowed).any():
        law = sample.bound.law
        cause = wrong_laws.describe_cause(law.model, law.states, groups.mean(axis=0), exact, allowed)
        start = _exact_start(sample.bound, chains)
        begun = sample.bound.engine.states(sample.bound.engine.init(SEED + 1, start))
        if begun is not None and not np.array_equal(begun, start):
            cause += "; chains do not begin in the states of their start"
        raise CheckError(
            f"after {LAGS} steps from exact draws, marginals {np.flatnonzero(bad).tolist()} of {chains} chains are off "
            f"by {error[bad]} ± {spread[bad]}{cause}"
        )


def _require_joint_law(pair: Pair, sample: Sample) -> None:
    """Where one step of one chain has marginals of 0 and 1, these are its state: their joint law, by its likelihood.

    States that do not all count alike (importance sampling) have another law, and are left alone.
    """
    law = sample.bound.law
    first = pair.estimate(sample, slice(0, 1)).marginals
    if first is None or not np.isin(first, (0, 1)).all():
        return
    states = np.stack([pair.estimate(sample, slice(c, c + 1)).marginals for c in range(pair.chains)])
    if not np.allclose(states.mean(axis=0), pair.estimate(sample).marginals):
        return
    codes = states.astype(np.int64) @ (2 ** np.arange(states.shape[1]))
    counts = np.bincount(codes, minlength=law.probabilities.size)
    limits.require_law(f"after {LAGS} steps from exact draws, the joint law of states", counts, law.probabilities)
