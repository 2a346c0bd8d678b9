"""Samples of anybody's, as states (variable, chain, draw) of a model's variables."""

from __future__ import annotations

import csv
import json
import os
import zipfile
import zlib
from collections.abc import Hashable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.auditing.columns import order_variables
from spinbench.errors import SpinbenchError, UnavailableError
from spinbench.models import Model

Axes = tuple[str, ...]
States = npt.NDArray[np.int64]

# Largest number of values of all samples together: 2 GiB.
MAX_NUMBERS = 2**28
# Exceptions with which readers reject files that are damaged or of another format.
BROKEN = (OSError, ValueError, EOFError, KeyError, TypeError, RecursionError, csv.Error, zipfile.BadZipFile, zlib.error)
PLACES = {"chain": "chain", "draw": "draw", "chains": "chain", "draws": "draw"}


class Samples(NamedTuple):
    """States of a model's variables.

    Attributes:
        states: (N, C, D) from 0 to K - 1, by variable, chain and draw.
        chained: whether the draws of a chain follow each other; else all are taken to be independent, and C is 1.
        notes: what was assumed, a sentence each.
    """

    states: States
    chained: bool
    notes: tuple[str, ...]


class _Raw(NamedTuple):
    """An array, what its axes are ("variable", "chain", "draw"; () where nobody says), and labels of the variables."""

    values: np.ndarray
    axes: Axes = ()
    labels: tuple[Hashable, ...] = ()


def read_samples(source: object, model: Model) -> Samples:
    """The samples that a file or an object holds.

    Args:
        source: path of an `.npz` or `.npy` file (as of `spinbench.run(…, keep_in=…)`, or with one array), of a `.csv`
            file with a line a draw and perhaps labels above, of a dimod SampleSet (`.json`) or of an ArviZ
            InferenceData (`.nc`); a SampleSet, an InferenceData or a `spinbench.Result` with stored states; or an array
            (draws, variables) of independent draws or (variables, chains, draws) of chains.
        model: its variables have the order of the columns, unless labels say another one.

    Raises:
        SpinbenchError: what is there is no samples of the model's variables, in one sentence.
        UnavailableError: dimod or ArviZ is needed and not installed.
    """
    if isinstance(source, str | os.PathLike):
        name, raw = str(source), _read_file(Path(source))
    else:
        name = type(source).__name__
        raw = _read_object(source, name)
    if raw.values.dtype == object or raw.values.dtype.kind not in "biuf":
        raise SpinbenchError(f"{name}: the samples are of type {raw.values.dtype}; numbers are needed")
    if not raw.values.size or raw.values.size > MAX_NUMBERS:
        raise SpinbenchError(f"{name}: there are {raw.values.size:,} numbers; 1 to {MAX_NUMBERS:,} are needed")
    values, chained, notes = _arrange(raw, model, name)
    values, ordered = order_variables(values, raw.labels, model, name)
    states, assumed = _states(values, model, name)
    return Samples(states, chained, (*notes, *ordered, assumed))


def _read_file(path: Path) -> _Raw:
    if not path.is_file():
        raise SpinbenchError(f"{path}: there is no such file of samples")
    readers = {".npz": _read_npz, ".npy": _read_npy, ".csv": _read_csv, ".json": _read_json, ".nc": _read_netcdf}
    if path.suffix.lower() not in readers:
        raise SpinbenchError(f"{path}: samples are read from {', '.join(readers)} files")
    try:
        return readers[path.suffix.lower()](path)
    except BROKEN as error:
        raise SpinbenchError(f"{path}: no samples can be read of this file ({' '.join(str(error).split())})") from error


def _read_npy(path: Path) -> _Raw:
    return _Raw(np.load(path, allow_pickle=False))


def _read_npz(path: Path) -> _Raw:
    with np.load(path, allow_pickle=False) as archive:
        names = list(archive.files)
        chosen = next((name for name in ("states", "samples", *names[:1]) if name in names), None)
        if chosen is None or (len(names) > 1 and chosen not in ("states", "samples")):
            raise SpinbenchError(f"{path}: the arrays are {', '.join(names)}; one of them has to be named samples")
        values = archive[chosen]
    if not isinstance(values, np.ndarray):
        raise SpinbenchError(f"{path}: {chosen} is no array")
    # the layout of files that `run(…, keep_in=…)` writes
    return _Raw(values, {("states", 3): ("draw", "chain", "variable")}.get((chosen, values.ndim), ()))


def _read_csv(path: Path) -> _Raw:
    with path.open(newline="", encoding="utf-8-sig") as file:
        lines = [line for line in csv.reader(file) if line]
    if not lines:
        raise SpinbenchError(f"{path}: the file is empty")
    if not any(all(map(_is_number, line)) for line in lines):
        raise SpinbenchError(f"{path}: no line has numbers alone, with commas between them")
    named = _is_numbered(lines) or not all(map(_is_number, lines[0]))
    header = [name.strip() for name in lines.pop(0)] if named else []
    for number, line in enumerate(lines):
        if len(line) != len(lines[0]) or not all(map(_is_number, line)):
            raise SpinbenchError(
                f"{path}: draw {number} is {','.join(line)[:60]!r}; {len(lines[0])} numbers are needed"
            )
    table = np.array(lines, dtype=np.float64).reshape(len(lines), -1)
    if header and len(header) != table.shape[1]:
        raise SpinbenchError(f"{path}: {len(header)} columns have names, but lines have {table.shape[1]} numbers")
    return _states_of_columns(table, header, path)


def _is_numbered(lines: Sequence[Sequence[str]]) -> bool:
    """Whether the first line has the numbers of columns, 0 to N - 1 in any order, which are no states further down."""
    width = len(lines[0])
    if {cell.strip() for cell in lines[0]} != set(map(str, range(width))):
        return False
    others = {cell.strip() for line in lines[1:] for cell in line}
    return bool(others) and str(width - 1) not in others


def _states_of_columns(table: np.ndarray, header: Sequence[str], path: Path) -> _Raw:
    """A table of a line a draw, perhaps with columns "chain" and "draw"."""
    places = {PLACES[name.lower()]: k for k, name in enumerate(header) if name.lower() in PLACES}
    variables = [k for k in range(table.shape[1]) if k not in places.values()]
    labels = tuple(header[k] for k in variables if header)
    numbers = table[:, list(places.values())]
    if not np.isfinite(numbers).all():
        row, column = np.argwhere(~np.isfinite(numbers))[0].tolist()
        raise SpinbenchError(f"{path}: the {list(places)[column]} of line {row} is {numbers[row, column]}")
    if "draw" in places and len(np.unique(numbers, axis=0)) < len(table):
        lacking = "" if "chain" in places else "; a column chain tells chains apart"
        raise SpinbenchError(f"{path}: the number of a draw occurs twice in one chain{lacking}")
    if "chain" not in places:
        return _Raw(table[:, variables], ("draw", "variable"), labels)
    of_draw = table[:, places["draw"]] if "draw" in places else np.arange(len(table))
    sizes = np.unique(table[:, places["chain"]], return_counts=True)[1]
    if (sizes != sizes[0]).any():
        raise SpinbenchError(f"{path}: chains have {sizes.min()} to {sizes.max()} draws; as many of each are needed")
    order = np.lexsort((of_draw, table[:, places["chain"]]))
    return _Raw(table[order][:, variables].reshape(len(sizes), sizes[0], -1), ("chain", "draw", "variable"), labels)


def _read_json(path: Path) -> _Raw:
    content = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(content, dict) or content.get("type") != "SampleSet":
        raise SpinbenchError(
            f"{path}: this JSON is no dimod SampleSet (`json.dump(sampleset.to_serializable(), file)`)"
        )
    return _read_object(_load("dimod", "bqm").SampleSet.from_serializable(content), str(path))


def _read_netcdf(path: Path) -> _Raw:
    return _read_object(_load("arviz", "arviz").from_netcdf(path), str(path))


def _read_object(source: Any, name: str) -> _Raw:
    # A dimod SampleSet: a row stands for `num_occurrences` samples.
    if hasattr(source, "record") and hasattr(source, "variables"):
        repeated = np.repeat(source.record.sample, source.record.num_occurrences, axis=0)
        return _Raw(repeated, ("draw", "variable"), tuple(source.variables))
    if hasattr(source, "groups") or hasattr(source, "posterior"):
        return _read_posterior(source["posterior"], name)
    if hasattr(source, "best_state") and hasattr(source, "states"):  # a `Result` of spinbench
        if source.states is None:
            raise SpinbenchError(f"the result of {source.method} has no stored states; spinbench.run(…, keep=500) has")
        return _Raw(np.asarray(source.states), ("chain", "draw", "variable"))
    try:
        return _Raw(np.asarray(source))
    except ValueError:
        raise SpinbenchError(f"{name}: rows have different lengths; an array is needed") from None


def _read_posterior(posterior: Any, name: str) -> _Raw:
    arrays = {key: posterior[key] for key in posterior.data_vars}
    chosen = arrays.get("x", next(iter(arrays.values()), None))
    if chosen is None or (len(arrays) > 1 and "x" not in arrays) or len(chosen.dims) != 3:
        raise SpinbenchError(f"{name}: the posterior needs one variable x of dimensions chain, draw and node")
    axes = tuple(dim if dim in ("chain", "draw") else "variable" for dim in chosen.dims)
    node = next(dim for dim in chosen.dims if dim not in ("chain", "draw"))
    labels = tuple(chosen[node].values.tolist()) if node in chosen.coords else ()
    return _Raw(np.asarray(chosen), axes, labels)


def _arrange(raw: _Raw, model: Model, name: str) -> tuple[np.ndarray, bool, tuple[str, ...]]:
    """(N, C, D), whether these are chains, and what was assumed."""
    n, shape, axes, axes_note = model.num_variables, raw.values.shape, raw.axes, ""
    if not axes:
        if raw.values.ndim == 2:
            axes = ("draw", "variable")
            if shape[0] == n != shape[1]:
                axes = ("variable", "draw")
        elif raw.values.ndim == 3:
            axes = ("chain", "draw", "variable")
            if shape[0] == n:
                axes = ("variable", "chain", "draw")
        else:
            raise SpinbenchError(
                f"{name}: the samples have shape {shape}; (draws, {n}) or ({n}, chains, draws) is needed"
            )
        axes_note = f"; the array's axes are {', '.join(axes)}"
    if shape[axes.index("variable")] != n and not (raw.labels and len(raw.labels) > n):
        raise SpinbenchError(
            f"{name}: the samples have shape {shape}, by {', '.join(axes)}; the model has {n} variables"
        )
    if "chain" not in axes:
        values = np.moveaxis(raw.values, axes.index("variable"), 0)[:, None, :]
        apart = "a column `chain`, or an array of (variables, chains, draws), tells chains apart"
        return values, False, (f"draws are taken to be independent; {apart}",)
    order = [axes.index(axis) for axis in ("variable", "chain", "draw")]
    values = raw.values.transpose(order)
    return values, True, (f"chains: {values.shape[1]}, of {values.shape[2]} draws that follow each other{axes_note}",)


def _states(values: np.ndarray, model: Model, name: str) -> tuple[States, str]:
    """From 0 to K - 1; and what the numbers were taken for."""
    # Conversion warns about numbers beyond int64; the comparison with the rounded values refuses them.
    with np.errstate(invalid="ignore"):
        whole = np.rint(np.where(np.isfinite(values), values, 0.5)).astype(np.int64)
    if (wrong := whole != values).any():
        v, c, d = np.argwhere(wrong)[0].tolist()
        raise SpinbenchError(f"{name}: variable {v} is {values[v, c, d]:g} in draw {d}; states are whole numbers")
    last = np.array(model.cardinalities)[:, None, None] - 1
    spins = bool((whole < 0).any())
    if spins and model.all_binary and (abs(whole) == 1).all():
        return (whole + 1) // 2, "spins of -1 and +1, which are states 0 and 1"
    if (outside := (whole < 0) | (whole > last)).any():
        v, c, d = np.argwhere(outside)[0].tolist()
        among = "-1 and +1, or 0 and 1,"
        if not model.all_binary:
            among = f"0 to {model.cardinalities[v] - 1}"
        raise SpinbenchError(f"{name}: variable {v} is {whole[v, c, d]} in draw {d}, where {among} is needed")
    return whole, "states from 0 on" + (", not spins of -1 and +1" if model.all_binary else "")


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _load(package: str, extra: str) -> ModuleType:
    if find_spec(package) is None:
        raise UnavailableError(f"{package} is needed to read these samples; pip install 'spinbench[{extra}]'")
    return import_module(package)
