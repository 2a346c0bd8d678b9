"""The heaviest state is the one that enumeration finds."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from random_models import many, tree

from spinbench.errors import IntractableError, ModelError
from spinbench.models import FactorGraph, Model, condition, generators
from spinbench.reference.heaviest import heaviest

MODELS = many(40, 5) + [tree(np.random.default_rng(seed), 6, 0.3) for seed in range(10)]


def enumerated(model: Model) -> np.ndarray:
    """Log weights of all states."""
    return model.log_weight(np.array(list(itertools.product(*(range(k) for k in model.cardinalities)))))


@pytest.mark.parametrize("model", MODELS, ids=range(len(MODELS)))
def test_no_state_is_heavier(model: Model) -> None:
    state, weight = heaviest(model)
    assert state.shape == (model.num_variables,)
    assert state.dtype == np.int64
    assert weight == model.log_weight(state)
    assert weight == pytest.approx(enumerated(model).max(), rel=1e-12, abs=1e-12)


def test_evidence_changes_it_as_it_should() -> None:
    model = generators.grid(3, 3, seed=2)
    state, _ = heaviest(model)
    other = condition(model, {4: 1 - int(state[4])})
    assert heaviest(other)[1] == pytest.approx(enumerated(other).max(), rel=1e-12)


def test_a_wide_model_names_its_width_and_a_contradiction_is_refused() -> None:
    with pytest.raises(IntractableError, match=r"bucket_tree meets width 6 and would take .* is allowed"):
        heaviest(generators.grid(6, 6, seed=1), max_bytes=1000)
    tables = [((0,), [1.0, 0.0]), ((0, 1), [[0.0, 0.0], [1.0, 1.0]])]
    with pytest.raises(ModelError, match="Z = 0"):
        heaviest(FactorGraph.from_tables((2, 2), tables))
