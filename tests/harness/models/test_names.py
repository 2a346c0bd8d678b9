"""Names of variables and states: kept by readers, taken as evidence, and shown beside answers."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest

import spinbench
from spinbench.errors import ModelError, SpinbenchError
from spinbench.foundation.overrides import is_assignment
from spinbench.models import FactorGraph, condition, simplify, to_factor_graph, to_pairwise

BIF = """network unknown { }
variable rain { type discrete [ 2 ] { yes, no }; }
variable grass { type discrete [ 3 ] { dry, damp, wet }; }
probability ( rain ) { table 0.2, 0.8; }
probability ( grass | rain ) { (yes) 0.1, 0.3, 0.6; (no) 0.7, 0.2, 0.1; }
"""
WET = math.log(0.2 * 0.6 + 0.8 * 0.1)
STATES = {"rain": ("yes", "no"), "grass": ("dry", "damp", "wet")}


@pytest.fixture
def rain(tmp_path: Path) -> FactorGraph:
    file = tmp_path / "rain.bif"
    file.write_text(BIF)
    model = spinbench.load(file)
    assert isinstance(model, FactorGraph)
    return model


def graph(**options: Any) -> FactorGraph:
    """Two variables, of two and three states, of weights 1 to 6."""
    return FactorGraph.from_tables([2, 3], [((0, 1), [1, 2, 3, 4, 5, 6])], **options)


def test_models_that_are_made_of_a_model_keep_its_names(rain: FactorGraph, tmp_path: Path) -> None:
    pairwise, observed = to_pairwise(rain), condition(rain, {"grass": 2})
    spinbench.save(pairwise, tmp_path / "pairwise.npz")
    spinbench.save(rain, tmp_path / "rain.npz")
    models = [rain, pairwise, to_factor_graph(pairwise), observed, simplify(rain), simplify(observed)]
    models.append(spinbench.load(tmp_path / "rain.npz"))
    assert [dict(model.state_names) for model in models] == [STATES] * len(models)


def test_names_of_binary_variables_are_kept_in_npz(tmp_path: Path) -> None:
    model = to_pairwise(FactorGraph.from_tables([2], [((0,), [1, 2])], labels="a", state_names={"a": ("off", "on")}))
    spinbench.save(model, tmp_path / "a.npz")
    assert spinbench.load(tmp_path / "a.npz").state_names == {"a": ("off", "on")}


def test_ergo_files_have_names_of_states(tmp_path: Path) -> None:
    network = "2\n2 3\n0\n1 0\n/* Probabilities */\n2 0.2 0.8\n6 0.1 0.3 0.6 0.7 0.2 0.1\n"
    file = tmp_path / "rain.erg"
    file.write_text(f"{network}/* Names */\nrain\ngrass\n/* Labels */\nyes no\ndry damp wet\n")
    assert spinbench.load(file).state_names == STATES
    assert spinbench.exact(spinbench.load(file, evidence="grass=wet")).log_z == pytest.approx(WET, abs=1e-12)
    file.write_text(f"{network}/* Names */\nrain\ngrass\n/* Labels */\nyes no\ndry wet\n")
    assert not spinbench.load(file).state_names


@pytest.mark.parametrize(
    "text",
    [
        *("grass=wet", "grass = wet\n\n# comment = none\n", "grass=2", "1=wet", "1 grass wet", "1\ngrass 2", "1 1 wet"),
        *("c comment = none\n1 1 2", "1 1 2"),
    ],
)
def test_evidence_files_may_hold_names(rain: FactorGraph, tmp_path: Path, text: str) -> None:
    (tmp_path / "my.evid").write_text(text)
    observed = spinbench.load(rain, evidence=tmp_path / "my.evid")
    assert spinbench.exact(observed).log_z == pytest.approx(WET, abs=1e-12)


@pytest.mark.parametrize("evidence", [{"grass": "wet"}, {1: "wet"}, {"grass": 2}, "grass=wet", "rain=yes\ngrass=wet"])
def test_evidence_may_be_names(rain: FactorGraph, evidence: Any) -> None:
    right = math.log(0.2 * 0.6) if evidence == "rain=yes\ngrass=wet" else WET
    assert spinbench.exact(spinbench.load(rain, evidence=evidence)).log_z == pytest.approx(right, abs=1e-12)


@pytest.mark.parametrize(
    ("evidence", "sentence"),
    [
        ({"grass": "moist"}, "variable 'grass' has no state 'moist'; its states are 'dry', 'damp', 'wet'"),
        ("grass=moist", "no state 'moist'"),
        ("gras=wet", "no variable is named 'gras'; there are rain, grass"),
        ("grass=wet\ngrass=dry", "contradictory"),
        ("grass=3", "its states are 0..2"),
        ("grass=", "no state ''"),
    ],
)
def test_evidence_of_no_name_is_refused(rain: FactorGraph, evidence: Any, sentence: str) -> None:
    with pytest.raises(ModelError, match=sentence):
        spinbench.load(rain, evidence=evidence)


@pytest.mark.parametrize("text", ["2 grass wet", "1 grass", "grass wet", "x 1 wet", "grass=wet\nrain yes"])
def test_files_of_names_that_are_not_whole_are_refused(rain: FactorGraph, tmp_path: Path, text: str) -> None:
    (tmp_path / "my.evid").write_text(text)
    with pytest.raises(ModelError, match=r"my\.evid"):
        spinbench.load(rain, evidence=tmp_path / "my.evid")


def test_names_that_are_numbers_are_names_where_words_are_meant() -> None:
    model = graph(labels=["a", "b"], state_names={"b": ("2", "1", "3")})
    assert spinbench.exact(spinbench.load(model, evidence="b=1")).log_z == pytest.approx(math.log(2 + 5))
    assert spinbench.exact(spinbench.load(model, evidence={"b": 1})).log_z == pytest.approx(math.log(2 + 5))
    assert spinbench.exact(spinbench.load(model, evidence={"b": 2})).log_z == pytest.approx(math.log(3 + 6))
    assert spinbench.exact(spinbench.load(model, evidence="b=2")).log_z == pytest.approx(math.log(1 + 4))
    with pytest.raises(ModelError, match="no state '0'"):
        spinbench.load(model, evidence="b=0")


def test_numbers_that_are_names_of_other_states_are_refused() -> None:
    model = graph(labels=["a", "b"], state_names={"b": (1, 2, 3)})
    with pytest.raises(ModelError, match="as text, '1', it is the name"):
        spinbench.load(model, evidence={"b": 1})
    assert spinbench.exact(spinbench.load(model, evidence={"b": "1"})).log_z == pytest.approx(math.log(1 + 4))


def test_names_may_hold_equals_signs() -> None:
    model = graph(labels=["a", "b=c"], state_names={"a": ("<=5", ">5")})
    assert spinbench.exact(spinbench.load(model, evidence="a=<=5")).log_z == pytest.approx(math.log(6))
    assert spinbench.exact(spinbench.load(model, evidence="b=c=1")).log_z == pytest.approx(math.log(7))
    with pytest.raises(ModelError, match="may name"):
        spinbench.load(graph(labels=["b", "b=c"]), evidence="b=c=1")


@pytest.mark.parametrize("names", [{"c": ("x", "y")}, {"a": ("x",)}, {"a": ("x", "x")}, {"b": ("x", "y")}], ids=str)
def test_names_of_states_fit_the_variables(names: Any) -> None:
    with pytest.raises(ModelError, match="names"):
        graph(labels=["a", "b"], state_names=names)


def test_a_path_of_evidence_is_no_assignment() -> None:
    assert [is_assignment(text) for text in ("a=b", "x=1/a.evid", "x=1/a.evid.gz", "a.evid", Path("a=b"))] == [
        *(True, False, False, False, False)
    ]


def test_names_stand_beside_answers(rain: FactorGraph, tmp_path: Path) -> None:
    answer = spinbench.exact(spinbench.load(rain, evidence="grass=wet"))
    frame = answer.to_dataframe()
    assert list(frame["variable_name"]) == ["rain"] * 2 + ["grass"] * 3
    assert list(frame["state_name"]) == ["yes", "no", "dry", "damp", "wet"]
    assert answer.best_assignment == {"rain": "yes", "grass": "wet"}
    answer.save(tmp_path / "a.csv")
    assert list(csv.reader(io.StringIO((tmp_path / "a.csv").read_text())))[1][:4] == ["0", "0", "rain", "yes"]
    assert "<td>grass</td><td>wet</td>" in answer._repr_html_()
    assert [text.get_text() for text in answer.plot()[0].get_xticklabels()] == ["rain", "grass"]


def test_names_of_others_are_obeyed_nowhere(tmp_path: Path) -> None:
    names = {"=1+1": ("<script>", "@x"), "$\\frac$": ("a", "b", "\x1b[2J")}
    answer = spinbench.exact(graph(labels=list(names), state_names=names))
    answer.save(tmp_path / "a.csv")
    cells = {cell for row in csv.reader(io.StringIO((tmp_path / "a.csv").read_text())) for cell in row[2:4]}
    assert cells == {"variable_name", "state_name", "'=1+1", "<script>", "'@x", "$\\\\frac$", "a", "b", "\\x1b[2J"}
    assert "<script>" not in answer._repr_html_()
    answer.plot()[0].figure.savefig(tmp_path / "a.png")


def test_a_frame_has_no_names_where_the_model_has_none() -> None:
    assert "variable_name" not in spinbench.exact(graph()).to_dataframe()
    with pytest.raises(SpinbenchError, match="no state 'wet'"):
        spinbench.load(graph(), evidence={1: "wet"})
