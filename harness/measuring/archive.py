"""Archives: a board's records in one folder of Parquet files, which are never rewritten, with their checksums.

`archive.json` says what an archive is and names its shards. A shard has a line a record: some columns for people, and
`record`, the JSON as it was measured, from which records are read. Archives come from others; nothing of them runs.
"""

from __future__ import annotations

import hashlib
import importlib
import json
import re
from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.foundation import atomic
from spinbench.foundation.trees import flatten

if TYPE_CHECKING:
    from spinbench.measuring.record_types import Record

MANIFEST = "archive.json"
SHARD_NAME = r"cells-\d{4}\.parquet"
# Of a shard's file, of its records' JSON, and of the manifest.
MAX_SHARD_BYTES = 1 << 28
MAX_RECORD_BYTES = 1 << 31
MAX_MANIFEST_BYTES = 1 << 24
# Columns beside `record`: pyarrow's type, and what they are.
COLUMNS = {
    "axes.model": ("string", "model"),
    "class": ("string", "class of the model"),
    "features.variables": ("float64", "number of variables"),
    "features.states": ("float64", "largest number of states of a variable"),
    "features.zeros": ("float64", "share of the tables' entries that are hard zeros"),
    "axes.method": ("string", "method"),
    "axes.backend": ("string", "backend"),
    "config.budget.seconds": ("float64", "budget in seconds"),
    "config.budget.cpu": ("bool_", "whether these are of the CPU"),
    "config.seed": ("int64", "seed"),
    "status": ("string", "ok, failed or skipped"),
    "result.status": ("string", "verdict, ok or what speaks against the numbers"),
    "result.levels.marginals": ("string", "level of evidence of the marginals"),
    "result.levels.log_z": ("string", "level of evidence of log Z"),
    "result.log_z": ("float64", "log Z in nats"),
    "result.log_z_se": ("float64", "standard error of log Z in nats"),
    "reference.log_z": ("float64", "exact log Z in nats"),
    "metrics.marginal_rmse.value": ("float64", "RMSE of the marginals against the exact ones"),
    "metrics.hellinger.value": ("float64", "mean Hellinger distance of the marginals to the exact ones"),
    "metrics.log_z_error.value": ("float64", "|log Z - exact log Z| in nats"),
    "result.seconds.run": ("float64", "wall-clock seconds of the kept samples"),
    "result.load.cpu_seconds": ("float64", "CPU seconds of the whole run without compilation"),
    "environment.cpu": ("string", "processor"),
}


class ArchiveError(SpinbenchError):
    """An archive is damaged, or cannot take what it was given."""


class Shard(msgspec.Struct, frozen=True, kw_only=True):
    """A Parquet file: its name, number of records, and checksum."""

    file: str
    rows: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What an archive says of itself.

    Attributes:
        name: of the board, with its version the name of the archive.
        version: any text.
        title: a line for people.
        licence: of the records.
        commit: of spinbench, with which all cells were measured.
        machines: processors and numbers of cores.
        planned: number of cells of the whole board; None where nobody said.
        columns: of the shards, with their meanings.
        shards: in the order in which they were added.
    """

    name: str
    version: str
    title: str = ""
    licence: str = ""
    commit: str | None = None
    machines: list[str] = []
    planned: int | None = None
    columns: dict[str, str] = {}
    shards: list[Shard] = []

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(shard.rows for shard in self.shards)


def is_archive(folder: Path) -> bool:
    """Whether a folder says that it is one."""
    return (folder / MANIFEST).is_file()


def read_manifest(folder: Path) -> Manifest:
    """What an archive says of itself; its shards are not looked at.

    Raises:
        ArchiveError: there is none, or it is damaged.
    """
    path = folder / MANIFEST
    try:
        if path.stat().st_size > MAX_MANIFEST_BYTES:
            raise ArchiveError(f"{path} has more than {MAX_MANIFEST_BYTES >> 20} MiB; no archive's has")
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except OSError as error:
        raise ArchiveError(f"{folder} is no archive: {MANIFEST} cannot be read: {error.strerror or error}") from error
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ArchiveError(f"{path} is damaged: {error}") from error
    for shard in manifest.shards:
        if not re.fullmatch(SHARD_NAME, shard.file):
            raise ArchiveError(f"{path} names the shard {shard.file!r}; cells-0000.parquet and so on are allowed")
    return manifest


def read_archive(folder: Path) -> list[Record]:
    """All records of an archive, in the order in which they were added, as they were measured.

    Raises:
        ArchiveError: it is damaged: a checksum, a number of records or a record is not what it should be.
        UnavailableError: pyarrow is not installed.
    """
    manifest = read_manifest(folder)
    return [record for shard in manifest.shards for record in _read_shard(folder / shard.file, shard)]


def _read_shard(path: Path, shard: Shard) -> list[Record]:
    from spinbench.measuring import record_types

    parquet = _parquet()
    check_shard(path, shard)
    try:
        file = parquet.ParquetFile(path)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        if sum(group.total_byte_size for group in groups) > MAX_RECORD_BYTES or file.metadata.num_rows != shard.rows:
            raise ArchiveError(f"{path} is damaged: it holds more than is allowed, or not {shard.rows} records")
        texts = file.read(columns=["record"])["record"].to_pylist()
        return [record_types.parse_record(record_types.parse_json(text)) for text in texts]
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ArchiveError(f"{path} is damaged: {' '.join(str(error).split())}") from error


def check_shard(path: Path, shard: Shard) -> None:
    """Raises ArchiveError where a shard is not the file that the archive was made with."""
    try:
        if path.stat().st_size > MAX_SHARD_BYTES:
            raise ArchiveError(f"{path} has more than {MAX_SHARD_BYTES >> 20} MiB; no shard has")
        content = path.read_bytes()
    except OSError as error:
        raise ArchiveError(f"{path} cannot be read: {error.strerror or error}") from error
    if hashlib.sha256(content).hexdigest() != shard.sha256:
        raise ArchiveError(f"{path} is damaged: its checksum is not the one in {MANIFEST}")


def add_records(folder: Path, records: Iterable[Record], **about: Any) -> tuple[Manifest, int]:
    """Put the records that an archive has not yet into a new shard, and make the archive where there is none.

    Args:
        folder: of the archive, NAME-VERSION.
        records: in any order; they are sorted by when they began.
        about: fields of `Manifest` that are to be set: `title`, `licence`, `planned`.

    Returns:
        The manifest, and how many records are new.

    Raises:
        ArchiveError: records of several commits, of changed files or of none, or the folder cannot be written.
        UnavailableError: pyarrow is not installed.
    """
    parquet = _parquet()
    name, _, version = folder.name.rpartition("-")
    if not name:
        raise ArchiveError(f"{folder} was given; an archive's folder is called NAME-VERSION")
    manifest, present = Manifest(name=name, version=version), set[str]()
    if is_archive(folder):
        manifest = read_manifest(folder)
        present = {record.id for record in read_archive(folder)}
    new = sorted((r for r in records if r.id not in present), key=lambda record: (record.started_at, record.id))
    commit = _commit(manifest.commit, new)
    machines = {f"{r.environment.cpu}, {r.environment.cores} cores" for r in new if r.environment.cpu is not None}
    shards = list(manifest.shards)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if new:
            path = folder / f"cells-{len(shards):04}.parquet"
            with atomic.open_atomically(path) as file:
                parquet.write_table(_table(new), file, compression="zstd", compression_level=19)
            checksum = hashlib.sha256(path.read_bytes()).hexdigest()
            shards.append(Shard(file=path.name, rows=len(new), sha256=checksum))
        columns = {name: meaning for name, (_, meaning) in COLUMNS.items()} | {"record": "the whole record as JSON"}
        changed = {"commit": commit, "machines": sorted({*manifest.machines, *machines}), "columns": columns}
        manifest = msgspec.structs.replace(manifest, shards=shards, **changed, **about)
        atomic.write_bytes(folder / MANIFEST, msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    except OSError as error:
        raise ArchiveError(f"{folder} cannot be written: {error.strerror or error}") from error
    return manifest, len(new)


def _commit(commit: str | None, records: Sequence[Record]) -> str | None:
    """The one with which all cells were measured."""
    for record in records:
        code = record.git
        if code.commit is None or code.dirty or code.diff:
            raise ArchiveError(f"the record {record.key} was measured with uncommitted changes or outside of git")
        commit = commit or code.commit
        if code.commit != commit:
            raise ArchiveError(f"the record {record.key} is of commit {code.commit[:8]}, the archive of {commit[:8]}")
    return commit


def _table(records: Sequence[Record]) -> Any:
    """A pyarrow table: the columns for people, and the records."""
    arrow = importlib.import_module("pyarrow")
    lines = [flatten(record.content) for record in records]
    try:
        columns = {
            name: arrow.array([line.get(name) for line in lines], getattr(arrow, kind)())
            for name, (kind, _) in COLUMNS.items()
        }
    except (ValueError, TypeError) as error:
        raise ArchiveError(f"a record has something else than it should: {error}") from error
    return arrow.table({**columns, "record": [json.dumps(record.content, allow_nan=False) for record in records]})


def _parquet() -> Any:
    if find_spec("pyarrow") is None:
        raise UnavailableError(
            "archives are Parquet files, and pyarrow is not installed; pip install 'spinbench[parquet]'"
        )
    return importlib.import_module("pyarrow.parquet")
