"""Which solver answers where all are at hand, and when a compiler is loaded for it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import numpy as np
import pytest
from small_exact_models import ladder

import spinbench
from spinbench import reference
from spinbench.inference import answers
from spinbench.models import PairwiseModel


class AskedError(Exception):
    """Compiled code was asked for."""


def ask() -> None:
    raise AskedError


def test_auto_takes_the_special_solver_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    grids = answers.ALL_SOLVERS.kinds["grid"]
    rng = np.random.default_rng(0)
    ring = [(k, (k + 1) % 50) for k in range(50)]
    layers = [(i, 18 + j) for i in range(18) for j in range(40)]
    tree = [(int(rng.integers(v)), v) for v in range(1, 60)]
    loops = [*tree, (3, 41), (17, 55), (8, 30)]
    for method, n, edges in [
        ("rbm", 58, layers),
        ("bucket_tree", 50, ring),
        ("bucket_tree", 60, tree),
        ("bucket_tree", 60, loops),
    ]:
        model = PairwiseModel.from_edges(rng.normal(size=n), edges, rng.normal(size=len(edges)))
        assert answers.solve(model, cache=False).method == method
    answers.numba_solvers()
    monkeypatch.setattr(grids, "built", False)
    assert answers.solve(ladder(), cache=False).method == "bucket_tree"  # loaded is not compiled
    monkeypatch.setattr(grids, "built", True)
    assert answers.solve(ladder(), cache=False).method == "grid"
    assert answers.solve(PairwiseModel.from_edges([0.0, 1.0], [(0, 1)], [2.0]), cache=False).method == "enumeration"


def test_auto_compiles_nothing_for_a_handful_of_states() -> None:
    edges = [(k, k + 1) for k in range(9) if k % 3 != 2] + [(k, k + 3) for k in range(6)]
    model = PairwiseModel.from_edges(np.ones(9), edges, np.arange(12.0) / 9)
    for solvers, method in (
        (answers.ALL_SOLVERS, "enumeration"),
        (reference.NUMPY_SOLVERS, "enumeration"),
        (answers.numba_solvers(), "grid"),
    ):
        assert reference.solve(model, cache=False, solvers=solvers).method == method


def test_compiled_code_is_loaded_where_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    """For what takes NumPy seconds, and for more variables than Python should look at; else not."""
    monkeypatch.setattr(answers, "numba_solvers", ask)
    rng = np.random.default_rng(0)

    def solved(n: int, edges: object) -> reference.ExactAnswer:
        pairs = np.array(edges)
        model = PairwiseModel.from_edges(rng.normal(size=n), pairs, rng.normal(size=len(pairs)))
        return answers.solve(model, cache=False)

    path = [(v, v + 1) for v in range(19_999)]
    assert solved(2000, path[:1999]).method == "bucket_tree"
    assert solved(58, [(i, 18 + j) for i in range(18) for j in range(40)]).method == "rbm"
    for n, edges in [
        (20_000, path),
        (27, np.argwhere(np.triu(np.ones((27, 27)), 1))),
    ]:
        with pytest.raises(AskedError):
            solved(n, edges)
    site = np.arange(40_000).reshape(200, 200)
    pairs = np.concatenate([np.stack([site, np.roll(site, -1, axis)], axis=-1).reshape(-1, 2) for axis in (0, 1)])
    torus = PairwiseModel.from_spins(np.zeros(40_000), pairs, np.full(80_000, 0.3))
    assert answers.solve(torus, cache=False).method == "torus"


def test_answers_are_kept_for_all() -> None:
    """What one table of solvers found, the others read."""
    first = reference.solve(ladder())
    assert (first.method, first.cached) == ("bucket_tree", False)
    again = answers.solve(ladder())
    assert (again.method, again.cached) == ("bucket_tree", True)
    assert spinbench.exact(ladder()).log_z == first.log_z


def test_refusal_comes_before_memory_is_taken() -> None:
    """In a process that may hold 1.5 GB in all: 2^29 numbers would not fit."""
    script = """
import resource, numpy as np
from spinbench.errors import IntractableError
from spinbench.inference import answers
from spinbench.models import PairwiseModel
from spinbench.models.generators import grid
from spinbench.reference.choice import candidates
from spinbench.reference.problem import Problem
resource.setrlimit(resource.RLIMIT_AS, (1_500_000_000, 1_500_000_000))
edges = np.argwhere(np.triu(np.ones((30, 30)), 1))
model = PairwiseModel.from_edges(np.arange(30.0), edges, np.ones(len(edges)))
try:
    answers.solve(model, cache=False, seconds=1e-3)
except IntractableError as error:
    print("refused:", error)
"""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, check=True)
    refusal = r"refused: model: no exact answer: bucket_tree meets width \d+ and would take .* MiB of memory and"
    assert re.match(refusal, done.stdout)


@pytest.mark.parametrize("module", ["spinbench.reference", "spinbench.inference.answers"])
def test_it_loads_without_compilers(module: str) -> None:
    heavy = {"numba", "jax", "networkx", "matplotlib", "scipy"}
    script = f"import sys, {module}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
