"""Checks of the states that a sampler's chains are in: those that `run(keep=…)` keeps, and that burn-in moves them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from unittest import SkipTest

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine
from spinbench.inference.budget import Budget
from spinbench.inference.initial_states import random_start
from spinbench.inference.stored_states.recorder import RecordingEngine
from spinbench.testing import limits
from spinbench.testing.answers import LAGS
from spinbench.testing.check import PAIR_CHECKS, require, skip
from spinbench.testing.joint import UNSEEN
from spinbench.testing.laws.cases import FloatArray, Law, law
from spinbench.testing.laws.large_models import find_solved_model
from spinbench.testing.pair import Pair
from spinbench.testing.trial import BURN_IN, FEW_CHAINS, SEED, Batches, Trial, advance_batches, run_burn_in

# Number of chains at which a kernel's arrays may be passed on without a copy.
FEW = 5
StoredStates = npt.NDArray[np.integer]
# Model for burn-in, on which chains take some eight steps to leave their initial state.
SLOW = "slow pair"
STEPS = 128
CHAINS = 2048
GROUPS = 64


@PAIR_CHECKS.add("kept states", "sampler")
def check_stored_states(pair: Pair) -> None:
    """They are of the law, of two and of several states, and of the statistics; who has them may keep them."""
    check_stored_binary_states(pair)
    with suppress(SkipTest):
        at = pair.trial("three states")
        _check_states_are_copies(pair, at)
        _store_and_check_law(at, pair.chains, at.law)
    if pair.native:
        with suppress(SkipTest):
            _check_states_of_many_variables(pair)


def _check_states_of_many_variables(pair: Pair) -> None:
    """Of a large model each variable's are its own."""
    exact, at = find_solved_model("101 variables"), pair.trial("101 variables")
    states_by_step: list[Any] = []
    state = at.start_chains(FEW_CHAINS, SEED)
    for _ in range(LAGS):
        state, _ = at.engine.advance(state, 1)
        states_by_step.append(at.engine.states(state))
    frequencies = np.mean(states_by_step, axis=0)
    spread = frequencies.std(axis=1, ddof=1) / FEW_CHAINS**0.5
    allowed = limits.student_limit(FEW_CHAINS - 1, len(frequencies)) * spread + UNSEEN / FEW_CHAINS
    wrong = np.flatnonzero(np.abs(frequencies.mean(axis=1) - exact.marginals) > allowed)
    require(not wrong.size, f"of 101 variables, states of {wrong.tolist()} have other probabilities than theirs")


def check_stored_binary_states(pair: Pair) -> None:
    """The same where all variables have two states.

    Raises:
        SkipTest: there are none.
    """
    at, exact = pair.trial("dense"), law("dense")
    _check_states_are_copies(pair, at)
    stored, batches = _store_and_check_law(at, pair.chains, exact)
    for chain in range(min(pair.chains, LAGS)):
        chain_marginals = at.estimate(batches[-1:], slice(chain, chain + 1)).marginals
        if chain_marginals is not None and np.isin(chain_marginals, (0, 1)).all():
            same = np.array_equal(chain_marginals, stored[chain, -1])
            require(same, f"the statistics of chain {chain} are of other states than those that are kept")


def _check_states_are_copies(pair: Pair, at: Trial) -> None:
    _check_states_of_chains(at, pair.chains)
    if pair.native:
        _check_states_of_chains(at, FEW)


def _check_states_of_chains(at: Trial, chains: int) -> None:
    state = at.start_chains(chains, SEED, steps=LAGS)
    require(callable(at.engine.states), "an attribute `states` hides the engine's function of that name: rename it")
    states = at.engine.states(state)
    if states is None:
        skip("it hands over no states")
    shape = (at.model.num_variables, chains)
    require(np.shape(states) == shape, f"states have shape {np.shape(states)}; (variables, chains) = {shape} is needed")
    is_valid = (states >= 0) & (states < np.array(at.model.cardinalities)[:, None]) & (states == np.rint(states))
    wrong = np.flatnonzero(~is_valid.all(axis=1))
    require(not wrong.size, f"states of variables {wrong.tolist()} are none of theirs: {states[~is_valid][:3]}")
    copy = states.copy()
    state, statistics = at.engine.advance(state, LAGS)
    at.engine.states(state)
    same = np.array_equal(states, copy)
    require(same, "states that were handed over are overwritten by those of later steps: hand over a copy")
    alone = at.engine.advance(at.start_chains(chains, SEED, steps=LAGS), LAGS)[1]
    same = all(np.array_equal(statistics[name], alone[name]) for name in alone)
    require(same, "chains whose states were asked for give other draws than those of which they were not")


def _store_and_check_law(at: Trial, chains: int, law: Law) -> tuple[StoredStates, Batches]:
    """(C, S, M) states and the statistics of their steps."""
    start = random_start(at.model, chains, SEED)
    budget = Budget(samples=LAGS)
    recorder = RecordingEngine(at.engine, at.method.reductions, at.model, start, budget, LAGS, at.method.name)
    engine = cast(Engine, recorder)
    batches = advance_batches(engine, run_burn_in(engine, engine.init(SEED, start), BURN_IN), [1] * LAGS)[1]
    stored = recorder.last_states(SEED)
    _require_states_follow_chains(stored, batches)
    sizes = law.model.cardinalities
    for variable, size in enumerate(sizes):
        frequencies = (stored[..., variable, None] == np.arange(size)).mean(axis=1)
        exact = np.bincount(law.states[:, variable], law.probabilities)
        draws = chains * LAGS
        spread = np.maximum(frequencies.std(axis=0, ddof=1) / chains**0.5, (exact * (1 - exact) / draws) ** 0.5)
        allowed = limits.student_limit(chains - 1, sum(sizes)) * spread + UNSEEN / draws
        error = frequencies.mean(axis=0) - exact
        reverse = ""
        if (np.abs(frequencies.mean(axis=0)[::-1] - exact) <= allowed[::-1]).all():
            reverse = ": they are in reverse order"
        require(
            (np.abs(error) <= allowed).all(),
            f"states of variable {variable} that are kept have probabilities that are off by {error}; {allowed} is "
            f"allowed{reverse}",
        )
    counts = np.bincount(np.ravel_multi_index(tuple(stored[:, -1].T), sizes, order="F"), minlength=len(law.states))
    limits.require_law("the joint law of states that are kept", counts, law.probabilities)
    return stored, batches


def _require_states_follow_chains(stored: StoredStates, batches: Batches) -> None:
    """Each chain has states of its own, which move when chains do."""
    require((stored != stored[:1]).any(), "states that are kept are the same in all chains")
    for step in range(1, len(batches)):
        still = np.array_equal(stored[:, step], stored[:, step - 1])
        moved = any((batches[step][1][name] != batches[step - 1][1][name]).any() for name in batches[step][1])
        require(not (still and moved), "states that are kept stand still from one step to the next, and chains move")


@PAIR_CHECKS.add("burn-in", "sampler")
def check_burn_in_moves_chains(pair: Pair) -> None:
    """Burn-in takes chains that all start in one of two states as far as the same number of sampling steps does."""
    exact, at = find_solved_model(SLOW), pair.trial(SLOW)
    chains = min(CHAINS, pair.chains)
    start = np.zeros((at.model.num_variables, chains), dtype=np.int8)
    sampled = advance_batches(at.engine, at.engine.adapt(at.engine.init(SEED, start), True), [STEPS])[0]
    if _describe_marginal_errors(at, sampled, exact.marginals):
        skip(f"{STEPS} steps of sampling do not take the chains to the law either")
    burnt_in_state = run_burn_in(at.engine, at.engine.init(SEED, start), STEPS)
    wrong = _describe_marginal_errors(at, burnt_in_state, exact.marginals)
    require(
        not wrong,
        f"{wrong} after {STEPS} steps of burn-in (warm and adapt), though as many steps of advance take the chains "
        "there: burn-in does not move them, or to another law",
    )


def _describe_marginal_errors(at: Trial, state: object, exact: FloatArray) -> str:
    """How far the next step's marginals are off, if by more than chance."""
    _, batches = advance_batches(at.engine, state, [1])
    size = batches[0][1][next(iter(batches[0][1]))].shape[-1] // GROUPS
    group_marginals = [at.estimate(batches, slice(g * size, (g + 1) * size)).marginals for g in range(GROUPS)]
    if any(marginals is None for marginals in group_marginals):
        skip("it has no marginals")
    groups = np.stack([np.asarray(marginals) for marginals in group_marginals])
    error, spread = groups.mean(axis=0) - exact, groups.std(axis=0, ddof=1) / np.sqrt(GROUPS)
    is_off = np.abs(error) > limits.student_limit(GROUPS - 1, error.size) * spread + 1e-6
    if not is_off.any():
        return ""
    return f"marginals are off by {error[is_off]} ± {spread[is_off]}"
