"""Every backend that comes with spinbench, and every method that does on each of them, through the shipped suite."""

from __future__ import annotations

from typing import Any

import pytest

from spinbench.foundation import plugins
from spinbench.inference import registry
from spinbench.testing import Check, backend_checks, method_checks


def built_in(kind: registry.Kind) -> list[str]:
    points = plugins.entry_points(kind)
    return [name for name in points if all(point.dist and point.dist.name == "spinbench" for point in points[name])]


BACKENDS, METHODS = built_in("backends"), built_in("methods")
CHECKS = [check for backend in BACKENDS for check in backend_checks(backend)]
CHECKS += [check for method in METHODS for backend in BACKENDS for check in method_checks(method, backend)]

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
"""Other samplers under the same name. With empirical marginals, the joint law of the states is compared, too."""


def test_the_matrix_is_whole() -> None:
    assert {"numpy", "numba", "jax"} <= set(BACKENDS)
    assert {"exact", "gibbs", "block_gibbs", "dhmc"} <= set(METHODS)
    subjects = {check.subject for check in CHECKS}
    assert subjects == {*BACKENDS, *(f"{method}.{backend}" for method in METHODS for backend in BACKENDS)}


@pytest.mark.parametrize(
    "check", [pytest.param(check, marks=pytest.mark.xdist_group(check.subject)) for check in CHECKS], ids=str
)
def test_conformance(check: Check) -> None:
    check()


@pytest.mark.parametrize("backend", ["numpy", "numba"])
@pytest.mark.parametrize(("method", "settings"), SETTINGS, ids=str)
def test_stationarity_with_other_settings(method: str, settings: dict[str, Any], backend: str) -> None:
    found = [check for check in method_checks(method, backend, **settings) if check.name.startswith("stationarity")]
    assert len(found) == 2
    for check in found:
        check()
