"""What a record says of a result."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.inference.batch_timings import Checkpoint
from spinbench.measuring import result_metrics
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
