"""Checks on models of so many variables that tables are cut, or indices of 16 bits and their squares overflow; and of
errors over all variables together."""

from __future__ import annotations

import time
from itertools import pairwise
from unittest import SkipTest

import numpy as np

from spinbench.api import Estimate, State
from spinbench.api.estimate import is_doubted, verdict
from spinbench.errors import IntractableError
from spinbench.inference.engine import ProgramEngine
from spinbench.mathematics.claims import memory_share
from spinbench.testing import limits
from spinbench.testing.answers import FLOOR, REPLICA_CHAINS, compare_log_z
from spinbench.testing.check import PAIR_CHECKS, DeadlineExceeded, require, run_with_deadline, skip
from spinbench.testing.laws.cases import FloatArray, SolvedModel
from spinbench.testing.laws.large_models import WINDOW, find_solved_model
from spinbench.testing.pair import BATCH, BATCHES, Pair
from spinbench.testing.trial import SEED, Batches, Trial, advance_batches

NAMES = ("4000 variables", "80000 variables")
# States of variables in all chains together, of which errors of a tenth in couplings show; and as few chains as go.
NUM_STATES, FEWEST_CHAINS = 160_000, 2
# Steps of samplers; sweeps of iterations.
BURN_IN, STEPS, SWEEPS = 8, 4, 64
# CPU seconds of planning, or of a few steps, above which the check is skipped.
MAX_SECONDS = 1.0
# Consecutive variables whose errors are compared together.
PART = WINDOW
# Factor on limits, since the errors of neighbouring variables of a path are correlated.
DEPENDENCE_SLACK = 1.5
MAX_DIFFERENCE = 1e-6
# Models of many variables that hardly depend on each other, of two states and of several; runs on each, their burn-in,
# and CPU seconds.
POOLED_MODELS, NUM_RUNS, POOLED_BURN_IN, POOLED_SECONDS = ("111 pairs", "88 variables of several states"), 32, 32, 8.0
# Divisor of the runs where their steps do not fit into the time: with fewer yet, only the largest faults would show.
FEWER_RUNS = 4
# Runs whose errors of log Z tell standard errors that are 1.4 times too large, and CPU seconds after which fewer do.
NUM_LOG_Z_RUNS, LOG_Z_SECONDS = 2048, 4.0
# Errors by standard errors, root mean squares of both: methods that are built in have 0.85 to 1.02 but for what chains
# remember.
MIN_RATIO, MAX_RATIO = 0.8, 1.1


@PAIR_CHECKS.add("accuracy, {}", over=NAMES)
def check_many_variables(pair: Pair, name: str) -> None:
    """Marginals are right on average in every range of variables' numbers; equal paths have equal answers."""
    exact = find_solved_model(name)
    try:
        at = run_with_deadline(MAX_SECONDS, f"to plan for {name}", lambda: pair.trial(name))
        batches = _run_few_steps(at, exact)
        estimate = at.estimate(batches)
    except IntractableError as refusal:
        raise SkipTest(f"refused: {refusal}") from refusal
    if estimate.marginals is not None:
        if not pair.sampler:
            _require_same_marginals_of_like_variables(estimate, exact)
        elif pair.method.kind != "draws":
            _require_right_on_average(at, batches, estimate, exact)
    if not pair.sampler and estimate.log_z is not None:
        compare_log_z(estimate, exact.log_z, FLOOR[pair.precision], limits.normal_limit(1), coupled=True)
    if pair.method.conformance.exact_on_trees and verdict(estimate) == "ok" and estimate.marginals is not None:
        off = float(np.abs(estimate.marginals - exact.marginals).max())
        require(off <= 1e-4, f"of {name}, marginals are off by up to {off:.2g}, though small trees' are right")


def _run_few_steps(at: Trial, exact: SolvedModel) -> Batches:
    """A few steps from exact draws, which need no burn-in; of iterations, as many as short paths ask for.

    Raises:
        SkipTest: a step takes too long.
    """
    chains = max(FEWEST_CHAINS, NUM_STATES // at.model.num_variables) if at.sampler else FEWEST_CHAINS
    try:
        return _run_chains(at, exact, chains)
    except SkipTest:
        if chains == FEWEST_CHAINS:
            raise
        return _run_chains(at, exact, FEWEST_CHAINS)


def _run_chains(at: Trial, exact: SolvedModel, chains: int) -> Batches:
    assert exact.draw is not None
    state = at.engine.init(SEED, exact.draw(chains, SEED))
    if at.method.kind == "direct":
        return run_with_deadline(MAX_SECONDS, exact.model.name, lambda: advance_batches(at.engine, state, [1])[1])
    if at.method.conformance.burn_in_first:
        state = at.engine.warm(state, BURN_IN)
    compiles = not isinstance(at.engine, ProgramEngine) or at.engine.compiles

    name = exact.model.name

    def run_first_step() -> State:
        return at.engine.adapt(at.engine.warm(state, 1), True)

    state = run_first_step() if compiles else run_with_deadline(MAX_SECONDS, f"a step of {name}", run_first_step)
    since = time.process_time()
    state, _ = at.engine.advance(state, 1)
    if (step_seconds := time.process_time() - since) * STEPS > MAX_SECONDS:
        skip(f"a step of {name} takes {step_seconds:.2g} s")
    return advance_batches(at.engine, state, [1] * STEPS if at.sampler else [SWEEPS])[1]


def _require_right_on_average(at: Trial, batches: Batches, estimate: Estimate, exact: SolvedModel) -> None:
    first, last = (np.asarray(at.estimate(some).marginals) for some in (batches[:1], batches[-1:]))
    name = exact.model.name
    error, moved = np.asarray(estimate.marginals) - exact.marginals, first != last
    ranges = [*pairwise([*range(0, error.size, PART), error.size]), (0, error.size)]
    for low, high in ranges:
        require(
            moved[low:high].any() or not moved.any(),
            f"of {name}, {low} to {high - 1} stand still in every chain",
        )
        kinds, kind_numbers = np.unique(exact.marginals[low:high], return_inverse=True)
        count = np.bincount(kind_numbers)
        mean = np.bincount(kind_numbers, error[low:high]) / count
        spread = np.sqrt(np.bincount(kind_numbers, error[low:high] ** 2) / count - mean**2)
        square = float((mean**2 * count / np.maximum(spread, 1e-9) ** 2).sum())
        max_square = DEPENDENCE_SLACK * limits.chi_square_limits(kinds.size, len(ranges))[1]
        require(
            square <= max_square,
            f"of {name}, marginals of {low} to {high - 1} are off, on average by up to {np.abs(mean).max():.2g} "
            f"(χ² = {square:.0f}, at most {max_square:.0f} is chance), though small models' are right: tables may be "
            "cut, or a product of indices may overflow",
        )


def _require_same_marginals_of_like_variables(estimate: Estimate, exact: SolvedModel) -> None:
    """Iterations need not be right; variables at the same place of paths that are alike have the same answer."""
    for value in np.unique(exact.marginals):
        equal_marginals = np.asarray(estimate.marginals)[exact.marginals == value]
        require(
            float(np.ptp(equal_marginals)) <= MAX_DIFFERENCE,
            f"of {exact.model.name}, marginals that should be the same differ by {np.ptp(equal_marginals):.2g}, though "
            "small models' are right: an index or a product of indices may overflow",
        )


@PAIR_CHECKS.add("standard errors, {}", "sampler", "compiles_once", over=POOLED_MODELS)
def check_pooled_errors(pair: Pair, name: str) -> None:
    """Errors of all variables in several runs, pooled, are as large as their standard errors.

    Raises:
        SkipTest: the method doubts its marginals, has none, or is slow.
    """
    run_with_deadline(POOLED_SECONDS, f"{NUM_RUNS} runs on {name!r}", lambda: _check_pooled_errors(pair, name))


def _check_pooled_errors(pair: Pair, name: str) -> None:
    at, num_runs = pair.trial(name), NUM_RUNS
    try:
        batches = at.run(num_runs * REPLICA_CHAINS, SEED, [BATCH] * BATCHES, steps=POOLED_BURN_IN)
    except DeadlineExceeded:
        num_runs //= FEWER_RUNS
        batches = at.run(num_runs * REPLICA_CHAINS, SEED, [BATCH] * BATCHES, steps=POOLED_BURN_IN)
    chains = np.arange(num_runs * REPLICA_CHAINS).reshape(num_runs, -1)
    estimates = [at.estimate(batches, group.tolist()) for group in chains]
    answers = [e for e in estimates if e.marginals is not None and e.marginals_se is not None]
    trusted = [e for e in answers if not is_doubted(e, "marginals")]
    if len(trusted) < num_runs / 2:
        skip(f"marginals are doubted in {num_runs - len(trusted)} of {num_runs} runs")
    errors = np.stack([np.asarray(e.marginals) - at.solved.marginals for e in trusted])
    claims = np.stack([np.asarray(e.marginals_se) for e in trusted])
    memory = 0.0
    if all(e.r_hat is not None for e in trusted):
        memory = float(np.mean([memory_share(np.asarray(e.r_hat)) ** 2 for e in trusted]))
    degrees, runs = errors.size / 2, f"on {name!r}, over all variables of {len(trusted)} runs,"
    _require_pooled_ratio(errors, claims, degrees, FLOOR[pair.precision], runs, memory)


@PAIR_CHECKS.add("standard errors, log Z", "sampler", "compiles_once")
def check_pooled_log_z_errors(pair: Pair) -> None:
    """Errors of log Z in many runs, pooled, are as large as their standard errors.

    Raises:
        SkipTest: the method doubts its log Z, or has none without a whole run.
    """
    at, since = pair.trial("dense"), time.process_time()
    errors: list[float] = []
    claims: list[float] = []
    for seed in range(SEED, SEED + NUM_LOG_Z_RUNS):
        batches = at.run(pair.chains, seed, [BATCH] * BATCHES)
        for first in range(0, pair.chains, REPLICA_CHAINS):
            estimate = at.estimate(batches, slice(first, first + REPLICA_CHAINS))
            if estimate.log_z is not None and estimate.log_z_se and not is_doubted(estimate, "log Z"):
                errors.append(estimate.log_z - at.solved.log_z)
                claims.append(estimate.log_z_se)
        if not errors:
            skip("it has no log Z that it trusts, or no standard error of it, without what comes before burn-in")
        if len(errors) >= NUM_LOG_Z_RUNS or time.process_time() - since > LOG_Z_SECONDS:
            break
    runs = f"of log Z on 'dense', over {len(errors)} runs,"
    _require_pooled_ratio(np.array(errors), np.array(claims), len(errors), FLOOR[pair.precision], runs)


def _require_pooled_ratio(
    errors: FloatArray, claims: FloatArray, degrees: float, floor: float, runs: str, memory: float = 0.0
) -> None:
    """Require that the root mean square of errors is that of their claims, up to chance and what chains remember."""
    if min(claims.max(), np.abs(errors).max()) <= floor:
        skip("its errors are rounding")
    ratio = float(np.sqrt((errors**2).mean() / (claims**2).mean()))
    low, high = np.array([MIN_RATIO, MAX_RATIO]) * np.sqrt(np.array(limits.chi_square_limits(degrees, 1)) / degrees)
    low = low / np.sqrt(1 + REPLICA_CHAINS * memory)
    wrong = "small" if ratio > 1 else "large"
    require(
        low <= ratio <= high,
        f"{runs} errors are {ratio:.2g} times the standard errors, where {low:.2g} to {high:.2g} is right: standard "
        f"errors are about {max(ratio, 1 / ratio):.2g} times too {wrong}",
    )
