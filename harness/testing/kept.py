"""Checks of the states that a sampler's chains are in, which `run(keep=…)` keeps."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast
from unittest import SkipTest

import numpy as np
import numpy.typing as npt

from spinbench.api import Engine
from spinbench.inference.budget import Budget
from spinbench.inference.starts import random_start
from spinbench.inference.stored_states.recorder import RecordingEngine
from spinbench.testing import limits
from spinbench.testing.answers import LAGS
from spinbench.testing.check import OF_PAIRS, require, skip
from spinbench.testing.joint import UNSEEN
from spinbench.testing.laws.cases import Law, law
from spinbench.testing.laws.known import known
from spinbench.testing.pair import Pair
from spinbench.testing.trial import BURN_IN, FEW_CHAINS, SEED, Batches, Trial, advance, burn_in

FEW = 5
"""Chains of which a kernel's arrays may be handed over as they lie."""
Kept = npt.NDArray[np.integer[Any]]


@OF_PAIRS.add("kept states", "sampler")
def states(pair: Pair) -> None:
    """They are of the law, of two and of several states, and of the statistics; who has them may keep them."""
    two(pair)
    with suppress(SkipTest):
        at = pair.trial("three states")
        _handed_over(pair, at)
        _law(at, pair.chains, at.law)
    if pair.native:
        with suppress(SkipTest):
            _many(pair)


def _many(pair: Pair) -> None:
    """Of a large model each variable's are its own."""
    exact, at = known("101 variables"), pair.trial("101 variables")
    turns: list[Any] = []
    state = at.begin(FEW_CHAINS, SEED)
    for _ in range(LAGS):
        state, _ = at.engine.advance(state, 1)
        turns.append(at.engine.states(state))
    seen = np.mean(turns, axis=0)
    spread = seen.std(axis=1, ddof=1) / FEW_CHAINS**0.5
    allowed = limits.student_limit(FEW_CHAINS - 1, len(seen)) * spread + UNSEEN / FEW_CHAINS
    wrong = np.flatnonzero(np.abs(seen.mean(axis=1) - exact.marginals) > allowed)
    require(not wrong.size, f"of 101 variables, states of {wrong.tolist()} have other probabilities than theirs")


def two(pair: Pair) -> None:
    """The same where all variables have two states.

    Raises:
        SkipTest: there are none.
    """
    at, exact = pair.trial("dense"), law("dense")
    _handed_over(pair, at)
    kept, batches = _law(at, pair.chains, exact)
    for chain in range(min(pair.chains, LAGS)):
        said = at.estimate(batches[-1:], slice(chain, chain + 1)).marginals
        if said is not None and np.isin(said, (0, 1)).all():
            same = np.array_equal(said, kept[chain, -1])
            require(same, f"the statistics of chain {chain} are of other states than those that are kept")


def _handed_over(pair: Pair, at: Trial) -> None:
    for chains in (pair.chains, *((FEW,) if pair.native else ())):
        _handed_over_by(at, chains)


def _handed_over_by(at: Trial, chains: int) -> None:
    state = at.begin(chains, SEED, steps=LAGS)
    require(callable(at.engine.states), "an attribute `states` hides the engine's function of that name: rename it")
    seen = at.engine.states(state)
    if seen is None:
        skip("it hands over no states")
    shape = (at.model.num_variables, chains)
    require(np.shape(seen) == shape, f"states have shape {np.shape(seen)}; (variables, chains) = {shape} is needed")
    own = (seen >= 0) & (seen < np.array(at.model.cardinalities)[:, None]) & (seen == np.rint(seen))
    wrong = np.flatnonzero(~own.all(axis=1))
    require(not wrong.size, f"states of variables {wrong.tolist()} are none of theirs: {seen[~own][:3]}")
    copy = seen.copy()
    state, statistics = at.engine.advance(state, LAGS)
    at.engine.states(state)
    same = np.array_equal(seen, copy)
    require(same, "states that were handed over are overwritten by those of later steps: hand over a copy")
    alone = at.engine.advance(at.begin(chains, SEED, steps=LAGS), LAGS)[1]
    same = all(np.array_equal(statistics[name], alone[name]) for name in alone)
    require(same, "chains whose states were asked for give other draws than those of which they were not")


def _law(at: Trial, chains: int, law: Law) -> tuple[Kept, Batches]:
    """(C, S, M) states and the statistics of their steps."""
    start = random_start(at.model, chains, SEED)
    budget = Budget(samples=LAGS)
    recorder = RecordingEngine(at.engine, at.method.reductions, at.model, start, budget, LAGS, at.method.name)
    engine = cast(Engine, recorder)
    batches = advance(engine, burn_in(engine, engine.init(SEED, start), BURN_IN), [1] * LAGS)[1]
    kept = recorder.recorded(SEED)
    _go_along(kept, batches)
    sizes = law.model.cardinalities
    for variable, size in enumerate(sizes):
        found = (kept[..., variable, None] == np.arange(size)).mean(axis=1)
        exact = np.bincount(law.states[:, variable], law.probabilities)
        draws = chains * LAGS
        spread = np.maximum(found.std(axis=0, ddof=1) / chains**0.5, (exact * (1 - exact) / draws) ** 0.5)
        allowed = limits.student_limit(chains - 1, sum(sizes)) * spread + UNSEEN / draws
        error = found.mean(axis=0) - exact
        require(
            (np.abs(error) <= allowed).all(),
            f"states of variable {variable} that are kept have probabilities that are off by {error}; {allowed} is "
            "allowed",
        )
    counts = np.bincount(np.ravel_multi_index(tuple(kept[:, -1].T), sizes, order="F"), minlength=len(law.states))
    limits.require_law("the joint law of states that are kept", counts, law.probabilities)
    return kept, batches


def _go_along(kept: Kept, batches: Batches) -> None:
    """Each chain has states of its own, which move when chains do."""
    require((kept != kept[:1]).any(), "states that are kept are the same in all chains")
    for turn in range(1, len(batches)):
        still = np.array_equal(kept[:, turn], kept[:, turn - 1])
        moved = any((batches[turn][1][name] != batches[turn - 1][1][name]).any() for name in batches[turn][1])
        require(not (still and moved), "states that are kept stand still from one step to the next, and chains move")
