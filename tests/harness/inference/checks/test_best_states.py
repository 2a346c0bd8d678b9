"""What states weigh together is below log Z, and all of it where every state is there: zeros, K-ary, evidence."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from bounded_models import KINDS, factors, log_z

import spinbench
from spinbench.api import Estimate
from spinbench.errors import ModelError
from spinbench.inference.checks import best_states as weighed
from spinbench.mathematics.rounding import work_of
from spinbench.models import Model, PairwiseModel, condition

GRAPHS = {**KINDS, "fields": factors(3, 1, 0.2), "quadruples with zeros": factors(2, 4, 0.15)}
MODELS = 8


def drawn(kind: str) -> list[Model]:
    """Every other one with evidence, as far as that is possible."""
    found = []
    for k in range(MODELS):
        rng = np.random.default_rng([k, 2])
        model = GRAPHS[kind](np.random.default_rng([k, 1]))(rng)
        for state in range(2 if k % 2 else 0):
            try:
                model = condition(model, {int(rng.integers(model.num_variables)): state})
            except ModelError:
                continue
        found.append(model)
    return found


@pytest.mark.parametrize("kind", GRAPHS)
def test_some_states_weigh_less_than_z_and_all_of_them_z(kind: str) -> None:
    for model in drawn(kind):
        (true, slack), room = log_z(model), work_of(model).allowance()
        every = np.array(list(itertools.product(*map(range, model.cardinalities)))).T
        some = every[:, np.random.default_rng(1).integers(every.shape[1], size=40)]
        values = [weighed.below(model, states).value for states in (some, np.hstack([some, some]), every)]
        assert values[0] == values[1] <= values[2] <= true + slack
        assert values[2] == pytest.approx(true, rel=0, abs=2 * room + slack)


@pytest.mark.parametrize("kind", ["pairwise", "triples with zeros", "K-ary with zeros", "quadruples with zeros"])
def test_a_result_has_what_its_draws_weigh(kind: str) -> None:
    """Of the model that was given, whatever fell away before they were drawn."""
    told = 0
    for model in drawn(kind)[:4]:
        found = spinbench.run(model, "wmb", "numpy", 32, chains=8, draws=True, ibound=1)
        bounds = [bound for bound in found.bounds if bound.by == weighed.BY]
        true, slack = log_z(model)
        assert [(bound.side, bound.grade) for bound in bounds] == [("lower", "certified")] * (
            found.log_z_kind != "exact"
        )
        for bound in bounds:
            assert (bound.side, bound.grade) == ("lower", "certified")
            assert bound.value <= true + slack
            told += 1
            if model.origin is None:  # else draws are of what the evidence is of, too
                assert bound.value > model.log_weight(found.draws[0].T).max() - 1e-6
    assert told


def test_exact_draws_bound_log_z_where_the_method_gives_none() -> None:
    model = PairwiseModel.from_edges(np.linspace(-1, 0.5, 6), [(k, k + 1) for k in range(5)], [0.6] * 5)
    found = spinbench.run(model, "cftp", "numpy", 50, chains=16)
    assert found.log_z is None
    assert [bound.by for bound in found.bounds] == [weighed.BY]
    true, slack = log_z(model)
    assert true - 3 < found.bounds[0].value <= true + slack


def test_dead_draws_say_nothing() -> None:
    pair = spinbench.FactorGraph.from_tables((2, 2), [((0, 1), [[0.0, 1.0], [1.0, 0.0]])])
    said = Estimate(draws=(np.zeros((2, 3), dtype=np.int8), None))
    assert weighed.by_draws(pair, said) == said
