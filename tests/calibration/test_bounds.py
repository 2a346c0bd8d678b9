"""3,000 random models, every method that states a bound, each backend and precision: none on the wrong side.

`pytest -m calibration -n 2 tests/calibration/test_bounds.py`; the models are those of 75 draws from each of 40 graphs,
and for brackets some hundred, without the exact contributor, whose probable bounds are as seldom wrong as they claim.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from bound_runs import estimates
from bounded_models import KINDS, factors, log_z

from spinbench.api import Estimate, Precision
from spinbench.api.bounds import stated
from spinbench.errors import UnsupportedError
from spinbench.inference.bracketing.sources import Request, find_bounds, load_sources
from spinbench.inference.origins import model_for_method
from spinbench.inference.registry import make_method
from spinbench.methods.buckets.bound_sources import tighten
from spinbench.models import Model

# Of each kind, of which there are eight.
GRAPHS, DRAWS = 5, 75
PRECISIONS: tuple[Precision, ...] = ("float64", "float32")
FIELDS = ("mf", "trw", "forney_mf")
BACKENDS = ("numpy", "numba", "jax")
# And the bounds that each tells of on its way; those of g_bp, g_bp_single and g_bp_multiple are among them.
GAUGED = {"g_mf": ("mf", "g_bp", "g_mf"), "g_bp_sequential": ("g_bp", "single", "multiple", "sequential")}
BATCHES = (1, 30)
# log2 of the entries of a mini-bucket, so that buckets of these small graphs are cut; steps of burn-in.
SPLIT, PASSES = 2, 20
# Of Newton: a bound holds wherever the search stands.
FEW_STEPS = (1, 25)
BINARY = [kind for kind in KINDS if "K-ary" not in kind]
OF_PAIRS = [kind for kind in KINDS if "triples" not in kind]

pytestmark = pytest.mark.calibration


SIGNS = {"lower": 1.0, "upper": -1.0}


def drawn(kind: str, graph: int) -> list[Model]:
    draw, rng = KINDS[kind](np.random.default_rng([graph, 1])), np.random.default_rng([graph, 2])
    return [draw(rng) for _ in range(DRAWS)]


def check(found: Sequence[tuple[Model, Estimate]], what: object) -> None:
    """All that is certified, and what a search tells of on its way; a model that was solved has nothing to check."""
    true = {id(model): log_z(model) for model, _ in found}
    for model, estimate in found:
        value, slack = true[id(model)]
        kind = estimate.log_z_kind
        said = [(b.side, b.value) for b in stated(estimate.log_z, kind, estimate.bounds, "") if b.grade == "certified"]
        said += [(kind, bound) for name, bound in estimate.diagnostics.items() if name.startswith("bound_")]
        assert said or kind == "exact"
        for side, bound in said:
            assert SIGNS[side] * (bound - value) <= slack, (what, model.content_hash)


@pytest.mark.parametrize("graph", range(GRAPHS))
@pytest.mark.parametrize("kind", KINDS)
def test_mean_fields_and_trees(kind: str, graph: int) -> None:
    models = drawn(kind, graph)
    for name in FIELDS:
        if (name == "forney_mf" and kind not in BINARY) or (name == "trw" and kind not in OF_PAIRS):
            continue  # refused, as `test_bounds_are_promises` sees
        for backend in BACKENDS:
            for precision in PRECISIONS:
                found = list(estimates(make_method(name, {}), backend, precision, models, BATCHES))
                assert len(found) == DRAWS * len(BATCHES)
                check(found, (name, backend, precision, kind, graph))


@pytest.mark.parametrize("graph", range(GRAPHS))
@pytest.mark.parametrize("kind", BINARY)
def test_gauges(kind: str, graph: int) -> None:
    """Float64 whatever is asked for, which is why one precision will do."""
    models = drawn(kind, graph)
    for name, bounds in GAUGED.items():
        method = make_method(name, {})
        for backend in BACKENDS:
            found = list(estimates(method, backend, "float64", models, FEW_STEPS))
            assert len(found) == DRAWS * len(FEW_STEPS)
            assert {f"bound_{bound}" for bound in bounds} <= set(found[0][1].diagnostics)
            check(found, (name, backend, kind, graph))


@pytest.mark.parametrize("graph", range(GRAPHS))
@pytest.mark.parametrize("kind", KINDS)
def test_mini_buckets(kind: str, graph: int) -> None:
    """Float64 whatever is asked for, as gauges."""
    models = drawn(kind, graph)
    for name in ("wmb",) if "zeros" in kind else ("wmb", "wmb_lower"):
        method = make_method(name, {"ibound": SPLIT})
        for backend in ("numpy", "numba"):
            found = list(estimates(method, backend, "float64", models, (2,), PASSES))
            assert len(found) == DRAWS
            check(found, (name, backend, kind, graph))


@pytest.mark.parametrize("graph", range(GRAPHS))
@pytest.mark.parametrize("kind", ["pairwise", "frustrated", "pairs"])
def test_gaussian_bounds(kind: str, graph: int) -> None:
    """Found while planning, which is alike everywhere."""
    models = [model_for_method(model, make_method("gaussian_bound", {})) for model in drawn(kind, graph)]
    found = list(estimates(make_method("gaussian_bound", {}), "numpy", "float64", models, (2,)))
    assert len(found) == DRAWS
    check(found, ("gaussian_bound", kind, graph))


BRACKETED = {**KINDS, "quadruples": factors(2, 4, 0.0), "quadruples with zeros": factors(2, 4, 0.15)}
MODELS = 40
DELTA = 0.1
OTHERS = [source for source in load_sources(assumed=False)[0] if source.name not in ("exact", "wmb")]


@pytest.mark.parametrize("kind", BRACKETED)
def test_certain_bounds_hold_and_probable_ones_mostly(kind: str) -> None:
    missed = looks = 0
    for k in range(MODELS):
        model = BRACKETED[kind](np.random.default_rng([k // 4, 1]))(np.random.default_rng([k, 2]))
        true, slack = log_z(model)
        clock = itertools.count(0, 0.003).__next__
        news = list(tighten(Request(model, 0.25).plan("wmb", "numba", ibound=1, delta=DELTA), k, 0.25, clock))
        for source in OTHERS:
            try:
                news += find_bounds(source, Request(model, 0.5, k, DELTA / 5))  # as five looks share it
            except UnsupportedError:
                continue
        wrong = set()
        for each in news:
            for bound in each.bounds:
                room = slack + (1e-9 * max(1.0, abs(true)) if bound.grade == "exact" else 0.0)
                if (bound.value - true) * (1 if bound.side == "lower" else -1) > room:
                    assert bound.grade == "probable", (kind, k, bound)
                    wrong.add((bound.by, each.look))
        missed += len(wrong)
        looks += len({(bound.by, each.look) for each in news for bound in each.bounds if bound.grade == "probable"})
    assert missed <= DELTA * looks
