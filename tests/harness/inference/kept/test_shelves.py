"""States that runs keep in files."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError
from spinbench.inference.kept import shelves
from spinbench.models import FactorGraph, condition, generators

GRAPH = FactorGraph.from_tables((3, 2, 4), [((0, 1), np.arange(1.0, 7).reshape(3, 2)), ((1, 2), np.ones((2, 4)))])
MODELS: dict[str, Any] = {
    "pairs": generators.grid(4, 3, seed=1),
    "graph": GRAPH,
    "evidence": condition(GRAPH, {1: 1}),
    "summed out": generators.tree(30, seed=0),
}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("budget", [100, 37, "0.2 s"])
def test_they_are_those_that_are_kept_in_memory(name: str, budget: Any, tmp_path: Path) -> None:
    file = tmp_path / "states.npz"
    options: dict[str, Any] = {"chains": 3, "seed": 4, "keep": 10}
    one = spinbench.run(MODELS[name], "gibbs", "numba", budget, keep_in=file, **options)
    with np.load(file) as loaded:
        stored = loaded["states"]
    assert one.states is not None
    assert stored.shape[1:] == (3, one.states.shape[-1])
    assert (stored.transpose(1, 0, 2) == one.states).all()
    assert len(stored) >= 10 or isinstance(budget, int)
    if isinstance(budget, int):
        two = spinbench.run(MODELS[name], "gibbs", "numba", budget, **options)
        assert two.states is not None
        assert (one.states == two.states).all()
        assert one.states.dtype == two.states.dtype
    assert list(tmp_path.iterdir()) == [file]


def test_of_unknown_many_every_other_one_goes() -> None:
    rows = [np.full((2, 3), k, dtype=np.uint8) for k in range(8)]
    memory, disk = shelves.InMemory(), shelves.OnDisk(Path.cwd(), (2, 3), np.dtype(np.uint8))
    for shelf in (memory, disk):
        for row in rows:
            shelf.append(row)
        shelf.halve()
        shelf.append(rows[0])
        assert [int(shelf[k][0, 0]) for k in range(len(shelf))] == [1, 3, 5, 7, 0]
        shelf.clear()
        assert len(shelf) == 0


def test_memory_holds_few_of_them(tmp_path: Path) -> None:
    model, file, size = generators.grid(40, 40, seed=0), tmp_path / "states.npz", 8 * 2000 * 1600

    def peak(**more: Any) -> int:
        tracemalloc.start()
        spinbench.run(model, "gibbs", "numba", 2000, chains=8, **more)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak()  # imports, and compiles
    assert peak(keep=2000, keep_in=file) < peak() + size / 10
    assert file.stat().st_size > size


def test_the_heaviest_of_them_is_known(tmp_path: Path) -> None:
    model = MODELS["pairs"]
    result = spinbench.run(model, "gibbs", "numba", 200, keep=100, keep_in=tmp_path / "states.npz")
    assert result.states is not None
    assert result.best_log_weight >= model.log_weight(result.states).max() - 1e-9


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["pairs"]
    for path, words in (("a.npy", "a file that ends in .npz is needed"), ("no/a.npz", "there is no such folder")):
        with pytest.raises(SpinbenchError, match=words):
            spinbench.run(model, "gibbs", "numba", 10, keep=2, keep_in=tmp_path / path)
    with pytest.raises(SpinbenchError, match="was given without keep"):
        spinbench.run(model, "gibbs", "numba", 10, keep_in=tmp_path / "a.npz")
    monkeypatch.setattr(shelves.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(SpinbenchError, match="GiB are free"):
        spinbench.run(model, "gibbs", "numba", 10, keep=2, keep_in=tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())
