"""Exact log Z and all marginals: solutions a second, no search for an order left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from comparison import ours, problems
from comparison.answers import Solved
from comparison.contender import Contender, Race, present
from comparison.peers import dwave, exact

from spinbench.models import FactorGraph, PairwiseModel

Runner = Callable[[Any], None]
Makers = list[Callable[[], Contender]]

BINARY = ("uai14/Grids_12", "uai14/DBN_11", "uai14/DBN_14", "uai14/Segmentation_12", "uai14/Segmentation_14")
OTHERS = ("uai14/CSP_12", "uai14/ObjectDetection_11", "uai14/Promedus_24", "libdai/alarm")
TOLERANCE = 1e-8
SLOW = {
    "grid 20": ("dwave", "pyGMs", "junctiontree", "pyAgrum", "pgmpy"),
    "uai14/DBN_11": ("junctiontree", "pyAgrum", "pgmpy"),
    "uai14/DBN_14": ("junctiontree", "pyAgrum", "pgmpy"),
    "uai14/Segmentation_12": ("junctiontree", "pyAgrum", "pgmpy"),
    "uai14/Segmentation_14": ("junctiontree", "pyAgrum", "pgmpy"),
}
"""Peers that took more than a minute or ran out of 16 GiB, and run with --long alone."""


@pytest.mark.parametrize("size", [10, 20])
def test_grid(race: Runner, size: int, long: bool) -> None:
    name = f"grid {size}"
    _race(race, name, f"exact {size}×{size} grid", long)


@pytest.mark.parametrize("name", BINARY + OTHERS)
def test_shipped(race: Runner, name: str, long: bool) -> None:
    _race(race, name, f"exact {name}", long)


def _race(race: Runner, name: str, title: str, long: bool) -> None:
    model, answer = problems.solved(name)
    makers: dict[str, Callable[[], Contender]] = {
        "spinbench": lambda: ours.solver(model, "exact", asked="log Z and all marginals, order included", max_gib=4.0),
    }
    if isinstance(model, PairwiseModel) or all(size == 2 for size in model.cardinalities):
        pairwise = _pairwise(model)
        if pairwise is not None:
            makers["dwave"] = lambda: dwave.exact(pairwise)
    if not (isinstance(model, FactorGraph) and model.has_zeros):
        makers["pyGMs"] = lambda: exact.pygms(model)
    makers |= {
        "junctiontree": lambda: exact.junctiontree(model),
        "pyAgrum": lambda: exact.pyagrum(model),
        "pgmpy": lambda: exact.pgmpy(model),
    }
    slow = () if long else SLOW.get(name, ())
    here, missing = present(*(make for peer, make in makers.items() if peer not in slow))
    missing += [f"{peer} is left out without --long: it takes minutes or gigabytes" for peer in slow]
    reference = "pyGMs" if "pyGMs" in makers else "pyAgrum"
    race(Race(title, "solutions", reference, Solved(answer, TOLERANCE), here, missing))


def _pairwise(model: Any) -> PairwiseModel | None:
    """The same model with pairs alone, where that needs neither infinite couplings nor more variables."""
    from spinbench.errors import SpinbenchError
    from spinbench.models import to_pairwise

    try:
        return to_pairwise(model, one_of_k=False)
    except SpinbenchError:
        return None
