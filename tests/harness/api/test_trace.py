"""Batches: reductions, merging and the bound on memory."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from spinbench.api import trace as trace_module
from spinbench.api.trace import Trace

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


def test_series_are_batch_means() -> None:
    trace, s, logs = filled([2, 3])
    np.testing.assert_allclose(trace.series("s"), [s[:2].mean(axis=0), s[2:].mean(axis=0)])
    np.testing.assert_allclose(np.exp(trace.series("weight")[1]), np.exp(logs[2:]).mean(axis=0))
    np.testing.assert_array_equal(trace.series("x"), [s[1], s[4]])


def test_merge_halves_the_batches_and_keeps_an_odd_tail() -> None:
    trace, s, _ = filled([1, 2, 3])
    trace.merge()
    assert trace.counts == [3, 3]
    np.testing.assert_allclose(trace.series("s"), [s[:3].mean(axis=0), s[3:].mean(axis=0)])


def test_capacity_falls_with_the_size_of_a_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trace_module, "MAX_BYTES", 20 * 8 * 100)
    trace = Trace({"s": "sum"})
    for k in range(20):
        assert not trace.full
        trace.add({"s": np.full((50, 2), float(k))}, 1)
    assert trace.full


def test_pooled_series_has_the_means_of_neighbouring_batches() -> None:
    trace, s, _ = filled([1, 2, 3, 4, 5, 6, 7])
    np.testing.assert_allclose(trace.series("s", most=3), [s[:3].mean(0), s[3:10].mean(0), s[10:21].mean(0)])
    np.testing.assert_array_equal(trace.series("s", most=7), trace.series("s"))


def test_capacity_may_be_raised() -> None:
    trace = Trace({"x": "last"}, capacity=601)
    for value in range(602):
        assert not trace.full
        trace.add({"x": np.array([value])}, 1)
    assert trace.full


def test_what_an_engine_writes_again_is_not_the_trace_s() -> None:
    """A draw of a state that is updated in place, as NumPy programs may do."""
    trace, state = Trace({"x": "last"}), np.zeros((2, 3))
    for step in range(4):
        state += 1.0
        trace.add({"x": state}, 1)
        assert (trace.series("x")[step] == step + 1).all()
    assert trace.series("x")[:, 0, 0].tolist() == [1.0, 2.0, 3.0, 4.0]
