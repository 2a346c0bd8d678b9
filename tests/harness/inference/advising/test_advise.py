"""`spinbench.advise`: exact where it fits, else a race; the winner can be run again."""

from __future__ import annotations

import shlex
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import BudgetError, IntractableError, SpinbenchError, UnknownNameError
from spinbench.inference.advising import candidates, portfolio
from spinbench.inference.advising.advice import sweep_command
from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.budget import Budget
from spinbench.methods.blocks.blocks import Blocks
from spinbench.models import PairwiseModel, specs
from spinbench.reference.orders import goatd
from spinbench.sweeping import composition

CANDIDATES = ["gibbs.numpy", "pt.numpy", "bp.numpy"]


@pytest.fixture(scope="module")
def ring() -> PairwiseModel:
    return specs.build({"name": "ring", "n": 12})  # type: ignore[return-value]


def test_the_exact_answer_where_it_fits(ring: PairwiseModel) -> None:
    found = spinbench.advise(ring, "20 s", "log_z")
    assert (found.resolved, found.error, found.race, found.inexact) == (True, 0.0, (), "")
    assert found.answer.log_z == spinbench.exact(ring, cache=False).log_z
    assert eval(found.python, {"spinbench": spinbench, "model": ring}).log_z == found.answer.log_z


@pytest.mark.parametrize("target", ["marginals", "log_z"])
def test_the_winner_of_a_race_runs_again_bit_for_bit(ring: PairwiseModel, target: Any) -> None:
    found = spinbench.advise(ring, "6 s", target, CANDIDATES, 5)
    truth = spinbench.exact(ring, cache=False)
    again = eval(found.python, {"spinbench": spinbench, "model": ring})
    assert again.log_z == found.answer.log_z
    assert np.array_equal(again.marginals, found.answer.marginals)
    won = [entry for entry in found.race if entry.fate == "won"]
    assert [(entry.candidate, entry.samples) for entry in won] == [(f"{again.method}.numpy", again.samples)]
    off = abs(found.answer.log_z - truth.log_z) if target == "log_z" else np.std(again.marginals - truth.marginals)
    assert off < 4 * found.error + 1e-6
    assert found.verdict in repr(found)
    (below,) = (bound for bound in found.answer.bounds if bound.side == "lower")
    assert below.by == "best states"
    assert below.value < truth.log_z


def test_a_command_names_the_cell() -> None:
    candidate = Candidate("blocks", "numba", {"size": 4096})
    source = {"model": "file", "model.path": "my model(1).uai"}
    words = shlex.split(sweep_command(source, candidate, Budget(samples=7, burn_in=3), 16, 2))
    assert words[:2] == ["spinbench", "sweep"]
    cell = composition.plan(words[2:], multirun=False).config
    assert (cell.model.name, cell.model.path, cell.method.name, cell.method.size) == (
        "file",
        "my model(1).uai",
        "blocks",
        4096,
    )
    assert (cell.budget.samples, cell.budget.burn_in, cell.chains, cell.seed) == (7, 3, 16, 2)


@pytest.mark.parametrize(
    ("spec", "seconds", "message"),
    [
        ({"name": "sherrington_kirkpatrick", "n": 60}, 1.0, "meet width 59 or more, which takes at least 8 EiB"),
        ({"name": "sherrington_kirkpatrick", "n": 18}, 1e-9, r"would take .* and 1e-09 s \(budget\)"),
        ({"name": "random_regular", "n": 400, "seed": 1}, 60.0, r"meets width \d+ and would take .*iB of memory"),
        ({"name": "grid", "rows": 60, "cols": 60, "seed": 1}, 60.0, r"meets width \d+ and would take .*iB of memory"),
    ],
)
def test_what_is_too_wide_or_takes_too_long_is_not_begun(
    spec: dict[str, Any], seconds: float, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no order is searched for long."""
    searched = []
    portfolio_orders = goatd.portfolio_orders

    def record(*arguments: Any) -> Any:
        searched.append(arguments[-1])
        return portfolio_orders(*arguments)

    monkeypatch.setattr(goatd, "portfolio_orders", record)
    with pytest.raises(IntractableError, match=message):
        spinbench.exact(specs.build(spec), budget=f"{seconds} s")
    assert sum(searched) <= 1


def test_candidates_are_names_pairs_and_methods() -> None:
    found, exact = candidates.parse(
        ["exact", "gibbs", "gibbs", ("pt", "numpy"), (Blocks(size=64), "numpy"), "bp.jax"], ()
    )
    assert exact
    (one,), exact = candidates.parse([("wmb", {"ibound": 6})], ())
    assert (one.method, dict(one.settings), exact) == ("wmb", {"ibound": 6}, False)
    assert [one.label for one in found] == ["gibbs.numba", "pt.numpy", "blocks(size=64).numpy", "bp.jax"]
    assert found[2].method_with_settings == Blocks(size=64)
    other = found[0].without_compilation()
    assert other is not None
    assert other.label == "gibbs.numpy"
    assert other.without_compilation() is None
    assert {one.name_with_settings for one in candidates.default(portfolio.read_table().methods)} >= {
        "gibbs",
        "wmb",
        "bp",
        "pt",
        "blocks(size=4096)",
    }


@pytest.mark.parametrize(
    ("given", "error", "sentence"),
    [
        ({"budget": "100"}, BudgetError, "advise takes a budget in seconds"),
        ({"target": "modes"}, SpinbenchError, "marginals and log_z are allowed"),
        ({"candidates": "gibbs"}, SpinbenchError, "a list of methods is needed"),
        ({"candidates": ["gibs"]}, UnknownNameError, "did you mean gibbs"),
        ({"candidates": ["block_gibbs.elsewhere"]}, UnknownNameError, "elsewhere"),
        ({"candidates": [3]}, SpinbenchError, "a name such as 'gibbs'"),
        ({"seed": -1}, SpinbenchError, "seed=-1"),
        ({"candidates": ["block_gibbs.numpy"], "budget": "1 s"}, SpinbenchError, "no candidate gave an answer"),
    ],
)
def test_wrong_input_is_one_sentence(given: dict[str, Any], error: type[Exception], sentence: str) -> None:
    triple = spinbench.FactorGraph.from_tables((2, 2, 2), [((0, 1, 2), np.arange(1.0, 9.0))], name="triple")
    with pytest.raises(error, match=sentence):
        spinbench.advise(triple, **given)


def test_a_race_follows_where_the_exact_answer_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPINBENCH_MAX_GIB", "1e-8")
    wide = specs.build({"name": "ring", "n": 13})
    found = spinbench.advise(wide, "6 s", candidates=["exact", "gibbs.numpy", "pt.numpy"])
    assert "10 bytes is allowed (max_gib)" in found.inexact
    assert {entry.candidate for entry in found.race} == {"gibbs.numpy", "pt.numpy"}
    assert found.answer.method in ("gibbs", "pt")
