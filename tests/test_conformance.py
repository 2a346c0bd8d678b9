"""Every backend that comes with spinbench, and every method that does on each of them, through the shipped suite.

Of each pair the whole suite runs with `-m thorough`; without it, what `GATE` and the sets below name.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from gate_checks import GATE, LONG_ON_JAX
from small_graphs import attractive

import spinbench
from spinbench.foundation import plugins
from spinbench.inference import registry
from spinbench.testing import Check, backend_checks, method_checks


def built_in(kind: registry.Kind) -> list[str]:
    points = plugins.entry_points(kind)
    return [name for name in points if all(point.dist and point.dist.name == "spinbench" for point in points[name])]


BACKENDS, METHODS = built_in("backends"), built_in("methods")
PAIRS = [(method, backend) for method in METHODS for backend in BACKENDS]
# As many as a calibration needs, so that most checks share one run.
CHAINS = 1024
# Of programs on NumPy whose steps are long.
FEWER = 256
LONG_STEPS = {"blocks", "smc", "tempered_transitions", "nested", "multicanonical", "rejection"}
# Methods of which the gate compiles programs for JAX, and looks at all sizes; the others' programs have what these
# have, and tests of their own.
CORE = {"gibbs", "dhmc", "mf", "bp", "g_mf", "exact"}
# Of the gate, too, but not on JAX, which compiles for each shape, most of a pair's time, what NumPy runs as well.
SHAPES = {
    *("accuracy, one to nine states", "accuracy, orders three and five", "accuracy, zeros", "accuracy, tree"),
    *("accuracy, a state of no weight", "accuracy, tree of factors", "calibration, three states"),
}
# As `SHAPES`, of kernels and the programs of `CORE`.
SIZES = {
    *("accuracy, 101 variables", "accuracy, wide tables", "accuracy, eleven neighbours", "kernel and program"),
    *("17 chains", "last digits", "hidden state", "start and tables stay", "frozen settings", "seeds"),
}
# And of kernels, which have loops of their own; programs have spinbench's.
OF_KERNELS = {"burn-in", "accuracy, 88 variables of several states"}
# And of programs, on NumPy, where they are looked at.
OF_PROGRAMS = {"random keys"}
# What methods take from one place, of one method of each backend.
SHARED = {"R-hat", "effective sample sizes", "random numbers in time", "random numbers of variables"}
# Methods whose steps on Numba are NumPy's, number for number; of these, all that the gate runs there.
OF_NUMPY = {"cftp", "forney_mf", "gaussian_bound", "g_bp", "g_bp_multiple", "g_bp_sequential", "g_bp_single", "g_mf"}
AS_ON_NUMPY = {"kernel", "plan", "accuracy, dense", "calibration, dense", "determinism"}
# What a pair gives up after ten seconds, always, or counts for seconds: counting is for models with zeros.
TOO_LARGE = {
    "exact.ganak": {
        *("accuracy, 101 variables", "accuracy, 88 variables of several states"),
        *("accuracy, one to nine states", "accuracy, eleven neighbours"),
    }
}

# Methods that share most of what they compile.
FAMILIES = {
    "gauge": {"g_bp", "g_bp_multiple", "g_bp_sequential", "g_bp_single"},
    "sweeps": {"gibbs", "pt", "blocks", "smc"},
}
# Settings with which the gate runs methods of which a step is long on large models; here up to 64 temperatures, and a
# hundred levels.
SHORTER: dict[str, dict[str, Any]] = {
    "nested": {"points": 2, "levels": 2},
    "tempered_transitions": {"temperatures": 4},
}


def in_gate(method: str, backend: str) -> list[Check]:
    """What the gate runs of a pair; one that does not run here has a single check."""
    native = registry.support(method, backend).tier == "native"
    if backend == "jax":
        of_core = GATE if method == "gibbs" else GATE - LONG_ON_JAX
        names = of_core if method in CORE else {"plan"}
    elif backend == "numba" and method in OF_NUMPY:
        names = AS_ON_NUMPY
    else:
        names = GATE | SHAPES | SIZES if native or method in CORE else GATE | SHAPES
        names |= OF_KERNELS if native else OF_PROGRAMS
        names |= SHARED if method == "gibbs" else set()
    names = names - TOO_LARGE.get(f"{method}.{backend}", set())
    found = method_checks(
        method, backend, chains=FEWER if method in LONG_STEPS and not native else CHAINS, **SHORTER.get(method, {})
    )
    return [check for check in found if check.name in names or len(found) == 1]


def parameter(check: Check) -> Any:
    """A test in one process with those that compile the same."""
    method, _, backend = check.subject.partition(".")
    family = next((key for key, names in FAMILIES.items() if method in names), method)
    return pytest.param(check, marks=pytest.mark.xdist_group(f"{family}.{backend}"))


OF_BACKENDS = [check for backend in BACKENDS for check in backend_checks(backend)]
OF_PAIRS = [check for pair in PAIRS for check in in_gate(*pair)]


@cache
def whole_suite() -> list[Check]:
    """Every check of every pair."""
    return [check for pair in PAIRS for check in method_checks(*pair)]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Six thousand tests are made only where they may be asked for: making them takes seconds in each process."""
    if "check_of_suite" in metafunc.fixturenames:
        left_out = "not thorough" in metafunc.config.option.markexpr
        checks = [] if left_out else [parameter(check) for check in whole_suite()]
        metafunc.parametrize("check_of_suite", checks, ids=str)


# Other samplers under the same name. With empirical marginals, the joint law of the states is compared, too.
SETTINGS: list[tuple[str, dict[str, Any]]] = [
    ("gibbs", {"marginals": "empirical"}),
    ("gibbs", {"marginals": "empirical", "scan": "raster"}),
    ("gibbs", {"marginals": "empirical", "scan": "random"}),
    ("gibbs", {"marginals": "empirical", "scan": "random", "sample": "update"}),
    ("block_gibbs", {"marginals": "empirical"}),
    ("block_gibbs", {"marginals": "empirical", "form": "identity"}),
    ("block_gibbs", {"marginals": "empirical", "form": "sparse"}),
    ("swendsen_wang", {"marginals": "empirical", "sweeps": 0}),
    ("dhmc", {"form": "harmonium"}),
    ("dhmc", {"form": "preconditioned"}),
    ("dhmc", {"form": "sparse", "diagonal": "dd"}),
]


def test_the_matrix_is_whole() -> None:
    assert {"numpy", "numba", "jax"} <= set(BACKENDS)
    assert {"exact", "gibbs", "block_gibbs", "dhmc"} <= set(METHODS)
    assert {check.subject for check in OF_BACKENDS} == set(BACKENDS)
    pairs = {f"{method}.{backend}" for method, backend in PAIRS}
    assert {check.subject for check in OF_PAIRS} == {check.subject for check in whole_suite()} == pairs


def test_the_gate_names_checks_that_there_are() -> None:
    assert {check.name for check in whole_suite()} >= GATE | SHAPES | SIZES | OF_KERNELS | OF_PROGRAMS | SHARED


@pytest.mark.parametrize("method", sorted(OF_NUMPY))
def test_steps_on_numba_that_are_numpys_give_the_same_numbers(method: str) -> None:
    model = attractive([(i, j) for i in range(4) for j in range(i)], np.full(6, 0.3), 1)
    compiled, plain = (spinbench.run(model, method, backend, 20, chains=16, seed=1) for backend in ("numba", "numpy"))
    assert compiled.log_z == plain.log_z
    np.testing.assert_array_equal(compiled.marginals, plain.marginals)


@pytest.mark.parametrize("check", [parameter(check) for check in (*OF_BACKENDS, *OF_PAIRS)], ids=str)
def test_conformance(check: Check) -> None:
    check()


@pytest.mark.thorough
def test_whole_conformance(check_of_suite: Check) -> None:
    check_of_suite()


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(("method", "settings"), SETTINGS, ids=str)
def test_stationarity_with_other_settings(method: str, settings: dict[str, Any], backend: str) -> None:
    found = {check.name: check for check in method_checks(method, backend, **settings)}
    for case in ("dense", "strong couplings"):
        found[f"stationarity, {case}"]()
