"""Compiled operations over arrays do what those of `TableBath` do, number for number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from spinbench.api import map_arrays
from spinbench.backends.numba import NumbaBackend
from spinbench.backends.numpy import NumpyBackend
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import marginal_rows, table_sweep
from spinbench.mathematics.heat_bath.table_updates import LevelWeights, TableBath
from spinbench.models import FactorGraph
from tests.helpers.random_models import graph

SEEDS = range(12)


def model(seed: int) -> FactorGraph:
    rng = np.random.default_rng(seed)
    return graph(rng, n=int(rng.integers(1, 9)), factors=int(rng.integers(0, 9)), zeros=0.3 * (seed % 3))


def layout(found: FactorGraph, scan: Any, backend: NumpyBackend) -> Any:
    tables = table_sweep(factor_tables(found), scan, single=True)
    return map_arrays(lambda leaf: backend.to_device(np.asarray(leaf)), tables)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize(("chains", "precision"), [(1, "float64"), (5, "float64"), (33, "float32")])
@pytest.mark.parametrize("backward", [False, True])
def test_sweeps(seed: int, chains: int, precision: Any, backward: bool) -> None:
    compiled, plain = NumbaBackend(precision=precision), NumpyBackend(precision=precision)
    found, rng = model(seed), np.random.default_rng(100 + seed)
    cards = np.array(found.cardinalities)
    t = layout(found, "raster" if seed % 2 else "chromatic", plain)
    beta = rng.choice([0.0, 0.4, 1.0], size=chains).astype(precision)
    begin = rng.integers(0, cards[:, None], size=(len(cards), chains)).astype(np.int32)
    blank = np.zeros((len(marginal_rows(cards)[0]) + 1, chains), dtype=precision)
    answers = []
    for backend in (compiled, plain):
        bath, x, p = backend.operations(TableBath), begin.copy(), blank.copy()
        for step in range(4):
            key = backend.fold_in(backend.key(seed), step)
            x, p = bath.sweep_and_conditionals(key, t, x, p, beta, backward=backward)
        answers.append((x, p, bath.log_weights(t.entries, x), bath.log_weights(t.entries, x, floored=True)))
    (x, p, exact, soft), (other_x, other_p, other_exact, other_soft) = answers
    np.testing.assert_array_equal(x, other_x)
    tolerance = 1e-12 if precision == "float64" else 1e-5
    np.testing.assert_allclose(p[:-1], other_p[:-1], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(exact, other_exact, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(soft, other_soft, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("logs", [False, True])
def test_sweeps_by_level(seed: int, logs: bool) -> None:
    compiled, plain = NumbaBackend(), NumpyBackend()
    found, rng = model(seed), np.random.default_rng(200 + seed)
    cards = np.array(found.cardinalities)
    t = layout(found, "raster", plain)
    begin = rng.integers(0, cards[:, None], size=(len(cards), 7)).astype(np.int32)
    values = rng.normal(size=5) if logs else np.arange(1.0, 6.0)
    weights = LevelWeights(np.float64(-2.0), np.float64(1.3), values, 1.0 if logs else 0.0, logs)
    answers = []
    for backend in (compiled, plain):
        bath, x = backend.operations(TableBath), begin.copy()
        d = bath.log_weights(t.entries, x, floored=True)
        for step in range(4):
            x, d = bath.sweep_by_level(backend.fold_in(backend.key(seed), step), t, x, d, weights)
        np.testing.assert_allclose(d, bath.log_weights(t.entries, x, floored=True), atol=1e-10)
        answers.append((x, d))
    np.testing.assert_array_equal(answers[0][0], answers[1][0])
    np.testing.assert_allclose(answers[0][1], answers[1][1], rtol=1e-10)


def test_the_states_that_are_given_stay_where_levels_are_swept() -> None:
    backend, found = NumbaBackend(), model(3)
    t, x = layout(found, "raster", backend), np.zeros((found.num_variables, 3), dtype=np.int32)
    bath = backend.operations(TableBath)
    d = bath.log_weights(t.entries, x, floored=True)
    kept = d.copy()
    weights = LevelWeights(np.float64(0.0), np.float64(1.0), np.zeros(2), 0.0, logs=True)
    bath.sweep_by_level(backend.key(0), t, x, d, weights)
    assert not x.any()
    np.testing.assert_array_equal(d, kept)
