"""What a record says of a result: its metrics, and its fingerprints."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.inference.batch_timings import Checkpoint
from spinbench.inference.result import replace_pairs
from spinbench.inference.stored_states.source import RunSource
from spinbench.measuring import result_metrics
from spinbench.models import generators
from spinbench.models.generators import grid


@pytest.mark.parametrize(("error", "kept"), [(0.1, True), (None, True), (np.inf, False)])
def test_no_number_is_made_of_an_unresolved_log_z(error: float | None, kept: bool) -> None:
    model = grid(2, 2)
    exact = spinbench.exact(model, cache=False)
    point = Checkpoint(1.0, 10, Estimate(marginals=exact.marginals, log_z=exact.log_z, log_z_se=error))
    result = dataclasses.replace(
        exact, log_z_se=error, status="ok" if kept else "log Z unresolved", trajectory=(point,)
    )
    metrics, _ = result_metrics.result_metrics(result, exact, {})
    assert ("value" in metrics["log_z_error"]) is kept
    summary = result_metrics.summarize_result(result, exact)
    assert (summary["log_z"] is not None) is kept
    assert [(p["log_z"] is not None, p["log_z_error"] is not None) for p in summary["trajectory"]] == [(kept, kept)]


@pytest.mark.parametrize(("size", "known"), [(0.0, False), (np.nan, False), (2.0, True)])
def test_no_cost_of_an_effective_sample_where_there_is_none(size: float, known: bool) -> None:
    model = grid(2, 2)
    exact = spinbench.exact(model, cache=False)
    metrics, _ = result_metrics.result_metrics(dataclasses.replace(exact, ess=np.full(4, size)), exact, {})
    assert [("value" in metrics[name]) for name in ("seconds_per_ess", "samples_per_ess")] == [known, known]


OTHER: dict[str, dict[str, Any]] = {
    "claims": {"marginals_se": np.zeros(4)},
    "sizes": {"ess": np.zeros(4)},
    "pairs": {"source": RunSource(pairs=(np.zeros(4), None))},
    "draws": {"draws": (np.ones((4, 2), dtype=np.int8), None)},
    "weights": {"draws": (np.zeros((4, 2), dtype=np.int8), np.zeros(2))},
    "diagnostics": {"diagnostics": {"acceptance": 0.5}},
}


@pytest.mark.parametrize("what", OTHER)
def test_numbers_are_all_that_metrics_see_and_the_answer_is_not(what: str) -> None:
    found = spinbench.run(generators.grid(2, 2), "gibbs", "numpy", 40, chains=4)
    whole = dataclasses.replace(replace_pairs(found, np.ones(4)), draws=(np.zeros((4, 2), dtype=np.int8), None))
    one, other = (
        result_metrics.summarize_result(each, None) for each in (whole, dataclasses.replace(whole, **OTHER[what]))
    )
    assert one["numbers"] != other["numbers"]
    assert one["answer"] == other["answer"]


def test_time_is_in_neither() -> None:
    one, other = (spinbench.run(generators.grid(2, 2), "gibbs", "numpy", 40, chains=4) for _ in range(2))
    assert one.seconds != other.seconds
    for name in ("numbers", "answer"):
        assert result_metrics.summarize_result(one, None)[name] == result_metrics.summarize_result(other, None)[name]
