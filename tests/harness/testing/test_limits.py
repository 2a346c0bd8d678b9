"""What the suite allows for: errors that variables share, and what claims may add to a standard error."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.api import Estimate
from spinbench.inference import registry
from spinbench.testing import limits
from spinbench.testing.answers import check_accuracy
from spinbench.testing.check import CheckError
from spinbench.testing.diagnostics import MAX_REPLICAS, MIN_REPLICAS, compare_errors, replica_sizes
from spinbench.testing.laws.cases import law
from spinbench.testing.pair import Pair, Sample
from spinbench.testing.shapes import effective_dimension

CHAINS, STEPS, EXACT = 16, 64, np.array([0.5, 0.4])


def claims(factor: float, error: float, r_hat: float | None = None) -> list[Estimate]:
    """Of replicas with normal errors, `factor` times too large."""
    z = np.random.default_rng(3).normal(size=(MAX_REPLICAS, 2))
    claimed, remembered = np.full(2, factor * error), None if r_hat is None else np.full(2, r_hat)
    return [Estimate(marginals=EXACT + error * row, marginals_se=claimed, r_hat=remembered) for row in z]


@pytest.mark.parametrize(
    ("chains", "groups"), [(64, (16, 16)), (256, (16, 16)), (512, (32, 16)), (1024, (64, 16)), (2048, (64, 32))]
)
def test_calibrations_run_the_chains_that_were_asked_for(chains: int, groups: tuple[int, int]) -> None:
    """But for the few that could tell nothing."""
    assert replica_sizes(Pair(registry.make_method("gibbs", {}), "numpy", "float64", chains)) == groups


@pytest.mark.parametrize(("factor", "words"), [(6.0, "too large"), (0.4, "too small")])
def test_few_replicas_tell_errors_of_the_wrong_size(factor: float, words: str) -> None:
    error = np.sqrt(0.25 / (CHAINS * STEPS))
    compare_errors(claims(1.0, error)[:MIN_REPLICAS], 0.0, EXACT, CHAINS, STEPS)
    with pytest.raises(CheckError, match=f"over 16 replicas.* {words}"):
        compare_errors(claims(factor, error)[:MIN_REPLICAS], 0.0, EXACT, CHAINS, STEPS)


@pytest.mark.parametrize("shared", [0.0, 0.5, 1.0])
def test_variables_that_share_their_errors_count_as_few(shared: float) -> None:
    rng = np.random.default_rng(4)
    own, common = rng.normal(size=(2000, 80)), rng.normal(size=(2000, 1))
    found = effective_dimension(np.sqrt(1 - shared) * own + np.sqrt(shared) * common)
    largest = 1 + 79 * shared
    assert 0.6 * 80 / largest <= found <= 1.05 * 80 / largest


def test_chains_that_all_stand_still_count_as_one_variable() -> None:
    assert effective_dimension(np.full((5, 3), 0.5)) == 1


def test_claims_may_be_wider_by_what_chains_remember() -> None:
    error = np.sqrt(0.25 / (CHAINS * STEPS))
    compare_errors(claims(1.0, error), 0.0, EXACT, CHAINS, STEPS)
    with pytest.raises(CheckError, match="times too large"):
        compare_errors(claims(2.5, error), 0.0, EXACT, CHAINS, STEPS)
    # of R-hat 1.2, 31 % of a spread of √16 errors
    compare_errors(claims(1.6, error, r_hat=1.2), 0.0, EXACT, CHAINS, STEPS)
    with pytest.raises(CheckError, match="times too large"):
        compare_errors(claims(5.0, error, r_hat=1.2), 0.0, EXACT, CHAINS, STEPS)
    with pytest.raises(CheckError, match="times too small"):
        compare_errors(claims(0.5, error, r_hat=1.2), 0.0, EXACT, CHAINS, STEPS)


@pytest.mark.parametrize(("claimed", "r_hat", "passes"), [(0.03, 1.0, True), (0.05, 1.17, True), (0.05, 1.0, False)])
def test_single_claims_may_be_wider_by_what_chains_remember(claimed: float, r_hat: float, passes: bool) -> None:
    """2048 chains that have mixed know p to 0.011; with R-hat 1.17 they remember 27 % of their spread."""
    pair = Pair(registry.make_method("gibbs", {}), "numpy", "float64", 2048)
    exact = law("dense").marginals
    ends = {"marginals_se": np.full(exact.shape, claimed), "r_hat": np.full(exact.shape, r_hat)}
    pair.estimate = lambda sample, chains=slice(None): Estimate(marginals=exact, **ends)  # type: ignore[method-assign]
    pair.sample = lambda case, precision=None, *, least=1: Sample(pair.trial(case), [])  # type: ignore[method-assign]
    if passes:
        check_accuracy(pair, "dense", "float64")
    else:
        with pytest.raises(CheckError, match=r"a standard error of a marginal is 0.05; 0.033 is the most possible"):
            check_accuracy(pair, "dense", "float64")


@pytest.mark.parametrize("chains", [256, 1024])
def test_counts_of_the_right_law_are_beyond_the_limit_as_often_as_they_should_be(
    chains: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "FALSE_ALARM_RATE", 0.01)
    exact = law("dense").probabilities
    draws = np.random.default_rng(5).multinomial(chains, exact, size=4000)
    found = [limits.likelihood_ratio(counts, exact) for counts in draws]
    most = limits.chi_square_limits(found[0][1], 1)[1]  # at half of ALARM
    assert 10 <= sum(value > most for value, _ in found) <= 32
