"""Tables across models and sentences on what to use, from records made by hand."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from profile_records import record
from small_records import typed

from spinbench.reporting.profiles import tables
from spinbench.reporting.profiles.profile import Profile, profile

FEATURES = {"variables": 5, "factors": 7, "states": 3, "order": 2, "zeros": 0.25}


def run(
    model: str, method: str, rmse: float | None, *, backend: str = "numba", cpu: float = 0.9, **settings: Any
) -> dict[str, Any]:
    """A run of one CPU second, on a model whose trivial answer is off by 2 nats and a Hellinger distance of 0.4."""
    made = copy.deepcopy(record(model, method, rmse, kind=model.rstrip("0123456789"), **settings))
    made["axes"]["backend"] = made["config"]["backend"]["name"] = backend
    made["config"]["budget"]["cpu"] = True
    made["features"] = {**FEATURES, "trivial_log_z_error": 2.0, "trivial_hellinger": 0.4}
    made["reference"] = {"log_z": 1.25, "method": "bucket_tree"}
    if made["result"] is not None:
        made["result"] |= {"load": {"cpu_seconds": cpu}, "log_z": 1.0}
        made["metrics"]["hellinger"] = {"value": 2 * (rmse or 0.0)}
    return made


def table(found: Profile, title: str) -> tables.Table:
    return next(each for each in found.tables if each.title.startswith(title))


@pytest.mark.parametrize(
    ("error", "trivial", "score"),
    [(0.0, 2.0, 100.0), (0.5, 2.0, 75.0), (3.0, 2.0, 0.0), (None, 2.0, 0.0), (0.0, 0.0, 100.0), (0.1, 0.0, 0.0)],
)
def test_the_score_of_the_competition(error: float | None, trivial: float, score: float) -> None:
    assert tables.uai_score(error, trivial) == pytest.approx(score)


def test_scores_are_means_over_seeds_and_models() -> None:
    runs = [
        *(run("a", "gibbs", error, off=off, seed=seed) for seed, (error, off) in enumerate([(0.1, 1.0), (0.2, 2.5)])),
        run("b", "gibbs", 0.05, off=0.5, verdict="log Z unresolved"),
        run("a", "wmb", None, off=0.2),
    ]
    found = profile(typed(runs))
    scores = table(found, "Scores of the UAI competitions after 1 CPU s")
    assert scores.heads == ["solver", "PR, 2 models", "95 %", "MAR, 2 models", "95 %"]
    # PR: (50 + 0) / 2 on a, 75 on b. MAR: (50 + 0) / 2 on a, 75 on b; a verdict does not matter.
    assert scores.lines[0][0] == "gibbs.numba"
    by_solver = {line[0]: (line[1], line[3]) for line in scores.lines}
    assert by_solver == {"gibbs.numba": ("50.0", "50.0"), "wmb.numba": ("45.0", "50.0")}


def test_exact_solvers_count_where_they_end_in_time() -> None:
    runs = [
        run("a", "gibbs", 0.1),
        run("a", "exact", 0.0, off=0.0, cpu=0.5),
        run("b", "gibbs", 0.1),
        run("b", "exact", 0.0, off=0.0, cpu=4.0),
        run("a", "exact", 0.0, off=None, backend="pyagrum"),
        run("a", "exact", None, backend="pgmpy", status="failed"),
        run("b", "exact", None, backend="pgmpy", status="skipped"),
    ]
    found = profile(typed(runs))
    assert table(found, "Exact solvers").lines == [
        ["exact.numba", "2", "1", "2", "2", "2.2", "", ""],
        ["exact.pyagrum", "1", "1", "1", "1", "0.9", "", ""],
        ["exact.pgmpy", "2", "0", "0", "0", "–", "1", "1"],
    ]
    scores = {line[0]: line[1] for line in table(found, "Scores").lines}
    assert scores["exact.numba"] == "50.0", "of two models one in a CPU second"


def test_what_each_solver_adds() -> None:
    errors = {"gibbs": (0.01, 0.1), "pt": (0.1, 0.01), "bp": (1.0, 1.0)}
    runs = [run(f"m{i}", name, errors[name][i]) for name in errors for i in range(2)]
    found = table(profile(typed(runs)), "What each solver adds, RMSE of the marginals after 1 CPU s")
    assert "Friedman" in found.title
    lines = {line[0]: line[1:] for line in found.lines}
    assert lines["virtual best"][0] == "2.00"
    # On one model the second decimal is its own, of the first one half.
    assert (lines["gibbs.numba"][0], lines["gibbs.numba"][1], lines["gibbs.numba"][3]) == ("1.50", "1.000", "0.500")
    assert lines["bp.numba"][:2] == ["0.00", "0.000"]


def test_par2_and_the_models() -> None:
    runs = [run("a", "gibbs", 0.001, reached=0.25), run("b", "gibbs", 0.5, off=0.01)]
    found = profile(typed(runs))
    (line,) = table(found, "seconds to an RMSE of 1 % within 1 s").lines
    assert (line[0], line[1]) == ("gibbs.numba", "1 of 2")
    # Half of the time of a, and twice the limit for b.
    assert float(line[2]) == pytest.approx((0.25 + 2.0) / 2, rel=0.1)
    assert table(found, "Models").lines == [
        ["a", "a", "5", "7", "3", "2", "25 %", "1.250000", "bucket_tree", "1/1, 0/1"],
        ["b", "b", "5", "7", "3", "2", "25 %", "1.250000", "bucket_tree", "0/1, 1/1"],
    ]


def test_a_better_library_is_named_first() -> None:
    runs = [
        *(run(f"grid{i}", "gibbs", 0.1) for i in range(2)),
        *(run(f"grid{i}", "gibbs", 0.01, backend="dwave", off=None) for i in range(2)),
        *(run(f"glass{i}", "gibbs", 0.001) for i in range(3)),
        *(run(f"glass{i}", "gibbs", None, backend="dwave", status="skipped") for i in range(3)),
    ]
    sentences = profile(typed(runs)).recommendations
    assert sentences[0] == (
        "On grid, gibbs.dwave, another library, is better than all methods here in RMSE of the marginals after 1 CPU "
        "s: 2.00 right decimals, gibbs.numba 1.00 (means over 2 models)."
    )
    assert sentences[1] == (
        "For RMSE of the marginals after 1 CPU s, gibbs.numba has the most right decimals, 2.20, where the best solver "
        "of each model has 2.60: best or tied on 3 of 5 models, within twice the best on 60 %, within ten times on 100 "
        "%."
    )
    assert "gibbs.dwave in 2 of 5 runs (3 refused)" in sentences[-1]


def test_solvers_that_share_the_first_place_are_counted() -> None:
    (first, *_) = profile(typed([run("a", name, 0.01) for name in ("gibbs", "pt", "mf")])).recommendations
    assert "has the most right decimals (as many as 2 others), 2.00" in first


def test_backends_of_others_need_not_be_installed() -> None:
    runs = [run("a", "gibbs", 0.1, backend="theirs"), run("a", "gibbs", 0.01)]
    assert "gibbs.numba has the most" in profile(typed(runs)).recommendations[0]


def test_records_without_features_have_no_scores() -> None:
    runs = [record("a", "gibbs", 0.1), record("b", "gibbs", 0.1)]
    assert [each.title for each in profile(typed(runs)).tables] == ["seconds to an RMSE of 1 % within 1 s"]
