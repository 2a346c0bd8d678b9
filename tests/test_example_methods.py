"""The example methods, each in a package of its own: how they are listed, refused, and pass the suite."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from unittest import SkipTest

import numpy as np
import pytest
from gate_checks import EXAMPLES, GATE, LONG_ON_JAX

import spinbench
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.inference import binding, registry
from spinbench.inference.initial_states import random_start
from spinbench.models import FactorGraph, generators
from spinbench.testing import method_checks

SOURCE = Path(__file__).parent / "example_methods"
METHODS = {
    "gradient_gibbs": ("spinbench_gradient", "GradientGibbs"),
    "state_gibbs": ("spinbench_states", "StateGibbs"),
    "tree_gibbs": ("spinbench_trees", "TreeGibbs"),
}
RUNS = {
    "gradient_gibbs": ("jax",),
    "state_gibbs": ("numpy", "numba", "jax"),
    "tree_gibbs": ("numpy", "numba", "jax"),
}
# In the suite.
CHAINS = 256
PAIRS = [(method, backend) for method, backends in RUNS.items() for backend in backends]


@pytest.fixture(autouse=True)
def _examples(install_plugin: Callable[..., Path]) -> None:
    for name, (module, cls) in METHODS.items():
        install_plugin(module, (SOURCE / f"{module}.py").read_text(), {"methods": {name: cls}})


def test_they_run_where_their_needs_are_met() -> None:
    for method, backends in RUNS.items():
        tiers = {backend: registry.support(method, backend).tier for backend in ("numpy", "numba", "jax")}
        assert {backend for backend, tier in tiers.items() if tier == "generic"} == set(backends)


def test_without_gradients_it_is_refused_in_one_sentence() -> None:
    expected = r"^numpy does not provide grad and .*; gradient_gibbs runs on jax, torch$"
    with pytest.raises(UnsupportedError, match=expected):
        spinbench.run(generators.grid(2, 2), "gradient_gibbs", "numpy", 10)


@pytest.mark.parametrize(("method", "backend"), PAIRS)
def test_marginals(method: str, backend: str) -> None:
    model = generators.grid(4, 4, c2=0.8)
    found = spinbench.run(model, method, backend, 400, chains=64, seed=5)
    error = np.abs(found.marginals - spinbench.exact(model, cache=False).marginals)
    assert (error <= 5 * found.marginals_se).all()
    assert found.marginals_se.max() < 0.01


@pytest.mark.parametrize("backend", RUNS["state_gibbs"])
def test_chains_start_from_states_of_the_variables(backend: str) -> None:
    model = FactorGraph.from_log_tables([3, 2, 200], [((0, 1), np.zeros((3, 2))), ((2,), np.zeros(200))])
    start = random_start(model, 20_000, seed=1)
    assert [sorted(set(row)) for row in start.tolist()] == [list(range(k)) for k in model.cardinalities]
    method = registry.make_method("state_gibbs", {})
    engine = binding.bind(method, backend, model, method.plan(model), precision="float32").engine
    np.testing.assert_array_equal(np.asarray(engine.init(0, start)[2]), start)
    for wrong in (start - 1, start[::-1], start[:2]):
        with pytest.raises(SpinbenchError, match=r"an array \(3, chains\) of the variables' states is needed"):
            spinbench.run(model, method, backend, 20, start=wrong)


def passed(method: str, backend: str, names: set[str] | None) -> set[str]:
    """The checks of the suite that were passed, of those names; of all, where none are given."""
    found = set()
    for check in method_checks(method, backend, chains=CHAINS):
        if names is None or check.name in names:
            with suppress(SkipTest):
                check()
                found.add(check.name)
    return found


@pytest.mark.slow
@pytest.mark.parametrize(("method", "backend"), PAIRS)
def test_they_pass_the_suite(method: str, backend: str) -> None:
    names = GATE - LONG_ON_JAX - {"calibration, dense"} if backend == "jax" else EXAMPLES
    assert len(passed(method, backend, names)) >= len(names) - 4  # no kernels, no iterations


@pytest.mark.thorough
@pytest.mark.parametrize(("method", "backend"), PAIRS)
def test_they_pass_the_whole_suite(method: str, backend: str) -> None:
    assert len(passed(method, backend, None)) > 25
