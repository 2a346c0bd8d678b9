"""What methods refuse, in one sentence: settings that make no sense, and models that they do not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import ModelError, SpinbenchError, UnsupportedError
from spinbench.inference.registry import make_method
from spinbench.models import FactorGraph, Model, PairwiseModel, generators

GAUGED = ("g_mf", "g_bp", "g_bp_single", "g_bp_multiple", "g_bp_sequential")
ROUNDED: dict[str, Any] = {"marginals": "empirical", "log_z": "none", "precision_bits": 16}

SETTINGS: list[tuple[str, dict[str, Any], str]] = [
    ("gibbs", {"scan": "spiral"}, "gibbs: scan='spiral' was given; chromatic, raster, random are allowed"),
    ("gibbs", {"sample": "site"}, "gibbs: sample='site' was given; sweep, update are allowed"),
    ("gibbs", {"marginals": "both"}, "gibbs: marginals='both' was given; rao_blackwell, empirical are allowed"),
    ("gibbs", {"log_z": "exact"}, "gibbs: log_z='exact' was given; auto, chib_bar, stones, chib, none are allowed"),
    ("gibbs", {"threads": 0}, "gibbs: threads=0 was given; an integer from 1 to"),
    ("gibbs", ROUNDED | {"marginals": "rao_blackwell"}, "precision_bits=16 was given with marginals=rao_blackwell"),
    ("gibbs", ROUNDED | {"log_z": "chib"}, "precision_bits=16 was given with log_z=chib; it takes none"),
    ("gibbs", ROUNDED | {"sample": "update"}, "precision_bits=16 was given with sample=update; it takes sweep"),
    ("gibbs", ROUNDED | {"scan": "random"}, "was given with scan=random; it takes chromatic or raster"),
    ("gibbs", ROUNDED | {"precision_bits": 7}, "gibbs: precision_bits=7 was given; 0 or 8 to 32 are allowed"),
    ("gibbs", ROUNDED | {"precision_bits": 33}, "gibbs: precision_bits=33 was given; 0 or 8 to 32 are allowed"),
    ("gibbs", ROUNDED | {"precision_bits": True}, "gibbs: precision_bits=True was given; an integer is needed"),
    ("smc", {"moves": 0}, "smc: moves=0 was given; an integer from 1 to"),
    ("smc", {"particles": -1}, "smc: particles=-1 was given; an integer from 0 to"),
    ("smc", {"temperatures": 2.5}, "smc: temperatures=2.5 was given; an integer is needed"),
    ("smc", {"resample": 1.5}, "smc: resample=1.5 was given; a number from 0 to 1 is needed"),
    ("wmb", {"ibound": -1}, "wmb: ibound=-1 was given; an integer from 0 to 30 is needed"),
    ("wmb", {"ibound": 31}, "wmb: ibound=31 was given; an integer from 0 to 30 is needed"),
    ("wmb", {"max_gib": 0.0}, "wmb: max_gib=0.0 was given; a positive number is needed"),
    ("wmb", {"delta": 1.0}, "wmb: delta=1.0 was given; a number between 0 and 1 is needed"),
    ("wmb_lower", {"ibound": 31}, "wmb_lower: ibound=31 was given; an integer from 0 to 30 is needed"),
    ("wmb_lower", {"max_gib": 0.0}, "wmb_lower: max_gib=0.0 was given; a positive number is needed"),
    ("swendsen_wang", {"sweeps": -1}, "swendsen_wang: sweeps=-1 was given; an integer from 0 to"),
    ("metropolis", {"proposal": "gaussian"}, "proposal='gaussian' was given; uniform, metropolised_gibbs are allowed"),
    ("metropolis", {"marginals": "exact"}, "marginals='exact' was given; rao_blackwell, empirical are allowed"),
    ("tempered_transitions", {"temperatures": -1}, "temperatures=-1 was given; an integer from 0 to"),
    ("importance", {"proposal": "tree"}, "importance: proposal='tree' was given; bp_tree, mean_field, uniform"),
    ("nested", {"sweeps": 0}, "nested: sweeps=0 was given; an integer from 1 to"),
    ("multicanonical", {"bins": 1}, "multicanonical: bins=1 was given; 0, or an integer from 2 to"),
    ("gibbs", {"log_z": "chib_ms"}, "gibbs: log_z='chib_ms' was given; that estimate is gone, and log_z=chib_bar"),
    ("pt", {"houdayer": 1}, "no setting of method pt is named 'houdayer' any more; more sweeps"),
    ("pt", {"rungs": 1}, "pt: rungs=1 was given; 0, or an integer from 2 to 1024, is needed"),
    ("pt", {"rungs": -2}, "pt: rungs=-2 was given; 0, or an integer from 2 to 1024, is needed"),
    ("pt", {"sweeps": 0}, "pt: sweeps=0 was given; an integer from 1 to"),
    ("pt", {"sweeps": 1.5}, "pt: sweeps=1.5 was given; an integer is needed"),
    ("blocks", {"size": 1}, "blocks: size=1 was given; an integer from 2 to"),
    ("blocks", {"blocks": 1}, "blocks: blocks=1 was given; an integer from 2 to 64 is needed"),
    ("blocks", {"log_z": "chib"}, "blocks: log_z='chib' was given; auto, chib_bar, stones, none are allowed"),
    ("nuts", {"form": "sparse"}, "form='sparse' was given; identity, harmonium are allowed"),
    ("nuts", {"target_acceptance": 1.0}, "target_acceptance=1.0 was given; a number between 0 and 1 is needed"),
    ("nuts", {"max_doublings": 0}, "max_doublings=0 was given; at least 1 is needed"),
    ("gaussian_bound", {"delta": 2.0}, "gaussian_bound: delta=2.0 was given; a number between 0 and 1 is needed"),
    ("block_gibbs", {"form": "dense"}, "form='dense' was given; harmonium, identity, sparse are allowed"),
    ("block_gibbs", {"log_z": "chib"}, "log_z='chib' was given"),
    ("block_gibbs", {"marginals": "rb"}, "marginals='rb' was given"),
    ("block_gibbs", {"diagonal": "smallest"}, "minshift, dd, sdp, auto"),
    ("block_gibbs", {"slack": float("nan")}, "slack=nan was given"),
    ("dhmc", {"form": "nuts"}, "form='nuts' was given; identity, harmonium, preconditioned, sparse are allowed"),
    ("dhmc", {"leapfrog_steps": 0}, "leapfrog_steps=0 was given"),
    ("dhmc", {"step_size": -0.1}, "step_size=-0.1 was given"),
    ("dhmc", {"step_size": 2.0, "form": "sparse"}, "at most 1.5 radians"),
    ("dhmc", {"target_acceptance": 1.0}, "target_acceptance=1.0 was given"),
    ("dhmc", {"jitter": 1.0}, "jitter=1.0 was given"),
    ("dhmc", {"log_z": "ais"}, "log_z='ais' was given"),
    ("dhmc", {"diagonal": "auto"}, "minshift, dd, sdp or a list"),
    ("dhmc", {"slack": -0.1}, "slack=-0.1 was given"),
    ("dhmc", {"draws": 0}, "draws=0 was given"),
    ("trw", {"rounds": -1}, "trw: rounds=-1 was given; an integer of at least 0 is needed"),
    ("trw", {"damping": 1.0}, "trw: damping=1.0 was given; null or a number from 0 to below 1 is needed"),
    ("trw", {"tolerance": 0.0}, "trw: tolerance=0.0 was given; a positive number is needed"),
    ("bp", {"schedule": "tree"}, "bp: schedule='tree' was given; auto, parallel, sequential, residual are allowed"),
    ("bp", {"damping": 1.0}, "bp: damping=1.0 was given; a number from 0 to below 1 is needed"),
    ("bp", {"tolerance": 0.0}, "bp: tolerance=0.0 was given; a positive number is needed"),
    ("bp", {"restarts": 0}, "bp: restarts=0 was given; an integer of at least 1 is needed"),
    ("mf", {"tolerance": 0}, "mf: tolerance=0.0 was given; a positive number is needed"),
    ("g_bp", {"labels": "map"}, "g_bp: labels='map' was given; mode, zero, best, greedy are allowed"),
    ("g_bp", {"merge": 1}, "g_bp: merge=1 was given; 0 (nothing) or 2 to 10 is allowed"),
    ("g_bp", {"merge": 11}, "g_bp: merge=11 was given; 0 (nothing) or 2 to 10 is allowed"),
    ("g_bp", {"deltas": (0.1, 1.0)}, "g_bp: deltas=[0.1, 1.0] was given; decreasing positive numbers are needed"),
    ("g_bp", {"deltas": ()}, "g_bp: deltas=[] was given; decreasing positive numbers are needed"),
    ("g_mf", {"labels": "greedy"}, "g_mf: labels='greedy' was given; mode, zero and best are allowed"),
    ("g_mf", {"restarts": -1}, "restarts >= 0 and field_starts >= 1 are needed"),
    ("g_mf", {"field_starts": 0}, "restarts >= 0 and field_starts >= 1 are needed"),
    ("forney_mf", {"restarts": 0}, "at least 1 and a positive number are needed"),
    ("forney_mf", {"tolerance": 0.0}, "at least 1 and a positive number are needed"),
    ("forney_mf", {"merge": 1}, "forney_mf: merge=1 was given"),
]


@pytest.mark.parametrize(("method", "settings", "sentence"), SETTINGS, ids=str)
def test_settings_that_make_no_sense(method: str, settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SpinbenchError) as error:
        make_method(method, settings)
    assert sentence in str(error.value)
    assert "\n" not in str(error.value)


ALIKE, UNLIKE = np.where(np.eye(2), 0.0, -np.inf), np.where(np.eye(2), -np.inf, 0.0)
CHAIN = [((k, k + 1), ALIKE) for k in range(15)]
CHECK = np.where(np.indices((2, 2, 2)).sum(axis=0) % 3 == 1, 0.0, -np.inf)
MODELS: dict[str, Model] = {
    "grid": generators.grid(3, 3),
    "wide grid": generators.grid(12, 12),
    "strong grid": generators.grid(8, 8, c2=2.0),
    "dense": PairwiseModel.from_dense(np.zeros(12), np.ones((12, 12)) - np.eye(12)),
    "star": PairwiseModel.from_edges(np.zeros(8), [(0, i) for i in range(1, 8)], np.ones(7)),
    "frustrated": PairwiseModel.from_edges(np.zeros(4), [(0, 1), (1, 2), (0, 2), (2, 3)], [1.0, 1.0, -1.0, 2.0]),
    "groups": PairwiseModel.from_edges(np.zeros(4), [(0, 2)], [1.0], groups=((0, 1), (2, 3))),
    "many": PairwiseModel.from_edges(np.zeros(3001), [(0, 1)], [0.1]),
    "three states": FactorGraph.from_log_tables([3, 3], [((0, 1), np.arange(9.0))]),
    "triple": FactorGraph.from_log_tables([2] * 3, [((0, 1, 2), np.arange(8.0))]),
    "zero": FactorGraph.from_log_tables([2, 2], [((0, 1), np.array([[-np.inf, 0.3], [0.1, 0.2]]))]),
    "contradiction": FactorGraph.from_log_tables([2, 2], [((0, 1), ALIKE), ((1, 0), UNLIKE)]),
    "contradictory fields": FactorGraph.from_log_tables(
        [2, 2], [((0, 1), ALIKE), ((0,), [-np.inf, 0.0]), ((1,), [0.0, -np.inf])]
    ),
    "contradictory ring": FactorGraph.from_log_tables([2] * 3, [((0, 1), ALIKE), ((1, 2), ALIKE), ((2, 0), UNLIKE)]),
    "odd ring": FactorGraph.from_log_tables([2] * 3, [((0, 1), UNLIKE), ((1, 2), UNLIKE), ((0, 2), UNLIKE)]),
    "parity that no state passes": FactorGraph.from_log_tables([2] * 16, [*CHAIN, ((0, 5, 15), CHECK)]),
}
NO_STATE = "Z = 0|no state of positive weight"
TINY = [0.01] * 9
REFUSED: list[tuple[str, str, dict[str, Any], type[Exception], str]] = [
    ("gibbs.numba", "zero", {"log_z": "stones"}, UnsupportedError, "hard zeros, over which log_z=stones has no way up"),
    ("gibbs.numba", "groups", ROUNDED, UnsupportedError, "groups"),
    ("gibbs.numba", "star", ROUNDED, UnsupportedError, "7 neighbours"),
    ("gibbs.numpy", "grid", ROUNDED, UnsupportedError, "backend=numba"),
    ("wmb.numpy", "wide grid", {"ibound": 12, "max_gib": 1e-3}, UnsupportedError, "a smaller ibound is needed"),
    ("wmb.numpy", "contradiction", {"ibound": 5}, ModelError, "Z = 0"),
    ("wmb_lower.numpy", "zero", {}, UnsupportedError, "has hard zeros"),
    ("swendsen_wang.numba", "groups", {}, UnsupportedError, "1-of-K groups"),
    ("cftp.numba", "groups", {}, UnsupportedError, "1-of-K groups"),
    ("cftp.numba", "frustrated", {}, UnsupportedError, "frustrated, at 4 of 4"),
    ("rejection.numpy", "strong grid", {}, UnsupportedError, "^rejection: of draws of proposal=bp_tree for"),
    ("blocks.numpy", "three states", {"size": 2}, UnsupportedError, "3 states; size=2 takes at most 2"),
    ("gaussian_bound.numpy", "three states", {}, UnsupportedError, "more than two states; wmb takes any"),
    ("gaussian_bound.numpy", "many", {}, UnsupportedError, "has 3001 variables, and at most 3000"),
    ("block_gibbs.numpy", "grid", {"diagonal": TINY}, ModelError, "not positive definite"),
    ("block_gibbs.numpy", "grid", {"diagonal": TINY, "form": "identity"}, ModelError, "not positive definite"),
    ("block_gibbs.numpy", "grid", {"diagonal": "minshift", "form": "sparse"}, UnsupportedError, "form=sparse needs"),
    ("block_gibbs.numpy", "groups", {"log_z": "zero_state"}, UnsupportedError, "zero_state needs the state s = 0"),
    ("dhmc.numpy", "grid", {"diagonal": TINY}, ModelError, "not positive definite"),
    ("dhmc.numpy", "grid", {"diagonal": TINY, "form": "harmonium"}, ModelError, "not positive definite"),
    ("dhmc.numpy", "grid", {"diagonal": TINY, "form": "preconditioned"}, ModelError, "not positive definite"),
    ("dhmc.numpy", "grid", {"form": "sparse"}, UnsupportedError, "form=sparse needs"),
    ("trw.numba", "triple", {}, UnsupportedError, "factor of order 3"),
    ("bp.numpy", "grid", {"schedule": "residual"}, UnsupportedError, "schedule=residual runs on backend numba only"),
    ("bp.numba", "contradictory fields", {"simplify": False}, ModelError, "Z = 0"),
    ("mf.numba", "odd ring", {"simplify": False}, ModelError, "Z = 0"),
    ("g_bp.numpy", "three states", {}, UnsupportedError, "3 states"),
    ("g_bp.numpy", "parity that no state passes", {"merge": 0}, ModelError, NO_STATE),
    *((f"{name}.numpy", "dense", {}, UnsupportedError, "degree 11") for name in ("forney_mf", *GAUGED)),
    *((f"{name}.numpy", "contradictory ring", {"merge": 0}, ModelError, NO_STATE) for name in ("forney_mf", *GAUGED)),
]


@pytest.mark.parametrize(("pair", "model", "settings", "kind", "sentence"), REFUSED, ids=str)
def test_models_that_are_not_taken(
    pair: str, model: str, settings: dict[str, Any], kind: type[Exception], sentence: str
) -> None:
    method, _, backend = pair.partition(".")
    with pytest.raises(kind, match=sentence):
        spinbench.run(MODELS[model], method, backend, 10, **settings)


@pytest.mark.parametrize("method", ["gibbs", "block_gibbs", "dhmc", "mf", "bp", "trw", "forney_mf", "g_mf", "g_bp"])
@pytest.mark.parametrize(("precision", "size"), [("float64", 1e15), ("float32", 1e7)])
def test_weights_that_dwarf_the_rest(method: str, precision: Any, size: float) -> None:
    graph = FactorGraph.from_log_tables([2, 2], [((0, 1), np.array([[-size, 0.3], [0.1, 0.2]]))])
    for model in (graph, PairwiseModel.from_edges([-size, 0.3], [(0, 1)], [0.5])):
        with pytest.raises(UnsupportedError, match=rf"finite log weight of size 1e\+.*allowed in {precision}"):
            spinbench.run(model, method, "numpy", precision=precision)
