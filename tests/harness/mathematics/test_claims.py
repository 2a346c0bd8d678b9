"""Claims hold on series whose truth is known: independent, slow, stuck, rare and short ones; fixed seeds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import norm

import spinbench
from spinbench.api.trace import Trace
from spinbench.mathematics import bennett, claims
from spinbench.mathematics.claims import conditional_range
from spinbench.mathematics.relaxation.density import Relaxation
from spinbench.methods.relaxed import family as relaxed
from spinbench.models import PairwiseModel, generators


def two_state(p: float, persistence: float, batches: int, length: int, chains: int, seed: int) -> np.ndarray:
    """(B, 1, C) batch means of chains over {0, 1} that keep their state with a probability, else draw it anew."""
    rng = np.random.default_rng(seed)
    steps = batches * length
    kept = rng.random((steps, chains)) < persistence
    kept[0] = False
    fresh = (rng.random((steps, chains)) < p).astype(float)
    last = np.maximum.accumulate(np.where(kept, 0, np.arange(steps)[:, None]), axis=0)
    states = np.take_along_axis(fresh, last, axis=0)
    return states.reshape(batches, length, chains).mean(axis=1)[:, None, :]


@pytest.mark.parametrize(
    ("p", "persistence", "batches", "length"),
    [(0.4, 0.0, 64, 8), (0.3, 0.9, 64, 40), (0.5, 0.98, 50, 40), (0.1, 0.5, 4, 2)],
)
def test_at_most_one_number_in_200_is_beyond_its_bound(p: float, persistence: float, batches: int, length: int) -> None:
    runs = 400
    z = []
    for seed in range(runs):
        series = two_state(p, persistence, batches, length, 16, seed)
        found = claims.marginal_claims(series, batches * length, np.zeros(1), np.ones(1))
        z.append((series.mean() - p) / found.error_bounds[0])
    assert np.mean(np.abs(z) > 1) <= 0.005 + 3 * np.sqrt(0.005 / runs)
    assert np.max(np.abs(z)) < 2
    assert np.std(z) > 0.5 / claims.BOUND  # nor are they so wide that they say nothing


def test_chains_that_remember_are_told_from_chains_that_mix() -> None:
    rng = np.random.default_rng(0)
    stuck = np.broadcast_to((rng.random(16) < 0.5).astype(float), (64, 1, 16)) * 0.98 + 0.01
    found = claims.marginal_claims(np.array(stuck), 1000, np.zeros(1), np.ones(1))
    assert found.doubt == "not mixed"
    assert found.error_bounds[0] > 0.3
    mixing = two_state(0.5, 0.5, 64, 20, 16, 1)
    assert claims.marginal_claims(mixing, 1280, np.zeros(1), np.ones(1)).doubt == ""


def test_what_was_never_seen_is_claimed_by_the_rule_of_three() -> None:
    series = np.full((64, 1, 16), 1e-7)
    found = claims.marginal_claims(series, 640, np.zeros(1), np.ones(1))
    assert found.error_bounds[0] == pytest.approx(3 / (64 * 16), rel=1e-3)
    narrow = claims.marginal_claims(series, 640, np.zeros(1), np.full(1, 2e-7))  # no state can move it further
    assert narrow.error_bounds[0] < 1e-9


@pytest.mark.parametrize("move", [0.0, 0.1, 0.3, 0.5, 1.0, 3.0])
def test_bounds_hold_where_states_were_missed_and_are_no_wider_where_these_move_little(move: float) -> None:
    """Of states that x draws in effect were of, on average, none is seen with probability e^-x."""
    bound = float(claims.error_bound(1.0, claims.UNSEEN * move))
    x = np.linspace(0.0, 6.0, 100)
    beyond = np.exp(-x) * (norm.sf(bound - x * move) + norm.sf(bound + x * move))
    # Within the rule of three.
    assert beyond[x <= 3].max() <= 0.0051
    assert (bound == claims.BOUND) == (move <= 0.5)


@pytest.mark.parametrize("steps", [1, 100])
def test_only_what_few_draws_have_shown_has_half_a_draw_as_its_least_standard_error(steps: int) -> None:
    """Of other means that vary by 1e-5 it is what they vary by, however rare what they have not seen may be."""
    series = np.full((64, 3, 16), 1e-3)
    series[:, 1:] += 1e-5 * np.random.default_rng(2).normal(size=(64, 2, 16))
    series[:, 1] -= 1e-3 * (1 - 1 / steps)  # of either number of draws one
    series[:, 2] += 0.1
    found = claims.marginal_claims(series, 64 * steps, np.zeros(3), np.ones(3))
    assert found.se[:2] == pytest.approx(0.5 / (64 * steps * 16), rel=2e-3)
    assert found.se[2] == pytest.approx(1e-5 / np.sqrt(64 * 16), rel=0.3)
    assert (found.error_bounds > found.se).all()


@pytest.mark.parametrize(
    ("n", "bias", "coupling", "seed"), [(20, -5.5, 0.53565, 3), (20, -5.5, 0.53565, 5), (9, -6.84, 2.0, 1)]
)
def test_wells_that_no_chain_has_entered_are_claimed_however_long_the_run(
    n: int, bias: float, coupling: float, seed: int
) -> None:
    """Of all weight 3 in 10,000 is behind a barrier, or 3 in 100,000, beside a well in which nothing moves."""
    edges = [(i, j) for i in range(n) for j in range(i)]
    model = PairwiseModel.from_edges([bias] * n, edges, [coupling] * len(edges))
    found = spinbench.run(model, "gibbs", "numba", 400_000, burn_in=100_000, chains=16, seed=seed)
    assert found.status == "ok"
    error = np.abs(np.asarray(found.marginals) - np.asarray(spinbench.exact(model).marginals))
    assert (error < np.asarray(found.marginals_error_bound)).all()


def test_what_was_never_seen_comes_at_the_pace_of_slow_variables() -> None:
    """Ten variables that are fast and nearly certain, two that are slow: the ten may change with these alone."""
    fast = 1e-4 * np.random.default_rng(3).random((64, 10, 16))
    slow = np.concatenate([two_state(0.5, 0.995, 64, 40, 16, seed) for seed in (4, 5)], axis=1)
    claimed = [
        claims.marginal_claims(series, 64 * 40, np.zeros(n), np.ones(n)).error_bounds[:10].max()
        for n, series in ((10, fast), (12, np.concatenate([fast, slow], axis=1)))
    ]
    assert claimed[0] == pytest.approx(3 / (64 * 16), rel=0.5)  # batches are not looked into
    assert 5 * claimed[0] < claimed[1] < 20 * claimed[0]


def test_relaxed_samplers_allow_for_what_comes_at_the_pace_of_the_slowest_variable() -> None:
    """One of thirty is slow, which by itself tells Gibbs sampling nothing of the others."""
    fast = 1e-4 * np.random.default_rng(3).random((64, 30, 16))
    fast[:, :1] = two_state(0.5, 0.995, 64, 40, 16, 4)
    ends = np.zeros(30), np.ones(30)
    plain, slowest = (
        claims.marginal_claims(fast, 64 * 40, *ends, slow=slow).error_bounds[1:].max() for slow in (0.9, 1.0)
    )
    trace = Trace({"p": "sum"})
    for batch in fast:
        trace.add({"p": 40 * batch}, 40)
    found = relaxed.relaxed_estimate(Relaxation(generators.grid(5, 6), np.zeros(30)), trace, "none")
    assert np.asarray(found.marginals_error_bound)[1:].max() == pytest.approx(slowest)
    assert slowest > 5 * plain


@pytest.mark.parametrize(
    ("chains", "batches", "doubt"), [(1, 64, "too few chains"), (7, 64, "too few chains"), (16, 3, "too short")]
)
def test_too_few_chains_or_batches_are_not_enough(chains: int, batches: int, doubt: str) -> None:
    series = two_state(0.5, 0.0, batches, 10, chains, 2)
    assert claims.marginal_claims(series, batches * 10, np.zeros(1), np.ones(1)).doubt == doubt


@pytest.mark.parametrize(("samples", "doubt"), [(7, "too short"), (8, "")])
def test_fewer_than_eight_samples_are_too_short(samples: int, doubt: str) -> None:
    series = 0.5 + 0.1 * np.random.default_rng(0).normal(size=(samples, 1, 64))
    assert claims.marginal_claims(series, samples, np.zeros(1), np.ones(1)).doubt == doubt


@pytest.mark.parametrize(("pace", "doubt"), [(0.0, ""), (2.0, "too short")])
def test_chains_that_move_away_from_their_starts_together_are_too_short(pace: float, doubt: str) -> None:
    """Their means, of which R-hat compares those of chains, agree."""
    away = 0.5 * np.exp(-np.arange(1, 9) / pace) if pace else np.zeros(8)
    series = 0.3 + away[:, None, None] + 0.1 * np.random.default_rng(0).normal(size=(8, 5, 64))
    assert claims.marginal_claims(series, 8, np.zeros(5), np.ones(5)).doubt == doubt


def test_laws_that_are_far_apart_support_no_ratio_without_a_warning() -> None:
    with np.errstate(all="raise", under="ignore"):
        found = bennett.ratio(np.full((16, 16), 400.0), np.linspace(-401.0, -400.0, 64))
    assert not found.supported
    assert found.error_bound == np.inf


def gaussian_sides(
    shift: float, batches: int, chains: int, drawn: int, seed: int, memory: float = 0.0
) -> tuple[np.ndarray, np.ndarray, float]:
    """log Z + log dp/dq under p = N(shift, 1) and under q = N(0, 1); log Z = 3."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(batches, chains)) * np.sqrt(1 - memory**2)
    noise[0] /= np.sqrt(1 - memory**2)
    y = lfilter([1.0], [1.0, -memory], noise, axis=0) + shift
    log_z = 3.0
    return log_z + shift * y - shift**2 / 2, log_z + shift * rng.normal(size=drawn) - shift**2 / 2, log_z


@pytest.mark.parametrize(("shift", "memory"), [(0.2, 0.0), (1.0, 0.0), (2.0, 0.5), (1.0, 0.9)])
def test_ratio_is_right_within_its_claim(shift: float, memory: float) -> None:
    z, runs = [], 300
    for seed in range(runs):
        forward, backward, log_z = gaussian_sides(shift, 64, 16, 200, seed, memory)
        found = bennett.ratio(forward, backward)
        assert found.supported
        z.append((found.value - log_z) / found.error_bound)
    assert np.mean(np.abs(z) > 1) <= 0.005 + 3 * np.sqrt(0.005 / runs)
    assert abs(np.mean(z)) < 0.1


@pytest.mark.parametrize("shift", [6.0, 12.0])
def test_laws_that_do_not_overlap_support_no_ratio(shift: float) -> None:
    forward, backward, _ = gaussian_sides(shift, 64, 16, 200, 0)
    assert not bennett.ratio(forward, backward).supported


def test_what_differs_by_rounding_alone_is_certain() -> None:
    rng = np.random.default_rng(3)
    found = bennett.ratio(2.5 + 1e-15 * rng.normal(size=(64, 1)) * np.ones(16), np.full(200, 2.5))
    assert found.supported
    assert found.value == pytest.approx(2.5)


def test_equal_values_on_both_sides_give_their_common_value() -> None:
    found = bennett.ratio(np.full((8, 8), 2.5), np.full(64, 2.5))
    assert found.value == pytest.approx(2.5)
    assert found.overlap == pytest.approx(1.0)
    assert 0 < found.error_bound < 0.1


@pytest.mark.parametrize(
    ("given", "error", "supported", "expected"),
    [
        (5.1, 0.02, True, 0.1),
        (5.01, 0.3, True, 0.3),
        (5.2, 0.1, True, np.sqrt(0.03)),
        (4.8, 0.1, True, np.sqrt(0.03)),
        (4.5, 0.1, True, np.inf),
        (5.5, 0.1, True, np.inf),
        (5.0, 0.1, False, np.inf),
        (5.0, np.nan, True, np.inf),
        (5.0, np.inf, True, np.inf),
    ],
)
def test_an_estimate_is_believed_only_beside_one_that_agrees(
    given: float, error: float, supported: bool, expected: float
) -> None:
    sure = bennett.Ratio(5.0, 0.1, claims.BOUND * 0.1, 0.5, 100.0, supported=supported)
    found = bennett.beside(claims.Claim(given, error, claims.BOUND * error), sure)
    assert found == (given, pytest.approx(expected), pytest.approx(claims.BOUND * expected))


@pytest.mark.parametrize(
    ("given", "error", "supported", "expected"),
    [
        (9.0, 0.3, True, np.hypot(0.3, 4.0)),
        (5.01, 0.001, True, bennett.SHARED * 0.1),
        (5.0, 0.3, False, np.inf),
        (5.0, np.nan, True, np.inf),
    ],
)
def test_an_average_of_one_side_follows_what_both_sides_say(
    given: float, error: float, supported: bool, expected: float
) -> None:
    sure = bennett.Ratio(5.0, 0.1, claims.BOUND * 0.1, 0.5, 100.0, supported=supported)
    bound = pytest.approx(claims.BOUND * expected)
    assert bennett.one_sided(given, error, sure) == (given, pytest.approx(expected), bound)


def test_names_of_the_last_release_go_on_with_a_warning() -> None:
    found = claims.marginal_claims(two_state(0.5, 0.0, 64, 10, 16, 2), 640, np.zeros(1), np.ones(1))
    for name, new in (("errors", found.error_bounds), ("standard_errors", found.mcse)):
        with pytest.warns(DeprecationWarning, match=f"MarginalClaims.{name} is called"):
            assert getattr(found, name) is new


@pytest.mark.parametrize("groups", [(), ((0, 3, 4), (2, 5))])
def test_conditional_range_holds_all_conditionals(groups: tuple[tuple[int, ...], ...]) -> None:
    rng = np.random.default_rng(1)
    grouped = {frozenset((i, j)) for group in groups for i in group for j in group if i < j}
    edges = [(i, j) for i in range(6) for j in range(i + 1, 6) if frozenset((i, j)) not in grouped]
    model = PairwiseModel.from_edges(rng.normal(size=6), edges, rng.normal(size=len(edges)), groups=groups)
    states = np.array(list(itertools.product((0, 1), repeat=6)))
    allowed = np.all([states[:, list(group)].sum(axis=1) == 1 for group in groups], axis=0) if groups else slice(None)
    states = states[allowed]
    weights = {tuple(state): model.log_weight(state) for state in states.tolist()}
    least, most = conditional_range(model)
    group_of = {i: list(group) for group in groups for i in group}
    for i in range(6):
        members = group_of.get(i, [i])
        for state in states.tolist():
            same = [s for s in weights if all(s[j] == state[j] for j in range(6) if j not in members)]
            p = sum(np.exp(weights[s]) for s in same if s[i]) / sum(np.exp(weights[s]) for s in same)
            assert least[i] - 1e-12 <= p <= most[i] + 1e-12


@pytest.mark.parametrize(("r_hat", "share"), [(1.0, 0.0), (np.inf, 1.0), (np.nan, 1.0), (np.sqrt(2.0), 0.5)])
def test_what_chains_remember(r_hat: float, share: float) -> None:
    assert claims.memory_share(r_hat) == pytest.approx(share)


def test_memory_is_what_both_halves_share() -> None:
    """Mixing chains' R-hat is above 1 by chance, and the largest of 200 well above; that is no memory."""
    rng = np.random.default_rng(3)
    noise = 0.5 + 0.3 * rng.normal(size=(128, 200, 16)).clip(-1.5, 1.5)
    found = claims.marginal_claims(noise, 128, np.zeros(200), np.ones(200))
    assert found.r_hat.max() > 1.001
    assert found.memory == 0.0
    one_astray = noise.copy()
    one_astray[:, 7, 3] = 0.95
    remembered = claims.marginal_claims(one_astray, 128, np.zeros(200), np.ones(200))
    assert remembered.memory == pytest.approx(1 - remembered.r_hat[7] ** -2)
    assert remembered.memory > 0.02


def test_groups_of_chains_tell_as_much_as_chains() -> None:
    rng = np.random.default_rng(4)
    stuck = np.broadcast_to((rng.random(512) < 0.5).astype(float), (64, 1, 512)) * 0.2 + 0.4
    mixing = two_state(0.5, 0.5, 64, 20, 512, 1)
    for series, doubt in ((np.array(stuck), ""), (mixing, "")):
        single = claims.marginal_claims(series, 1280, np.zeros(1), np.ones(1))
        means = series.reshape(64, 1, 16, 32).mean(axis=-1)
        grouped = claims.marginal_claims(means, 1280, np.zeros(1), np.ones(1), group_size=32)
        assert grouped.doubt == single.doubt == doubt
        assert grouped.se == pytest.approx(single.se, rel=0.5)
        assert grouped.error_bounds == pytest.approx(single.error_bounds, rel=0.5)
        assert grouped.r_hat - 1 == pytest.approx(single.r_hat - 1, rel=0.6)


def test_groups_of_chains_that_have_not_mixed_are_doubted() -> None:
    stuck = np.repeat((np.random.default_rng(4).random(512) < 0.5).astype(float), 64).reshape(512, 64).T * 0.98 + 0.01
    means = stuck.reshape(64, 1, 16, 32).mean(axis=-1)
    assert claims.marginal_claims(means, 1280, np.zeros(1), np.ones(1)).doubt == ""
    assert claims.marginal_claims(means, 1280, np.zeros(1), np.ones(1), group_size=32).doubt == "not mixed"
