"""Which methods to try on a model: those that were accurate on models like it, and of another kind than the first.

Errors were recorded by `benchmarks/portfolio.py`, which says how; models are alike whose features are close, by a
Gaussian kernel (Nadaraya, Theory of Probability and its Applications 1964).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from importlib import resources
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.inference.advising.candidates import Candidate
from spinbench.inference.advising.features import features
from spinbench.inference.advising.ranking import LARGEST, Target
from spinbench.models import Model

FloatArray = npt.NDArray[np.float64]
# Bandwidth of the kernel, in standard deviations of the features (root mean square): the best of a few on the
# recorded runs, each family left out in turn.
BANDWIDTH = 0.6
# Largest number of candidates of the table that run; the others stand by. On the recorded runs the better of the first
# two has 1.3 times (marginals) and 1.7 times (log Z) the least error, and a third confirms them.
ENTRANTS = 3
# A candidate stands by if its expected error is this many decades above the least one, and above a witness's.
HOPELESS = 1.0


class Table(NamedTuple):
    """Recorded errors of M methods on R models of F features.

    Attributes:
        methods: M names with settings, "blocks(size=4096)".
        features: (R, F).
        log_errors: (R, M) of each target, log10.
    """

    methods: Sequence[str]
    features: FloatArray
    log_errors: dict[str, FloatArray]


@lru_cache
def read_table() -> Table:
    """The table that is shipped."""
    return parse_table(json.loads(resources.files(__package__).joinpath("portfolio.json").read_text()))


def parse_table(content: Mapping[str, Any]) -> Table:
    """From the content of its file."""
    errors = {target: np.array(rows) for target, rows in content["log10_errors"].items()}
    return Table(content["methods"], np.array(content["features"]), errors)


def likeness(table: Table, model_features: FloatArray) -> FloatArray:
    """(R,) weights of the table's models, which add up to 1."""
    scale = np.maximum(table.features.std(axis=0), 1e-9)
    squares = np.mean(((table.features - model_features) / scale) ** 2, axis=1)
    weights = np.exp((squares.min() - squares) / (2 * BANDWIDTH**2))
    return np.asarray(weights / weights.sum())


class Choice(NamedTuple):
    """Candidates that run, the best first, those that stand by, and expected errors by labels."""

    running: list[Candidate]
    standing_by: list[Candidate]
    errors: dict[str, float]


def choose(model: Model, candidates: Sequence[Candidate], target: Target) -> Choice:
    """Who runs.

    Each is the one that lowers the expected logarithm of the least error so far by most; the second is of another kind
    than the first. Candidates that the table does not know run, too.
    """
    table = read_table()
    columns = {name: column for column, name in enumerate(table.methods)}
    strangers = [candidate for candidate in candidates if candidate.name_with_settings not in columns]
    left = {candidate.label: candidate for candidate in candidates if candidate.name_with_settings in columns}
    if not left:
        return Choice(strangers, [], {})
    weights, errors = likeness(table, features(model)), table.log_errors[target]
    expected = {label: weights @ errors[:, columns[left[label].name_with_settings]] for label in left}
    worst = max(min(expected.values()) + HOPELESS, np.log10(LARGEST[target]))
    least, chosen = np.full(len(weights), np.inf), list[Candidate]()
    while left:
        others = [label for label in left if len(chosen) != 1 or left[label].kind != chosen[0].kind] or list(left)
        gains = {label: np.minimum(least, errors[:, columns[left[label].name_with_settings]]) for label in others}
        best = min(others, key=lambda label: (expected[label] > worst, weights @ gains[label], expected[label]))
        least = gains[best]
        chosen.append(left.pop(best))
    hopeful = sum(expected[candidate.label] <= worst for candidate in chosen[:ENTRANTS])
    expected_errors = {label: float(10.0**exponent) for label, exponent in expected.items()}
    return Choice([*chosen[:hopeful], *strangers], chosen[hopeful:], expected_errors)
