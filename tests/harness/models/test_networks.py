"""Random Bayesian networks: their law, their evidence, their seeds."""

from __future__ import annotations

import numpy as np
import pytest

import spinbench
from spinbench import reference
from spinbench.errors import ModelError
from spinbench.models import simplify
from spinbench.models.networks import bayesian_network
from spinbench.reference.elimination.bucket_tree import BucketTree
from spinbench.reference.problem import Problem


def test_tables_are_conditional_probabilities_and_the_evidence_is_possible() -> None:
    model = bayesian_network(layers=4, width=12, parents=3, determinism=0.5, states=3, observed=0, seed=2)
    assert [factor.scope[-1] for factor in model.factors] == list(range(48))
    for k, factor in enumerate(model.factors):
        assert [v // 12 for v in factor.scope[:-1]] == [k // 12 - 1] * 3 * (k >= 12)
        np.testing.assert_allclose(np.exp(factor.log_table).sum(axis=-1), 1.0)
    deterministic = [bool((factor.log_table.max(axis=-1) == 0).all()) for factor in model.factors]
    assert not any(deterministic[:12])
    assert 8 <= sum(deterministic) <= 28  # 18 of 36 are expected
    for seed in range(5):
        seen = bayesian_network(layers=3, width=8, determinism=1.0, observed=4, seed=seed)
        assert [v // 8 for v in range(24) if v not in seen.origin.free] == [2] * 4
        assert -np.inf < reference.solve(seen, cache=False, marginals=False).log_z <= 0


def test_without_observations_all_sums_out() -> None:
    assert simplify(bayesian_network(observed=0), 99).factors == ()


def test_what_was_out_of_reach_is_exact() -> None:
    model = bayesian_network(width=60, seed=1)
    whole = BucketTree.build(Problem(model))
    assert whole.memory(marginals=True) > 2**30
    found = spinbench.exact(model, max_gib=1.0, cache=False)
    assert found.status == "ok"
    assert "open_marginals" not in found.diagnostics
    assert found.log_z < 0
    assert np.isfinite(found.marginals).all()


def test_seeds_keep_their_meaning() -> None:
    model = bayesian_network()
    assert model.content_hash == bayesian_network(seed=0).content_hash != bayesian_network(seed=1).content_hash
    assert reference.solve(model, marginals=False, cache=False).log_z == pytest.approx(-3.998317373020436, abs=1e-9)


@pytest.mark.parametrize(
    "wrong",
    [
        {"layers": 0},
        {"parents": 200},
        {"determinism": 1.5},
        {"observed": 101},
        {"states": 0},
        {"seed": -1},
        {"states": 40, "parents": 5},
    ],
)
def test_what_cannot_be_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ModelError, match="model 'bayesian_network'"):
        bayesian_network(**wrong)
