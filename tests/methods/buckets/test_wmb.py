"""Weighted mini-buckets: bounds of random models hold, exact where nothing is split, and errors are what is claimed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.backends.numba.buckets.kernel import NumbaBucketKernel
from spinbench.methods.buckets import size, tuning
from spinbench.methods.buckets.layout import factors_of, lay_out, problem_of
from spinbench.methods.buckets.orders import search_orders
from spinbench.methods.buckets.partition import Partition, partition
from spinbench.models import FactorGraph, PairwiseModel
from spinbench.models.generators import grid, random_regular, sherrington_kirkpatrick, torus
from spinbench.testing.laws.cases import enumerate_law

BACKENDS = ("numpy", "numba")


def random_graph(rng: np.random.Generator) -> FactorGraph:
    """Three to seven variables of 1 to 4 states, factors of orders 1 to 4 with axes in any order, hard zeros."""
    n = int(rng.integers(3, 8))
    cards = rng.integers(1 if rng.random() < 0.1 else 2, 5, size=n).tolist()
    alive, scale, factors = [int(rng.integers(k)) for k in cards], float(rng.choice([0.3, 1, 2, 4])), []
    for _ in range(int(rng.integers(n, 2 * n + 3))):
        scope = rng.permutation(n)[: rng.integers(1, min(4, n) + 1)].tolist()
        table = rng.normal(0, scale, [cards[v] for v in scope])
        if rng.random() < 0.4:
            table[rng.random(table.shape) < rng.choice([0.1, 0.3, 0.5])] = -np.inf
        table[tuple(alive[v] for v in scope)] = scale * rng.normal()
        factors.append((scope, table))
    return FactorGraph.from_log_tables(cards, factors, log_constant=float(rng.normal()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_bounds_of_random_models(backend: str) -> None:
    """And each log Z that is believed is as far from the true one as is claimed."""
    rng, z, missed = np.random.default_rng(7), [], 0
    for k in range(60):
        model, ibound, budget = random_graph(rng), int(rng.integers(1, 6)), int(rng.choice([8, 32, 64]))
        found = spinbench.run(model, "wmb", backend, budget, seed=k, ibound=ibound)
        true = enumerate_law(model).log_z
        for bound in found.bounds:
            beyond = (bound.value - true) * (1 if bound.side == "lower" else -1)
            missed += bound.grade == "probable" and beyond > 0
            assert beyond <= (1e-9 * max(1, abs(true)) if bound.grade == "exact" else 0) or bound.grade == "probable"
        if found.status == "ok" and found.log_z_kind == "estimate":
            z.append((found.log_z - true) / found.log_z_se)
    assert missed <= 1  # each of them with a probability of 1 in 2000
    assert len(z) >= 15
    assert np.abs(z).max() < 4.5
    assert (np.abs(z) > 2).mean() < 0.15


@pytest.mark.parametrize("backend", BACKENDS)
def test_exact_where_zeros_leave_little(backend: str) -> None:
    """A grid of equal neighbours, whose whole tables would have 4 ** 13 entries."""
    same, sites = np.where(np.eye(4, dtype=bool), 0.0, -np.inf), np.arange(144).reshape(12, 12)
    steps = [(sites[1:], sites[:-1]), (sites[:, 1:], sites[:, :-1])]
    pairs = [pair for ends in steps for pair in zip(*(end.ravel() for end in ends), strict=True)]
    bias = np.arange(4) / 5
    model = FactorGraph.from_log_tables([4] * 144, [*((pair, same) for pair in pairs), ([70], bias)])
    found = spinbench.run(model, "wmb", backend, budget=8, chains=64, draws=True, simplify=False)
    law = np.exp(bias) / np.exp(bias).sum()
    assert (found.log_z_kind, found.status) == ("exact", "ok")
    assert found.log_z == pytest.approx(np.log(np.exp(bias).sum()), abs=1e-11)
    assert np.allclose(np.array(found.marginals), law, atol=1e-12)
    states, logs = found.draws
    assert np.all(states == states[0])
    assert np.abs(np.bincount(states[0], minlength=4) / states.shape[1] - law).max() < 0.1
    assert np.all(logs == 0)
    cut = spinbench.run(model, "wmb", backend, budget=8, ibound=4)
    assert min(bound.value for bound in cut.bounds if bound.side == "upper") >= found.log_z - 1e-9


def test_both_backends_find_the_same_bound() -> None:
    model = grid(5, 5, 1.0, 2.0, seed=4)
    options: dict[str, Any] = {"budget": 40, "ibound": 3}
    one, two = (spinbench.run(model, "wmb", b, burn_in=0, **options).bounds[0].value for b in BACKENDS)
    assert one == pytest.approx(two, abs=1e-9)


def test_burn_in_tightens_and_larger_mini_buckets_too() -> None:
    model = grid(8, 8, 1.0, 2.0, seed=1)
    true = spinbench.exact(model).log_z

    def gap(burn_in: int, ibound: int) -> float:
        found = spinbench.run(model, "wmb", "numba", budget=200, burn_in=burn_in, ibound=ibound)
        assert found.bounds[0].grade == "certified"
        return float(found.bounds[0].value - true)

    loose, tight, large = gap(0, 3), gap(2000, 3), gap(2000, 6)
    assert 0 <= large < tight / 2 < loose / 8


def test_constraints_kill_draws_that_count() -> None:
    """A ring of seven that must not agree, in three colours: 2 ** 7 - 2 ways."""
    unlike = np.where(np.eye(3, dtype=bool), -np.inf, 0.0)
    model = FactorGraph.from_log_tables([3] * 7, [([v, (v + 2) % 7], unlike) for v in range(7)])
    found = spinbench.run(model, "wmb", "numba", budget=400, ibound=1)
    assert found.diagnostics["weight_ess"] < 0.9 * 400 * 16
    assert abs(found.log_z - np.log(126)) < 4 * found.log_z_se
    assert np.allclose(np.array(found.marginals), 1 / 3, atol=0.05)


def test_a_mode_that_is_not_drawn_is_doubted() -> None:
    """Without burn-in the draws miss a mode of most of the weight; only the bound on weights can tell."""
    ends = np.array([(i, j) for i in range(6) for j in range(i)])
    model = PairwiseModel.from_edges(np.full(6, -24.9), ends, np.full(len(ends), 10.0))
    found = spinbench.run(model, "wmb", "numba", budget=64, burn_in=0, ibound=1)
    wrong = abs(found.log_z - spinbench.exact(model, cache=False).log_z) > 3 * found.log_z_se
    assert not (wrong and found.status == "ok")
    assert found.status != "ok"


@pytest.mark.parametrize(("method", "settings"), [("wmb", {"ibound": 4}), ("gaussian_bound", {})])
def test_log_z_that_few_draws_carry_has_no_error_but_a_bracket(method: str, settings: dict[str, int]) -> None:
    result = spinbench.run(sherrington_kirkpatrick(100, 3.0, seed=1), method, "numba", 100, chains=8, **settings)
    assert "log Z unresolved" in result.status
    assert np.isinf([result.log_z_se, result.log_z_error_bound]).all()
    assert [bound.side for bound in result.bounds if bound.grade == "certified"] == ["upper"]
    assert all(np.isfinite(bound.value) for bound in result.bounds)


def test_draws_with_their_weights_have_the_marginals() -> None:
    model = grid(4, 4, 1.0, 2.0, seed=3)
    found = spinbench.run(model, "wmb", "numba", budget=256, chains=32, ibound=3, draws=True)
    states, logs = found.draws
    weights = np.exp(logs - logs.max())
    assert states.shape == (16, logs.size)
    assert np.allclose(states @ weights / weights.sum(), spinbench.exact(model).marginals, atol=0.05)


def test_the_numbers_do_not_depend_on_how_many_chains_run() -> None:
    model = grid(4, 4, 1.0, 2.0, seed=3)
    few, many = (spinbench.run(model, "wmb", "numba", 1, chains=c, burn_in=0, ibound=3, draws=True) for c in (4, 9))
    assert np.array_equal(few.draws[0], many.draws[0][:, :4])


def test_passes_end_in_time_where_first_draws_die_at_once() -> None:
    """They take far less time than draws that live, so that their number says too much of how long burn-in is."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = spinbench.run(spinbench.load("uai14hard/linkage_16"), "wmb", "numba", budget="600 ms", chains=4)
    share = (time.process_time() - cpu) / (time.perf_counter() - wall)  # of a core, which others use, too
    assert share * found.seconds.burn_in < 0.6
    upper = min(bound.value for bound in found.bounds if bound.side == "upper" and bound.grade != "probable")
    assert -88.7776 <= upper < np.inf


def test_a_table_with_many_messages_costs_and_weighs_more() -> None:
    """Along Alchemy_11's best order 2 million entries look into 79 million places of messages."""
    problem = problem_of(spinbench.load("uai14hard/Alchemy_11"))
    order = search_orders(problem, 0.03, 0)[0]
    factors = factors_of(problem, order.order)
    logs, scopes = [1.0] * len(factors.states), factors.scopes()
    for limit in (3, 8):
        found = partition(logs, scopes, limit)
        at = lay_out(factors, found)
        assert (found.looks, found.entries) == (len(at.maps), len(at.base))
    costs = NumbaBucketKernel.code.costs
    free = costs._replace(look=0.0, made=0.0)

    def splits(costs: size.Costs, seconds: float, max_bytes: float) -> bool:
        smallest = partial(partition, logs, scopes, size.SMALLEST)
        return size.choose(logs, scopes, order.log2_total, costs, seconds, max_bytes, smallest)[1].split

    assert not splits(free, 0.4, 2.0**30)
    assert splits(costs, 0.4, 2.0**30)
    assert not splits(costs, 4.0, 2.0**30)
    assert splits(costs, 4.0, 2.0**28)  # maps of 300 MB, where tables take 67


def test_the_smallest_mini_buckets_along_an_order_are_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A short run asks for them several times: to begin with, to tighten the bound, and to compare orders."""
    made = []

    def count(logs: Sequence[float], scopes: Sequence[tuple[int, ...]], limit: float, *rest: float) -> Partition:
        made.append((tuple(logs), tuple(scopes), limit))
        return partition(logs, scopes, limit, *rest)

    monkeypatch.setattr(tuning, "partition", count)
    monkeypatch.setattr(size, "partition", count)
    spinbench.run(torus(8, 8, coupling=0.3), "wmb", "numpy", 20, seed=1)
    smallest = [call for call in made if call[2] == size.SMALLEST]
    assert smallest
    assert len(smallest) == len(set(smallest))


def test_orders_that_need_too_much_memory_are_passed_over() -> None:
    """Of several, along which mini-buckets of one size take more memory or less."""
    model = random_regular(60, 4, 1.0, 1.0, seed=1)
    result = spinbench.run(model, "wmb", "numpy", 40, burn_in=400, max_gib=0.00144, chains=2)
    assert result.diagnostics["ibound"] > 9
