"""What falls away from a model is exact, and comes back in terms of the variables that were given."""

from __future__ import annotations

import math

import numpy as np
import pytest

import spinbench
from spinbench import reference
from spinbench.models import (
    FactorGraph,
    PairwiseModel,
    catalogue,
    condition,
    conditionals,
    simplify,
    to_pairwise,
)
from spinbench.models.networks import bayesian_network
from spinbench.models.simplification import compute_simplification
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.problem import Problem


def answers(model):
    return reference.solve(model, method="enumeration", cache=False)


def test_what_falls_away_by_kind() -> None:
    same = np.array([[0.0, -np.inf, -np.inf], [-np.inf, 0.0, 0.3]])
    soft = np.array([[0.0, 1.0], [0.5, 0.2]])
    model = FactorGraph.from_log_tables(
        [2, 2, 2, 3, 2, 2],
        [
            ((0, 1), soft),
            ((1, 2), soft),
            ((2, 0), soft),
            ((0, 2), soft),  # once more
            ((1, 0), np.full((2, 2), 0.25)),  # a constant
            ((2, 3), same),  # over 3 this sums to 1 or more
            ((4,), [0.0, -np.inf]),  # evidence
            ((4, 5), [[0.1, 0.2], [0.3, 0.4]]),  # then a factor of 5 alone, which sums out
        ],
        labels="abcdef",
    )
    simplification = compute_simplification(model)
    assert simplification.model.labels == ("a", "b", "c", "d")
    assert [factor.scope for factor in simplification.model.factors] == [(0, 1), (1, 2), (2, 0), (2, 3)]
    np.testing.assert_array_equal(simplification.model.factors[2].log_table, soft + soft.T)
    assert simplification.note == "simplified: 4 of 6 variables, 4 of 8 factors, 9 of 13 states are left"
    assert answers(simplification.model).log_z == pytest.approx(answers(model).log_z, abs=1e-12)
    assert spinbench.run(model, "exact", "numpy", pairs=True).pairs is not None


def test_what_nothing_falls_away_from_is_left_alone() -> None:
    for name in ("uai14/Grids_12", "uai14/DBN_11", "uai14/Promedus_24", "libdai/testfast", "boltzmann/neural15"):
        model = catalogue.load(name)
        assert simplify(model, 99) is model
        assert compute_simplification(model).note == ""


def test_units_of_one_variable_are_not_summed_out() -> None:
    potts = FactorGraph.from_log_tables([3, 3], [((0, 1), np.eye(3))])
    units = spinbench.models.to_factor_graph(to_pairwise(potts))
    left = simplify(units)
    for p in left.original_marginals(list(answers(left).marginals)):
        np.testing.assert_allclose(p, 1 / 3)


def ring_with_leaves() -> FactorGraph:
    """Four coupled variables; a chain of two leaves, one of them of three states, a copy, and a variable apart."""
    rng = np.random.default_rng(8)
    ring = [((k, (k + 1) % 4), rng.normal(size=(2, 2))) for k in range(4)]
    leaves = [((0, 4), rng.dirichlet(np.ones(3), size=2)), ((4, 5), rng.dirichlet(np.ones(2), size=3))]
    apart = [((6, 2), np.eye(2)), ((7,), [0.3, 0.6])]
    with np.errstate(divide="ignore"):
        log_tables = [(scope, np.log(table)) for scope, table in [*leaves, *apart]]
    return FactorGraph.from_log_tables([2, 2, 2, 2, 3, 2, 2, 2], [*ring, *log_tables], name="ring with leaves")


@pytest.mark.parametrize("backend", ["numpy", "numba"])
def test_samplers_tell_of_what_fell_away(backend) -> None:
    model = ring_with_leaves()
    expected = answers(model)
    result = spinbench.run(model, "gibbs", backend, 1000, chains=16, seed=3)
    assert result.notes[0] == "simplified: 4 of 8 variables, 4 of 8 factors, 8 of 17 states are left"
    assert result.log_z == pytest.approx(expected.log_z, abs=4 * result.log_z_se)
    for values in (result.marginals, result.marginals_se, result.ess, result.r_hat):
        assert [len(each) for each in values] == list(model.cardinalities)
    for p, se, exact in zip(result.marginals, result.marginals_se, expected.marginals, strict=True):
        assert (np.abs(p - exact) <= 4 * se + 1e-12).all()
    assert result.marginals_se[6] == pytest.approx(result.marginals_se[2])  # a copy
    assert (result.marginals_se[5] < result.marginals_se[4].max()).all()  # what is seen through noise moves less
    assert not result.marginals_se[7].any()
    assert (result.ess[7] == 16_000).all()
    assert (result.ess[5] >= result.ess[0].min()).all()


def test_belief_propagation_tells_of_what_fell_away() -> None:
    model = ring_with_leaves()
    whole = spinbench.run(model, "bp", "numpy", 2000, simplify=False)
    result = spinbench.run(model, "bp", "numpy", 2000)
    assert (result.status, whole.notes) == ("ok", ())
    assert result.log_z == pytest.approx(whole.log_z, abs=1e-6)
    for p, q in zip(result.marginals, whole.marginals, strict=True):
        np.testing.assert_allclose(p, q, atol=1e-6)
    for table, right in zip(result.pairs, whole.pairs, strict=True):
        np.testing.assert_allclose(table, right, atol=1e-6)
    assert spinbench.run(model, "bp", "numpy", 100, start=np.zeros((8, 4), dtype=np.int8)).notes == ()


def test_errors_are_carried_on_without_being_made_smaller() -> None:
    rng = np.random.default_rng(0)
    table = rng.dirichlet(np.ones(4), size=3)
    samples = rng.dirichlet([5.0, 2.0, 3.0], size=4000)
    carried = conditionals.propagate_errors(table, samples.std(axis=0))
    moved = conditionals.propagate_means(table, samples).std(axis=0)
    assert (moved <= carried).all()
    assert (carried <= 3 * moved).all()
    binary = np.stack([1 - samples[:, 0], samples[:, 0]], axis=1)
    np.testing.assert_allclose(
        conditionals.propagate_errors(table[:2], binary.std(axis=0)), (binary @ table[:2]).std(axis=0), rtol=1e-9
    )


def test_bounds_allow_for_the_rounding_of_what_fell_away() -> None:
    """What falls away here has a log Z of thousands, which no bound may be off by the last digits of."""
    rng = np.random.default_rng(2)
    factors = [((v,), rng.normal(size=2) * 1e3) for v in range(60)] + [((60, 61), rng.normal(size=(2, 2)))]
    factors += [((60, 61), rng.normal(size=(2, 2)) * 1e3), ((60, 62), rng.normal(size=(2, 2))), ((62, 61), np.eye(2))]
    model = FactorGraph.from_log_tables([2] * 63, factors)
    simplification = compute_simplification(model)
    rest = FactorGraph.from_log_tables([2] * 3, [([u - 60 for u in scope], table) for scope, table in factors[60:]])
    truth = math.fsum([*(float(np.logaddexp.reduce(table)) for _, table in factors[:60]), answers(rest).log_z])
    assert abs(answers(simplification.model).log_z - truth) <= simplification.rounding < 1e-8
    lower = spinbench.run(model, "mf", "numpy", 500)
    plain = spinbench.run(simplification.model, "mf", "numpy", 500, simplify=False)
    assert lower.log_z == pytest.approx(plain.log_z - simplification.rounding, abs=1e-10)
    assert lower.log_z <= plain.log_z - 0.5 * simplification.rounding
    upper = spinbench.run(model, "trw", "numpy", 500)
    assert upper.log_z >= truth >= lower.log_z


def test_what_was_out_of_reach_is_exact() -> None:
    model = bayesian_network(width=25, seed=1)
    assert BucketTree.build(Problem(model)).memory(marginals=True) > 0.0005 * 2**30
    result = spinbench.exact(model, max_gib=0.0005, cache=False)
    assert result.status == "ok"
    assert "open_marginals" not in result.diagnostics
    assert result.log_z < 0
    assert np.isfinite(result.marginals).all()


NETWORK = FactorGraph.from_tables(
    (2, 3, 2),
    [((0,), [0.3, 0.7]), ((0, 1), [[0.2, 0.3, 0.5], [0.1, 0.1, 0.8]]), ((1, 2), [[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]])],
)
FIELDS, COUPLINGS = [0.7, -0.4, 0.2, 1.1, -0.9], [1.5, -2.0, 0.6, 0.8]
APART = PairwiseModel.from_edges(FIELDS, [], [], name="apart")
RING = PairwiseModel.from_edges(FIELDS[:4], [(0, 1), (1, 2), (2, 3), (3, 0)], COUPLINGS, name="ring")
OBSERVED = condition(RING, {0: 1, 1: 0, 2: 1, 3: 1})
PARTED = condition(RING, {0: 1, 2: 1})
DETERMINED = FactorGraph.from_tables(
    (2, 2), [((0,), [1.0, 0.0]), ((0, 1), [[0.0, 3.0], [1.0, 1.0]])], name="determined"
)


ANSWERED = [
    *((method, {}) for method in ("gibbs", "pt", "bp", "mf", "smc", "wmb", "dhmc", "zanella")),
    *((method, {"keep": 5}) for method in ("gibbs", "pt")),
]


@pytest.mark.parametrize(("method", "options"), ANSWERED, ids=str)
@pytest.mark.parametrize("model", [NETWORK, DETERMINED, APART, OBSERVED, PARTED], ids=lambda model: model.name)
def test_what_simplification_solves_is_answered_and_not_sampled(model, method, options):
    exact = spinbench.exact(model, pairs=True)
    result = spinbench.run(model, method, "numpy", 40, **options)
    assert (result.status, result.level, result.log_z_kind, result.log_z_se) == ("ok", "exact", "exact", None)
    assert result.log_z == pytest.approx(exact.log_z, abs=1e-14)
    assert result.marginals.error_to(exact.marginals) < 1e-14
    assert max(np.max(errors) for errors in result.marginals_se) == 0.0
    for table, exact_table in zip(result.pairs, exact.pairs, strict=True):
        np.testing.assert_allclose(table, exact_table, atol=1e-14)
    assert result.notes[0] == "simplified: no variable is left to choose, so that the answer is exact"
    assert result.samples == (40 if options else 1)
    if options:
        assert result.states.shape == (16, 5, len(exact.marginals))
