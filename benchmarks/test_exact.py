"""Exact log Z and all marginals: solutions a second, no search for an order left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparison import ours, problems
from comparison.answers import Solved
from comparison.contender import Contender, Race, present
from comparison.peers import cotengra, dwave, exact

from spinbench.models import to_pairwise

Runner = Callable[[Any], None]

BINARY = ("uai14/Grids_12", "uai14/DBN_11", "uai14/DBN_14", "uai14/Segmentation_12", "uai14/Segmentation_14")
OTHERS = ("uai14/CSP_12", "uai14/ObjectDetection_11", "uai14/Promedus_24", "libdai/alarm")
WIDE = ("grid 20", *BINARY[1:])
TOLERANCE = 1e-8

LEFT_OUT: dict[str, tuple[tuple[str, ...], str]] = {
    "dwave": (OTHERS, "takes binary pairs only"),
    "pyGMs": (("uai14/Promedus_24",), "gives NaN where tables hold zeros"),
    "pgmpy": ((*WIDE, "uai14/Grids_12", *OTHERS[:3]), "takes minutes or more memory than there is"),
}
"""Peers that are not asked to solve some models, and why."""
LONG: dict[str, tuple[str, ...]] = {
    "dwave": ("grid 20",),
    "pyGMs": ("grid 20",),
    "pyAgrum": WIDE,
    "cotengra": ("grid 20", *BINARY, *OTHERS),
}
"""Peers that take minutes or gigabytes, and are asked with --long alone."""


@pytest.mark.parametrize("size", [3, 10, 20])
def test_grid(race: Runner, size: int, long: bool) -> None:
    _race(race, f"grid {size}", long)


@pytest.mark.parametrize("name", BINARY + OTHERS)
def test_shipped(race: Runner, name: str, long: bool) -> None:
    _race(race, name, long)


def _race(race: Runner, name: str, long: bool) -> None:
    model, answer = problems.solved(name)
    makers: dict[str, Callable[[], Contender]] = {
        "dwave": lambda: dwave.exact(to_pairwise(model, one_of_k=False)),
        "pyGMs": lambda: exact.pygms(model),
        "pyAgrum": lambda: exact.pyagrum(model),
        "pgmpy": lambda: exact.pgmpy(model),
        "cotengra": lambda: cotengra.exact(model),
    }
    asked, missing = [], []
    for peer, make in makers.items():
        models, why = LEFT_OUT.get(peer, ((), ""))
        if name in models:
            missing.append(f"{peer} is not asked: it {why}")
        elif name in LONG.get(peer, ()) and not long:
            missing.append(f"{peer} is not asked without --long: it takes minutes or gigabytes")
        else:
            asked.append(make)
    mine = ours.solver(model, "exact", asked="log Z and all marginals, order included", max_gib=4.0)
    here, others = present(*asked)
    reference = "pyAgrum" if name in OTHERS else "dwave-samplers tree"
    race(Race(f"exact {name}", "solutions", reference, Solved(answer, TOLERANCE), [mine, *here], [*missing, *others]))
