"""States of high probability that gibbs plans with, and probes: that there is somewhere else to be."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import spinbench
from spinbench.api.burn_in import Climb, Probes
from spinbench.api.trace import Trace
from spinbench.mathematics.graphs.rows import compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import Scan, by_variable, layout, scan_tables, sweep_tables
from spinbench.methods.gibbs.gibbs import Gibbs
from spinbench.methods.gibbs.modes import find_pair_mode
from spinbench.methods.gibbs.probes import count_lost_probes
from spinbench.models import PairwiseModel, generators


def random_model(n, edges, seed=0):
    rng = np.random.default_rng(seed)
    return PairwiseModel.from_edges(2 * rng.normal(size=n), edges, 2 * rng.normal(size=len(edges)))


def mode_of(model, tables_of):
    plan = layout(model, "chromatic")
    tables = tables_of(model, plan, compressed_rows(model, plan.order))
    mode = np.empty(model.num_variables)
    mode[plan.order] = find_pair_mode(model, plan.order, tables)
    assert np.array_equal(find_pair_mode(model, plan.order, tables), mode[plan.order])
    return tables, mode


@pytest.mark.parametrize("tables_of", [sweep_tables, scan_tables])
def test_the_mode_of_a_small_model_is_found(tables_of):
    model = random_model(14, list(itertools.combinations(range(14), 2)), seed=4)
    tables, mode = mode_of(model, tables_of)
    assert isinstance(tables, Scan) == (tables_of is scan_tables)
    states = (np.arange(2**14)[:, None] >> np.arange(14)) & 1
    assert model.log_weight(mode) == pytest.approx(model.log_weight(states).max())


def test_the_mode_is_a_local_maximum_of_a_large_model():
    index = np.arange(90_000).reshape(300, 300)
    pairs = [(index[:, :-1], index[:, 1:]), (index[:-1], index[1:])]
    model = random_model(90_000, np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs]))
    _, mode = mode_of(model, sweep_tables)
    fields = model.biases + model.csr() @ mode
    assert (fields[mode == 1] > 0).all()
    assert (fields[mode == 0] <= 0).all()


def test_variables_without_fields_do_not_keep_the_ascent_going():
    model = PairwiseModel.from_edges(np.zeros(6), [(0, 1), (1, 2), (2, 3)], [1.0, -1.0, 1.0])
    _, mode = mode_of(model, sweep_tables)
    assert model.log_weight(mode) == pytest.approx(1.0)


@pytest.mark.parametrize("scan", ["chromatic", "raster", "random"])
@pytest.mark.parametrize("model", [generators.grid(4, 5, seed=0), generators.sherrington_kirkpatrick(9, seed=1)])
def test_no_single_change_raises_the_weight(model, scan):
    tables = Gibbs(scan=scan).plan(model)
    state = by_variable(tables.order, tables.mode)
    others = np.abs(state - np.eye(len(state)))
    assert (model.log_weight(others) <= model.log_weight(state)).all()


def build_trace(levels: list[float]) -> Trace:
    """8 chains that report two probabilities, of which the second goes through `levels`, two steps each."""
    trace = Trace({"p": "sum"})
    for level in levels:
        p = np.full((2, 8), 0.5)
        p[1] = level
        trace.add({"p": 2 * p}, 2)
    return trace


@pytest.mark.parametrize(("far", "lost"), [(0, 0), (1, 0), (2, 2), (24, 24)])
def test_probes_that_no_chain_has_met_are_counted(far: int, lost: int) -> None:
    """One of 24 may be chance; the last 8 of 32 are where the chains began."""
    trace, means = build_trace([0.9, 0.95] * 8), np.full((2, 32), 0.5)
    means[1] = 0.8
    means[1, :far] = 0.6
    trace.probes["p"] = Probes(means, 2, 16)
    assert count_lost_probes(trace, "p") == (lost, np.inf)


def test_places_that_chains_have_left_are_as_rare_as_chances_to_come_back_were() -> None:
    """8 chains of 32 steps, which took up to 16 to leave: 16 chances."""
    trace, means = build_trace([0.9, 0.95] * 8), np.full((2, 32), 0.5)
    means[1] = 0.8
    means[1, -9:] = 0.6
    trace.probes["p"] = Probes(means, 2, 16)
    assert count_lost_probes(trace, "p") == (0, 16)


def test_a_chain_must_have_been_there_for_as_long_as_the_probe() -> None:
    """Means of four steps of a chain that goes to and fro are between its ends."""
    trace, means = build_trace([0.1, 0.9] * 8), np.full((2, 16), 0.5)
    means[1] = 0.9
    trace.probes["p"] = Probes(means, 2, 16)
    assert count_lost_probes(trace, "p") == (0, np.inf)
    trace.probes["p"] = Probes(means, 4, 16, began=False)
    assert count_lost_probes(trace, "p") == (16, np.inf)
    trace.probes["p"] = Probes(means, 4, 16)
    trace.climb = Climb(np.zeros(1), np.zeros((1, 1, 8)))  # chains begin elsewhere then, too
    assert count_lost_probes(trace, "p") == (16, np.inf)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_chains_in_one_of_two_wells_are_not_believed(backend: str) -> None:
    """A ferromagnet whose chains all begin in one well, and stay there: p is 1/2, as half of the probes see."""
    n = 14
    edges = np.argwhere(np.triu(np.ones((n, n)), 1))
    model = PairwiseModel.from_edges(np.full(n, -(n - 1) / 2), edges, np.ones(len(edges)))
    start = np.zeros((n, 8), dtype=np.int8)
    result = spinbench.run(model, "blocks", backend, 600, size=8, start=start, log_z="none")
    assert result.marginals.max() < 0.1
    assert result.diagnostics["probes_astray"] > 8
    assert result.status == "marginals not mixed"
