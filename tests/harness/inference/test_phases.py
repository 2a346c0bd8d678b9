"""Phases that nothing leads to: runs that have missed one are not believed."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import spinbench
from spinbench.api import Estimate
from spinbench.inference.phases import Phases
from spinbench.models import FactorGraph
from tests.helpers.small_exact_models import SMALL_MODELS


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


@pytest.mark.parametrize(("share", "believed"), [(0.6, False), (1e-9, True)])
def test_populations_that_miss_a_phase_are_believed_where_it_weighs_nothing(share: float, believed: bool) -> None:
    model, log_z = hub(share=share)
    found = spinbench.run(model, "smc", "numpy", 6, seed=1, temperatures=8, particles=8, simplify=False)
    assert (found.status == "ok") == believed
    assert not believed or abs(found.log_z - log_z) < 4 * found.log_z_se
    assert believed or found.status == "marginals not mixed, log Z unresolved"


@pytest.mark.parametrize("name", ["hub", *SMALL_MODELS])
def test_what_is_right_is_never_contradicted(name: str) -> None:
    model = hub()[0] if name == "hub" else SMALL_MODELS[name]()
    exact = spinbench.exact(model, cache=False)
    sure = (
        np.zeros(model.num_variables) if isinstance(exact.marginals, np.ndarray) else [0 * p for p in exact.marginals]
    )
    said = Estimate(exact.marginals, sure, exact.log_z, 0.0, "estimate")
    assert not Phases(model, sampler=True).doubted(said).doubts


def test_too_small_a_sum_is_contradicted_unless_it_is_a_bound() -> None:
    model, log_z = hub()
    phases, flat = Phases(model, sampler=True), [np.full(k, 1 / k) for k in model.cardinalities]
    half = [np.full(k, 0.5) for k in model.cardinalities]
    said = Estimate(flat, half, log_z - 0.9, 0.01, "estimate")
    assert phases.doubted(said).doubts == ("log Z unresolved",)
    assert phases.doubted(said).log_z_se == np.inf
    assert not phases.doubted(dataclasses.replace(said, log_z_se=0.4)).doubts
    assert not phases.doubted(dataclasses.replace(said, log_z_kind="lower")).doubts
