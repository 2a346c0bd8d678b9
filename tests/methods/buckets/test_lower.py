"""The lower bound of mini-buckets on every backend, and bounds by betting: they miss no more often than they say."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z
from small_graphs import bound

import spinbench
from spinbench.backends.numba.buckets.kernel import NumbaLowerKernel
from spinbench.methods.buckets import betting
from spinbench.methods.buckets.layout import Buckets, factors_of, lay_out, problem_of
from spinbench.methods.buckets.orders import search_orders
from spinbench.methods.buckets.partition import partition
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.raising import LowerBound
from spinbench.methods.buckets.wmb_lower import LowerMiniBuckets
from spinbench.models import Model, generators

GRAPHS = {
    **{kind: KINDS[kind] for kind in ("pairwise", "frustrated", "pairs", "triples", "K-ary")},
    "fields": factors(2, 1, 0.0),
    "quadruples": factors(2, 4, 0.0),
    "K-ary triples": factors(3, 3, 0.0),
}


@pytest.mark.parametrize("ibound", [1, 20])
@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("kind", GRAPHS)
def test_it_is_below_log_z_and_rises(kind: str, backend: str, ibound: int) -> None:
    """With mini-buckets of one variable, and of so many that nothing is split."""
    for number in range(4):
        model = GRAPHS[kind](np.random.default_rng([number // 4, 3]))(np.random.default_rng([number, 4]))
        true, slack = log_z(model)
        engine = bound(model, backend, LowerMiniBuckets(ibound=ibound))[1]
        state, found = engine.init(0, np.zeros((model.num_variables, 1), dtype=np.int8)), []
        for passes in (1, 4, 30):
            state, seen = engine.advance(state, passes)
            found.append(float(seen["bound"][0]))
        assert found == sorted(found)
        assert found[-1] <= true + slack
        assert ibound == 1 or true - found[-1] < 1e-5


def small_buckets(model: Model, limit: int) -> Buckets:
    factors = factors_of(problem_of(model), search_orders(problem_of(model), 0.01, 0)[0].order)
    at = lay_out(factors, partition([1.0] * model.num_variables, factors.scopes(), limit))
    assert at.split
    return at


def test_backends_agree_and_passes_close_the_gap() -> None:
    model = generators.grid(5, 5, 1.0, 2.0)
    at = small_buckets(model, 3)
    both = [LowerBound(at, passes(at), last=False) for passes in (Passes, NumbaLowerKernel.code.passes)]
    first = both[0].best.value
    for _ in range(20):
        for ascent in both:
            ascent.go_on()
        assert np.isclose(both[0].best.value, both[1].best.value, atol=1e-8)
    true = spinbench.exact(model).log_z
    assert 0 < true - both[0].best.value < (true - first) / 5


def test_it_grows_until_nothing_is_split() -> None:
    model = generators.grid(9, 9, 1.0, 2.0)
    result = spinbench.run(model, "wmb_lower", "numba", 5000)
    assert result.log_z_kind == "lower"
    assert result.status == "ok"
    assert result.samples < 5000
    assert result.diagnostics["ibound"] > 6
    assert 0 <= spinbench.exact(model).log_z - result.log_z < 1e-6
    assert [(each.side, each.grade, each.by) for each in result.bounds] == [("lower", "certified", "wmb_lower")]


EDGES = np.append(np.exp(-0.25 * np.arange(128)), 0.0)
Law = Callable[[np.random.Generator, int], np.ndarray]
# Of weights from 0 to 1, and their means.
LAWS: dict[str, tuple[Law, float]] = {
    "alike": (lambda rng, n: 0.9 + 0.02 * rng.random(n), 0.91),
    "uniform": (lambda rng, n: rng.random(n), 0.5),
    "half dead": (lambda rng, n: np.where(rng.random(n) < 0.5, 0.0, 0.3), 0.15),
    "rare and heavy": (lambda rng, n: np.where(rng.random(n) < 0.02, 1.0, 0.01), 0.0298),
}


def told(values: np.ndarray) -> betting.Weights:
    bins = np.minimum(-np.log(np.maximum(values, 1e-300)) / 0.25, 127).astype(int)
    counts, sums = np.bincount(bins, minlength=128), np.bincount(bins, values, minlength=128)
    with np.errstate(divide="ignore"):
        logs = np.log(values.sum()), np.log((values**2).sum())
    return betting.Weights(float(len(values)), *map(float, logs), EDGES, counts.astype(float), sums)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("number", [32, 500])
def test_misses_are_as_rare_as_told(law: str, number: int) -> None:
    draw, mean = LAWS[law]
    rng, delta, repeats = np.random.default_rng(3), 0.05, 150
    seen = [told(draw(rng, number)) for _ in range(repeats)]
    low = np.array([betting.lower(weights, delta) for weights in seen])
    high = np.array([betting.upper(weights, delta) for weights in seen])
    assert (low > np.log(mean)).sum() <= 15  # 7.5 are expected of bounds that are no wider than they have to be
    assert (high < np.log(mean)).sum() <= 15
    assert (high <= 0).all()


def test_brackets_close() -> None:
    rng = np.random.default_rng(5)
    draw, mean = LAWS["uniform"]
    widths = []
    for number in (100, 10_000):
        weights = told(draw(rng, number))
        low, high = betting.lower(weights, 1e-3), betting.upper(weights, 1e-3)
        assert low < np.log(mean) < high
        widths.append(high - low)
    assert widths[1] < 0.15 * widths[0]


def test_dead_draws_count() -> None:
    alive, half = np.full(1000, 0.4), np.where(np.arange(1000) % 2, 0.4, 0.0)
    assert betting.lower(told(alive), 1e-3) > np.log(0.39)
    assert betting.upper(told(half), 1e-3) < np.log(0.27)
    assert betting.lower(told(np.zeros(10)), 1e-3) == -np.inf
    assert told(np.zeros(10)).effective == 0


def test_one_weight_of_all_says_nothing_above() -> None:
    assert betting.upper(told(np.full(3, 1.0)), 1e-3) == 0.0


@pytest.mark.parametrize("spread", [1e-12, 1e-9, 1e-6])
def test_weights_that_are_next_to_the_largest_refute_no_mean_by_rounding(spread: float) -> None:
    rng, repeats, number = np.random.default_rng(7), 60, 3200
    missed = 0
    for _ in range(repeats):
        below = spread * (4 + rng.standard_normal(number).clip(-4, 4))
        logs = np.logaddexp.reduce(np.log1p(-below)), np.logaddexp.reduce(2 * np.log1p(-below))
        one = betting.Weights(number, *map(float, logs), np.array([1.0, 0.0]), np.array([3200.0]), np.exp(logs[:1]))
        missed += betting.upper(one, 1e-3) < np.log1p(-4 * spread)
    assert missed == 0
