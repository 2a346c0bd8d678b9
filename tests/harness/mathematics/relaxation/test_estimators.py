"""Log Z estimators on exact draws: values, standard errors and the sign of their bias."""

from __future__ import annotations

import numpy as np
import pytest

from spinbench import reference
from spinbench.mathematics.bennett import Ratio, ratio
from spinbench.mathematics.claims import BOUND, marginal_claims
from spinbench.mathematics.relaxation import estimators
from spinbench.mathematics.relaxation.density import Relaxation, relax
from spinbench.mathematics.relaxation.estimators import gaussian, zero_state
from spinbench.models import PairwiseModel


def small_model(seed: int, groups: tuple[tuple[int, ...], ...] = ()) -> PairwiseModel:
    rng = np.random.default_rng(seed)
    i, j = np.triu_indices(5, 1)
    return PairwiseModel.from_edges(
        rng.normal(size=5), np.stack([i, j], 1), rng.normal(size=10), log_constant=-1.3, groups=groups
    )


def grid_model(side: int, c1: float, c2: float, seed: int) -> PairwiseModel:
    """The paper's standard set: fields 2 c1 N(0, 1), couplings 2 c2 N(0, 1)."""
    rng = np.random.default_rng(seed)
    index = np.arange(side * side).reshape(side, side)
    edges = np.concatenate(
        [
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()], 1),
            np.stack([index[:-1].ravel(), index[1:].ravel()], 1),
        ]
    )
    return PairwiseModel.from_edges(2 * c1 * rng.normal(size=side * side), edges, 2 * c2 * rng.normal(size=len(edges)))


def exact_alpha(r: Relaxation, batches: int, chains: int, rng: np.random.Generator) -> np.ndarray:
    """(B, N, C) independent draws of α."""
    n = r.model.num_variables
    s = reference.sample(r.model, batches * chains, rng).astype(float)
    alpha = s @ r.gram + rng.normal(size=s.shape) @ r.cholesky.T
    return alpha.reshape(batches, chains, n).transpose(0, 2, 1)


@pytest.mark.parametrize(("chains", "groups"), [(16, ()), (8, ((0, 3, 1),))])
def test_claims_hold_and_are_not_idle(chains: int, groups: tuple[tuple[int, ...], ...]) -> None:
    model = small_model(1, groups)
    r = relax(model, "sdp", 0.1)
    exact = reference.solve(model, cache=False).log_z
    rng = np.random.default_rng(2)
    scores = []
    for _ in range(60):
        found = gaussian(r, exact_alpha(r, 240 // chains, chains, rng), 0.0, in_sample=False)
        scores.append([(value - exact) / se for value, se, _ in found.estimates.values()])
    assert list(found.estimates) == ["bridge", "mirrored"]
    rms = np.sqrt(np.mean(np.square(scores), axis=0))
    assert (rms < 1 + 4 / np.sqrt(2 * 60)).all(), rms
    assert np.abs(np.mean(scores, axis=0)).max() < 4 / np.sqrt(60)
    assert max(bound for *_, bound in found.estimates.values()) < 0.1


def test_halves_that_are_joined_allow_for_unseen_states_once() -> None:
    """Where p = q nothing but what no draw has shown is claimed: over the draws of both halves."""
    nothing = np.zeros((10, 8))
    half = ratio(nothing, nothing.ravel(), 4, estimators._UNSEEN_OF_HALF)
    assert estimators._mean_ratio([half, half], 0.0).error_bound == pytest.approx(3 / 160)
    assert ratio(nothing, nothing.ravel()).error_bound == pytest.approx(3 / 80)


def test_halves_that_are_joined_claim_what_they_are_apart_by_more_than_chance() -> None:
    def joined(apart: float) -> float:
        halves = [Ratio(value, 0.1, BOUND * 0.1, 1.0, 100.0, supported=True) for value in (0.0, apart)]
        return estimators._mean_ratio(halves, 0.0).error_bound / BOUND

    alone = 0.1 / np.sqrt(2)
    assert [joined(0.0), joined(4 * alone)] == pytest.approx([alone, alone])
    assert joined(2.0) == pytest.approx(1.0 - alone)


def test_the_standard_grid_within_two_hundredths_of_a_nat() -> None:
    model = grid_model(10, 1.0, 0.5, 0)
    exact = reference.solve(model, marginals=False, cache=False).log_z
    r = relax(model, "sdp", 0.05)
    rng = np.random.default_rng(0)
    runs = [gaussian(r, exact_alpha(r, 512, 16, rng), 0.0, in_sample=False) for _ in range(4)]
    for name in ("bridge", "mirrored"):
        values = [run.estimates[name][0] for run in runs]
        assert abs(np.mean(values) - exact) < 0.02, name
        for run in runs:
            value, _, bound = run.estimates[name]
            assert abs(value - exact) < 1.5 * bound, name
    assert runs[0].diagnostics["log_z_draws"] == 8192
    assert 0.5 < runs[0].diagnostics["log_z_overlap"] <= 1


def test_in_sample_is_not_vouched_for_on_easy_models_either() -> None:
    """Beside the bridge, which is: its bias there is as large as its error."""
    model = small_model(1)
    r, rng = relax(model, "sdp", 0.1), np.random.default_rng(4)
    found = [gaussian(r, exact_alpha(r, 15, 16, rng), 0.0).estimates for _ in range(60)]
    assert {one["mirrored_in_sample"].se for one in found} == {np.inf}
    gaps = np.array([one["mirrored_in_sample"][0] - one["bridge"][0] for one in found])
    assert gaps.mean() < -gaps.std() / 2
    assert np.isfinite([one["bridge"].error_bound for one in found]).all()


def test_in_sample_is_biased_low_and_contradicted() -> None:
    """Moments of the draws themselves: on 100 variables and 2048 draws more than a nat is missing."""
    model = grid_model(10, 1.0, 0.5, 1)
    exact = reference.solve(model, marginals=False, cache=False).log_z
    r = relax(model, "sdp", 0.05)
    found = gaussian(r, exact_alpha(r, 128, 16, np.random.default_rng(3)), 0.0).estimates
    value, _, error = found["mirrored_in_sample"]
    assert -6 < value - exact < -1
    assert error == np.inf
    assert abs(found["bridge"][0] - exact) < found["bridge"].error_bound < 0.2


def test_unbiased_estimates_of_the_inverse_overestimate_log_z() -> None:
    """E[log Ẑ] > log Z where E[1/Ẑ] = 1/Z (the paper's section 3.4 has it the other way round)."""
    model = small_model(4)
    r = relax(model, "minshift", 0.3)
    exact = reference.solve(model, cache=False).log_z
    rng = np.random.default_rng(5)
    gaps = []
    for _ in range(300):
        alpha = exact_alpha(r, 8, 5, rng)
        weights = -r.conditional(alpha.transpose(0, 2, 1) + r.bias)[1]
        gaps.append(zero_state(r, weights, alpha).estimates["zero_state"][0] - exact)
    inverse = np.exp(-np.array(gaps))
    assert abs(inverse.mean() - 1) < 4 * inverse.std() / np.sqrt(300)
    assert np.mean(gaps) > 4 * np.std(gaps) / np.sqrt(300)


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_zero_state_is_calibrated(scale: float) -> None:
    """From both sides, and by itself: then the claim is the wider by what the look from the other side adds."""
    biases = scale * np.array([0.5, -0.7, 0.2])
    model = PairwiseModel.from_edges(biases, [(0, 1), (1, 2)], [scale, -0.8 * scale], log_constant=2.0)
    r = relax(model, "sdp", 0.2)
    exact = reference.solve(model, cache=False).log_z
    rng = np.random.default_rng(6)
    scores = []
    for _ in range(60):
        alpha = exact_alpha(r, 64, 8, rng)
        found = zero_state(r, -r.conditional(alpha.transpose(0, 2, 1) + r.bias)[1], alpha).estimates
        scores.append([(value - exact) / se for value, se, _ in (found["zero_state_bar"], found["zero_state"])])
    both, own = np.sqrt(np.mean(np.square(scores), axis=0))
    assert abs(both - 1) < 4 / np.sqrt(2 * 60)
    assert 0.5 < own < 1 + 4 / np.sqrt(2 * 60)


def test_zero_state_is_unresolved_where_no_chain_is_near_zero() -> None:
    """Every draw of p is near s = 1: the weights are even, and all of them say a log Z that is far too small."""
    model = PairwiseModel.from_edges([-40.0, -40.0], [(0, 1)], [100.0])
    r = relax(model, "minshift", 0.1)
    alpha = exact_alpha(r, 64, 16, np.random.default_rng(7))
    found = zero_state(r, -r.conditional(alpha.transpose(0, 2, 1) + r.bias)[1], alpha)
    assert {each.error_bound for each in found.estimates.values()} == {np.inf}
    assert found.diagnostics["log_z_overlap"] < 0.05


@pytest.mark.parametrize("pull", [3.0, 6.0, 9.0])
def test_a_mode_that_one_half_never_saw_shows_in_the_error(pull: float) -> None:
    """Half of the chains sit in the lesser of two modes; the further apart, the less the weights themselves tell."""
    model = PairwiseModel.from_edges([-15.0, -15.0, -3.0], [(0, 1), (0, 2)], [30.0, pull])
    r = relax(model, "minshift", 0.1)
    exact = reference.solve(model, cache=False).log_z
    for seed in range(4):
        rng = np.random.default_rng(seed)
        s = reference.sample(model, 64 * 8, rng).astype(float).reshape(64, 8, 3).transpose(0, 2, 1)
        s[:, :2, :4] = 0
        s[:, 2, :4] = rng.random((64, 4)) < 1 / (1 + np.exp(3))
        noise = rng.normal(size=s.shape)
        alpha = np.einsum("ij,bjc->bic", r.gram, s) + np.einsum("ij,bjc->bic", r.cholesky, noise)
        memory = marginal_claims(s, 64, np.zeros(3), np.ones(3)).memory
        assert memory > 0.3
        for name, (value, _, bound) in gaussian(r, alpha, memory).estimates.items():
            assert abs(value - exact) < 1.5 * bound, name


def test_too_few_draws_are_counted_and_give_nothing() -> None:
    model = small_model(8)
    r = relax(model, "dd", 0.1)
    rng = np.random.default_rng(9)
    few = gaussian(r, exact_alpha(r, 7, 4, rng), 0.0)
    assert few.estimates == {}
    assert few.diagnostics == {"log_z_draws": 28.0, "log_z_draws_needed": 32.0}
    one = gaussian(r, exact_alpha(r, 15, 1, rng), 0.0)
    assert one.estimates == {}
    assert one.diagnostics["log_z_draws_needed"] == 16.0
    for chains, supported in ((1, False), (7, False), (8, True)):
        enough = gaussian(r, exact_alpha(r, 256 // chains, chains, rng), 0.0)
        assert np.isfinite([value for value, *_ in enough.estimates.values()]).all()
        assert np.isfinite(enough.estimates["bridge"].error_bound) == supported
