"""Batches and what is estimated of them: reductions, merging, pooled means, and what estimates say of themselves."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.api import Estimate
from spinbench.api import trace as trace_module
from spinbench.api.estimate import is_doubted, verdict
from spinbench.api.pooled import MOST_CHAINS, Means
from spinbench.api.trace import Trace
from spinbench.errors import BrokenPluginError, InvalidResultError
from spinbench.mathematics.claims import MarginalClaims, marginal_claims

REDUCTIONS = {"s": "sum", "weight": "logsumexp", "x": "last"}


def filled(counts: list[int], seed: int = 0) -> tuple[Trace, np.ndarray, np.ndarray]:
    """A trace over steps with known statistics, s of shape (steps, 3, 2) and log weights (steps, 2)."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=(sum(counts), 3, 2))
    logs = 10 * rng.normal(size=(sum(counts), 2))
    trace, at = Trace(REDUCTIONS), 0
    for count in counts:
        part = slice(at, at + count)
        batch = {"s": s[part].sum(axis=0), "weight": np.logaddexp.reduce(logs[part]), "x": s[part][-1]}
        trace.add(batch, count)
        at += count
    return trace, s, logs


@given(st.lists(st.integers(1, 5), min_size=1, max_size=12), st.integers(0, 3))
def test_totals_do_not_depend_on_the_cut(counts: list[int], merges: int) -> None:
    trace, s, logs = filled(counts)
    for _ in range(merges):
        trace.merge()
    assert trace.samples == sum(counts)
    np.testing.assert_allclose(trace.total("s"), s.sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(trace.mean("s"), s.mean(axis=0), atol=1e-12)
    np.testing.assert_allclose(trace.total("weight"), np.logaddexp.reduce(logs), rtol=1e-12)
    np.testing.assert_allclose(np.exp(trace.mean("weight")), np.exp(logs).mean(axis=0), rtol=1e-9)
    np.testing.assert_array_equal(trace.total("x"), s[-1])


def test_series_are_batch_means_of_any_rows() -> None:
    trace, s, logs = filled([2, 3])
    np.testing.assert_allclose(trace.series("s"), [s[:2].mean(axis=0), s[2:].mean(axis=0)])
    np.testing.assert_allclose(np.exp(trace.series("weight")[1]), np.exp(logs[2:]).mean(axis=0))
    np.testing.assert_array_equal(trace.series("x"), [s[1], s[4]])
    means = trace.means("s")
    assert (means.shape, len(means)) == (trace.series("s").shape, 2)
    for rows in (slice(0, 2), slice(2, 3), slice(None)):
        np.testing.assert_array_equal(means[:, rows], trace.series("s")[:, rows])


def test_merge_halves_the_batches_and_keeps_an_odd_tail() -> None:
    trace, s, _ = filled([1, 2, 3])
    trace.merge()
    assert trace.counts == [3, 3]
    np.testing.assert_allclose(trace.series("s"), [s[:3].mean(axis=0), s[3:].mean(axis=0)])


def test_a_trace_is_full_when_its_memory_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MAX_BYTES", 20 * 8 * 100)
    trace, full = Trace({"s": "sum"}), []
    for k in range(20):
        full.append(trace.full)
        trace.add({"s": np.full((50, 2), float(k))}, 1)
    assert [*full, trace.full] == [False] * 20 + [True]


@pytest.mark.parametrize(
    ("batch", "sentence"),
    [
        ({"s": np.ones(3), "more": np.ones(3)}, "reported 's', 'more'; the method's reductions name 'log_t', too"),
        ({"s": np.array([object()]), "log_t": 1.0}, "a batch of steps reported 's' as object; numbers are needed"),
    ],
    ids=["other names", "no numbers"],
)
def test_what_is_no_batch_is_refused(batch: dict[str, Any], sentence: str) -> None:
    trace = Trace({"s": "sum", "log_t": "logsumexp"})
    with pytest.raises(InvalidResultError, match=sentence):
        trace.add(batch, 1)
    assert trace.samples == 0


@pytest.mark.parametrize("reduction", ["mean", "Sum", "", None])
def test_unknown_reductions_are_refused(reduction: Any) -> None:
    with pytest.raises(
        BrokenPluginError, match=rf"reduction of 'm' is {reduction!r}; 'sum', 'logsumexp', 'last' are kno"
    ):
        Trace({"s": "sum", "m": reduction})


CORRELATION = 0.9


def ar1(rng: np.random.Generator, steps: int, *shape: int) -> np.ndarray:
    """(steps, …) stationary series of unit variance whose autocorrelation at lag k is `CORRELATION`^k."""
    x = rng.normal(size=(steps, *shape))
    for t in range(1, steps):
        x[t] = CORRELATION * x[t - 1] + np.sqrt(1 - CORRELATION**2) * x[t]
    return x


def variance_of_mean(steps: int) -> float:
    lags = np.arange(1, steps)
    return float(steps + 2 * ((steps - lags) * CORRELATION**lags).sum()) / steps**2


def of_pairs(runs: int, steps: int, batch: int, seed: int) -> list[Trace]:
    """Runs of 4 chains each: a and b with means 3 and 2, whose noise has a correlation of 0.6."""
    noise = ar1(np.random.default_rng(seed), steps, runs, 2, 4)
    a, b = 3 + noise[:, :, 0], 2 + 0.6 * noise[:, :, 0] + 0.8 * noise[:, :, 1]
    found = [Trace({"a": "sum", "b": "sum"}) for _ in range(runs)]
    for run, trace in enumerate(found):
        for t in range(0, steps, batch):
            trace.add({"a": a[t : t + batch, run].sum(axis=0), "b": b[t : t + batch, run].sum(axis=0)}, batch)
    return found


def mean(trace: Trace, name: str) -> float:
    return float(trace.mean(name).mean())


@pytest.mark.parametrize(
    ("function", "gradient"),
    [
        (lambda trace: mean(trace, "a") / mean(trace, "b"), (1 / 2, -3 / 4)),
        (lambda trace: mean(trace, "a") * mean(trace, "b"), (2.0, 3.0)),
        (lambda trace: np.log(mean(trace, "a")) - np.log(mean(trace, "b")), (1 / 3, -1 / 2)),
    ],
    ids=["ratio", "product", "difference of logarithms"],
)
def test_jackknife_of_correlated_series(function: Any, gradient: tuple[float, float]) -> None:
    """The expected square of the error is known: groups lack the covariance between them, (v_g - v) / (G - 1)."""
    runs, steps = 400, 2000
    traces = of_pairs(runs, steps, 40, seed=7)
    x, y = gradient
    share = (x * x + y * y + 2 * 0.6 * x * y) / 4
    squares = np.array([trace.se(function) ** 2 for trace in traces])
    group, whole = variance_of_mean(steps // 10), variance_of_mean(steps)
    expected = share * (group - whole) / 9
    ratio, spread = squares.mean() / expected, squares.std(ddof=1) / np.sqrt(runs) / expected
    assert spread < 0.04
    assert abs(ratio - 1) < 4 * spread + 0.01  # the second order of the functions is 0.6 % of the first
    values = np.array([function(trace) for trace in traces])
    scatter = values.var(ddof=1) / (share * whole)
    assert abs(scatter - 1) < 4 * np.sqrt(2 / runs) + 0.01
    assert expected > 0.85 * share * whole


def by_batches(draws: np.ndarray, counts: list[int], name: str = "x", reduce: Any = np.sum, kind: str = "sum") -> Trace:
    """A trace of draws, (steps, …), in batches of so many."""
    trace, at = Trace({name: kind}), 0
    for count in counts:
        trace.add({name: reduce(draws[at : at + count], axis=0)}, count)
        at += count
    return trace


def test_jackknife_of_a_mean_is_the_scatter_of_groups_in_any_shape() -> None:
    draws = np.random.default_rng(3).normal(size=(60, 5, 3, 2))  # steps, variables, states, chains
    found = by_batches(draws, [1] * 60).se(lambda trace: trace.mean("x").mean(axis=-1))
    groups = draws.mean(axis=-1).reshape(10, 6, 5, 3).mean(axis=1)
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found, groups.std(axis=0, ddof=1) / np.sqrt(10), rtol=1e-10)


def test_jackknife_of_states_that_are_normalised() -> None:
    """Weights of three states to probabilities: errors of the delta method, which the sum to 1 binds together."""
    rng = np.random.default_rng(11)
    draws = rng.gamma(4.0, [[[1.0]], [[2.0]], [[5.0]]], size=(4000, 1, 3, 1, 2))[:, 0, :, 0]
    trace = by_batches(draws, [50] * 80)

    def normalised(trace: Trace) -> np.ndarray:
        weights = trace.mean("x").mean(axis=-1)
        return np.asarray(weights / weights.sum())

    p, variance = np.array([1, 2, 5]) / 8, 4.0 * np.array([1, 4, 25]) / 32**2 / 8000
    exact = [np.sqrt(sum((float(k == j) - p[k]) ** 2 * variance[j] for j in range(3))) for k in range(3)]
    np.testing.assert_allclose(trace.se(normalised) / exact, 1, atol=4 / np.sqrt(2 * 9))
    assert trace.se(lambda t: normalised(t).sum()) < 1e-12


def test_jackknife_of_too_little() -> None:
    trace, _, _ = filled([1, 2, 3])
    assert np.isposinf(trace.se(lambda trace: trace.mean("s").mean(axis=-1))).tolist() == [True] * 3
    with pytest.raises(ValueError, match="groups=3 was given; 4 or more are needed"):
        trace.se(lambda trace: trace.mean("s"), groups=3)


def test_a_look_without_what_is_needed_says_so() -> None:
    """As that of another distribution's kernel, which knows nothing of a method's later needs."""
    trace = Trace({"s": "sum"})
    trace.looks.append({"log_t": np.zeros(2)})
    assert trace.looked("log_t").shape == (1, 2)
    with pytest.raises(InvalidResultError, match="a look at the chains gave 'log_t'; the method needs 'modes'"):
        trace.looked("modes")


def test_pooled_series_has_the_means_of_neighbouring_batches() -> None:
    trace, s, _ = filled([1, 2, 3, 4, 5, 6, 7])
    np.testing.assert_allclose(trace.series("s", most=3), [s[:3].mean(0), s[3:10].mean(0), s[10:21].mean(0)])
    np.testing.assert_array_equal(trace.series("s", most=7), trace.series("s"))


@pytest.mark.parametrize(
    ("given", "status"),
    [
        ({"log_z_se": math.inf}, "log Z unresolved"),  # an error that is not known is a doubt
        ({"log_z_se": math.inf, "doubts": ("log Z contradicted",)}, "log Z contradicted"),
        ({"log_z_se": 0.5}, "ok"),
        ({"log_z_kind": "exact"}, "ok"),
    ],
)
def test_status(given: dict[str, Any], status: str) -> None:
    estimate = Estimate(log_z=1.0, **given)
    assert verdict(estimate) == status
    assert [is_doubted(estimate, what) for what in ("log Z", "marginals")] == [status != "ok", False]


@pytest.mark.parametrize(("batches", "chains", "left"), [(163, 100, 40), (256, 16, 256), (512, 1, 512), (33, 1000, 16)])
def test_means_are_of_neighbours(batches: int, chains: int, left: int) -> None:
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 5, batches).tolist()
    sums = [rng.random((3, chains)) * count for count in counts]
    means, pooled = Means(sums, counts), batches // left
    assert means.shape == (left, 3, min(chains, MOST_CHAINS))
    assert len(means) == left
    wanted = [sum(sums[k : k + pooled]) / sum(counts[k : k + pooled]) for k in range(0, left * pooled, pooled)]
    np.testing.assert_allclose(means[:, :], np.array(wanted)[..., :MOST_CHAINS], rtol=1e-14)
    np.testing.assert_array_equal(means[1:3, 1:2], means[:, :][1:3, 1:2])


@pytest.mark.parametrize(("memory", "chains"), [(0.0, 64), (0.9, 100), (0.99, 100), (0.9, 1000), (0.99, 1000)])
def test_pooled_batches_tell_errors(memory: float, chains: int) -> None:
    """Of the means of chains that forget by so much a batch."""
    rng, batches, rows = np.random.default_rng(1), 160, 100
    state, sums = rng.standard_normal((rows, chains)), []
    for _ in range(batches):
        state = memory * state + np.sqrt(1 - memory**2) * rng.standard_normal(state.shape)
        sums.append(0.5 + 0.05 * state)
    means = Means(sums, [1] * batches)
    found = marginal_claims(means, batches, np.zeros(rows), np.ones(rows), every=means.every)
    lags = np.arange(1, batches)
    true = 0.05 * np.sqrt((1 + 2 * ((1 - lags / batches) * memory**lags).sum()) / (batches * chains))
    np.testing.assert_allclose(found.mcse.mean(), true, rtol=0.15)
    assert found.doubt == ""


@pytest.mark.parametrize("memory", [0.0, 0.9])
def test_errors_of_very_many_chains_are_told_from_some(memory: float) -> None:
    """Means are of all chains; errors fall with their number; and that all of them move is seen in all."""
    rng, batches, rows, chains = np.random.default_rng(1), 20, 50, 8192
    state, sums = rng.standard_normal((rows, chains)), []
    for k in range(batches):
        state = memory * state + np.sqrt(1 - memory**2) * rng.standard_normal(state.shape)
        sums.append(3 * (0.5 + 0.05 * state + (0.003 * k if k < 6 else 0.018) * (np.arange(rows) > 40)[:, None]))
    series = Means(sums, [3] * batches)
    assert series.shape == (batches, rows, 256)
    np.testing.assert_allclose(series.mean(), np.mean(sums, axis=(0, 2)) / 3, rtol=1e-12)

    def claims(some: slice) -> tuple[MarginalClaims, MarginalClaims]:
        few = Means([one[some] for one in sums], [3] * batches)
        low, high = np.zeros(few.shape[1]), np.ones(few.shape[1])
        whole = np.array([one[some] / 3 for one in sums])
        told = marginal_claims(few, 3 * batches, low, high, every=few.every)
        return told, marginal_claims(whole, 3 * batches, low, high)

    told, known = claims(slice(0, 40))
    for name in ("error_bounds", "se", "mcse"):
        np.testing.assert_allclose(getattr(told, name).mean(), getattr(known, name).mean(), rtol=0.1)
    assert told.doubt == known.doubt == ""
    told, known = claims(slice(40, rows))
    assert told.doubt == known.doubt == "too short"
