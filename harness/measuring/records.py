"""One immutable JSON file a measured cell, written so that a reader sees all of it or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from spinbench import __version__
from spinbench.errors import SpinbenchError
from spinbench.foundation.atomic import write_json
from spinbench.foundation.overrides import is_assignment
from spinbench.foundation.remarks import left_out
from spinbench.measuring.cells import digest as digest
from spinbench.metrics import MAX_MAGNITUDE
from spinbench.metrics import METRICS as METRICS

if TYPE_CHECKING:
    from spinbench.measuring.record_types import Record

SCHEMA = 1
# Largest size of a record's file in bytes; messages of cells are shortened before (`isolation`).
MAX_BYTES = 1 << 26


# Content of a new record, as JSON; a record that is read is a `record_types.Record`.
Content = dict[str, Any]

# Parts of a configuration that define the measurement; other parts say how the sweep is run.
CELL = ("model", "method", "backend", "budget", "chains", "seed")

# Keys of a backend's configuration that request kernels (`inference.kernels.Wish`); part of a cell only where present.
WISHES = ("tier", "kernel")

# File in a sweep's folder with the overrides it was started with, for `--resume`, and its final report.
COMMAND_FILE = "sweep.json"


class RecordError(SpinbenchError):
    """A record cannot be read or written."""


def write_record(folder: Path, record: Content) -> Path:
    """Write a record into a sweep's folder, whole or not at all; returns its path.

    Raises:
        RecordError: the folder cannot be written, or the disk is full.
        ValueError: the record holds NaN or an infinity.
    """
    path = record_path(folder, record["key"])
    try:
        write_json(path, record)
    except OSError as error:
        raise RecordError(f"{path} cannot be written: {error.strerror or error}") from error
    return path


def read_record(path: Path) -> Record:
    """One record.

    Raises:
        RecordError: not a whole record of this schema; the sentence names the file.
    """
    # Here and not above: `spinbench list` starts without msgspec.
    from spinbench.measuring import record_types

    try:
        # A pipe would be waited for.
        if not path.is_file():
            raise ValueError("it is no file")
        if path.stat().st_size > MAX_BYTES:
            raise ValueError(f"it has more than {MAX_BYTES >> 20} MiB")
        content = record_types.parse_json(path.read_text(encoding="utf-8"))
        if isinstance(content, dict) and content.get("schema") == SCHEMA:
            return record_types.parse_record(content)
    except (OSError, ValueError) as error:
        raise RecordError(f"{path} is not a record: {error}") from error
    raise RecordError(f"{path} is not a record of schema {SCHEMA}")


def read_records(folder: Path) -> list[Record]:
    """All records below a sweep's folder, or of an archive, oldest first; what is none is named on standard error and
    left out.

    Raises:
        RecordError: there are none.
        ArchiveError: the archive is damaged.
    """
    if (folder / "archive.json").is_file():
        # Here and not above: it reads records, too, and needs msgspec.
        from spinbench.measuring.archive import read_archive

        return sorted(read_archive(folder), key=lambda record: (record.started_at, record.key))
    records: list[Record] = []
    errors: list[RecordError] = []
    for path in sorted(folder.rglob("record-*.json")):
        try:
            records.append(read_record(path))
        except RecordError as error:
            errors.append(error)
    if not records:
        raise (errors or [RecordError(f"{folder} holds no records (record-*.json); give the folder of a sweep")])[0]
    for record_error in errors:
        left_out(str(record_error))
    return sorted(records, key=lambda record: (record.started_at, record.key))


def record_path(folder: Path, key: str) -> Path:
    """Where a sweep keeps the record of this key."""
    return folder / "records" / f"record-{key}.json"


def record_ids(folder: Path) -> frozenset[str]:
    """The ids of the records below a sweep's folder that can be read."""
    ids = set()
    for path in folder.rglob("record-*.json"):
        with suppress(RecordError):
            ids.add(read_record(path).id)
    return frozenset(ids)


def latest_per_cell(records: Iterable[Record], earlier: Set[str] = frozenset()) -> list[Record]:
    """One record a cell: of those with equal configurations, the one that was measured last.

    A failed one does not take the place of a good one of the same code: it was disturbed, or did not find its files.

    Args:
        records: of any number of runs.
        earlier: ids of those that are older than the others, whatever the clock said: clocks are set back.
    """
    chosen: dict[str, Record] = {}
    for record in sorted(records, key=lambda record: (record.id not in earlier, record.started_at)):
        cell = digest(record.config)
        before = chosen.get(cell)
        if before is None or record.status != "failed" or before.status != "ok" or before.git != record.git:
            chosen[cell] = record
    return list(chosen.values())


def cell_key(config: Mapping[str, Any], git: Mapping[str, Any], plugins: Mapping[str, Any] | None = None) -> str:
    """Identifies what is measured: the configuration, the contents of the model's files, and the code's state.

    Args:
        config: of the cell.
        git: the state of spinbench's code; outside of git, its version stands for it.
        plugins: that of others' plugins (`provenance.foreign_plugins`).
    """
    hashes = file_hashes(config["model"])
    files = [hashes.get(name) for name in ("path", "evidence")]
    if config["model"].get("corpus"):
        files.append(hashes["corpus"])
    code = [git.get("commit") or __version__, git.get("diff"), *filter(None, [git.get("spinbench"), plugins])]
    return digest([config, files, *code])


def file_hashes(model: Mapping[str, Any]) -> dict[str, str | None]:
    """Hashes of the files that a model is read from, by the parameter that names them; None where there is no file."""
    hashes = {name: _file_digest(model[name]) for name in ("path", "evidence") if model.get(name) is not None}
    if is_assignment(evidence := model.get("evidence")):
        hashes["evidence"] = digest(evidence)
    if corpus := model.get("corpus"):
        # Of the names and contents of all files below; those that cannot be read count by name.
        files = [path for path in sorted(Path(corpus).rglob("*")) if path.is_file()]
        hashes["corpus"] = digest([[path.name, _file_digest(path)] for path in files])
    return hashes


def axis_labels(config: Mapping[str, Any]) -> dict[str, str]:
    """Labels of the model, the method and the backend, "jax(tier=generic)" where a tier or kernel is asked for."""
    backend = config["backend"]
    wishes = ",".join(f"{name}={backend[name]}" for name in WISHES if backend.get(name) is not None)
    return {
        "model": model_label(config["model"]),
        "method": config["method"]["name"],
        "backend": f"{backend['name']}({wishes})" if wishes else backend["name"],
    }


def model_label(spec: Mapping[str, Any]) -> str:
    """The model's name, with those of its parameters that are not at their defaults: "grid(rows=20,c2=2)"."""
    # Here and not above: reading records needs neither models nor plugins.
    from spinbench.models import families

    name = str(spec["name"])
    if name == "file":
        return " given ".join(map(str, (spec.get("path"), *filter(None, [spec.get("evidence")]))))
    parameters = {key: value for key, value in spec.items() if key != "name" and value is not None}
    if name == "skip_chain":
        parameters.setdefault("corpus", "synthetic")
    defaults = families.parameter_defaults(name)
    changed = ",".join(
        f"{key}={_format_value(value)}" for key, value in parameters.items() if defaults.get(key) != value
    )
    return f"{name}({changed})" if changed else name


def plain(content: object) -> Any:
    """As JSON can hold it: NumPy scalars and arrays are Python's, what is not finite, or 1e300 and more, is None."""
    if isinstance(content, Mapping):
        return {str(key): plain(value) for key, value in content.items()}
    if isinstance(content, list | tuple | set | frozenset):
        return [plain(value) for value in content]
    if hasattr(content, "tolist"):
        return plain(content.tolist())
    if isinstance(content, float) and not abs(content) < MAX_MAGNITUDE:
        return None
    if content is None or isinstance(content, bool | int | float | str):
        return content
    return str(content)


def _format_value(value: object) -> str:
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _file_digest(path: str | Path) -> str | None:
    # A pipe or a device is not read: it may never end.
    if not Path(path).is_file():
        return None
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        # The cell fails with this error when it reads the file.
        return None
