"""Combinations that an experiment leaves out."""

from __future__ import annotations

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from spinbench.errors import SpinbenchError
from spinbench.sweeping import exclusions

ASKED = OmegaConf.create(
    {"left_out": [{"method": ["pt", "blocks"], "backend": ["numpy"]}, {"seed": [1], "method": ["pt"]}]}
)
OPTIONS = {"method": ["gibbs", "pt", "blocks"], "backend": ["numpy", "numba"], "seed": ["0", "1"], "chains": ["4", "8"]}


@pytest.mark.parametrize(("given", "cells"), [((), 7), (("backend",), 10), (("method",), 12), (("chains",), 7)])
def test_a_sweep_makes_the_cells_that_are_counted(given: tuple[str, ...], cells: int) -> None:
    out = exclusions.entries(ASKED, given)
    lines = {key: [f"{key}={value}" for value in values] for key, values in OPTIONS.items()}
    assert exclusions.count(lines, out) == 2 * cells
    overrides = OverridesParser.create().parse_overrides([f"{key}={','.join(OPTIONS[key])}" for key in OPTIONS])
    made = [tuple(cell) for cell in exclusions.product(overrides, out)]
    assert len(set(made)) == len(made) == 2 * cells
    assert ("method=pt", "backend=numba", "seed=0", "chains=4") in made
    assert (("method=pt", "backend=numpy", "seed=0", "chains=4") in made) == bool({"method", "backend"} & {*given})


@pytest.mark.parametrize(
    ("written", "sentence"),
    [([{"method": "pt"}], "left_out=.* a list of entries"), ("pt", "a list of entries"), ([{}], "a list of entries")],
)
def test_what_is_no_list_of_entries_is_refused(written: object, sentence: str) -> None:
    with pytest.raises(SpinbenchError, match=sentence):
        exclusions.entries(OmegaConf.create({"left_out": written}), ())


def test_something_is_left() -> None:
    with pytest.raises(SpinbenchError, match="every combination"):
        exclusions.count({"seed": ["seed=0", "seed=1"]}, [{"seed": ["0", "1"]}])
