"""Sweeps over flat factor tables at any inverse temperature, as arrays and compiled, against enumeration."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from small_graphs import SCOPES, chi_square, graph

from spinbench.backends.numba.tables import layout, sweeps
from spinbench.foundation.trees import map_arrays
from spinbench.inference import registry
from spinbench.mathematics.graphs import table_layouts
from spinbench.mathematics.graphs.factor_tables import FactorTables, factor_tables
from spinbench.mathematics.graphs.table_layouts import FLOOR, marginal_rows, sweep_order, table_sweep
from spinbench.mathematics.heat_bath.table_updates import TableBath

BACKENDS = ["numpy", "jax", "numba"]
CHAINS = 20_000


SIZES = [3, 2, 1, 3, 2, 3]
MODELS = {"zeros": graph(SIZES, SCOPES, 1, 0.35), "positive": graph(SIZES, SCOPES, 2, 0.0)}


@cache
def states(name: str) -> np.ndarray:
    """(N, S), in C order."""
    return np.indices(MODELS[name].cardinalities).reshape(len(MODELS[name].cardinalities), -1)


@cache
def law(name: str, beta: float) -> np.ndarray:
    """(S,) probabilities of the states at an inverse temperature; zeros are floored after factors of one scope are
    multiplied."""
    tables, x, sizes = factor_tables(MODELS[name]), states(name), np.array(SIZES)
    log_p = np.zeros(x.shape[1])
    for f in range(len(tables.offsets) - 1):
        scope = tables.scope_variables[tables.scope_starts[f] : tables.scope_starts[f + 1]]
        table = tables.values[tables.offsets[f] : tables.offsets[f + 1]].reshape(sizes[scope])
        finite = np.isfinite(table)
        if beta < 1:
            table = beta * np.where(finite, table, table[finite].min() - FLOOR)
        log_p += table[tuple(x[scope])]
    return np.exp(log_p - np.logaddexp.reduce(log_p))


class ArraySweeps:
    """On a backend with arrays."""

    def __init__(self, backend: str, tables: FactorTables, scan: Any) -> None:
        self.backend = registry.backend_class(backend)()
        put = self.backend.to_device
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(table_layouts, "SMALL", 0)
            sweep = table_sweep(tables, scan, True)
        assert (len(sweep.sections) > 1) == (scan == "chromatic")
        self.tables = map_arrays(lambda a: put(np.asarray(a)), sweep)
        self.bath = TableBath(self.backend)
        self.rows = len(marginal_rows(tables.cardinalities)[0])

    def run(self, function: Any, *arrays: np.ndarray) -> Any:
        put = self.backend.to_device
        return map_arrays(self.backend.to_host, self.backend.compile(function)(self.tables, *map(put, arrays)))

    def sweep(self, x: np.ndarray, beta: np.ndarray, *, backward: bool) -> tuple[np.ndarray, np.ndarray]:
        empty, key = np.zeros((self.rows + 1, x.shape[1])), self.backend.key(3)

        def sweep(t: Any, x: Any, p: Any, beta: Any) -> Any:
            return self.bath.sweep_and_conditionals(key, t, x, p, beta, backward=backward)

        x_after, p = self.run(sweep, x.astype(np.int32), empty, beta)
        return x_after, p[:-1]

    def log_transition(self, x: np.ndarray, mode: np.ndarray) -> np.ndarray:
        return self.run(self.bath.log_transition, x.astype(np.int32), mode.astype(np.int32))

    def log_weights(self, x: np.ndarray, floored: bool) -> np.ndarray:
        return self.run(lambda t, x: self.bath.log_weights(t.entries, x, floored=floored), x.astype(np.int32))


class NumbaSweeps:
    """On numba."""

    def __init__(self, _: str, tables: FactorTables, scan: Any) -> None:
        registry.backend_class("numba")()
        self.tables = layout.lane_tables(tables, np.dtype(np.float64))
        self.rows = len(marginal_rows(tables.cardinalities)[0])
        self.order = sweep_order(tables, scan)[0]

    def chains(self, x: np.ndarray) -> layout.LaneChains:
        return layout.lane_chains(5, x, np.dtype(np.float64))

    def sweep(self, x: np.ndarray, beta: np.ndarray, *, backward: bool) -> tuple[np.ndarray, np.ndarray]:
        chains = self.chains(x)
        chains.betas.ravel()[: x.shape[1]] = beta
        sums = np.zeros((len(chains.x), self.rows, chains.x.shape[2]))
        order = self.order[::-1].copy() if backward else self.order
        sweeps.run_sweeps(self.tables, order, sweeps.Request(True, True, 4, 5), chains, sums)
        return layout.merge_lane_blocks(chains.x, x.shape[1]).astype(np.int64), layout.merge_lane_blocks(
            sums, x.shape[1]
        )

    def log_transition(self, x: np.ndarray, mode: np.ndarray) -> np.ndarray:
        states = self.chains(x).x
        levels = np.zeros((len(states), states.shape[2]))
        sweeps.force_sweep(self.tables, self.order, mode, states, levels)
        return layout.merge_lane_blocks(levels, x.shape[1])

    def log_weights(self, x: np.ndarray, floored: bool) -> np.ndarray:
        states = self.chains(x).x
        log_weights = np.zeros((len(states), states.shape[2]))
        sweeps.sum_weights(self.tables, floored, states, log_weights)
        return layout.merge_lane_blocks(log_weights, x.shape[1])


@cache
def sweeps_of(backend: str, name: str, scan: str) -> Any:
    return (NumbaSweeps if backend == "numba" else ArraySweeps)(backend, factor_tables(MODELS[name]), scan)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("name", "scan", "backward"),
    [("zeros", "chromatic", False), ("zeros", "raster", True), ("positive", "raster", False)],
)
def test_each_chain_keeps_the_law_of_its_temperature(backend: str, name: str, scan: str, backward: bool) -> None:
    """Chains of three temperatures beside each other, from exact draws; at beta = 0 from a state of no weight."""
    x, rng = states(name), np.random.default_rng(4)
    betas = [1.0, 0.3, 0.0]
    starts = [rng.choice(x.shape[1], p=law(name, beta), size=CHAINS) for beta in betas[:2]]
    starts.append(np.full(CHAINS, x.shape[1] - 1))
    after, p = sweeps_of(backend, name, scan).sweep(
        x[:, np.concatenate(starts)], np.repeat(betas, CHAINS), backward=backward
    )
    end_states = np.ravel_multi_index(tuple(after), MODELS[name].cardinalities).reshape(3, CHAINS)
    variables, values = marginal_rows(np.array(MODELS[name].cardinalities))
    for k, beta in enumerate(betas):
        assert chi_square(np.bincount(end_states[k], minlength=x.shape[1]), law(name, beta)) > 1e-4
        exact = (x[variables] == values[:, None]) @ law(name, beta)
        conditionals = p[:, k * CHAINS : (k + 1) * CHAINS]
        np.testing.assert_array_less(
            abs(conditionals.mean(axis=1) - exact), 5 * conditionals.std(axis=1) / np.sqrt(CHAINS) + 1e-9
        )


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MODELS)
def test_transitions_leave_the_law_as_it_is(backend: str, name: str) -> None:
    """Σ_s p(s) T(s* <- s) = p(s*) for every s*, to rounding."""
    x, p = states(name), law(name, 1.0)
    possible = np.flatnonzero(p)
    for target in possible[:: max(1, len(possible) // 6)]:
        log_t = sweeps_of(backend, name, "raster").log_transition(x[:, possible], x[:, target])
        assert np.exp(log_t) @ p[possible] == pytest.approx(p[target], rel=1e-6)


@pytest.mark.parametrize("backend", BACKENDS)
def test_log_weights_are_sums_of_entries(backend: str) -> None:
    model, x = MODELS["zeros"], states("zeros")
    constant = factor_tables(model).log_constant
    log_weights = sweeps_of(backend, "zeros", "raster").log_weights(x, False)
    np.testing.assert_allclose(log_weights + constant, model.log_weight(x.T), rtol=1e-6)
    cold = sweeps_of(backend, "zeros", "raster").log_weights(x, True)
    np.testing.assert_allclose(cold - np.logaddexp.reduce(0.3 * cold) / 0.3, np.log(law("zeros", 0.3)) / 0.3, atol=1e-4)
    possible = np.isfinite(log_weights)
    np.testing.assert_allclose(cold[possible], log_weights[possible], rtol=1e-6)
    assert (cold[~possible] < log_weights[possible].max() - FLOOR).all()
