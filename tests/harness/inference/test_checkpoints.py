"""What a run would have answered on its way is the same, whether it is found then or when somebody asks."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import spinbench
from spinbench.inference.checkpoints import Checkpoint
from spinbench.inference.result import Result
from spinbench.models import Model, generators

MODELS = (generators.grid(3, 3, seed=0), generators.sherrington_kirkpatrick(5, seed=0))


def _run(model: Model, chains: int, backend: str, budget: str | int = 60) -> Result:
    return spinbench.run(model, method="gibbs", backend=backend, budget=budget, chains=chains, seed=1)


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize("chains", [1, 16, 100])
def test_later_estimates_are_those_of_then(backend: str, chains: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for model in MODELS:
        later = _run(model, chains, backend)
        with monkeypatch.context() as patched:
            for limit in ("MAX_BYTES", "MAX_SHARED_BYTES"):
                patched.setattr(f"spinbench.inference.driver.{limit}", 0)
            then = _run(model, chains, backend)
        assert all(callable(point.source) for point in later.trajectory[:-1])
        assert not any(callable(point.source) for point in then.trajectory)
        assert len(later.trajectory) == len(then.trajectory) > 4
        for one, other in zip(later.trajectory, then.trajectory, strict=True):
            assert (one.samples, one.estimate.status) == (other.samples, other.estimate.status)
            assert one.estimate is one.estimate
            np.testing.assert_array_equal(one.estimate.marginals, other.estimate.marginals)
            np.testing.assert_array_equal(one.estimate.marginals_se, other.estimate.marginals_se)
            np.testing.assert_array_equal(one.estimate.log_z, other.estimate.log_z)


def test_the_newest_joint_probabilities_stay() -> None:
    def run() -> Result:
        return spinbench.run(MODELS[0], method="bp", backend="numpy", budget=40)

    asked, unasked = run(), run()
    for point in asked.trajectory:
        assert point.estimate.marginals is not None
    assert len(asked.trajectory) > 1
    np.testing.assert_array_equal(asked.pairs, unasked.pairs)


def test_a_pickled_checkpoint_has_its_estimate() -> None:
    point = _run(MODELS[0], 4, "numpy").trajectory[1]
    again = pickle.loads(pickle.dumps(point))
    assert isinstance(again, Checkpoint)
    np.testing.assert_array_equal(again.estimate.marginals, point.estimate.marginals)


def test_a_budget_of_seconds_counts_its_estimates() -> None:
    assert not any(callable(point.source) for point in _run(MODELS[0], 4, "numpy", "0.2 s").trajectory)


@pytest.mark.parametrize(
    ("method", "chains", "later"), [("gibbs", 16, True), ("gibbs", 2000, False), ("wmb", 60, True)]
)
def test_joined_batches_are_kept_where_they_are_small(method: str, chains: int, later: bool) -> None:
    """Four batches of 30 variables and 2000 chains take 1.9 MB; draws of wmb, 5.3 MB, are not joined."""
    model = generators.grid(5, 6, seed=0)
    *_, point, _ = spinbench.run(model, method, "numpy", 40, chains=chains).trajectory
    assert callable(point.source) == later
