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
from spinbench.inference.advising.features import NAMES, WEAKEST, features
from spinbench.inference.advising.ranking import LARGEST, Target
from spinbench.models import Model

FloatArray = npt.NDArray[np.float64]
# Bandwidth of the kernel, in standard deviations of the features (root mean square): the best of a few on the
# recorded runs, each family left out in turn.
BANDWIDTH = 0.6
# Largest number of candidates of the table that run; the others stand by. Marginals need a second to confirm them, log
# Z has its bracket.
ENTRANTS: dict[Target, int] = {"marginals": 3, "log_z": 2}
# A candidate stands by if its expected error is this many decades above the least one, and above a witness's.
HOPELESS = 1.0


class Table(NamedTuple):
    """Recorded errors of M methods on R models of F features.

    Attributes:
        methods: M names with settings, "blocks(size=4096)".
        features: (R, F).
        log_errors: (R, M) of each target, log10.
        seconds: of every run.
    """

    methods: Sequence[str]
    features: FloatArray
    log_errors: dict[str, FloatArray]
    seconds: float = 1.0


@lru_cache
def read_table() -> Table:
    """The table that is shipped."""
    return parse_table(json.loads(resources.files(__package__).joinpath("portfolio.json").read_text()))


def parse_table(content: Mapping[str, Any]) -> Table:
    """From the content of its file."""
    errors = {target: np.array(rows) for target, rows in content["log10_errors"].items()}
    return Table(content["methods"], np.array(content["features"]), errors, content["seconds"])


def likeness(table: Table, model_features: FloatArray) -> FloatArray:
    """(R,) weights of the table's models, which add up to 1."""
    scale = np.maximum(table.features.std(axis=0), 1e-9)
    # Whether mini-buckets need to be split hangs on it.
    scale[NAMES.index("log2_entries")] /= 2
    squares = np.mean(((table.features - model_features) / scale) ** 2, axis=1)
    weights = np.exp((squares.min() - squares) / (2 * BANDWIDTH**2))
    return np.asarray(weights / weights.sum())


class Choice(NamedTuple):
    """Candidates that run, the best first, those that stand by, and by labels the expected errors of a run of a second,
    from which they fall as the root of the seconds."""

    running: list[Candidate]
    standing_by: list[Candidate]
    errors: dict[str, float]


def choose(model: Model, candidates: Sequence[Candidate], target: Target) -> Choice:
    """Who runs.

    Each is the one that lowers the expected logarithm of the least error so far by most, of another kind than those
    before it. Candidates that the table does not know run, too.
    """
    table = read_table()
    columns = {name: column for column, name in enumerate(table.methods)}
    strangers = [candidate for candidate in candidates if candidate.name_with_settings not in columns]
    left = {candidate.label: candidate for candidate in candidates if candidate.name_with_settings in columns}
    if not left:
        return Choice(strangers, [], {})
    model_features, errors = features(model), table.log_errors[target]
    weights = likeness(table, model_features)
    if target == "marginals" and model_features[NAMES.index("log2_field")] <= np.log2(WEAKEST):
        # Without fields a fixed point keeps the symmetry of states, which draws break.
        fixed_points = [each for each in left.values() if each.method_with_settings.kind == "iteration"]
        symmetric = [columns[each.name_with_settings] for each in fixed_points]
        errors = np.where(np.isin(np.arange(errors.shape[1]), symmetric), errors.min(), errors)
    expected = {label: weights @ errors[:, columns[left[label].name_with_settings]] for label in left}
    worst = max(min(expected.values()) + HOPELESS, np.log10(LARGEST[target]))
    least, chosen = np.full(len(weights), np.inf), list[Candidate]()
    while left:
        kinds = {each.kind for each in chosen}
        others = [label for label in left if left[label].kind not in kinds] or list(left)
        gains = {label: np.minimum(least, errors[:, columns[left[label].name_with_settings]]) for label in others}
        best = min(others, key=lambda label: (expected[label] > worst, weights @ gains[label], expected[label]))
        least = gains[best]
        chosen.append(left.pop(best))
    hopeful = sum(expected[candidate.label] <= worst for candidate in chosen[: ENTRANTS[target]])
    expected_errors = {label: float(10.0**exponent * table.seconds**0.5) for label, exponent in expected.items()}
    return Choice([*chosen[:hopeful], *strangers], chosen[hopeful:], expected_errors)
