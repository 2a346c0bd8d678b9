"""Checks of what a method on a backend answers: against exact marginals and log Z, and its own standard errors."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from spinbench.api import Estimate, Precision
from spinbench.api.estimate import is_doubted
from spinbench.errors import InvalidResultError
from spinbench.inference.result import Result, replace_pairs
from spinbench.inference.runner import run
from spinbench.mathematics.claims import BOUND, memory_share
from spinbench.models import condition
from spinbench.testing import limits
from spinbench.testing.check import PAIR_CHECKS, REFUSALS, CheckError, require, require_refusal
from spinbench.testing.joint import UNSEEN, compare_parts
from spinbench.testing.laws import wrong_laws
from spinbench.testing.laws.cases import CASES, FloatArray, Law, enumerate_law
from spinbench.testing.laws.large_models import find_solved_model
from spinbench.testing.pair import Pair, Sample
from spinbench.testing.trial import SEED, flatten_values

if TYPE_CHECKING:
    from collections.abc import Mapping

# Smaller errors are rounding; relative for log Z.
FLOOR = {"float32": 2e-5, "float64": 1e-9}
# Smallest number of chains of a replica: with fewer than 8, estimates get a warning, and their errors are not checked
# from above.
REPLICA_CHAINS = 16
# Number of replicas when only their mean is tested.
NUM_REPLICAS = 64
# Chains and steps of whole runs.
CHAINS, BUDGET = 256, 128
# Factor on the error limit of estimators of log Z that are not the reported one, since no error is reported for them.
ESTIMATOR_SLACK = 2.0
# Cases for checks that need not run on all.
SHORT = ("dense", "strong couplings")
LOOPED = "one to nine states"
# Models that are not binary and pairwise; the first serves checks that need not run on all.
GRAPHS = (
    *("three states", "orders three and five", LOOPED, "orders three and four", "zeros", "a state of no weight"),
    *("wide tables", "eleven neighbours"),
)
# {case: (model, {observed variable: state})}.
OBSERVED: dict[str, tuple[str, dict[int, int]]] = {
    "evidence": (LOOPED, {1: 7}),
    "evidence of two states": ("ring of five", {0: 1, 4: 0}),
    "all observed": ("three states", {0: 2, 1: 0, 2: 1}),
    "zeros as they are": ("zeros", {}),
}
# Probability below which a variable may stay constant by chance.
MIN_PROBABILITY = 1e-2
# Steps after which chains that started from exact draws are tested.
LAGS = 8


@PAIR_CHECKS.add("accuracy, {}, {}", over=lambda pair: product(SHORT, pair.other_precisions))
@PAIR_CHECKS.add("accuracy, {}", over=CASES)
def check_accuracy(pair: Pair, case: str, precision: Precision | None = None) -> None:
    """Marginals and log Z agree with the exact ones within their standard errors; bounds are bounds."""
    precision = precision or pair.precision
    sample = pair.sample(case, precision)
    estimate = pair.estimate(sample)
    law = sample.bound.law
    coupled = CASES[case].coupled
    try:
        compare_answer(
            estimate, law.log_z, law.marginals, FLOOR[precision], coupled=coupled, chains=pair.chains, law=law
        )
    except CheckError as error:
        raise CheckError(f"{error}{_describe_stuck_variables(pair, sample)}") from None
    compare_parts(estimate, law, FLOOR[precision], coupled=coupled)
    if pair.sampler and estimate.marginals is not None:
        _require_standard_errors(estimate)
        worst = float(np.max(estimate.marginals_error_bound)) / BOUND
        # Chains are independent, so that their mean should be at least as precise as one exact draw each, apart from
        # memory of their initial states. With a warning that they have not mixed, the error is only limited by p in [0,
        # 1].
        doubted = is_doubted(estimate, "marginals")
        if doubted and not coupled:
            _require_doubt_by_chance(pair, case, precision, estimate)
        allowed = 1.0
        if not doubted:
            allowed = 3 * 0.5 / np.sqrt(pair.chains) + _memory_allowance(estimate)
        require(worst <= allowed, f"a standard error of a marginal is {worst:.2g}; {allowed:.2g} is the most possible")


def _require_standard_errors(answer: Estimate | Result) -> None:
    """A sampler's marginals and its estimate of log Z come with their errors, however large."""
    require(answer.marginals_se is not None, "a stochastic method reports marginals without standard errors")
    lacking = answer.log_z is not None and answer.log_z_kind == "estimate" and answer.log_z_se is None
    require(not lacking, "a stochastic method reports an estimate of log Z without a standard error")


def _require_doubt_by_chance(pair: Pair, case: str, precision: Precision, estimate: Estimate) -> None:
    """Independent variables may be doubted by chance, once in a hundred times, but not with one seed after another."""
    others = (pair.estimate(pair.sample(case, precision, seed=SEED + turn)) for turn in (1, 2))
    always = all(is_doubted(other, "marginals") for other in others)
    require(not always, f"marginals of independent variables are doubted: {', '.join(estimate.doubts)}")


def _memory_allowance(estimate: Estimate) -> float:
    """What may be claimed of chains that remember a share k of their spread: k times that of their means, √k / 2 at
    most."""
    if estimate.r_hat is None:
        return 0.0
    memory = float(np.max(memory_share(np.asarray(estimate.r_hat))))
    return float(0.5 * memory**1.5)


@PAIR_CHECKS.add("accuracy, {}, {}", over=lambda pair: product(GRAPHS[:1], pair.other_precisions))
@PAIR_CHECKS.add("accuracy, {}", over=GRAPHS)
def check_factor_graph(
    pair: Pair,
    name: str,
    precision: Precision | None = None,
    evidence: Mapping[int, int] | None = None,
    *,
    only_trusted: bool = False,
) -> None:
    """`spinbench.run`, from start to end, on a model that is not binary and pairwise: right, or refused; with
    `only_trusted` as it is, and right if it is believed.

    With evidence it is the model of what is left that is run, as it is, and its answer is of all variables.
    """
    model = find_solved_model(name).model
    conditioned = condition(model, evidence or {})
    options: dict[str, Any] = {**pair.options, "budget": BUDGET, "chains": CHAINS, "seed": SEED}
    options |= {"precision": precision or pair.precision, "simplify": evidence is None and not only_trusted}
    try:
        result = run(conditioned, pair.method, pair.backend, **options)
    except REFUSALS:
        require_refusal(lambda: run(conditioned, pair.method, pair.backend, **options), model.name)
        return
    except InvalidResultError as error:
        raise CheckError(str(error)) from error
    if only_trusted and result.status != "ok":
        return
    law = enumerate_law(model, evidence)
    sizes = list(model.cardinalities)
    if set(sizes) == {2}:
        sizes = [1] * len(sizes)
    if result.marginals is not None:
        vector_sizes = [np.size(vector) for vector in result.marginals]
        require(vector_sizes == sizes, f"marginals of {model.name!r} have sizes {vector_sizes}; {sizes} are needed")
        if pair.sampler:
            _require_standard_errors(result)
    flat = Estimate(
        marginals=flatten_values(result.marginals),
        marginals_error_bound=flatten_values(result.marginals_error_bound),
        log_z=result.log_z,
        log_z_error_bound=result.log_z_error_bound,
        log_z_kind=result.log_z_kind,
        log_z_estimates=result.log_z_estimates,
    )
    floor = FLOOR[precision or pair.precision]
    weightless = 0.0 if flat.marginals is None else float(flat.marginals[law.marginals == 0].max(initial=0))
    require(
        weightless <= floor + UNSEEN / (CHAINS * BUDGET),
        f"states of no weight have probabilities of up to {weightless:.2g}: are hard zeros made soft?",
    )
    how: dict[str, Any] = {"coupled": True, "chains": CHAINS, "law": None if evidence else law}
    try:
        compare_answer(flat, law.log_z, law.marginals, floor, **how)
    except CheckError as error:
        cause = ""
        if pair.method.model_form == "pairwise" and max(model.cardinalities) > 2:
            cause = "; the method gets variables of several states as 1-of-K groups: does it obey them?"
        raise CheckError(f"{error}{cause}") from None
    compare_parts(replace_pairs(result, None) if evidence else result, law, floor, coupled=True)


@PAIR_CHECKS.add("accuracy, {}", over=OBSERVED)
def check_with_evidence(pair: Pair, name: str) -> None:
    """`check_factor_graph` where the states of some variables are known."""
    model, evidence = OBSERVED[name]
    check_factor_graph(pair, model, evidence=evidence)


def _describe_stuck_variables(pair: Pair, sample: Sample) -> str:
    """Which variables of a sampler never move, of those that have reason to."""
    if not pair.sampler or len(sample.batches) < 2:
        return ""
    ends = [replace(sample, batches=[batch]) for batch in (sample.batches[0], sample.batches[-1])]
    first_marginals, last_marginals = (
        np.stack([pair.estimate(end, slice(c, c + 1)).marginals for c in range(REPLICA_CHAINS)]) for end in ends
    )
    exact = sample.bound.law.marginals
    free = np.minimum(exact, 1 - exact) > MIN_PROBABILITY
    still = np.flatnonzero((first_marginals == last_marginals).all(axis=0) & free)
    if 0 < still.size < free.sum():
        return f"; variables {still.tolist()} stand still"
    return ""


def compare_answer(
    estimate: Estimate,
    log_z: float,
    marginals: FloatArray,
    floor: float,
    *,
    coupled: bool,
    chains: int,
    law: Law | None = None,
) -> None:
    """Compare marginals and log Z with exact ones, up to the chance errors of this number of chains; with `law`, the
    error message names a likely cause."""
    limit = limits.student_limit(max(chains - 1, 1), marginals.size + 1)
    if estimate.marginals is not None:
        error = np.asarray(estimate.marginals) - marginals
        require(np.isfinite(error).all(), f"marginals are not finite: {estimate.marginals}")
        allowed = np.full(error.shape, floor)
        if estimate.marginals_error_bound is not None:
            allowed = allowed + limit / BOUND * np.asarray(estimate.marginals_error_bound)
        exact = estimate.marginals_error_bound is not None or estimate.log_z_kind == "exact" or not coupled
        wrong = ~(np.abs(error) <= allowed)
        if exact and wrong.any():
            wrong_marginals = np.asarray(estimate.marginals)
            cause = ""
            if law:
                cause = wrong_laws.describe_cause(law.model, law.states, wrong_marginals, marginals, 2 * allowed)
            wrong_indices = np.flatnonzero(wrong).tolist()
            raise CheckError(f"marginals {wrong_indices} are off by {error[wrong]}; {allowed[wrong]} is allowed{cause}")
    compare_log_z(estimate, log_z, floor, limit, coupled=coupled)


def compare_log_z(estimate: Estimate, log_z: float, floor: float, limit: float, *, coupled: bool) -> None:
    """Compare log Z with the exact one: within `limit` standard errors, or a bound on its side; other estimators may be
    twice as far off."""
    for name, (value, error) in estimate.log_z_estimates.items():
        if 0 < error < np.inf:
            max_error, off = ESTIMATOR_SLACK * limit * error + floor * max(1.0, abs(log_z)), value - log_z
            require(abs(off) <= max_error, f"log Z of estimator {name} is off by {off:.3g}; {max_error:.3g} is allowed")
    if estimate.log_z is None:
        return
    require(np.isfinite(estimate.log_z), f"log Z is {estimate.log_z}")
    floor *= max(1.0, abs(log_z))
    _check_bound(estimate, log_z, floor)
    error_z = estimate.log_z - log_z
    if estimate.log_z_error_bound is not None:
        max_error = limit / BOUND * estimate.log_z_error_bound + floor
        require(abs(error_z) <= max_error, f"log Z is off by {error_z:.3g}; {max_error:.3g} is allowed")
    elif estimate.log_z_kind == "exact" or (estimate.log_z_kind == "estimate" and not coupled):
        require(abs(error_z) <= floor, f"log Z is off by {error_z:.3g}; {floor:.3g} is allowed")


def _check_bound(estimate: Estimate, log_z: float, floor: float) -> None:
    above = (estimate.log_z or 0.0) - log_z
    if estimate.log_z_kind == "lower":
        require(above <= floor, f"the lower bound on log Z is {above:.3g} too high")
    if estimate.log_z_kind == "upper":
        require(above >= -floor, f"the upper bound on log Z is {-above:.3g} too low")
