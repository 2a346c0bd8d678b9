"""Judging without the truth: who is believed, who is contradicted, what a bracket rules out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import spinbench
from spinbench.api.bounds import Bound, Grade
from spinbench.inference.advising import brackets, exact_and_bounds, ranking
from spinbench.inference.advising.advice import conclude, narrow_bracket
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.ranking import View
from spinbench.models import FactorGraph, PairwiseModel

RNG = np.random.default_rng(3)
TRUTH = RNG.uniform(0.1, 0.9, 40)


def view(method: str, error: float, *, claim: float | None = None, shift: float = 0.0, doubt: str = "") -> View:
    """Marginals with an error and an offset; it claims the error, unless it is told what to claim."""
    values = TRUTH + shift + error * np.random.default_rng(len(method)).standard_normal(len(TRUTH))
    square = (error if claim is None else claim) ** 2
    return View(Candidate(method, "numpy"), values, square, believed=not doubt, exact=False, doubt=doubt)


def fixed(error: float, method: str = "bp") -> View:
    """Of an iteration, which claims nothing."""
    return replace(view(method, error), claim=None)


def test_the_best_of_what_is_believed_wins_and_others_agree() -> None:
    views = ranking.order([view("gibbs", 0.02), view("pt", 0.005), view("smc", 0.01)])
    assert [v.candidate.method for v in views] == ["pt", "smc", "gibbs"]
    assert conclude(views, 1.0, "marginals").resolved


def test_what_is_not_believed_never_stands_before_what_is() -> None:
    views = ranking.order([view("gibbs", 1e-4, doubt="marginals not mixed"), view("pt", 0.1)])
    assert views[0].candidate.method == "pt"
    alone = conclude(ranking.order([view("gibbs", 1e-4, doubt="marginals not mixed")]), 1.0, "marginals")
    assert not alone.resolved
    assert "marginals not mixed" in alone.sentence


def test_a_contradiction_is_named_and_unresolved() -> None:
    views = ranking.order([view("gibbs", 0.002, shift=0.1), view("pt", 0.004)])
    found = conclude(views, 10.0, "marginals")
    assert not found.resolved
    assert "gibbs.numpy" in found.sentence
    assert "pt.numpy" in found.sentence
    assert "40 s" in found.next


def test_one_kind_is_no_witness_for_itself() -> None:
    found = conclude(ranking.order([view("gibbs", 0.002), view("blocks", 0.002)]), 1.0, "marginals")
    assert not found.resolved
    assert "nobody of another kind" in found.sentence


def test_a_witness_that_would_see_nothing_bears_nobody_out() -> None:
    sharp = [view("gibbs", 0.002), view("pt", 0.04)]
    blunt = [view("gibbs", 0.002), view("pt", 0.04, claim=0.2)]
    both_blunt = [view("gibbs", 0.1), view("pt", 0.1, claim=0.2)]
    found = [conclude(ranking.order(views), 1.0, "marginals").resolved for views in (sharp, blunt, both_blunt)]
    assert found == [True, False, True]


def test_who_is_contradicted_by_two_that_agree_loses_to_them() -> None:
    liar = view("gibbs", 0.001, shift=0.2)
    views = ranking.order([liar, view("pt", 0.01), view("smc", 0.012)])
    assert views[0].candidate.method == "pt"
    assert ranking.score(liar, views) > 1e-4 > liar.own


def test_a_fixed_point_wins_only_beside_somebody_who_is_believed() -> None:
    alone = ranking.order([fixed(1e-6), view("gibbs", 0.01, doubt="marginals too short")])
    assert not ranking.is_trusted(alone[0], alone)
    assert np.isinf(ranking.score(fixed(1e-6), [fixed(1e-6)]))
    beside = ranking.order([fixed(1e-6), view("gibbs", 0.01)])
    assert beside[0].candidate.method == "bp"
    wrong = ranking.order([fixed(0.3), view("gibbs", 0.01)])
    assert wrong[0].candidate.method == "gibbs"


def test_log_z_beyond_a_certified_bound_is_not_believed() -> None:
    low = View(Candidate("gibbs", "numpy"), np.array([10.0]), 1e-4, believed=True, exact=False, doubt="")
    result = spinbench.exact(PairwiseModel.from_edges([0.0, 0.0], [(0, 1)], [1.0]), cache=False)
    inside = replace(result, bounds=(Bound(9.97, "upper", "certified"),))
    outside = replace(result, bounds=(Bound(9.9, "upper", "certified"), Bound(9.95, "upper", "certified")))
    assert brackets.judge_by_bounds(low, brackets.tightest([inside])).believed
    assert brackets.judge_by_bounds(low, brackets.tightest([outside])).doubt == "outside the certified bracket"
    twice = [replace(result, bounds=(Bound(11.0 + k, "upper", "probable", 5e-4, "wmb"),)) for k in (0, 1)]
    (bound,) = brackets.tightest(twice)
    assert (bound.value, bound.delta) == (11.0, 1e-3)


@pytest.mark.parametrize(
    ("grade", "half", "level"),
    [("certified", 0.3, "certified"), ("probable", 0.07, "bounded"), ("certified", 0.6, None), ("assumed", 0.01, None)],
)
def test_a_narrow_bracket_needs_no_witness(grade: Grade, half: float, level: str | None) -> None:
    alone = View(Candidate("wmb", "numba"), np.array([10.0]), 1e-4, believed=True, exact=False, doubt="")
    exact = spinbench.exact(PairwiseModel.from_edges([0.0, 0.0], [(0, 1)], [1.0]), cache=False)
    bounds = (Bound(10.0 - half, "lower", grade, 5e-4), Bound(10.0 + half, "upper", grade, 5e-4))
    answer = replace(exact, log_z=10.0, log_z_kind="estimate", bounds=bounds)
    bracket = narrow_bracket(answer, "log_z")
    assert (None if bracket is None else bracket.level) == level
    assert narrow_bracket(answer, "marginals") is None
    assert conclude([alone], 1.0, "log_z", bracket).resolved == (level is not None)


def test_log_z_below_what_heavy_states_weigh_is_not_believed() -> None:
    """As of a run that has missed the mode, and whose witnesses have, too."""
    ferromagnet = PairwiseModel.from_edges([-3.9, -4.0, -4.0, -4.0], [(0, 1), (1, 2), (2, 3), (0, 3)], [6.0] * 4)
    known = exact_and_bounds.quick_bounds(ferromagnet, 0, 600.0)
    low = View(Candidate("gibbs", "numpy"), np.array([0.1]), 1e-4, believed=True, exact=False, doubt="")
    assert brackets.judge_by_bounds(low, brackets.tightest([], known)).doubt == "outside the certified bracket"
    right = replace(low, values=np.array([spinbench.exact(ferromagnet, cache=False).log_z]))
    assert brackets.judge_by_bounds(right, brackets.tightest([], known)).believed


@pytest.mark.parametrize(("low", "said"), [(0.0, ""), (9.0, "log Z outside the probable bracket")])
def test_an_answer_whose_log_z_contradicts_the_bracket_beside_it_says_so(low: float, said: str) -> None:
    """Of a race for marginals, too, whose winner is judged by these alone."""
    exact = spinbench.exact(PairwiseModel.from_edges([0.0, 0.0], [(0, 1)], [1.0]), cache=False)
    for kind, status in (("estimate", "ok"), ("estimate", "marginals not mixed"), ("lower", "ok")):
        result = replace(exact, log_z=8.0, log_z_se=None, log_z_error_bound=None, log_z_kind=kind, status=status)
        answer = brackets.attach_bounds(
            Candidate("bp", "numpy"), result, (Bound(low, "lower", "probable", 1e-3, "wmb"),)
        )
        words = [word for word in (status if status != "ok" else "", said if kind == "estimate" else "") if word]
        assert answer.status == (", ".join(words) or "ok")
        assert len(answer.bounds) == 1


@pytest.mark.parametrize(
    ("status", "believed"), [("ok", True), ("log Z unresolved", True), ("marginals not mixed", False)]
)
def test_doubts_count_for_the_target_they_are_of(status: str, believed: bool) -> None:
    model = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])
    result = replace(spinbench.run(model, "gibbs", "numpy", 64, seed=1), status=status)
    found = ranking.view(Candidate("gibbs", "numpy"), result, "marginals")
    assert found is not None
    assert found.believed is believed
    of_log_z = ranking.view(Candidate("gibbs", "numpy"), result, "log_z")
    assert of_log_z is not None
    assert of_log_z.believed is (status == "ok")


def test_what_claims_nothing_of_log_z_stands_behind_what_does() -> None:
    def of_log_z(method: str, value: float, claim: float) -> View:
        return View(Candidate(method, "numpy"), np.array([value]), claim, believed=False, exact=False, doubt="unsure")

    views = ranking.order([of_log_z("gibbs", 1.0, np.inf), of_log_z("smc", 2.0, 9.0), view_of_one("pt", 2.1)])
    assert [one.candidate.method for one in views] == ["pt", "smc", "gibbs"]
    assert np.isinf(ranking.score(views[2], views))
    model = PairwiseModel.from_edges([0.1, -0.4], [(0, 1)], [0.5])
    result = replace(spinbench.run(model, "gibbs", "numpy", 64), log_z_error_bound=np.inf, status="log Z unresolved")
    found = ranking.view(Candidate("gibbs", "numpy"), result, "log_z")
    assert found is not None
    assert found.claim == np.inf


def view_of_one(method: str, value: float) -> View:
    """Of log Z, which is believed."""
    return View(Candidate(method, "numpy"), np.array([value]), 0.01, believed=True, exact=False, doubt="")


def test_marginals_of_several_states_are_laid_flat() -> None:
    model = FactorGraph.from_log_tables((3, 2), [((0, 1), np.arange(6.0).reshape(3, 2))])
    assert ranking.flat(spinbench.exact(model).marginals) == pytest.approx(
        np.concatenate(spinbench.exact(model).marginals)
    )
    assert ranking.flat([]).size == 0
    found = spinbench.advise(model, budget="3 s", candidates=["gibbs.numpy", "blocks.numpy"])
    assert [len(p) for p in found.answer.marginals] == [3, 2]


@pytest.mark.parametrize(
    ("value", "claim", "square"), [(4.0, None, 100.0), (9.0, np.inf, 100.0), (9.0, 0.01, 0.01), (-3.0, 0.01, 676.0)]
)
def test_an_estimate_that_is_not_believed_is_as_far_off_as_its_bracket_allows(
    value: float, claim: float | None, square: float
) -> None:
    bounds = (Bound(0.0, "lower", "probable", 5e-4), Bound(10.0, "upper", "certified"))
    doubted = View(Candidate("wmb", "numba"), np.array([value]), claim, believed=False, exact=False, doubt="too short")
    assert brackets.judge_by_bounds(doubted, bounds).claim == square
    sure = replace(doubted, claim=1e-4, believed=True, doubt="")
    assert brackets.judge_by_bounds(sure, bounds).believed == (value >= 0)


def test_who_has_only_bounds_says_what_lies_between_them() -> None:
    candidate = Candidate("wmb", "numba")
    upper, lower = Bound(10.0, "upper", "certified"), Bound(-2.0, "lower", "certified")
    between = brackets.view_of_bounds(candidate, (upper, lower))
    assert (between.values[0], between.claim, between.believed) == (4.0, 24.0**2, False)
    alone = brackets.view_of_bounds(candidate, (replace(upper, value=-5.0),))
    assert (alone.values[0], alone.claim) == (-5.0, np.inf)


@pytest.mark.parametrize("pair", [("gibbs", "metropolis"), ("blocks", "zanella"), ("pt", "tempered_transitions")])
def test_what_errs_alike_bears_nobody_out(pair: tuple[str, str]) -> None:
    """Chains of single changes stay in the same part of the states."""
    told = [View(Candidate(name, "numpy"), np.zeros(3), 1e-6, believed=True, exact=False, doubt="") for name in pair]
    assert ranking.witnesses(told, told[0]) == []
    assert not conclude(told, 1.0, "marginals").resolved


def test_a_doubted_estimate_within_the_bracket_stands_before_its_middle_and_who_is_outside_last() -> None:
    bounds = (Bound(0.0, "lower", "certified"), Bound(200.0, "upper", "certified"))
    doubted = View(
        Candidate("gibbs", "numba"), np.array([3.0]), np.inf, believed=False, exact=False, doubt="unresolved"
    )
    outside = replace(doubted, candidate=Candidate("pt", "numba"), values=np.array([-1.0]), claim=0.01)
    alone = brackets.view_of_bounds(Candidate("wmb", "numba"), bounds)
    views = ranking.order([brackets.judge_by_bounds(each, bounds) for each in (outside, alone, doubted)])
    assert [view.candidate.method for view in views] == ["gibbs", "wmb", "pt"]
    assert brackets.largest_error(3.0, bounds) == 197.0
