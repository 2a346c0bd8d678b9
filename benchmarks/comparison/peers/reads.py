"""Answers in dimod's form: states and how often each was read."""

from __future__ import annotations

from typing import Any

import numpy as np

from comparison.answers import Answer


def means(found: Any) -> Answer:
    """p(s = 1) from the last states of all reads, in the order of the variables' numbers."""
    order = np.argsort(np.array(list(found.variables)))
    up = found.record.sample[:, order] > 0
    return Answer(np.average(up, axis=0, weights=found.record.num_occurrences))
