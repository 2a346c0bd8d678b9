"""The lower bound of mini-buckets is one, on every backend, and the exact answer where nothing is split."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z
from small_graphs import bound

import spinbench
from spinbench.backends.numba.buckets.kernel import NumbaLowerKernel
from spinbench.methods.buckets.layout import Buckets, lay_out
from spinbench.methods.buckets.orders import search_orders
from spinbench.methods.buckets.partition import partition
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.problem import factors_of, problem_of
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
