"""`run` with a Method whose class is no entry point: it runs, or one sentence says why not."""

from __future__ import annotations

import re
from dataclasses import dataclass

import pytest

import spinbench
from spinbench.api import Method
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.models import PairwiseModel

MODEL = PairwiseModel.from_edges([0.1, -0.2, 0.3], [[0, 1], [1, 2], [0, 2]], [1.0, -0.5, 0.7])


@dataclass(frozen=True)
class Fresh(Gibbs):
    name = "fresh"


@dataclass(frozen=True)
class Likeness(Gibbs):
    level: int = 1


@pytest.mark.parametrize("backend", ["numpy", "jax"])
def test_its_program_runs(backend: str) -> None:
    result = spinbench.run(MODEL, Fresh(scan="raster"), backend, 50, chains=4)
    assert (result.method, result.tier, result.settings["scan"]) == ("fresh", "generic", "raster")
    known = spinbench.run(MODEL, "gibbs", backend, 50, chains=4, scan="raster", tier="generic")
    assert result.marginals.tolist() == known.marginals.tolist()


def test_it_has_no_part_in_the_kernels_of_what_it_derives_from() -> None:
    assert spinbench.run(MODEL, Fresh(), "numba", 50).tier == "generic"
    with pytest.raises(UnsupportedError, match=r"fresh has no kernel for numba"):
        spinbench.run(MODEL, Fresh(), "numba", 50, tier="native")


def test_no_other_class_has_the_name_of_a_registered_one() -> None:
    """Kernels and records know methods by name."""
    with pytest.raises(SpinbenchError, match=r"Likeness was given, whose name gibbs is that of .*\.Gibbs; rename it$"):
        spinbench.run(MODEL, Likeness(), "numba", 50)


def test_what_is_no_method_as_registered_ones_are_is_refused() -> None:
    method: Method = object.__new__(
        type("Plain", (Method,), {"name": "plain", "reductions": {}, "plan": 0, "estimate": 0})
    )
    with pytest.raises(SpinbenchError, match=r"Plain was given, which lacks the class attribute summary$"):
        spinbench.run(MODEL, method, "numpy", 50)


def test_settings_beside_a_method_are_refused() -> None:
    with pytest.raises(SpinbenchError, match=re.escape("scan was given beside a Method, which has its settings")):
        spinbench.run(MODEL, Gibbs(), "numpy", 50, scan="raster")
