"""Exact answers of many models at once: those of each alone."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench.backends.jax.exact import batch
from spinbench.errors import IntractableError, ModelError, UnsupportedError
from spinbench.models import FactorGraph, Model, condition, generators


def drawn(seed: int, worst: float = -1.0) -> FactorGraph:
    """Variables of two to four states, tables of two and three of them, one of which has a small entry."""
    rng = np.random.default_rng(seed)
    cards, scopes = (2, 3, 4, 2, 3), [(0, 1), (1, 2, 3), (3, 4), (4, 0), (2,)]
    tables = [(scope, rng.normal(size=[cards[v] for v in scope])) for scope in scopes]
    tables[1][1][0, 1, 0] = worst
    return FactorGraph.from_log_tables(cards, tables)


MODELS: dict[str, list[Model]] = {
    "grids": [generators.grid(5, 5, seed=seed) for seed in range(7)],
    "tables": [drawn(seed) for seed in range(5)],
    "zeros": [drawn(seed, -np.inf) for seed in range(3)],
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("max_bytes", [2**30, 2**18])
def test_each_has_its_own_answer(name: str, max_bytes: int) -> None:
    models = MODELS[name]
    found = batch.solve(models, max_bytes=max_bytes)
    assert len(found) == len(models)
    for model, answer in zip(models, found, strict=True):
        exact = spinbench.exact(model)
        assert answer.log_z == pytest.approx(exact.log_z, rel=1e-12)
        assert np.hstack(answer.marginals) == pytest.approx(np.hstack(exact.marginals), abs=1e-12)
        assert answer.log_z_kind == "exact"


def test_nothing_is_left() -> None:
    (answer,) = batch.solve([condition(drawn(0), dict.fromkeys(range(5), 0))])
    assert answer.log_z == pytest.approx(float(drawn(0).log_weight(np.zeros(5, dtype=np.int64))))


def test_what_is_no_batch() -> None:
    assert batch.solve([]) == []
    with pytest.raises(UnsupportedError, match="has other tables or states than grid"):
        batch.solve([generators.grid(5, 5), generators.grid(5, 4)])
    with pytest.raises(IntractableError, match="elimination takes more than"):
        batch.solve([generators.grid(12, 12)], max_bytes=2**12)
    impossible = FactorGraph.from_log_tables(
        (2, 2), [((0, 1), [[-np.inf, 0.0], [0.0, -np.inf]]), ((0, 1), [[0.0, -np.inf], [-np.inf, 0.0]])]
    )
    with pytest.raises(ModelError, match="no state"):
        batch.solve([impossible])
