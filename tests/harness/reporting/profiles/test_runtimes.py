"""Runtime distributions, against the seconds to one target and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from profile_records import record
from small_records import typed

from spinbench.mathematics.statistics import time_to_error
from spinbench.reporting.profiles import runtimes

ERRORS = st.lists(st.one_of(st.just(0.0), st.floats(1e-6, 1.0)), max_size=6)


@given(ERRORS, st.floats(1e-5, 1.0))
def test_each_target_is_reached_when_the_error_stays_below_it(errors: list[float], target: float) -> None:
    points = [(0.1 * 2.0**i, error) for i, error in enumerate(errors)]
    (found,) = runtimes.seconds_to_targets(points, np.array([target]))
    expected = time_to_error(points, target)
    assert found == pytest.approx(np.inf if expected is None else expected)


def test_runs_that_were_not_made_reach_nothing() -> None:
    runs = [record("a", "gibbs", 0.001, seed=seed, seconds=1.0, reached=0.5) for seed in range(2)]
    runs += [
        record("a", "bp", 1e-6, reached=0.5),
        record("a", "mf", 0.9),
        record("a", "pt", 0.001, verdict="marginals"),
    ]
    named = [(str(each["axes"]["method"]), one) for each, one in zip(runs, typed(runs), strict=True)]
    found = runtimes.runtime_distributions(named)
    assert sorted(found) == ["bp", "gibbs"], "one never has an error below a tenth, the other is doubted"
    # Of 31 targets from 0.1 to 1e-4, three to a tenth.
    assert [np.isfinite(found[name]).sum() for name in ("gibbs", "bp")] == [2 * 21, 31]
    assert {seconds.size for seconds in found.values()} == {2 * 31}
