"""Arguments and settings become what their type hints say, or one sentence; and values as Hydra reads them back."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

import spinbench
from spinbench.errors import ModelError, SpinbenchError
from spinbench.foundation.overrides import command, of_cell
from spinbench.foundation.parameters import convert
from spinbench.inference.registry import make_method
from spinbench.models import generators


@pytest.mark.parametrize(
    ("value", "hint", "expected"),
    [
        (3, float, 3.0),
        (3.0, int, 3),
        (10**400, int, 10**400),
        (np.int64(3), int, 3),
        (np.float64(0.5), float | None, 0.5),
        (None, float | None, None),
        ("auto", str | Sequence[float], "auto"),
        ([1, 0.5], str | Sequence[float], [1, 0.5]),
        ("odd", Literal["even"], "odd"),  # which texts are allowed, the taker says
        (True, bool, True),
    ],
)
def test_values_that_fit(value, hint, expected):
    found = convert(value, hint)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "hint", "message"),
    [
        (2.5, int, "2.5 was given; an integer is needed"),
        (True, int, "True was given; an integer is needed"),
        (float("nan"), int, "nan was given; an integer is needed"),
        ("3", float, "'3' was given; a number is needed"),
        (None, int, "None was given; an integer is needed"),
        ("x", int | None, "'x' was given; an integer or none is needed"),
        ("x", Sequence[float], r"'x' was given; a list \(each item a number\) is needed"),
        ([1, "x"], Sequence[float], r"\[1, 'x'\] was given; a list"),
        (3, Literal["even", "odd"], "3 was given; even or odd is needed"),
        (1, bool, "1 was given; true or false is needed"),
    ],
)
def test_values_that_do_not_fit(value, hint, message):
    with pytest.raises(TypeError, match=message):
        convert(value, hint)


def test_settings_of_methods():
    assert make_method("bp", {"damping": 0, "restarts": 2.0}).restarts == 2
    with pytest.raises(SpinbenchError, match="method bp: damping='x' was given; a number is needed"):
        make_method("bp", {"damping": "x"})
    with pytest.raises(SpinbenchError, match=r"method g_mf: restarts=1.5 was given; an integer or none is needed"):
        make_method("g_mf", {"restarts": 1.5})


def test_families_and_exact():
    assert generators.grid(2.0, cols=3).num_variables == 6
    with pytest.raises(ModelError, match="model 'grid': rows = '3' was given; an integer is needed"):
        generators.grid("3")
    for size in (-1, "x", float("nan"), float("inf")):
        with pytest.raises(SpinbenchError, match=rf"exact: max_gib={size!r} was given; a positive number is needed"):
            spinbench.exact(generators.grid(2, 2), max_gib=size)


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("pt", {"rungs": 10**7}, "pt: rungs=10000000 was given; 0, or an integer from 2 to 1024, is needed"),
        ("pt", {"rungs": 1}, "pt: rungs=1 was given; 0, or an integer from 2"),
        ("pt", {"blocks": 2**50}, "no setting of method pt is named 'blocks' any more; the method blocks draws many"),
        (
            "pt",
            {"updates": "gibbs"},
            "no setting of method pt is named 'updates' any more; the method swendsen_wang mo",
        ),
        ("blocks", {"size": 10**15}, "blocks: size=10+ was given; an integer from 2 to 1048576 is needed"),
        ("blocks", {"blocks": 65}, "blocks: blocks=65 was given; an integer from 2 to 64 is needed"),
        ("smc", {"particles": 10**9}, "smc: particles=10+ was given"),
        ("nested", {"points": 10**9}, "nested: points=10+ was given"),
        ("tempered_transitions", {"temperatures": 10**9}, "temperatures=10+ was given"),
        ("multicanonical", {"bins": 10**9}, "multicanonical: bins=10+ was given; 0, or an integer from 2"),
        ("swendsen_wang", {"sweeps": -1}, "swendsen_wang: sweeps=-1 was given; an integer from 0"),
        ("gibbs", {"threads": 0}, "gibbs: threads=0 was given"),
        ("wmb", {"ibound": 31}, "wmb: ibound=31 was given; an integer from 0 to 30 is needed"),
    ],
)
def test_wrong_settings_are_one_sentence_before_anything_is_planned(
    method: str, settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(SpinbenchError, match=message):
        make_method(method, settings)


VALUES: tuple[Any, ...] = (
    *(None, True, False, 3, -2, 0.1, 1.0, 1e-12, 12e300),
    *("gibbs", "uai14/Grids_12", "12e3", "true", "NULL", "a b", "it's", "x,y", "a=b", "", "/tmp/x.uai", "./x", ".5"),
    *("back\\slash", "ends\\", "a\\'b", "a\\\\'b\\\\", "${oc.env:HOME}x"[5:], "grün"),
    *([1, 2.5], ["a", "1"], [], {"a": 1, "b": False}),
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_hydra_reads_what_was_written(value: Any) -> None:
    line = shlex.split(command({"name": value}))
    assert line[:2] == ["spinbench", "sweep"]
    (read,) = OverridesParser.create().parse_overrides(line[2:])
    found = read.value()
    found = getattr(found, "text", found)
    found = [getattr(one, "text", one) for one in found] if isinstance(found, list) else found
    found = {str(key): one for key, one in found.items()} if isinstance(found, dict) else found
    assert (found, type(found)) == (value, type(value))


def test_a_cell_is_all_of_its_settings_and_the_seeds_come_last() -> None:
    config = {"model": {"name": "grid", "rows": 2}, "seed": 7, "method": {"name": "bp"}, "chains": 4}
    assert of_cell(config, (0, 1)) == "spinbench sweep model=grid model.rows=2 method=bp chains=4 seed=0,1"
