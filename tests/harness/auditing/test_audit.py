"""Audits: what samples are read as; draws of the law pass as often as they say, what is wrong with others is found."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import dimod
import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.auditing.samples import read_samples
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


PAIR = PairwiseModel.from_edges([0.1, -0.4, 0.2], [(0, 1)], [0.5], labels=["a", "b", "c"])
PLAIN = PairwiseModel.from_edges([0.1, -0.4, 0.2], [(0, 1)], [0.5])
THREE_STATES = FactorGraph.from_log_tables((2, 3), [((0, 1), np.zeros((2, 3)))])
DRAWS = np.array([[0, 1, 0], [1, 1, 0], [1, 0, 0], [0, 0, 1]])
CHAINS = np.stack([DRAWS, DRAWS[::-1]]).transpose(2, 0, 1)


def write(path: Path, content: Any) -> Path:
    match path.suffix:
        case ".npz":
            np.savez(path, **content)
        case ".npy":
            np.save(path, content)
        case _:
            path.write_text(content)
    return path


def sample_set(spins: bool) -> dimod.SampleSet:
    states = 2 * DRAWS - 1 if spins else DRAWS
    return dimod.SampleSet.from_samples(
        (states[:, ::-1], ["c", "b", "a"]), "SPIN" if spins else "BINARY", energy=0.0, num_occurrences=[1, 2, 1, 1]
    )


@pytest.mark.parametrize("spins", [False, True])
@pytest.mark.parametrize("kind", ["draws", "turned", "npy", "npz", "csv", "csv of labels"])
def test_independent_draws(tmp_path: Path, kind: str, spins: bool) -> None:
    states = 2 * DRAWS - 1 if spins else DRAWS
    lines = [",".join(map(str, row)) for row in states.tolist()]
    sources: dict[str, Any] = {
        "draws": states,
        "turned": states.T,
        "npy": states,
        "npz": {"anything": states},
        "csv": "\n".join(lines),
        "csv of labels": "\n".join(["c,b,a", *(line[::-1] if not spins else line for line in lines)]),
    }
    source = sources[kind]
    if kind.startswith(("np", "csv")):
        source = write(tmp_path / f"s.{kind[:3]}", source)
    found = read_samples(source, PAIR)
    wanted = DRAWS[:, ::-1] if spins and kind == "csv of labels" else DRAWS
    np.testing.assert_array_equal(found.states[:, 0].T, wanted)
    assert not found.chained
    assert any("independent" in note for note in found.notes)
    assert ("spins of -1 and +1, which are states 0 and 1" in found.notes) == spins


@pytest.mark.parametrize("header", ["0,1,2", "2,1,0", "x2,x1,x0", "v[2],v[0],v[1]", "s3,s2,s1", "up,down,side"])
def test_columns_are_found_by_their_numbers(tmp_path: Path, header: str) -> None:
    path = write(tmp_path / "s.csv", "\n".join([header, *(",".join(map(str, row)) for row in DRAWS.tolist())]))
    order = [int(word.strip("xv[]s")) for word in header.split(",")] if any(map(str.isdigit, header)) else [0, 1, 2]
    np.testing.assert_array_equal(read_samples(path, PLAIN).states[np.array(order) - min(order), 0].T, DRAWS)


@pytest.mark.parametrize("kind", ["array", "npz of a run", "csv"])
def test_chains(tmp_path: Path, kind: str) -> None:
    rows = ["chain,draw,a,b,c"]
    rows += [f"{c},{d},{','.join(map(str, CHAINS[:, c, d]))}" for d in reversed(range(4)) for c in (1, 0)]
    sources: dict[str, Any] = {
        "array": CHAINS,
        "npz of a run": {"states": CHAINS.transpose(2, 1, 0)},
        "csv": "\n".join(rows),
    }
    source = sources[kind] if kind == "array" else write(tmp_path / f"s.{kind[:3]}", sources[kind])
    found = read_samples(source, PAIR)
    np.testing.assert_array_equal(found.states, CHAINS)
    assert found.chained


@pytest.mark.parametrize("spins", [False, True])
def test_sample_sets_count_rows_as_often_as_they_occurred(tmp_path: Path, spins: bool) -> None:
    found = sample_set(spins)
    path = tmp_path / "set.json"
    path.write_text(json.dumps(found.to_serializable()))
    for source in (found, path):
        read = read_samples(source, PAIR)
        np.testing.assert_array_equal(read.states[:, 0].T, DRAWS[[0, 1, 1, 2, 3]])


def test_stored_states_of_a_result_and_of_arviz(tmp_path: Path) -> None:
    result = spinbench.run(PAIR, "gibbs", "numpy", 60, chains=4, keep=20)
    wanted = np.asarray(result.states).transpose(2, 0, 1)
    data = result.to_arviz()
    path = tmp_path / "data.nc"
    try:
        data.to_netcdf(path)
    except (ImportError, ValueError):  # neither netCDF4 nor h5netcdf is installed
        path = None  # type: ignore[assignment]
    for source in (result, data, *([path] if path else [])):
        read = read_samples(source, PAIR)
        np.testing.assert_array_equal(read.states, wanted)
        assert read.chained


@pytest.mark.parametrize(
    ("model", "source", "words"),
    [
        (PAIR, DRAWS[:, :2], "the samples have shape (4, 2), by draw, variable; the model has 3 variables"),
        (PAIR, DRAWS + 1, "variable 0 is 2 in draw 1, where -1 and +1, or 0 and 1, is needed"),
        (PAIR, DRAWS * 0.5, "variable 0 is 0.5 in draw 1; states are whole numbers"),
        (PAIR, DRAWS * np.nan, "variable 0 is nan in draw 0"),
        (PAIR, DRAWS.astype(str), "of type <U21; numbers are needed"),
        (PAIR, np.zeros((0, 3)), "there are 0 numbers"),
        (PAIR, np.zeros(3), "have shape (3,); (draws, 3) or (3, chains, draws) is needed"),
        (PAIR, [[0, 1], [0]], "rows have different lengths"),
        (
            PAIR,
            np.full((4, 3), 2**63, dtype=np.uint64),
            "variable 0 is 9.22337e+18 in draw 0; states are whole numbers",
        ),
        (THREE_STATES, -np.ones((3, 2)), "variable 0 is -1 in draw 0, where 0 to 1 is needed"),
        (PAIR, "nowhere.npz", "nowhere.npz: there is no such file of samples"),
    ],
)
def test_what_is_no_samples(model: Any, source: Any, words: str) -> None:
    with pytest.raises(SpinbenchError) as info:
        read_samples(source, model)
    assert words in str(info.value)


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("s.txt", "0 1 0", "samples are read from .npz, .npy, .csv, .json, .nc files"),
        ("s.csv", "a,b\n1,0\n0\n", "draw 1 is '0'; 2 numbers are needed"),
        ("s.csv", "a,b,x\n1,0,0\n", "no column is named as the model's variable 'c'"),
        ("s.csv", "chain,a,b,c\n0,1,1,1\n0,1,1,1\n1,1,1,1\n", "chains have 1 to 2 draws; as many of each are needed"),
        ("s.csv", "a,b,a,c\n1,0,1,1\n", "two columns are named 'a'"),
        ("s.csv", "chain,a,b,c\n0,1,1,1\nnan,1,1,1\n", "the chain of line 1 is nan"),
        ("s.csv", "draw,chain,a,b,c\n0,0,1,1,1\n0,0,1,0,1\n", "the number of a draw occurs twice in one chain"),
        ("s.csv", "draw,a,b,c\n3,1,1,1\n3,1,0,1\n", "occurs twice in one chain; a column chain tells chains apart"),
        ("s.csv", "", "the file is empty"),
        ("s.json", "{}", "this JSON is no dimod SampleSet"),
        ("s.csv", "a;b;c\n1;0;1\n", "no line has numbers alone, with commas between them"),
        ("s.csv", "a,b,c\n", "no line has numbers alone"),
        pytest.param("s.csv", "1," * 70_000 + "x" * 140_000, "no samples can be read of this file", id="a long field"),
        ("s.json", "{", "no samples can be read of this file"),
        pytest.param("s.json", "[" * 100_000, "no samples can be read of this file", id="many brackets"),
        ("s.npz", {"x": DRAWS, "y": DRAWS}, "the arrays are x, y; one of them has to be named samples"),
        ("s.npy", np.array([{}]), "no samples can be read of this file"),
    ],
)
def test_files_that_hold_none(tmp_path: Path, name: str, content: Any, words: str) -> None:
    with pytest.raises(SpinbenchError) as info:
        read_samples(write(tmp_path / name, content), PAIR)
    assert words in str(info.value)
    assert "\n" not in str(info.value)


@pytest.mark.parametrize("harm", ["half", "a byte", "another member"])
def test_damaged_archives_are_refused_in_a_sentence(tmp_path: Path, harm: str) -> None:
    path = write(tmp_path / "s.npz", {"samples": DRAWS})
    whole = bytearray(path.read_bytes())
    if harm == "half":
        path.write_bytes(whole[: len(whole) // 2])
    elif harm == "a byte":
        whole[whole.index(b"NUMPY") + 130] ^= 255
        path.write_bytes(whole)
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("readme.txt", "x")
    with pytest.raises(SpinbenchError, match=r"no samples can be read of this file|readme\.txt is no array") as info:
        read_samples(path, PAIR)
    assert "\n" not in str(info.value)
