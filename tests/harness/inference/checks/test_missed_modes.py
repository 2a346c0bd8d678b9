"""Phases and islands of states that nothing leads to: runs that have missed one that weighs are not believed."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.inference.checks.missed_modes import flag_missed_modes
from spinbench.inference.checks.probes import anneal
from spinbench.mathematics.graphs.factor_tables import factor_tables
from spinbench.mathematics.graphs.table_layouts import table_sweep
from spinbench.models import FactorGraph
from tests.helpers.planted_parities import planted_forms, planted_parities
from tests.helpers.small_exact_models import SMALL_MODELS

NOT_MIXED = "marginals not mixed, log Z unresolved"


def hub(leaves: int = 14, share: float = 0.6) -> tuple[FactorGraph, float]:
    """A variable that leaves its neighbours of nine states free or wants one state of all: no annealing comes to that.

    Returns:
        the model and its log Z; the wide phase weighs 1 - `share`.
    """
    wish = np.zeros((2, 9))
    wish[1] = [2.0] + [-2.0] * 8
    free, bound = (leaves * np.logaddexp.reduce(row) for row in wish)
    bias = float(free - bound + np.log(share / (1 - share)))
    factors = [([0, 1 + i], wish) for i in range(leaves)] + [([0], np.array([0.0, bias]))]
    return FactorGraph.from_log_tables([2] + [9] * leaves, factors), float(free - np.log(1 - share))


def doubts_of_the_free(model: FactorGraph, log_z: float) -> tuple[str, ...]:
    """Of a run that has seen the first variable in state 0 alone, and the others free."""
    others = model.num_variables - 1
    seen, claims = np.append(0.0, np.full(others, 0.5)), np.full(others + 1, 0.005)
    return flag_missed_modes(model, Estimate(seen, claims, log_z, 0.005, "estimate"))


@pytest.mark.parametrize(("share", "believed"), [(0.6, False), (1e-9, True)])
def test_populations_that_miss_a_phase_are_believed_where_it_weighs_nothing(share: float, believed: bool) -> None:
    model, log_z = hub(share=share)
    found = spinbench.run(model, "smc", "numpy", 6, seed=1, temperatures=8, particles=8, simplify=False)
    assert (found.status == "ok") == believed
    assert not believed or abs(found.log_z - log_z) < 4 * found.log_z_error_bound
    assert believed or found.status == NOT_MIXED


@pytest.mark.parametrize("name", ["hub", *SMALL_MODELS])
def test_what_is_right_is_never_contradicted(name: str) -> None:
    model = hub()[0] if name == "hub" else SMALL_MODELS[name]()
    exact = spinbench.exact(model, cache=False)
    sure = (
        np.zeros(model.num_variables) if isinstance(exact.marginals, np.ndarray) else [0 * p for p in exact.marginals]
    )
    said = Estimate(exact.marginals, sure, exact.log_z, 0.0, "estimate")
    assert not flag_missed_modes(model, said)


def test_too_small_a_sum_is_contradicted_unless_it_is_a_bound() -> None:
    model, log_z = hub()
    flat = [np.full(k, 1 / k) for k in model.cardinalities]
    half = [np.full(k, 0.5) for k in model.cardinalities]
    said = Estimate(flat, half, log_z - 0.9, 0.01, "estimate")
    assert flag_missed_modes(model, said) == ("log Z unresolved",)
    assert not flag_missed_modes(model, dataclasses.replace(said, log_z_se=0.4, log_z_error_bound=1.2))
    assert not flag_missed_modes(model, dataclasses.replace(said, log_z_kind="lower"))


def test_a_planted_state_is_known_that_no_local_move_leads_to() -> None:
    """Above it there are only disordered states, whose sum is that of independent parities."""
    variables, triples, beta = 80, 96, 1.2
    disordered = variables * np.log(2) + triples * np.log(np.cosh(beta))
    said = Estimate(np.full(variables, 0.5), np.full(variables, 0.01), disordered, 0.01, "estimate")
    assert flag_missed_modes(planted_parities(variables, triples, beta), said) == (
        "marginals not mixed",
        "log Z unresolved",
    )


def chain_of_wells(n: int = 60, states: int = 5, barrier: float = 4.0) -> FactorGraph:
    """A first state that holds together, and others, free among themselves, that weigh as much as it does."""
    pair = np.zeros((states, states))
    pair[0, 1:] = pair[1:, 0] = -barrier
    own = np.log(states - 1) * (np.arange(states) == 0)
    return FactorGraph.from_log_tables(
        [states] * n, [*(([i, i + 1], pair) for i in range(n - 1)), *(([i], own) for i in range(n))]
    )


@pytest.mark.parametrize(("lacking", "believed"), [(0.3, False), (0.0, True)])
def test_patterns_of_many_small_wells_are_known(lacking: float, believed: bool) -> None:
    """Of a chain that changes sides where it likes no product law has more than one pattern; a tree has them all."""
    model = chain_of_wells()
    exact = spinbench.exact(model, cache=False)
    errors = [np.full(len(p), 0.01) for p in exact.marginals]
    said = Estimate(exact.marginals, errors, exact.log_z + np.log1p(-lacking), 0.02, "estimate")
    assert flag_missed_modes(model, said) == (() if believed else ("log Z unresolved",))


@pytest.mark.parametrize(("error", "believed"), [(0.003, False), (0.03, True)])
def test_log_z_lacks_a_well_that_was_not_seen_however_wide_marginals_are(error: float, believed: bool) -> None:
    """Twelve spins that all agree, and favour one side: up, as the run has it, is 19 in 20."""
    pairs = [([i, j], 0.7 * np.eye(2)) for i in range(12) for j in range(i)]
    model = FactorGraph.from_log_tables([2] * 12, [*pairs, *(([i], [0.0, 0.25]) for i in range(12))])
    exact = spinbench.exact(model, cache=False)
    up = 1 / (1 + np.exp(-12 * 0.25))
    said = Estimate(np.full(12, 0.999), np.full(12, 0.02), exact.log_z + np.log(up), error, "estimate")
    found = flag_missed_modes(model, said)
    assert found == (() if believed else ("log Z unresolved",))


@pytest.mark.parametrize(("share", "believed"), [(0.3, False), (1e-4, True)])
def test_a_phase_is_found_that_others_make_of_a_hub_once_they_follow_it(share: float, believed: bool) -> None:
    """A variable that couples a ring of others or leaves them free; the run has seen them free."""
    leaves, coupling, sign = 24, 1.6, np.array([-1.0, 1.0])
    of_ring = leaves * np.log(2 * np.array([np.cosh(coupling), np.sinh(coupling)]))
    free, ring = leaves * np.log(2), np.logaddexp.reduce(of_ring)
    bias = float(free - ring + np.log(share / (1 - share)))
    together = np.stack([np.zeros((2, 2)), coupling * np.outer(sign, sign)])
    rings = [([0, 1 + i, 1 + (i + 1) % leaves], together) for i in range(leaves)]
    model = FactorGraph.from_log_tables([2] * (leaves + 1), [*rings, ([0], [0.0, bias])])
    assert doubts_of_the_free(model, free) == (() if believed else ("marginals not mixed", "log Z unresolved"))


@pytest.mark.parametrize(("share", "believed"), [(0.9, False), (1e-4, True)])
def test_a_phase_is_weighed_in_which_few_draws_of_a_product_law_lie(share: float, believed: bool) -> None:
    """A variable that keeps neighbours in a ring from both being 1, or leaves them free; the run has seen them free."""
    leaves, apart = 60, np.zeros((2, 2, 2))
    apart[1, 1, 1] = -np.inf
    free, ring = leaves * np.log(2), leaves * np.log((1 + np.sqrt(5)) / 2)
    bias = float(free - ring + np.log(share / (1 - share)))
    rings = [([0, 1 + i, 1 + (i + 1) % leaves], apart) for i in range(leaves)]
    model = FactorGraph.from_log_tables([2] * (leaves + 1), [*rings, ([0], [0.0, bias])])
    assert doubts_of_the_free(model, free) == (() if believed else ("marginals not mixed", "log Z unresolved"))


@pytest.mark.parametrize(("beta", "long", "believed"), [(1.25, True, False), (1.25, False, True), (0.7, True, True)])
def test_marginals_alone_are_judged_of_long_runs(beta: float, long: bool, believed: bool) -> None:
    """All is disorder but for one planted state, which at the lower temperature has almost all weight."""
    said = Estimate(np.full(80, 0.5), np.full(80, 0.03), None, None, "estimate")
    model = planted_parities(80, 96, beta)
    assert flag_missed_modes(model, said, long=long) == (() if believed else ("marginals not mixed",))


def two_islands(free: int, share: float) -> FactorGraph:
    """Three equal variables, and others that are free where these are 0 and in one state of three where they are 1.

    Single updates lead from neither to the other; `share` is the weight of the latter, a single state.
    """
    same, tied = np.where(np.eye(2), 0.0, -np.inf), np.zeros((2, 3))
    tied[1, 1:] = -np.inf
    factors = [([i, (i + 1) % 3], same) for i in range(3)] + [([0, 3 + j], tied) for j in range(free)]
    factors.append(([0], np.array([0.0, free * np.log(3) + np.log(share / (1 - share))])))
    return FactorGraph.from_log_tables([2, 2, 2] + [3] * free, factors)


@pytest.mark.parametrize("method", ["gibbs", "blocks"])
@pytest.mark.parametrize("share", [0.3, 1e-9])
def test_chains_of_one_island_are_believed_where_the_other_weighs_nothing(method: str, share: float) -> None:
    model = two_islands(6, share)
    size = {"size": 3} if method == "blocks" else {}
    found = spinbench.run(model, method, "numpy", 200, start=np.zeros((9, 8), dtype=np.int8), **size)
    assert np.max(found.r_hat[3]) < 1.1  # all chains agree
    assert found.status == (NOT_MIXED if share > 0.1 else "ok")


def test_populations_that_lose_an_island_are_not_believed() -> None:
    """The narrow one has half of the weight at β = 1, and next to none before."""
    model, statuses = two_islands(9, 0.5), []
    for seed in range(6):
        found = spinbench.run(model, "smc", "numpy", 32, chains=8, seed=seed, temperatures=8, particles=8)
        statuses.append(found.status)
        assert found.status == NOT_MIXED or abs(found.marginals[0][1] - 0.5) < 4 * found.marginals_error_bound[0][1]
    assert NOT_MIXED in statuses


def test_an_island_that_the_run_has_seen_is_no_reason_to_doubt() -> None:
    found = spinbench.run(two_islands(3, 0.3), "pt", "numpy", 500, chains=8)
    assert found.status == "ok"
    assert abs(found.marginals[0][1] - 0.3) < 4 * found.marginals_error_bound[0][1]


@pytest.mark.parametrize("zeros", [False, True])
def test_the_mean_of_weights_is_z_and_of_those_of_a_state_what_it_has_of_it(zeros: bool) -> None:
    """Variables of two and three states, orders 1 to 3, scopes unsorted and twice; any product law."""
    rng = np.random.default_rng(3)
    cards, scopes = [3, 2, 3, 2, 2], [[1, 0], [2, 1, 3], [0, 1], [4], [3, 2], [4, 0]]
    tables = [rng.normal(size=[cards[v] for v in scope]) for scope in scopes]
    if zeros:
        tables[1][0, 1], tables[5][1, 2] = -np.inf, -np.inf
    model = FactorGraph.from_log_tables(cards, list(zip(scopes, tables, strict=True)), log_constant=0.4)
    flat, exact = factor_tables(model), spinbench.exact(model, cache=False)
    law = np.concatenate([rng.dirichlet(np.full(k, 2.0)) for k in cards])
    log_w, x = anneal(flat, table_sweep(flat, "chromatic", single=False), law, 4000, rng)
    w = np.exp(log_w - exact.log_z)
    for there, share in [(np.ones(4000), 1.0), (x[0] == 2, exact.marginals[0][2]), (x[3] == 0, exact.marginals[3][0])]:
        part = w * there
        assert abs(part.mean() - share) < 4 * part.std() / np.sqrt(4000)


@pytest.mark.parametrize(("q", "odd"), [(3, 0), (2, 3), (5, 2)])
def test_planted_states_are_looked_for_whatever_states_variables_have(q: int, odd: int) -> None:
    model, _ = planted_forms(q, 120, 180, 2.0, odd)
    uniform: Any = [np.full(k, 1 / k) for k in model.cardinalities]
    errors: Any = [np.full(k, 0.02) for k in model.cardinalities]
    said = Estimate(marginals=uniform, marginals_se=errors, log_z=-20.0, log_z_se=0.03)
    assert flag_missed_modes(model, said) == ("marginals not mixed", "log Z unresolved")
