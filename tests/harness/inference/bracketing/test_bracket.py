"""`spinbench.bracket` as a whole: it asks in turn, ends early, ends whoever is late, and refuses in a sentence."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from typing import Any

import pytest

import spinbench
from spinbench.api.bounds import Bound, BoundRequest, BoundSource, Finding
from spinbench.errors import ModelError, SpinbenchError, UnsupportedError
from spinbench.foundation import plugins
from spinbench.inference.bracketing import bracket
from spinbench.inference.bracketing.interval import Interval, summarise
from spinbench.inference.bracketing.sources import load_sources
from spinbench.models import FactorGraph
from spinbench.models.generators import grid, sherrington_kirkpatrick

LOWER, UPPER = Bound(1.0, "lower", "certified", by="a"), Bound(3.0, "upper", "certified", by="b")
PROBABLE = Bound(2.5, "upper", "probable", 1e-3, by="c")


def test_small_models_are_exact_at_once() -> None:
    seen: list[tuple[Interval, str]] = []
    model = spinbench.load("uai14/Promedus_24")
    found = spinbench.bracket(model, "20 s", progress=lambda known, who: seen.append((known, who)))
    assert found.verdict == "exact"
    assert found.log_z == pytest.approx(-13.4973189285, abs=1e-8)
    assert found.width == found.probable_width == 0
    assert seen[0][0].verdict == "unresolved"
    assert seen[-1][1] == "exact"
    assert found.sentences()[0] == "log Z = -13.4973189, exact (exact)"


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"budget": 100}, "a bracket takes a budget in seconds"),
        ({"budget": "soon"}, "is not understood"),
        ({"gap": 0}, "gap=0 was given; a positive number is needed"),
        ({"delta": 1.0}, "delta=1.0 was given"),
        ({"seed": -1}, "seed=-1 was given"),
        ({"max_gib": math.nan}, "max_gib=nan was given"),
        ({"model": "model.uai"}, "spinbench.load('model.uai') reads one"),
    ],
)
def test_wrong_arguments(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpinbenchError) as error:
        spinbench.bracket(**{"model": grid(2, 2), **options})
    assert sentence in str(error.value)


def test_however_short_the_budget_there_is_an_upper_bound() -> None:
    found = spinbench.bracket(grid(20, 20, seed=1), "1 ms")
    assert found.upper is not None
    assert math.isfinite(found.upper.value)


def test_a_model_without_states_is_an_error() -> None:
    never = FactorGraph.from_log_tables([2], [((0,), [0.0, -math.inf]), ((0,), [-math.inf, 0.0])])
    with pytest.raises(ModelError):
        spinbench.bracket(never, "1 s")


class Idle(BoundSource):
    name, share = "idle", 0.1

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        yield Finding((LOWER,), by="idle")
        while True:
            time.sleep(1000)


class Refusing(BoundSource):
    name, share, assumed = "refusing", 0.1, True

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        raise UnsupportedError("it takes none")


class Able(BoundSource):
    name, share = "able", 0.1

    def find(self, request: BoundRequest) -> Iterator[Finding]:
        yield Finding((UPPER, PROBABLE), 2.0, 0.1, 0.1, True, "able")


class Last(Idle):
    name, share = "last", 0.0


def play(monkeypatch: pytest.MonkeyPatch, *actors: BoundSource) -> None:
    """Let these be all sources."""

    def load(*, assumed: bool) -> tuple[list[BoundSource], dict[str, str]]:
        return [actor for actor in actors if assumed or not actor.assumed], {}

    monkeypatch.setattr(bracket, "load_sources", load)


@pytest.fixture
def acting(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan of actors."""
    play(monkeypatch, Idle(), Refusing(), Able(), Last())


@pytest.mark.usefixtures("acting")
def test_nobody_takes_the_others_time() -> None:
    """Those who never end are ended, the last with the budget; else this never ends."""
    asked: dict[str, None] = {}
    found = spinbench.bracket(grid(2, 2), "2 s", assumed=True, progress=lambda known, who: asked.setdefault(who))
    assert list(asked) == ["idle", "able", "last"]
    assert (found.lower, found.upper, found.probable_upper) == (LOWER, UPPER, PROBABLE)
    assert found.delta == PROBABLE.delta
    assert (found.log_z, found.log_z_se, found.log_z_by, found.verdict) == (2.0, 0.1, "able", "resolved")
    assert found.refused["refusing"] == "it takes none"
    assert set(found.refused) == {"refusing"}, "whoever has told a bound is no refusal, however late it was ended"


@pytest.mark.usefixtures("acting")
def test_it_ends_once_the_gap_is_reached() -> None:
    found = spinbench.bracket(grid(2, 2), "2 s", gap=1.6)
    assert found.verdict == "resolved"
    assert "last" not in found.refused


def known(*findings: Finding, gap: float | None = None) -> Interval:
    return summarise(findings, gap, 1.0, 0.0, {}, "model")


def test_estimates_outside_the_bracket_do_not_count() -> None:
    bounds = Finding((LOWER, UPPER))
    assert known(bounds, Finding((), 3.5, 0.01, 0.01, True, "d")).log_z is None
    assert known(bounds, Finding((), 2.0, 0.2, 0.2, True, "d"), Finding((), 3.5, 0.01, 0.01, True, "e")).log_z_by == "d"
    assert (
        known(bounds, Finding((), 2.0, 0.01, 0.01, False, "d"), Finding((), 1.5, 0.3, 0.3, True, "e")).log_z_by == "e"
    )
    assert known(bounds, Finding((), 2.0, 5.0, 5.0, False, "d")).log_z is None


def test_what_is_assumed_is_told_and_counts_for_nothing() -> None:
    found = known(Finding((LOWER, UPPER)), Finding((Bound(1.5, "upper", "assumed", 1e-3, "d"),)), gap=1.0)
    assert (found.upper, found.probable_upper, found.delta, found.verdict) == (UPPER, UPPER, 0.0, "unresolved")
    assert "if tempering has mixed, at most 1.5 with probability 0.999 (d)" in found.sentences()


def test_who_assumes_is_asked_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    play(monkeypatch, Refusing(), Able())
    assert spinbench.bracket(grid(2, 2), "30 s").refused == {}
    assert spinbench.bracket(grid(2, 2), "30 s", assumed=True).refused == {"refusing": "it takes none"}


def test_looks_at_the_same_draws_share_their_delta() -> None:
    looks = [Finding((PROBABLE,), look=k) for k in (0, 0, 1)]
    assert known(*looks).delta == pytest.approx(2e-3)


def test_mixed_models_are_bracketed_from_both_sides() -> None:
    """Too dense for an exact answer: all that is said holds together."""
    found = spinbench.bracket(sherrington_kirkpatrick(60, 0.3), "5 s", seed=1)
    assert found.verdict != "exact"
    assert found.lower is not None
    assert found.upper is not None
    assert found.lower.value <= found.upper.value
    assert found.width < 1000


PLUGIN = """
from spinbench.api import Bound, BoundSource, Finding


class Largest(BoundSource):
    name, share, order = "largest", 0.1, 5

    def find(self, request):
        assert request.max_gib == 1.0
        total = sum(max(table.flatten()) for table in map(lambda f: f.log_table, request.model.factors))
        yield Finding((Bound(total + sum(map(math.log, request.model.cardinalities)), "upper", "certified"),))
        yield request.run("mf", 5)


class Broken(Largest):
    name = "broken"

    def find(self, request):
        raise KeyError("nothing")


class Nameless(BoundSource):
    share = 0.1
"""


def test_a_plugins_bounds_count_and_its_faults_cost_no_one_else_anything(install_plugin: Any) -> None:
    names = {"largest": "Largest", "broken": "Broken", "nameless": "Nameless", "wmb": "Largest"}
    install_plugin("spinbench_largest", f"import math\n{PLUGIN}", {"bounds": names})
    model = FactorGraph.from_log_tables([2, 2, 2], [((0, 1), [[0, 9], [3, 1]]), ((1, 2), [[0, 3], [3, 1]])])
    seen: list[str] = []
    found = spinbench.bracket(model, "20 s", progress=lambda known, who: seen.append(f"{who}: {known.upper}"))
    assert any(line.startswith("largest") and "by='largest'" in line for line in seen)
    assert found.verdict == "exact"
    assert found.refused["broken"].endswith("failed: KeyError: 'nothing'")
    assert "has name=None; both names have to be the same" in found.refused["nameless"]
    assert "rename it" in found.refused["wmb of spinbench-largest"]


def test_sources_are_asked_in_their_order_those_of_plugins_before_what_takes_the_rest(install_plugin: Any) -> None:
    source = PLUGIN.replace(", order", "").replace(", 5", "")
    install_plugin("spinbench_last", source, {"bounds": {"largest": "Largest"}})
    plan = [source.name for source in load_sources()[0]]
    assert plan == [
        *("best states", "mf", "exact", "gaussian_bound", "trw", "g_mf", "g_bp", "largest"),
        *("smc", "wmb_lower", "reverse annealing", "wmb"),
    ]
    assert sorted(plan) == sorted(plugins.entry_points("bounds"))
