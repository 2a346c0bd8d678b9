"""States that runs keep in files."""

from __future__ import annotations

import io
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import spinbench
from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.inference.stored_states import recorder, storage
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


@pytest.mark.parametrize("name", MODELS)
def test_parquet_has_a_line_for_each_state(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(storage, "MIN_GROUP_ROWS", 50)  # several groups
    monkeypatch.setattr(storage, "GROUP_BYTES", 1)
    options: dict[str, Any] = {"chains": 3, "seed": 4, "keep": 40}
    one = spinbench.run(MODELS[name], "gibbs", "numba", 100, keep_in=tmp_path / "states.parquet", **options)
    two = spinbench.run(MODELS[name], "gibbs", "numba", 100, **options)
    assert one.states.dtype == two.states.dtype
    assert (one.states == two.states).all()
    assert list(tmp_path.iterdir()) == [tmp_path / "states.parquet"]
    columns = parquet.read_table(tmp_path / "states.parquet").to_pydict()
    assert parquet.ParquetFile(tmp_path / "states.parquet").num_row_groups == 2
    count = two.states.shape[1]
    assert columns.pop("chain") == [0, 1, 2] * count
    assert columns.pop("draw") == np.repeat(np.arange(count), 3).tolist()
    assert [*columns] == [str(v) for v in range(two.states.shape[2])]
    np.testing.assert_array_equal(np.array([*columns.values()]).T.reshape(count, 3, -1), two.states.transpose(1, 0, 2))


@pytest.mark.parametrize(("labels", "names"), [(("rain", "sun"), ["rain", "sun"]), (("chain", "sun"), ["0", "1"])])
def test_columns_are_named_as_the_variables(labels: tuple[str, str], names: list[str], tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    model = FactorGraph.from_tables((2, 2), [((0, 1), [[1.0, 2], [3, 1]])], labels=labels)
    spinbench.run(model, "gibbs", "numpy", 20, keep=5, keep_in=tmp_path / "states.parquet")
    assert parquet.read_schema(tmp_path / "states.parquet").names == ["chain", "draw", *names]


@pytest.mark.parametrize("suffix", [".npz", ".parquet"])
def test_an_interruption_leaves_no_file(suffix: str, tmp_path: Path) -> None:
    """While states are kept, and while their file is written."""
    pytest.importorskip("pyarrow")

    def interrupted() -> Iterator[Any]:
        yield np.zeros((2000, 3, 4), dtype=np.uint8)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        storage.write_states(
            tmp_path / f"states{suffix}", storage.States(interrupted(), (4000, 3, 4), np.dtype(np.uint8), range(4))
        )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("place", ["_record", "_blocks"])
def test_an_interruption_says_that_there_is_no_file(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*given: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(recorder.RecordingEngine, place, interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        spinbench.run(MODELS["pairs"], "gibbs", "numpy", 20, keep=5, keep_in=tmp_path / "states.npz")
    assert caught.value.__notes__ == [f"{tmp_path / 'states.npz'} was not written: it appears when the run has ended"]
    assert list(tmp_path.iterdir()) == []


def test_parquet_without_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "find_spec", lambda name: None)
    with pytest.raises(UnavailableError, match=r"pyarrow is not installed; pip install 'spinbench\[parquet\]', or"):
        spinbench.run(MODELS["pairs"], "gibbs", "numpy", 10, keep=2, keep_in=tmp_path / "a.parquet")


def test_of_unknown_many_every_other_one_goes() -> None:
    rows = [np.full((2, 3), k, dtype=np.uint8) for k in range(8)]
    states = storage.StateBuffer(io.BytesIO(), (2, 3), np.dtype(np.uint8))
    for row in rows:
        states.append(row)
    states.halve()
    states.append(rows[0])
    assert [int(states[k][0, 0]) for k in range(len(states))] == [1, 3, 5, 7, 0]
    states.clear()
    assert len(states) == 0


@pytest.mark.parametrize(("suffix", "share"), [(".npz", 10), (".parquet", 5)])
def test_memory_holds_few_of_them(suffix: str, share: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "GROUP_BYTES", 2**18)
    model, file, size = generators.grid(40, 40, seed=0), tmp_path / f"states{suffix}", 8 * 2000 * 1600

    def peak(**more: Any) -> int:
        tracemalloc.start()
        spinbench.run(model, "gibbs", "numba", 2000, chains=8, **more)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(keep=2, keep_in=file)  # imports, and compiles
    assert peak(keep=2000, keep_in=file) < peak() + size / share
    assert file.stat().st_size > (size if suffix == ".npz" else size / 10)  # eight variables in a byte, compressed


def test_the_heaviest_of_them_is_known(tmp_path: Path) -> None:
    model = MODELS["pairs"]
    result = spinbench.run(model, "gibbs", "numba", 200, keep=100, keep_in=tmp_path / "states.npz")
    assert result.states is not None
    assert result.best_log_weight >= model.log_weight(result.states).max() - 1e-9


def test_bad_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = MODELS["pairs"]
    for path, words in (
        ("a.npy", "a file that ends in .npz or .parquet is needed"),
        ("no/a.npz", "there is no such folder"),
    ):
        with pytest.raises(SpinbenchError, match=words):
            spinbench.run(model, "gibbs", "numba", 10, keep=2, keep_in=tmp_path / path)
    with pytest.raises(SpinbenchError, match="was given without keep"):
        spinbench.run(model, "gibbs", "numba", 10, keep_in=tmp_path / "a.npz")
    monkeypatch.setattr(storage.shutil, "disk_usage", lambda _: type("Usage", (), {"free": 10})())
    with pytest.raises(SpinbenchError, match="GiB are free"):
        spinbench.run(model, "gibbs", "numba", 10, keep=2, keep_in=tmp_path / "a.npz")
    assert not list(tmp_path.iterdir())
