"""Annealing back from tempering's last states: above log Z, close to it, and refused where tempering has not mixed."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z

import spinbench
from spinbench.errors import UnsupportedError
from spinbench.inference.bracketing import reverse
from spinbench.models import Model, condition, specs

GRAPHS = {**KINDS, "quadruples with zeros": factors(2, 4, 0.15)}
DELTA = 1e-6


def above(model: Model, seed: int, seconds: float) -> float:
    """Of a clock that goes by a hundredth of a second each time that it is asked."""
    clock = itertools.count(0, 0.01).__next__
    (news,) = reverse.news(model, seed, seconds, DELTA, clock)
    (bound,) = news.bounds
    assert (bound.side, bound.grade, bound.delta, bound.by) == ("upper", "assumed", DELTA, reverse.NAME)
    return bound.value


def test_it_is_above_log_z_and_not_far() -> None:
    """Whatever the kind; models on which tempering does not mix in so few steps are not counted."""
    told: dict[str, list[float]] = {kind: [] for kind in GRAPHS}
    for k, (kind, shape) in enumerate(GRAPHS.items()):
        for seed in range(2):
            rng = np.random.default_rng([k, seed])
            model = shape(np.random.default_rng([k, 1]))(rng)
            true, slack = log_z(model)
            try:
                told[kind].append(above(model, seed, 2.0) - true)
            except UnsupportedError:
                continue
            assert told[kind][-1] > -slack, (kind, seed)
    assert sum(map(len, told.values())) >= 9
    assert sorted(itertools.chain(*told.values()))[4] < 1.0


def test_evidence_and_what_falls_away_are_counted() -> None:
    model = condition(specs.build({"name": "grid", "rows": 3, "cols": 3}), {0: 1, 4: 0})
    assert 0 < above(model, 1, 4.0) - spinbench.exact(model, cache=False).log_z < 1.0


def test_without_round_trips_it_is_refused() -> None:
    stuck = specs.build({"name": "torus", "rows": 6, "cols": 6, "coupling": 1.5})
    with pytest.raises(UnsupportedError, match=r"tempering has not mixed \(\d+ round trips of \d+ replicas\)"):
        above(stuck, 0, 0.5)
