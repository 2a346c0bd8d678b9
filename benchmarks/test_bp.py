"""Loopy belief propagation to convergence: solutions a second."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from comparison import ours
from comparison.answers import Answer, Solved
from comparison.contender import Race, present
from comparison.peers import pgmax
from comparison.problems import stacked

import spinbench
from spinbench.models import generators

Runner = Callable[[Any], None]


@pytest.mark.parametrize("size", [50, 200])
def test_grid(race: Runner, size: int) -> None:
    """Standard deviation 0.5. The fixed point is found to 1e-11 by the NumPy program: all messages at once, as log
    ratios, where the kernel that is timed sweeps over odds."""
    model = generators.grid(size, size, c1=0.25, c2=0.25)
    fixed = spinbench.run(model, "bp", "numpy", budget=1000, tolerance=1e-11)
    assert fixed.status == "ok"
    known = Answer(stacked(model, np.asarray(fixed.marginals)), fixed.log_z)
    here, missing = present(
        lambda: ours.solver(
            model, "bp", asked="sweeps to a largest change of 1e-9, marginals, Bethe log Z", tolerance=1e-9
        ),
        lambda: pgmax.bp(model),
    )
    race(Race(f"BP {size}×{size}", "solutions", "PGMax", Solved(known, 2e-5), here, missing))
