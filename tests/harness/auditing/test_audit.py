"""Audits: draws of the law pass as often as they say, and what is wrong with others is found."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.auditing.statistics import autocorrelation_times, binomial_p_values
from spinbench.errors import SpinbenchError
from spinbench.models import FactorGraph, PairwiseModel, generators

GRID = generators.grid(3, 3, seed=1)
WELLS = PairwiseModel.from_spins(np.full(8, 0.02), [(i, j) for i in range(8) for j in range(i)], np.full(28, 0.4))
RNG = np.random.default_rng(0)
K_ARY = FactorGraph.from_log_tables(
    (3, 4, 2, 3),
    [(scope, RNG.normal(size=shape)) for scope, shape in (((0, 1), (3, 4)), ((1, 2), (4, 2)), ((2, 3), (2, 3)))],
)
DOC = Path(__file__).parents[3] / "docs" / "how-to" / "audit-samples.md"


def exact_draws(model: Any, count: int, seed: int, beta: float = 1.0) -> np.ndarray:
    """(count, N) independent ones, of p*^beta."""
    states = np.array(list(np.ndindex(*model.cardinalities)))
    logs = beta * model.log_weight(states)
    p = np.exp(logs - logs.max())
    return states[np.random.default_rng(seed).choice(len(states), count, p=p / p.sum())]


def chained(draws: np.ndarray, chains: int = 4) -> np.ndarray:
    """(N, C, D)."""
    return draws.reshape(chains, -1, draws.shape[1]).transpose(2, 0, 1)


def failed(found: spinbench.auditing.audit.Audit) -> set[str]:  # type: ignore[name-defined]
    return {check.name for check in found.checks if found.fails(check)}


@pytest.mark.parametrize("model", [GRID, K_ARY], ids=["grid", "K-ary"])
def test_exact_draws_fail_as_often_as_is_said(model: Any) -> None:
    found = [spinbench.audit(exact_draws(model, 1000, seed), model) for seed in range(25)]
    assert sum(not each.passes for each in found) <= 2  # 0.25 are expected; more than 2 have probability 0.002
    scores = np.array([(each.beta - 1) / each.beta_se for each in found])
    assert 0.7 < np.sqrt(np.mean(scores**2)) < 1.35
    assert {each.beta_by for each in found} == {"maximum likelihood"}


def test_exact_draws_in_chains_pass() -> None:
    found = [spinbench.audit(chained(exact_draws(GRID, 1000, seed)), GRID) for seed in range(20)]
    assert sum(not each.passes for each in found) <= 2
    assert all(0.9 < each.r_hat < 1.1 for each in found)


@pytest.mark.parametrize("beta", [0.8, 1.25])
def test_a_wrong_temperature_is_found_and_measured(beta: float) -> None:
    found = spinbench.audit(2 * exact_draws(GRID, 4000, 3, beta) - 1, GRID)
    assert "energy" in failed(found)
    assert abs(found.beta - beta) < 4 * found.beta_se < 0.2


def test_a_swapped_bit_is_found() -> None:
    draws = exact_draws(GRID, 2000, 5)
    draws[:, [0, 4]] = draws[:, [4, 0]]
    assert failed(spinbench.audit(draws, GRID)) >= {"marginals", "pairs", "states"}


def test_a_missed_mode_is_found() -> None:
    draws = exact_draws(WELLS, 4000, 7)
    kept = draws[draws.sum(axis=1) < 4]
    found = spinbench.audit(kept, WELLS)
    assert failed(found) >= {"marginals", "states", "heaviest state"}
    heaviest = next(check for check in found.checks if check.name == "heaviest state")
    assert "never occurs" in heaviest.detail


def test_one_stuck_chain_is_found() -> None:
    states = chained(exact_draws(GRID, 4000, 9), 8)
    states[:, 3] = states[:, 3, :1]
    found = spinbench.audit(states, GRID)
    assert "chains" in failed(found)
    assert "chain 3" in next(check.detail for check in found.checks if check.name == "chains")
    assert found.r_hat > 1.05


def test_chains_that_hardly_move_are_worth_few_draws() -> None:
    states = chained(exact_draws(GRID, 800, 11), 4)
    found = spinbench.audit(np.repeat(states, 10, axis=2), GRID)
    assert found.passes
    assert 500 < found.effective < 1200 < found.draws == 8000


def test_states_of_weight_zero_fail_at_once() -> None:
    model = FactorGraph.from_tables((2, 2), [((0, 1), [[1.0, 1.0], [1.0, 0.0]])])
    found = spinbench.audit([[0, 0], [1, 1]], model)
    assert (found.passes, [check.name for check in found.checks]) == (False, ["possible states"])


@pytest.mark.parametrize("beta", [1.0, 0.9])
def test_where_exact_answers_are_out_of_reach_neighbours_tell(beta: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinbench.auditing.audit.exact_answer", lambda model, seconds: None)
    monkeypatch.setattr("spinbench.auditing.audit.check_bracket", lambda *given: None)
    found = spinbench.audit(exact_draws(GRID, 4000, 13, beta), GRID)
    assert {check.name for check in found.checks} == {"conditionals", "temperature", "modes"}
    assert failed(found) == (set() if beta == 1.0 else {"conditionals", "temperature"} & failed(found))
    assert found.passes == (beta == 1.0)
    assert abs(found.beta - beta) < 4 * found.beta_se < 0.2
    assert found.beta_by == "maximum pseudo-likelihood"


def test_a_mode_that_is_missed_is_found_without_an_exact_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinbench.auditing.audit.exact_answer", lambda model, seconds: None)
    draws = exact_draws(WELLS, 4000, 7)
    found = spinbench.audit(draws[draws.sum(axis=1) < 4], WELLS, budget="1 s")
    assert failed(found) & {"modes", "heaviest state"}


def test_a_mode_that_probes_find_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spinbench.auditing.audit.exact_answer", lambda model, seconds: None)
    monkeypatch.setattr("spinbench.auditing.audit.check_bracket", lambda *given: None)
    draws = exact_draws(WELLS, 4000, 7)
    assert "modes" in failed(spinbench.audit(draws[draws.sum(axis=1) < 4], WELLS))
    assert spinbench.audit(draws, WELLS).passes


@pytest.mark.parametrize("field", [0.0, 0.1])
def test_half_of_a_large_symmetric_law_is_no_law(field: float) -> None:
    """Where no bound and no probe reaches, and the budget has time for some of the draws alone."""
    model = generators.torus(40, 40, 0.5, field)
    states = np.ones((1600, 4, 500), dtype=np.int8)
    states[np.random.default_rng(0).random(states.shape) < 0.05] = 0
    found = spinbench.audit(states, model, budget="1 s")
    assert ("symmetry" in {check.name for check in found.checks}) == (field == 0.0)
    assert ("symmetry" in failed(found)) == (field == 0.0)
    said = " ".join(found.sentences())
    assert "modes that the samples have missed were not looked for by probes of the model" in said
    assert "of the draws, evenly spaced, as the budget allows" in said


def test_what_is_asked_has_to_make_sense() -> None:
    for alpha in (0.0, 1.0, -1):
        with pytest.raises(SpinbenchError, match="a number between 0 and 1 is needed"):
            spinbench.audit(np.zeros((3, 9)), GRID, alpha=alpha)


def test_p_values_of_frequencies_are_exact() -> None:
    from scipy import stats

    for count in range(11):
        p = binomial_p_values(np.array(count / 10), np.array(0.3), np.array(10.0))
        wanted = 2 * min(stats.binom.cdf(count, 10, 0.3), stats.binom.sf(count - 1, 10, 0.3))
        assert p == pytest.approx(min(1.0, wanted))
    assert binomial_p_values(np.array([0.0, 0.1]), np.array(0.0), np.array(10.0)).tolist() == [1.0, 0.0]


def test_autocorrelation_times_are_those_of_an_autoregression() -> None:
    rng, rho = np.random.default_rng(1), 0.8
    noise = rng.normal(size=(2, 8, 20_000))
    series = np.zeros_like(noise)
    for t in range(1, noise.shape[-1]):
        series[..., t] = rho * series[..., t - 1] + noise[..., t]
    np.testing.assert_allclose(autocorrelation_times(series), (1 + rho) / (1 - rho), rtol=0.1)


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, draws, table = tmp_path / "m.npz", tmp_path / "s.csv", tmp_path / "rows.csv"
    spinbench.save(GRID, model)
    np.savetxt(draws, 2 * exact_draws(GRID, 1000, 1) - 1, "%d", ",")
    assert cli.main(["audit", str(draws), str(model), "--output", str(table)]) == 0
    told = capsys.readouterr().out
    assert "the samples pass" in told
    assert "spins of -1 and +1" in told
    lines = table.read_text().splitlines()
    assert lines[0] == "quantity,variables,states,observed,expected,z,p_value"
    assert len(lines) == 1 + GRID.num_variables + GRID.num_edges
    np.savetxt(draws, exact_draws(GRID, 1000, 1, 0.5), "%d", ",")
    assert cli.main(["audit", str(draws), str(model)]) == 1
    assert "fails" in capsys.readouterr().out
    assert cli.main(["audit", str(tmp_path / "none.npz"), str(model)]) == 2
    assert re.search(r"none.npz: there is no such file of samples", capsys.readouterr().err)


def test_the_help_ends_with_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        cli.main(["audit", "--help"])
    words = capsys.readouterr().out.split()
    assert " ".join(words).endswith(
        "An example: spinbench audit samples.npz my.uai --alpha 0.01 --output frequencies.csv"
    )


def test_the_page(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", DOC.read_text(), re.DOTALL)
    exec(code, {})
    assert capsys.readouterr().out.split() == re.findall(r"# (True|False)", code)
