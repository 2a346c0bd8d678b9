"""Brackets of some hundred random models, without the exact contributor: no certified bound is wrong, and probable ones
are as seldom as they claim.

`pytest -m calibration -n 2 tests/calibration/test_brackets.py`
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z

from spinbench.errors import UnsupportedError
from spinbench.inference.bracketing import mini_buckets
from spinbench.inference.bracketing.sources import PLAN, BoundRequest, find_bounds

GRAPHS = {**KINDS, "quadruples": factors(2, 4, 0.0), "quadruples with zeros": factors(2, 4, 0.15)}
MODELS = 40
DELTA = 0.1
OTHERS = [each.name for each in PLAN if each.name not in ("exact", mini_buckets.UPPER)]

pytestmark = pytest.mark.calibration


@pytest.mark.parametrize("kind", GRAPHS)
def test_certain_bounds_hold_and_probable_ones_mostly(kind: str) -> None:
    missed = looks = 0
    for k in range(MODELS):
        model = GRAPHS[kind](np.random.default_rng([k // 4, 1]))(np.random.default_rng([k, 2]))
        true, slack = log_z(model)
        clock = itertools.count(0, 0.003).__next__
        news = list(mini_buckets.tighten(model, "numba", k, 0.25, clock, ibound=1, delta=DELTA))
        for name in OTHERS:
            try:
                news += find_bounds(BoundRequest(model, name, 0.5, k, DELTA, 1.0))
            except UnsupportedError:
                continue
        wrong = set()
        for each in news:
            for bound in each.bounds:
                room = slack + (1e-9 * max(1.0, abs(true)) if bound.grade == "exact" else 0.0)
                if (bound.value - true) * (1 if bound.side == "lower" else -1) > room:
                    assert bound.grade == "probable", (kind, k, bound)
                    wrong.add((bound.by, each.look))
        missed += len(wrong)
        looks += len({(bound.by, each.look) for each in news for bound in each.bounds if bound.grade == "probable"})
    assert missed <= DELTA * looks
