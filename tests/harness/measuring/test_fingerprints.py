"""What a record's fingerprints of a result are of."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.inference.result import replace_pairs
from spinbench.inference.stored_states.source import RunSource
from spinbench.measuring import result_metrics
from spinbench.models import generators

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
