"""Samplers leave the law of a model as it is: chains that begin at exact draws stay exact draws, by χ² over all states.

The shipped suite does so with each method's own settings, on models of variables in pairs; here are other settings,
factor graphs with zeros, and 1-of-K groups.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_graphs import MODELS as GRAPHS
from small_graphs import attractive, bound, exact_start, graph, keeps_law, random_pairs

from spinbench.inference.origins import model_for_method
from spinbench.inference.registry import make_method
from spinbench.models import Model, PairwiseModel

CHAINS = 20_000
BLOCKED = [[0, 1], [2, 3, 4], [5], [6, 0, 2], [1, 5], [4, 0, 2], [2, 4, 0], [3, 6], [5, 6, 1]]
RING = [(i, (i + d) % 7) for i in range(7) for d in (1, 2)]
MODELS: dict[str, Model] = {
    **GRAPHS,
    "seven": graph([3, 2, 2, 3, 2, 3, 2], BLOCKED, 2, 0.2),
    "dense": random_pairs(6, 1.0, 1.0, 0),
    "attractive": attractive(RING, np.random.default_rng(1).uniform(0.3, 1.5, len(RING)), 2),
    "four neighbours": PairwiseModel.from_edges(
        np.random.default_rng(9).normal(size=7), RING, 0.5 * np.random.default_rng(8).normal(size=len(RING))
    ),
    "pairs of states": random_pairs(6, 0.6, 1.0, 0, groups=((4, 1), (0, 5))),
    "groups": random_pairs(9, 0.6, 1.0, 2, groups=((0, 4, 7), (2,), (5, 8))),
    "strong groups": random_pairs(7, 0.6, 3.0, 5, groups=((0, 1, 2), (4, 3))),
}
UPDATES = {"sample": "update", "log_z": "none"}
SCANS: dict[str, dict[str, Any]] = {
    "sweeps": {},
    "raster": {"scan": "raster"},
    "random": {"scan": "random"},
    "updates": {"scan": "raster", **UPDATES},
    "random updates": {"scan": "random", "marginals": "empirical", **UPDATES},
}
GROUPED = ("pairs of states", "groups", "strong groups")
BITS = {"marginals": "empirical", "log_z": "none"}
FAST = ("numpy", "numba")
CASES: list[tuple[str, str, dict[str, Any]]] = [
    *((f"gibbs.{b}", "zeros", SCANS[scan]) for b in FAST for scan in ("sweeps", "updates", "random updates")),
    *((f"gibbs.{b}", "states", SCANS["random"]) for b in FAST),
    *((f"gibbs.{b}", "bits", SCANS["sweeps"]) for b in FAST),
    *((f"gibbs.{b}", model, SCANS[scan]) for b in FAST for model in GROUPED for scan in ("sweeps", "random updates")),
    *((f"gibbs.{b}", "strong groups", SCANS[scan]) for b in FAST for scan in ("raster", "random", "updates")),
    *(("gibbs.jax", model, SCANS[scan]) for model, scan in (("zeros", "random updates"), ("strong groups", "random"))),
    *(("gibbs.numba", "four neighbours", BITS | {"precision_bits": bits}) for bits in (16, 24, 32)),
    *(
        (f"metropolis.{b}", model, {"proposal": proposal})
        for b in FAST
        for model in ("zeros", "bits")
        for proposal in ("uniform", "metropolised_gibbs")
    ),
    *((f"blocks.{b}", "seven", {"size": 12}) for b in (*FAST, "jax")),
    *((f"swendsen_wang.{b}", model, {}) for b in FAST for model in ("attractive", "dense")),
    *((f"tempered_transitions.{b}", model, {"temperatures": 3}) for b in FAST for model in ("zeros", "bits")),
]


@pytest.mark.parametrize(("pair", "model", "settings"), CASES, ids=str)
def test_exact_draws_stay_exact(pair: str, model: str, settings: dict[str, Any]) -> None:
    name, _, backend = pair.partition(".")
    method, given = make_method(name, settings), MODELS[model]
    taken = model_for_method(given, method)
    engine = bound(taken, backend, method)[1]
    start = exact_start(given, CHAINS)
    begun = start if taken.origin is None else taken.origin.lower(start.T).T.astype(np.int8)
    state, _ = engine.advance(engine.init(3, begun), 9 if "sample" in settings else 3)
    states = np.asarray(engine.states(state))
    if taken.origin is not None:
        states = taken.origin.lift(states.T).T
    assert keeps_law(given, states)
    assert (states != start).any(axis=0).mean() > 0.1
