"""The check that burn-in moves the chains."""

from __future__ import annotations

import numpy as np

from spinbench.testing import limits
from spinbench.testing.check import PAIR_CHECKS, require, skip
from spinbench.testing.laws.cases import FloatArray
from spinbench.testing.laws.known import find_solved_model
from spinbench.testing.pair import Pair
from spinbench.testing.trial import SEED, Trial, advance_batches, run_burn_in

# Model on which chains take some four steps to leave their start.
SLOW = "slow pair"
STEPS = 128
CHAINS = 256
GROUPS = 16


@PAIR_CHECKS.add("burn-in", "sampler")
def check_burn_in_moves_chains(pair: Pair) -> None:
    """Chains that all start in one state of two are burnt in as far as as many steps of sampling take them."""
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
        "there: burn-in does not move them",
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
