"""The lower bound of mini-buckets is one, on every backend, and the exact answer where nothing is split."""

from __future__ import annotations

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z

import spinbench
from spinbench.backends.numba.buckets.kernel import NumbaLowerKernel
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding
from spinbench.mathematics.rounding import work_of
from spinbench.methods.buckets.layout import Buckets, lay_out
from spinbench.methods.buckets.orders import search_orders
from spinbench.methods.buckets.partition import partition
from spinbench.methods.buckets.passes import Passes
from spinbench.methods.buckets.problem import factors_of, problem_of
from spinbench.methods.buckets.raising import LowerBound
from spinbench.methods.buckets.wmb_lower import LowerMiniBuckets
from spinbench.models import FactorGraph, Model, generators

GRAPHS = {
    **{kind: KINDS[kind] for kind in ("pairwise", "frustrated", "pairs", "triples", "K-ary")},
    "fields": factors(2, 1, 0.0),
    "quadruples": factors(2, 4, 0.0),
    "K-ary triples": factors(3, 3, 0.0),
}
LOOKS = (1, 4, 30)


def told(model: Model, backend: str, ibound: int) -> list[float]:
    """After some passes."""
    method = LowerMiniBuckets(ibound=ibound)
    tables = method.plan(model)
    engine = binding.bind(method, backend, model, tables, precision="float64").engine
    state, found = engine.init(0, np.zeros((model.num_variables, 1), dtype=np.int8)), []
    for passes in LOOKS:
        state, seen = engine.advance(state, passes)
        found.append(float(seen["bound"][0]))
    return found


def holds(kind: str, number: int, backend: str, ibound: int) -> list[float]:
    """Distances to log Z, none of them below 0."""
    model = GRAPHS[kind](np.random.default_rng([number // 4, 3]))(np.random.default_rng([number, 4]))
    true, slack = log_z(model)
    found = told(model, backend, ibound)
    assert max(found) <= true + slack, (kind, number, backend, ibound)
    assert found == sorted(found)
    return [true - bound for bound in found]


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("kind", GRAPHS)
def test_it_is_below_log_z(kind: str, backend: str) -> None:
    for number in range(4):
        holds(kind, number, backend, 1)
        assert holds(kind, number, backend, 20)[-1] < 1e-5, "nothing is split"


@pytest.mark.calibration
@pytest.mark.parametrize("kind", GRAPHS)
def test_none_of_thousands_is_above_log_z(kind: str) -> None:
    for number in range(375):
        holds(kind, number, "numba", (1, 2, 3)[number % 3])


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
    assert [(bound.side, bound.grade, bound.by) for bound in result.bounds] == [("lower", "certified", "wmb_lower")]


def test_the_gradient_is_that_of_differences() -> None:
    model = generators.grid(4, 4, 1.0, 2.0)
    at = small_buckets(model, 2)
    passes = Passes(at)
    ascent = LowerBound(at, passes, last=True)
    for _ in range(3):
        ascent.go_on()
    point = ascent.best
    passes.forward(point.theta, point.weights)
    shifts, entropies = (found.copy() for found in passes.backward())
    for given, gradient in ((point.theta, shifts), (point.weights, entropies)):
        for k in range(0, len(given), 3):
            ends = []
            for step in (1e-6, -1e-6):
                moved = given.copy()
                moved[k] += step
                pair = (moved, point.weights) if given is point.theta else (point.theta, moved)
                ends.append(passes.forward(*pair))
            assert np.isclose((ends[0] - ends[1]) / 2e-6, gradient[k], rtol=1e-4, atol=1e-6)
    assert ascent.slack(work_of(model)) < 1e-8


def test_it_refuses_hard_zeros_and_wrong_settings() -> None:
    model = FactorGraph.from_log_tables([2, 2], [((0, 1), np.array([[-np.inf, 0.3], [0.1, 0.2]]))])
    with pytest.raises(UnsupportedError, match="has hard zeros"):
        spinbench.run(model, "wmb_lower", "numpy", 10)
    for wrong in ({"ibound": 31}, {"max_gib": 0.0}):
        with pytest.raises(SpinbenchError, match=f"wmb_lower: {next(iter(wrong))}="):
            LowerMiniBuckets(**wrong)  # type: ignore[arg-type]
