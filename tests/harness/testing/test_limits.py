"""What the suite allows for, and the causes that it names for wrong marginals."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench.api import Estimate
from spinbench.inference import registry
from spinbench.models import Factor, FactorGraph, generators
from spinbench.testing import limits
from spinbench.testing.answers import check_accuracy
from spinbench.testing.check import CheckError
from spinbench.testing.diagnostics import MAX_REPLICAS, MIN_REPLICAS, compare_errors, replica_sizes
from spinbench.testing.laws.cases import FloatArray, Law, enumerate_law, law
from spinbench.testing.laws.wrong_laws import describe_cause
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


CHANCE = 1e-3


def cause(law: Law, wrong: FloatArray) -> str:
    return describe_cause(law.model, law.states, wrong, law.marginals, np.full(len(wrong), CHANCE))


def test_couplings_in_one_direction_are_told_from_others() -> None:
    model = generators.sherrington_kirkpatrick(5, 1.0, seed=3)
    law, rng = enumerate_law(model), np.random.default_rng(0)
    upper = np.triu(model.dense())
    s, total, sweeps, chains = np.zeros((5, 20_000)), np.zeros(5), 200, 20_000
    for sweep in range(sweeps):
        for v in range(5):
            s[v] = rng.random(chains) < 1 / (1 + np.exp(-model.biases[v] - upper[v] @ s))
        total += (sweep >= 50) * s.mean(axis=1)
    wrong = total / (sweeps - 50)  # good to 3e-4: 3 million draws
    assert cause(law, wrong).endswith("a law in which couplings count for the first variable of a pair alone")


def test_transposed_tables_are_told() -> None:
    rng = np.random.default_rng(1)
    tables = [((v, v + 1), rng.normal(size=(3, 3))) for v in range(3)]
    right, wrong = (
        enumerate_law(FactorGraph([3] * 4, [Factor(scope, table) for scope, table in each]))
        for each in (tables, [(scope, table.T.copy()) for scope, table in tables])
    )
    assert cause(right, wrong.marginals).endswith("a law in which the tables of pairs are transposed")


@pytest.mark.parametrize("seed", range(3))
def test_clipped_and_halved_marginals_are_told(seed: int) -> None:
    rng = np.random.default_rng(seed)
    equal = np.where(np.eye(2, dtype=bool), 0.0, -np.inf)
    tables = [((v, v + 1), 2 * rng.normal(size=(2, 2))) for v in range(3)]
    known = [((0,), np.array([0.0, -np.inf])), ((3, 4), equal)]
    law = enumerate_law(FactorGraph([2] * 5, [Factor(scope, table) for scope, table in [*tables, *known]]))
    assert "the right ones, but none below 0.2 or above" in cause(law, np.clip(law.marginals, 0.2, 0.8))
    halved = np.where(law.marginals == 0, 0.5, law.marginals)
    assert cause(law, halved) == "; they are the right ones, but uniform where a state is certain"
    assert cause(law, law.marginals[::-1].copy() / 2 + 0.2) == ""
