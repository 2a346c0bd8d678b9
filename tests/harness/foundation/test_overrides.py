"""Values as Hydra reads them back."""

from __future__ import annotations

import shlex
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from spinbench.foundation.overrides import command, of_cell

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
