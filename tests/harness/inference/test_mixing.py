"""Coupled chains have the law that their conditionals say, and the distances that they tell are bounds."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench import cli
from spinbench.backends.numba.tables.coupled import advance, draw_coupled
from spinbench.errors import SpinbenchError
from spinbench.inference.mixing import distance
from spinbench.mathematics.graphs.factor_tables import FactorTables, factor_tables
from spinbench.mathematics.graphs.table_layouts import sweep_order
from spinbench.methods.gibbs.coupling import start_coupled_pairs
from spinbench.models import FactorGraph, PairwiseModel, generators

LAG = 2
LOG = np.random.default_rng(5).normal(size=(2, 3, 2)) * 1.5
LOG[0, 1, 1] = LOG[1, 2, 0] = -np.inf
MODELS = {
    "pairs": PairwiseModel.from_edges([0.3, -0.4, 0.2], [(0, 1), (1, 2), (0, 2)], [1.5, -2.0, 1.0]),
    "strong": PairwiseModel.from_edges([-2.0, -2.0], [(0, 1)], [4.0]),
    "a triple with zeros, a pair and a field": FactorGraph.from_log_tables(
        [2, 3, 2],
        [((0, 1, 2), LOG), ((2, 1), np.array([[0.3, -0.7, 0.1], [1.0, 0.2, -0.5]])), ((1,), np.array([0, 0.4, 1]))],
    ),
}


def law(t: FactorTables) -> tuple[np.ndarray, np.ndarray]:
    """All states of positive weight, and their probabilities."""
    states = np.array(list(itertools.product(*(range(k) for k in t.cardinalities))))
    logs = t.values[t.positions(states.T)].sum(axis=0)
    kept = logs > -np.inf
    p = np.exp(logs[kept] - logs.max())
    return states[kept], p / p.sum()


def conditional(t: FactorTables, v: int, x: np.ndarray) -> np.ndarray:
    every = np.repeat(x[:, None], t.cardinalities[v], axis=1)
    every[v] = np.arange(t.cardinalities[v])
    p = np.exp(t.values[t.positions(every)].sum(axis=0))
    return p / p.sum()


def sweep_matrix(t: FactorTables, states: np.ndarray, order: Any, couple: bool) -> np.ndarray:
    """Of a sweep of one chain, or of both, from the maximal coupling's definition."""
    place = {tuple(x): k for k, x in enumerate(states)}
    size = len(states)
    total = np.eye(size**2 if couple else size)
    for v in order:
        step = np.zeros_like(total)
        for a, b in itertools.product(range(size), range(size) if couple else [0]):
            p, q = (conditional(t, v, states[k]) for k in (a, b))
            joint = np.diag(np.minimum(p, q))
            rest = 1 - joint.sum()
            if couple and rest > 1e-12:  # one number for both, so that their residual states move together
                joint = joint + shared(p - np.minimum(p, q), q - np.minimum(p, q))
            elif not couple:
                joint = np.diag(p)
            for i, j in zip(*np.nonzero(joint), strict=True):
                x, y = states[a].copy(), states[b].copy()
                x[v], y[v] = i, j
                here, there = place[tuple(x)], place.get(tuple(y), 0)
                if couple:
                    step[a * size + b, here * size + there] += joint[i, j]
                else:
                    step[a, here] += joint[i, j]
        total = total @ step
    return total


def shared(p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The joint law of two inversions of one uniform number."""
    ends = [np.concatenate([[0], np.cumsum(w)]) for w in (p, q)]
    low = np.maximum.outer(ends[0][:-1], ends[1][:-1])
    return np.maximum(np.minimum.outer(ends[0][1:], ends[1][1:]) - low, 0.0)


@pytest.mark.parametrize("name", MODELS)
def test_meeting_times_have_their_law_and_bound_the_distance(name: str) -> None:
    t = factor_tables(MODELS[name])
    order = sweep_order(t, "raster")[0]
    states, p = law(t)
    size, pairs, rng = len(states), 4000, np.random.default_rng(0)
    begin = np.full(size, 1 / size)
    draws = [states[rng.integers(size, size=pairs)].T for _ in range(2)]
    walk = start_coupled_pairs(1, *draws)
    advance(t, order, walk, LAG, 1, 3)
    advance(t, order, walk, LAG, 4, 4000)  # batches change nothing
    one, two = sweep_matrix(t, states, order, False), sweep_matrix(t, states, order, True)
    joint = np.outer(begin @ np.linalg.matrix_power(one, LAG), begin).ravel()
    same = np.arange(size) * (size + 1)
    tail, ended = [1.0], 0.0
    while tail[-1] > 1e-9:
        joint = joint @ two
        ended += joint[same].sum()
        joint[same] = 0.0
        tail.append(1 - ended)
    assert (walk.met > LAG).all()
    for t_ in range(8):
        after = t_ + LAG * np.arange(len(tail) // LAG + 1)
        expected = sum(tail[k] for k in after if k < len(tail))
        found = distance(walk.met, LAG, t_)
        spread = np.maximum(0, -((t_ + LAG - walk.met) // LAG)).std() / np.sqrt(pairs)
        assert abs(found.mean - expected) < 4.5 * spread + 1e-3, t_
        true = np.abs(begin @ np.linalg.matrix_power(one, t_) - p).sum() / 2
        assert expected >= true - 1e-9
        assert found.most >= true


def test_backends_meet_at_the_same_times() -> None:
    found = [spinbench.mixing(MODELS["pairs"], budget="20 s", backend=backend) for backend in ("numba", "numpy")]
    assert [each.backend for each in found] == ["numba", "numpy"]
    assert (found[0].times == found[1].times).all()


def test_coupled_states_are_alike_as_often_as_can_be() -> None:
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.4, 0.1, 0.5])
    u = (np.arange(100_000) + 0.5) / 100_000
    a, b = np.array([draw_coupled(p, q, 3, number) for number in u]).T
    assert np.allclose(np.bincount(a) / len(u), p, atol=1e-4)
    assert np.allclose(np.bincount(b) / len(u), q, atol=1e-4)
    assert np.isclose((a == b).mean(), np.minimum(p, q).sum(), atol=1e-4)


def test_what_mixes_is_told_from_what_does_not() -> None:
    quick = spinbench.mixing(generators.grid(4, 4, 1.0, 1.0), budget="20 s", seed=3)
    assert quick.verdict == "resolved"
    assert quick.sweeps is not None
    assert 5 < quick.sweeps < 100
    assert len(quick.times) == 1024
    stuck = spinbench.mixing(generators.torus(6, 6, 1.5), budget="300 ms")
    assert stuck.sweeps is None
    assert stuck.met < 1
    assert "have met in" in stuck.sentences()[0]
    assert stuck.distance(10**6).mean == np.inf
    assert stuck.seconds < 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "pt"}, "method='pt' was given"),
        ({"budget": 10}, "a budget in seconds"),
        ({"backend": "jax"}, "coupled sweeps run on numba and numpy"),
        ({"tv": 0}, "tv="),
        ({"seed": -1}, "seed="),
        ({"scan": "random"}, "scan="),
    ],
)
def test_it_refuses_with_a_sentence(options: dict[str, Any], message: str) -> None:
    with pytest.raises(SpinbenchError, match=message):
        spinbench.mixing(MODELS["pairs"], **options)


def test_the_command_line_says_it_in_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["mixing", "libdai/hoi1", "--budget", "5 s"]) == 0
    assert capsys.readouterr().out.startswith("libdai/hoi1: gibbs: total variation below 0.01 after")
