"""Before anything is measured: models of a sweep are built, and what an experiment leaves out is left out."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

import spinbench
from spinbench.backends.jax import JaxBackend
from spinbench.errors import SpinbenchError
from spinbench.models import generators, specs
from spinbench.sweeping import cellconfigs, composition, preflight

CELL = ("method=gibbs", "backend=numpy")


@pytest.fixture(autouse=True)
def _files() -> None:
    spinbench.save(generators.grid(2, 2), "good.uai")
    Path("cut.uai").write_text(Path("good.uai").read_text()[:-20])
    Path("far.evid").write_text("1 9 0\n")


@pytest.mark.parametrize(
    ("overrides", "sentences"),
    [
        (["model=grid", "model.rows=-1"], ["rows = -1 and cols = 10; both must be 1 or more"]),
        (["model=grid", "model.rows=2,0,-1", "model.cols=3,4"], ["rows = 0 and cols = 3", "rows = -1 and cols = 3"]),
        (["model=torus,planar_glass", "model.rows=1"], ["'torus': rows = 1"]),
        (["model=file", "model.path=good.uai,cut.uai"], ["cut.uai: the file ends"]),
        (["model=file", "model.path=good.uai", "model.evidence=null,far.evid"], ["names variable 9"]),
        (["model=file", "model.path=good.uai", "model.beta=2"], ["holds no energies to scale"]),
        (["experiment=gauge_fig1", "beta=0.5,-1"], ["beta = -1.0"]),
    ],
)
def test_a_value_that_no_model_takes_is_refused(overrides: list[str], sentences: list[str]) -> None:
    with pytest.raises(SpinbenchError) as refused:
        preflight.check(composition.plan([*CELL, *overrides], multirun=True))
    for sentence in sentences:
        assert str(refused.value).count(sentence) == 1


@pytest.mark.parametrize(
    "overrides",
    [
        ["model=random_regular", "model.n=5,6", "model.degree=3,4"],  # 5 x 3 is odd
        ["model=file", "model.path=good.uai,libdai/hoi1"],
        ["experiment=tour"],
    ],
)
def test_a_combination_costs_its_cells_alone(overrides: list[str]) -> None:
    preflight.check(composition.plan([*CELL[1:], *overrides], multirun=True))


def test_a_device_that_no_backend_finds_is_one_sentence() -> None:
    try:
        JaxBackend(device="gpu")
    except SpinbenchError:
        pass
    else:
        pytest.skip("there is a GPU")
    with pytest.raises(SpinbenchError, match=r"^nothing can be measured here: backend jax finds no device=gpu here"):
        preflight.check_device(composition.plan(["experiment=gpu", "backend=jax,torch"], multirun=True))
    preflight.check_device(composition.plan(["experiment=gpu", "size=smoke"], multirun=True))


def test_evidence_beside_a_model_that_is_not_read_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["model=file", "model.path=good.uai", "seed=0,1"]
    preflight.check(composition.plan([*CELL, *words], multirun=True))
    Path("good.uai.evid").write_text("1 0 1\n")
    preflight.check(composition.plan([*CELL, *words, "model.evidence=good.uai.evid"], multirun=True))
    assert not capsys.readouterr().err
    preflight.check(composition.plan([*CELL, *words], multirun=True))
    (line,) = capsys.readouterr().err.splitlines()
    assert "good.uai.evid is there and is not read; model.evidence=good.uai.evid observes what it says" in line


def test_what_is_left_out_is_not_tried() -> None:
    words = ["model=grid", "model.rows=2,0"]
    plan = composition.plan([*CELL, *words], multirun=True)
    with pytest.raises(SpinbenchError, match="rows = 0"):
        preflight.check(plan)
    object.__setattr__(plan, "left_out", ({"model.rows": ["0"]},))
    preflight.check(plan)


@pytest.mark.skipif(sys.platform != "linux", reason="a fresh interpreter has not what is patched here")
def test_models_that_end_their_process_are_left_to_their_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    build = specs.build

    def fatal(spec: Any) -> Any:
        return os._exit(3) if spec["rows"] == 3 else build(spec)

    monkeypatch.setattr(specs, "build", fatal)
    asked = [{"name": "grid", "rows": rows} for rows in (2, 0, 3, -1, 3)]
    found = preflight.refusals_of(asked)
    assert [found[0], found[2], found[4]] == ["", None, None]
    assert "rows = 0" in str(found[1])
    assert "rows = -1" in str(found[3])
    monkeypatch.setattr(preflight, "ALL", 0.0)
    assert preflight.refusals_of(asked) == [None] * 5


def test_of_very_many_combinations_some_with_each_value_are_tried() -> None:
    options = [[f"model.{key}={value}" for value in range(30)] for key in ("rows", "cols", "seed")]
    chosen = list(preflight._choices(options))
    assert len(chosen) == len(set(chosen)) < 1000
    for place, values in enumerate(options):
        for value in values:
            assert sum(choice[place] == value for choice in chosen) > preflight.BESIDE / 2


ASKED = OmegaConf.create(
    {"left_out": [{"method": ["pt", "blocks"], "backend": ["numpy"]}, {"seed": [1], "method": ["pt"]}]}
)
OPTIONS = {"method": ["gibbs", "pt", "blocks"], "backend": ["numpy", "numba"], "seed": ["0", "1"], "chains": ["4", "8"]}


@pytest.mark.parametrize(("given", "cells"), [((), 7), (("backend",), 10), (("method",), 12), (("chains",), 7)])
def test_a_sweep_makes_the_cells_that_are_counted(given: tuple[str, ...], cells: int) -> None:
    out = cellconfigs.exclusion_entries(ASKED, given)
    lines = {key: [f"{key}={value}" for value in values] for key, values in OPTIONS.items()}
    assert cellconfigs.count_cells(lines, out) == 2 * cells
    overrides = OverridesParser.create().parse_overrides([f"{key}={','.join(OPTIONS[key])}" for key in OPTIONS])
    made = [tuple(cell) for cell in cellconfigs.product_cells(overrides, out)]
    assert len(set(made)) == len(made) == 2 * cells
    assert ("method=pt", "backend=numba", "seed=0", "chains=4") in made
    assert (("method=pt", "backend=numpy", "seed=0", "chains=4") in made) == bool({"method", "backend"} & {*given})


@pytest.mark.parametrize(
    ("written", "sentence"),
    [([{"method": "pt"}], "left_out=.* a list of entries"), ("pt", "a list of entries"), ([{}], "a list of entries")],
)
def test_what_is_no_list_of_entries_is_refused(written: object, sentence: str) -> None:
    with pytest.raises(SpinbenchError, match=sentence):
        cellconfigs.exclusion_entries(OmegaConf.create({"left_out": written}), ())


def test_something_is_left() -> None:
    with pytest.raises(SpinbenchError, match="every combination"):
        cellconfigs.count_cells({"seed": ["seed=0", "seed=1"]}, [{"seed": ["0", "1"]}])
