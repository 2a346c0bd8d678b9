"""Archives of boards: whole, small, and safe to read from strangers; own results among theirs."""

from __future__ import annotations

import copy
import hashlib
import io
import json
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from profile_records import record
from small_records import typed

import spinbench
from spinbench import cli
from spinbench.measuring import archive, records
from spinbench.reporting.archives import comparison, store
from spinbench.reporting.profiles.profile import profile

pytest.importorskip("pyarrow", reason="needs pip install 'spinbench[parquet]'")

MODELS = ("a", "b", "c")


def run(model: str, method: str, error: float | None, loop: float = 1e-4, **settings: Any) -> dict[str, Any]:
    """A record of a run on a model that is known by its file."""
    made = copy.deepcopy(record(model, method, error, **settings))
    made["files"] = {"path": hashlib.sha256(model.encode()).hexdigest()}
    made["config"]["model"] = {"name": "file", "path": f"{model}.uai"}
    if made["result"] is not None:
        made["result"]["load"] = {"yardstick": [loop, loop]}
    return made


BOARD = [
    run(model, method, error, seed=seed)
    for model in MODELS
    for method, error in (("gibbs", 0.02), ("wmb", 0.005), ("bp", None if model == "c" else 0.1))
    for seed in range(2)
]


@pytest.fixture
def board(tmp_path: Path) -> Path:
    folder = tmp_path / "made" / "small-1"
    archive.add_records(folder, typed(BOARD[:10]), title="A small board", licence="MIT", planned=36)
    archive.add_records(folder, typed(BOARD))
    return folder


def test_records_come_back_as_they_were_measured(board: Path) -> None:
    assert sorted(path.name for path in board.iterdir()) == ["archive.json", "cells-0000.parquet", "cells-0001.parquet"]
    back = {each.id: each.content for each in archive.read_archive(board)}
    assert back == {each.id: each.content for each in typed(BOARD)}
    assert profile(board).boards[0].values.tolist() == profile(typed(BOARD)).boards[0].values.tolist()
    assert len(spinbench.read(board)) == len(BOARD)
    manifest = archive.read_manifest(board)
    assert (manifest.rows, manifest.planned, manifest.licence, manifest.commit) == (18, 36, "MIT", "a" * 40)


def test_adding_again_changes_nothing_and_equal_records_give_equal_files(board: Path, tmp_path: Path) -> None:
    before = {path.name: path.read_bytes() for path in board.iterdir()}
    assert archive.add_records(board, typed(BOARD))[1] == 0
    assert {path.name: path.read_bytes() for path in board.iterdir()} == before
    other = tmp_path / "small-1"
    archive.add_records(other, list(reversed(typed(BOARD[:10]))))
    assert (other / "cells-0000.parquet").read_bytes() == before["cells-0000.parquet"]


def test_columns_for_people(board: Path) -> None:
    import pyarrow.parquet

    table = pyarrow.parquet.read_table(board / "cells-0000.parquet")
    assert table.column_names == list(archive.read_manifest(board).columns)
    assert table["metrics.marginal_rmse.value"].to_pylist()[0] == 0.02
    assert table["config.budget.seconds"].to_pylist() == [1.0] * 10


@pytest.mark.parametrize(
    ("git", "sentence"),
    [
        ({"commit": "b" * 40, "dirty": False}, "is of commit bbbbbbbb, the archive of aaaaaaaa"),
        ({"commit": "a" * 40, "dirty": True}, "was measured with uncommitted changes"),
        ({"commit": None, "dirty": None}, "outside of git"),
    ],
)
def test_cells_of_other_code_are_refused(board: Path, git: dict[str, Any], sentence: str) -> None:
    with pytest.raises(archive.ArchiveError, match=sentence):
        archive.add_records(board, typed([{**run("a", "mf", 0.1), "git": git}]))
    assert archive.read_manifest(board).rows == 18


def change_byte(folder: Path) -> None:
    path = folder / "cells-0000.parquet"
    path.write_bytes(path.read_bytes()[:-9] + b"x" + path.read_bytes()[-8:])


def name_path(folder: Path) -> None:
    text = (folder / "archive.json").read_text()
    (folder / "archive.json").write_text(text.replace("cells-0001.parquet", "../../secret.parquet"))


def wrong_rows(folder: Path) -> None:
    content = json.loads((folder / "archive.json").read_text())
    content["shards"][0]["rows"] = 3
    (folder / "archive.json").write_text(json.dumps(content))


def other_columns(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    replace_shard(folder, pyarrow.table({"record": [1] * 10}))


def no_record(folder: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    replace_shard(folder, pyarrow.table({"record": ['{"schema": 1}'] * 10}))


def replace_shard(folder: Path, table: Any) -> None:
    """With a checksum that is right."""
    import pyarrow.parquet

    pyarrow.parquet.write_table(table, folder / "cells-0000.parquet")
    content = json.loads((folder / "archive.json").read_text())
    content["shards"][0]["sha256"] = hashlib.sha256((folder / "cells-0000.parquet").read_bytes()).hexdigest()
    (folder / "archive.json").write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (change_byte, "its checksum is not the one in archive.json"),
        (name_path, "names the shard '../../secret.parquet'"),
        (wrong_rows, "not 3 records"),
        (other_columns, "is damaged"),
        (no_record, "is damaged"),
        (lambda folder: (folder / "cells-0001.parquet").unlink(), "cannot be read: No such file"),
        (lambda folder: (folder / "archive.json").write_text("[" * 100_000), "is damaged"),
    ],
    ids=["byte", "path", "rows", "columns", "record", "missing", "nested"],
)
def test_damaged_archives_are_refused_by_a_sentence(
    board: Path, damage: Callable[[Path], object], sentence: str, capsys: pytest.CaptureFixture[str]
) -> None:
    damage(board)
    assert cli.main(["profile", str(board)]) == 2
    assert sentence in " ".join(capsys.readouterr().err.split())


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder without boards, and an empty cache."""
    monkeypatch.setenv("SPINBENCH_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "home").mkdir()
    monkeypatch.chdir(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.parametrize("packed", [False, True])
def test_an_archive_is_fetched_listed_and_found_by_its_name(
    board: Path, home: Path, packed: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    source = board
    if packed:
        source = home / "small-1.tar.gz"
        with tarfile.open(source, "w:gz") as file:
            file.add(board, "small-1")
    assert cli.main(["archive", "fetch", str(source)]) == 0
    assert cli.main(["archive", "list"]) == 0
    out = capsys.readouterr().out
    assert "small-1: 18 cells" in out
    assert "50 %" in out
    assert len(archive.read_archive(store.find_archive("small-1", [home]))) == 18
    change_byte(store.cached_boards() / "small-1")
    assert cli.main(["archive", "list"]) == 1


def test_a_tar_file_that_leaves_its_folder_is_refused(home: Path) -> None:
    path = home / "evil.tar"
    with tarfile.open(path, "w") as file:
        member = tarfile.TarInfo("../../evil/archive.json")
        member.size = 2
        file.addfile(member, io.BytesIO(b"{}"))
    with pytest.raises(archive.ArchiveError, match="cannot be unpacked"):
        store.fetch(str(path))
    assert not list(home.parent.glob("**/evil"))


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("http://localhost/x-1.tar", "only https addresses are fetched"),
        ("nowhere-1", "is no archive"),
        ("https://localhost:1/x-1.tar", "cannot be fetched"),
    ],
)
def test_what_cannot_be_fetched(home: Path, source: str, sentence: str) -> None:
    with pytest.raises(archive.ArchiveError, match=sentence):
        store.fetch(source)


def sweep_folder(folder: Path, runs: list[dict[str, Any]]) -> Path:
    for each in typed(runs):
        records.write_record(folder, {**each.content, "key": each.id})
    return folder


def test_own_results_get_their_rank(board: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    mine = [run(model, "mine", 0.01, loop=5e-5) for model in MODELS[:2]]
    for each in mine:  # the same file in another folder
        each["axes"]["model"] = f"elsewhere/{each['axes']['model']}"
    folder = sweep_folder(tmp_path / "mine", [*mine, run("unknown", "mine", 0.01), run("a", "gibbs", 0.02)])
    assert cli.main(["archive", "compare", str(board), str(folder)]) == 0
    out = capsys.readouterr().out.splitlines()
    place = "place 2 of 4 in RMSE of the marginals after 1 s, mean rank 2.0 (2.0–2.0) over 2 models"
    assert out[0] == f"mine.numpy: {place}"
    assert "2 of 4 records count" in out[-2]
    assert "2.00 times as fast as the archive's: NOT alike" in out[-1]


@pytest.mark.parametrize(
    ("own", "sentence"),
    [
        ([run("unknown", "mine", 0.1)], "none of the models is in the archive"),
        ([run("a", "gibbs", 0.1)], "all of the solvers are in the archive already"),
    ],
)
def test_what_cannot_be_compared(board: Path, own: list[dict[str, Any]], sentence: str) -> None:
    with pytest.raises(archive.ArchiveError, match=sentence):
        comparison.compare(archive.read_archive(board), typed(own))


def test_other_budgets_are_not_compared(board: Path) -> None:
    found = comparison.compare(archive.read_archive(board), typed([run("a", "mine", 0.01, seconds=5.0)]))
    assert {place.board for place in found.places} == {"seconds to an RMSE of 1 %"}


def test_cells_are_measured_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "sweep"
    overrides = ["method=gibbs,mf", "backend=numpy", "model=grid", "budget=samples", "budget.samples=300"]
    assert cli.main(["sweep", "-m", *overrides, f"sweep_dir={folder}"]) == 0
    assert cli.main(["archive", "check", str(folder)]) == 0
    assert capsys.readouterr().out.count(": reproduced") == 2
    path = next(path for path in (folder / "records").iterdir() if '"gibbs"' in path.read_text())
    content = json.loads(path.read_text())
    content["metrics"]["log_z_error"]["value"] += 5.0
    path.write_text(json.dumps(content))
    assert cli.main(["archive", "check", str(folder), "--cells", "5"]) == 1
    assert "NOT reproduced, log_z_error: 5" in capsys.readouterr().out


@pytest.mark.parametrize("words", [["fetch"], ["add", "x-1"], ["compare"], ["check"]])
def test_actions_say_what_they_lack(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["archive", *words]) == 2
    assert f"spinbench archive {words[0]} needs" in capsys.readouterr().err
