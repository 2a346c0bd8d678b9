"""What contributors say of random models is true: certified bounds always, probable ones as often as they claim."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z

import spinbench
from spinbench.api.bounds import Bound
from spinbench.errors import IntractableError, ModelError, UnsupportedError
from spinbench.foundation import plugins
from spinbench.inference.bracketing.sources import Request, find_bounds, load_source
from spinbench.inference.checks.best_states import bound_above, bounds_below
from spinbench.methods.buckets.betting import log_mean_below
from spinbench.methods.buckets.bound_sources import tighten
from spinbench.models import FactorGraph, Model, condition, specs
from spinbench.models.generators import grid

GRAPHS = {**KINDS, "quadruples with zeros": factors(2, 4, 0.15)}


def drawn(kind: str, seed: int) -> Iterator[Model]:
    draw, rng = GRAPHS[kind](np.random.default_rng([seed, 1])), np.random.default_rng([seed, 2])
    yield from (draw(rng) for _ in range(2))


def beyond(bound: Bound, model: Model) -> float:
    """Nats on the wrong side of log Z, rounding allowed for."""
    true, slack = log_z(model)
    slack += 1e-9 * max(1.0, abs(true)) if bound.grade == "exact" else 0.0
    return (bound.value - true) * (1 if bound.side == "lower" else -1) - slack


@pytest.mark.parametrize("kind", GRAPHS)
def test_states_bound_from_both_sides(kind: str) -> None:
    for model in drawn(kind, 0):
        below = list(bounds_below(model, seed=1))
        assert beyond(bound_above(model), model) <= 0
        assert max(beyond(bound, model) for bound in below) <= 0
        assert below[-1].value >= below[0].value


def test_the_heaviest_state_of_a_small_model_is_found() -> None:
    model = grid(3, 3, 1, 2)
    every = (np.arange(2**9)[:, None] >> np.arange(9)) & 1
    best = max(bound.value for bound in bounds_below(model, seed=0))
    assert best >= model.log_weight(every).max() - 1e-9


@pytest.mark.parametrize("kind", GRAPHS)
def test_mini_buckets_say_more_from_look_to_look(kind: str) -> None:
    """Cut as small as they can be, so that most are split."""
    for k, model in enumerate(drawn(kind, 1)):
        planned = Request(model, 1.0).plan("wmb", "numba", ibound=1, delta=1e-6)
        news = list(tighten(planned, k, 1.0, itertools.count(0, 0.003).__next__))
        assert max(beyond(bound, model) for each in news for bound in each.bounds) <= 0
        if not news[0].exact:
            assert {each.look for each in news} == {0, 1, 2}
            first, last = (max(b.value for b in each.bounds if b.side == "upper") for each in (news[0], news[-1]))
            assert last <= first
            assert sum(each.look == 2 for each in news) > 1


def test_who_cannot_be_ready_in_time_says_so() -> None:
    with pytest.raises(IntractableError, match=r"would take about .* s"):
        list(find_bounds(load_source("exact"), Request(grid(18, 18, 1, 1), 1e-9)))


def test_where_nothing_is_possible_all_say_so() -> None:
    never = FactorGraph.from_log_tables([2, 2], [((0, 1), [[0.0, -np.inf], [-np.inf, 0.0]]), ((0,), [0.0, -np.inf])])
    never = FactorGraph.from_log_tables(
        [2, 2], [*((f.scope, f.log_table) for f in never.factors), ((1,), [-np.inf, 0])]
    )
    for name in ("best states", "mf", "exact"):
        with pytest.raises(ModelError):
            list(find_bounds(load_source(name), Request(never, 1.0)))


@pytest.mark.parametrize("name", sorted(set(plugins.entry_points("bounds")) - {"reverse annealing"}))
def test_every_source_finds_bounds(name: str) -> None:
    model = grid(3, 3, 1, 1)
    found = [bound for news in find_bounds(load_source(name), Request(model, 0.2)) for bound in news.bounds]
    assert {bound.by for bound in found} >= {name}
    assert max(beyond(bound, model) for bound in found) <= 0


def test_bets_on_annealed_runs_miss_as_seldom_as_they_claim() -> None:
    """Of laws with a heavy tail upwards, which nothing bounds."""
    for spread, runs in ((0.3, 40), (1.5, 40), (1.5, 400)):
        draws = np.random.default_rng(int(10 * spread)).normal(-(spread**2) / 2, spread, size=(150, runs))
        found = np.array([log_mean_below(logs, 0.1) for logs in draws])
        assert (found > 0).mean() <= 0.1 + 3 * np.sqrt(0.09 / 150)
        assert np.median(found) > -4 * spread / np.sqrt(runs) - 0.15 * spread**2
    assert log_mean_below(np.full(10, -np.inf), 0.1) == -np.inf
    mixed = log_mean_below(np.repeat([0.0, -np.inf], 200), 0.1)
    assert -1.2 < mixed < -np.log(2)


DELTA = 1e-6


def above(model: Model, seed: int, seconds: float) -> float:
    """Of a clock that goes by a hundredth of a second each time that it is asked."""
    clock = itertools.count(0, 0.01).__next__
    request = Request(model, seconds, seed, DELTA, clock=clock)
    (news,) = find_bounds(load_source("reverse annealing"), request)
    (bound,) = news.bounds
    assert (bound.side, bound.grade, bound.delta, bound.by) == ("upper", "assumed", DELTA, "reverse annealing")
    return bound.value


def test_it_is_above_log_z_and_not_far() -> None:
    """Whatever the kind; models on which tempering does not mix in so few steps are not counted."""
    told: dict[str, list[float]] = {kind: [] for kind in GRAPHS}
    for k, (kind, shape) in enumerate(GRAPHS.items()):
        model = shape(np.random.default_rng([k, 1]))(np.random.default_rng([k, 0]))
        true, slack = log_z(model)
        try:
            told[kind].append(above(model, 0, 2.0) - true)
        except UnsupportedError:
            continue
        assert told[kind][-1] > -slack, kind
    assert sum(map(len, told.values())) >= 4
    assert sorted(itertools.chain(*told.values()))[2] < 1.0


def test_evidence_and_what_falls_away_are_counted() -> None:
    model = condition(specs.build({"name": "grid", "rows": 3, "cols": 3}), {0: 1, 4: 0})
    assert 0 < above(model, 1, 4.0) - spinbench.exact(model, cache=False).log_z < 1.0


def test_without_round_trips_it_is_refused() -> None:
    stuck = specs.build({"name": "torus", "rows": 6, "cols": 6, "coupling": 1.5})
    with pytest.raises(UnsupportedError, match=r"tempering has not mixed \(\d+ round trips of \d+ replicas\)"):
        above(stuck, 0, 0.5)
