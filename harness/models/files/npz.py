"""NumPy archives (`.npz`) of either kind of model, read without pickle and with sizes checked first.

A pairwise model is `biases` (N,) with `couplings`, (N, N) or one number for each row of `edges` (E, 2), and may have
`log_constant`, `groups` and `group_sizes` (the groups' members end to end, and their lengths) and `labels` (JSON). A
factor graph is `cardinalities` (N,), `scopes` and `scope_sizes` (the scopes end to end, and their lengths) and
`log_tables` (the tables end to end, last variable fastest), and may have `log_constant` and `labels`. Either may have
`state_names` (JSON, lists of a label and the names of its states).

Of others are read: `h` (N,) and `J`, (N, N) symmetric or one number for each row of `edges`, of spins of ±1, as
exp(Σ h_i s_i + Σ_{i<j} J_ij s_i s_j); and a restricted Boltzmann machine of `weights` (V, H), `visible_biases` (V,) and
`hidden_biases` (H,), the visible units first.
"""

from __future__ import annotations

import io
import json
import math
import textwrap
import zipfile
import zlib
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from typing import IO, Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.foundation.remarks import remark
from spinbench.models.checks import to_float_array
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files import objects
from spinbench.models.files.format import MAX_UNMENTIONED_STATES, Format, ModelFile
from spinbench.models.names import StateNames, check_state_names
from spinbench.models.pairwise import PairwiseModel

# Memory limit of the unpacked arrays of a file.
MAX_BYTES = 2 * 2**30

Arrays = dict[str, np.ndarray]

_PAIRWISE = ("biases", "couplings", "edges", "log_constant", "groups", "group_sizes", "labels", "state_names")
_SPINS = ("h", "J", "edges", "log_constant", "labels")
_RBM = ("weights", "visible_biases", "hidden_biases", "log_constant", "labels")
# With an entry for each variable.
_VECTORS = ("biases", "cardinalities", "h", "visible_biases", "hidden_biases")
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError)
_FACTORS = ("cardinalities", "scopes", "scope_sizes", "log_tables", "log_constant", "labels", "state_names")


class NPZ(Format):
    """Either kind of model, told by `biases` or `cardinalities`. What is written is read back to the last bit; origin
    and name are left out."""

    suffixes = (".npz",)
    summary = "NumPy arrays, of pairwise models or factor graphs"
    limit = MAX_BYTES

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"PK\x03\x04") and head[30:].split(b"\x93NUMPY")[0].find(b".npy", 0, 64) > 0

    def read(self, file: ModelFile) -> PairwiseModel | FactorGraph:
        arrays = read_arrays(file)
        name = file.stem
        _check_keys(file, arrays)
        constant = to_float_array(name, "log_constant", arrays.get("log_constant", np.zeros(())))
        if constant.size != 1:
            raise ModelError(f"{file.name}: log_constant has shape {constant.shape}; one number is needed")
        labels = _read_labels(file, arrays, "labels")
        if "h" in arrays:
            remark(f"{file.name}: h and J are read as exp(Σ h s + Σ J s s') of spins of ±1; energies have other signs")
            edges, couplings = _read_edges(file, arrays, "h", "J")
            return PairwiseModel.from_spins(
                arrays["h"], edges, couplings, log_constant=constant.item(), name=name, labels=labels
            )
        if "weights" in arrays:
            parts = (arrays[key] for key in ("visible_biases", "hidden_biases", "weights"))
            return objects.build_rbm(*parts, log_constant=constant.item(), name=file.stem, labels=labels)
        names = _read_state_names(file, arrays)
        if "cardinalities" not in arrays:
            model = _read_pairwise(file, arrays, constant.item(), labels)
            return replace(model, state_names=check_state_names(name, names, model.labels, model.cardinalities))
        return FactorGraph.from_log_tables(
            _read_integers(file, arrays, "cardinalities").tolist(),
            _read_factors(file, arrays),
            log_constant=constant.item(),
            name=name,
            labels=labels,
            state_names=names,
        )

    def write(self, model: PairwiseModel | FactorGraph) -> bytes:
        if isinstance(model, PairwiseModel):
            arrays: dict[str, Any] = {"biases": model.biases, "edges": model.edges, "couplings": model.couplings}
            if model.groups:
                arrays["groups"], arrays["group_sizes"] = _flatten_lists(model.groups)
        else:
            scopes, sizes = _flatten_lists([factor.scope for factor in model.factors])
            tables = [np.zeros(0), *(factor.log_table.ravel() for factor in model.factors)]
            arrays = {
                "cardinalities": np.array(model.cardinalities, dtype=np.int64),
                "scopes": scopes,
                "scope_sizes": sizes,
                "log_tables": np.concatenate(tables),
            }
        arrays["log_constant"] = np.array(model.log_constant)
        states = [(label, model.state_names[label]) for label in model.labels if label in model.state_names]
        for key, names in (("labels", model.labels), ("state_names", states)):
            if names:
                arrays[key] = _encode_names(model.name, names)
        buffer = io.BytesIO()
        np.savez(buffer, **arrays)
        return buffer.getvalue()


def _check_keys(file: ModelFile, arrays: Arrays) -> None:
    """Refuses archives that lack an array, have one that no model has, or unpack to far more variables than bytes."""
    kinds = {"cardinalities": (_FACTORS, 4), "h": (_SPINS, 2), "weights": (_RBM, 3)}
    allowed, num_needed = next((kinds[key] for key in kinds if key in arrays), (_PAIRWISE, 2))
    problems = [f"no array {key!r}" for key in allowed[:num_needed] if key not in arrays]
    problems += [f"an unknown array {key!r}" for key in arrays if key not in allowed]
    if problems:
        raise ModelError(f"{file.name}: there is {problems[0]}; arrays of a model are {', '.join(allowed)}")
    # Zeros are packed a thousandfold.
    count = max(max(arrays[key].shape, default=0) for key in _VECTORS if key in arrays)
    if count > (most := max(MAX_UNMENTIONED_STATES, len(file.data))):
        raise ModelError(f"{file.name}: {count} variables are claimed; a file of this length tells of {most}")


def _read_pairwise(file: ModelFile, arrays: Arrays, constant: float, labels: Sequence[Hashable]) -> PairwiseModel:
    edges, couplings = _read_edges(file, arrays, "biases", "couplings")
    return PairwiseModel.from_edges(
        arrays["biases"],
        edges,
        couplings,
        log_constant=constant,
        groups=_read_ragged_lists(file, arrays, "groups", "group_sizes"),
        name=file.stem,
        labels=labels,
    )


def _read_edges(file: ModelFile, arrays: Arrays, biases: str, couplings: str) -> tuple[np.ndarray, np.ndarray]:
    """(E, 2) edges and (E,) couplings, which may be given as a matrix."""
    if "edges" in arrays:
        return arrays["edges"], arrays[couplings]
    dense = PairwiseModel.from_dense(arrays[biases], arrays[couplings], name=file.stem)
    return dense.edges, dense.couplings


def read_arrays(file: ModelFile) -> Arrays:
    """All arrays, their claimed sizes checked against the archive before memory is taken."""
    arrays: Arrays = {}
    try:
        with zipfile.ZipFile(io.BytesIO(file.data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MAX_BYTES:
                raise ModelError(f"{file.name}: the arrays take more than {MAX_BYTES // 2**30} GiB, the most allowed")
            for member in members:
                key = member.filename.removesuffix(".npy")
                with archive.open(member) as content:
                    arrays[key] = _read_array(file, key, content, member.file_size)
    except ModelError:
        raise
    # ValueError: zipfile seeks to a negative offset of a damaged directory
    except (*_DAMAGED, ValueError) as error:
        why = textwrap.shorten(str(error), 120)
        raise ModelError(f"{file.name}: the file is not a whole .npz archive ({why})") from None
    return arrays


def _read_array(file: ModelFile, key: str, content: IO[bytes], length: int) -> np.ndarray:
    try:
        version = np.lib.format.read_magic(content)
        read_header = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = read_header(content)
    except _DAMAGED:
        raise
    except Exception:
        # NumPy parses headers as Python, which raises errors of its tokenizer, parser and types.
        raise ModelError(f"{file.name}: array {key!r} has no valid header") from None
    if dtype.hasobject:
        raise ModelError(f"{file.name}: array {key!r} holds pickled objects, which are never read")
    size = math.prod(shape) * dtype.itemsize
    if size != length - content.tell():
        raise ModelError(
            f"{file.name}: array {key!r} claims {size} bytes, but the archive holds {length - content.tell()} of it"
        )
    flat = np.frombuffer(content.read(size), dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _read_integers(file: ModelFile, arrays: Arrays, key: str) -> npt.NDArray[np.int64]:
    values = arrays[key]
    if values.ndim != 1 or (values.size and values.dtype.kind not in "iu"):
        raise ModelError(
            f"{file.name}: array {key!r} has type {values.dtype} and shape {values.shape}; "
            "a vector of integers is needed"
        )
    return values.astype(np.int64)


def _read_ragged_lists(file: ModelFile, arrays: Arrays, members: str, sizes: str) -> list[list[int]]:
    if members not in arrays and sizes not in arrays:
        return []
    if members not in arrays or sizes not in arrays:
        raise ModelError(f"{file.name}: arrays {members!r} and {sizes!r} are needed together")
    flat, lengths = _read_integers(file, arrays, members), _read_integers(file, arrays, sizes)
    if (lengths < 0).any() or lengths.sum() != flat.size:
        raise ModelError(f"{file.name}: array {sizes!r} does not add up to the {flat.size} entries of {members!r}")
    if not lengths.size:
        return []
    return [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])]


def _read_factors(file: ModelFile, arrays: Arrays) -> list[tuple[list[int], np.ndarray]]:
    cards = _read_integers(file, arrays, "cardinalities").tolist()
    tables = arrays["log_tables"].ravel()
    scopes = _read_ragged_lists(file, arrays, "scopes", "scope_sizes")
    if any(not 0 <= v < len(cards) for scope in scopes for v in scope):
        raise ModelError(f"{file.name}: a scope names a variable outside 0..{len(cards) - 1}")
    sizes = [math.prod(cards[v] for v in scope) for scope in scopes]
    if sum(sizes) != tables.size or min(sizes, default=0) < 0:
        raise ModelError(f"{file.name}: the scopes need {sum(sizes)} table entries, but log_tables has {tables.size}")
    bounds = np.cumsum([0, *sizes]).tolist()
    return [(scope, tables[a:b]) for scope, a, b in zip(scopes, bounds, bounds[1:], strict=False)]


def _encode_names(name: str, names: Sequence[Hashable]) -> np.ndarray:
    try:
        return np.array(json.dumps(names))
    except TypeError:
        raise ModelError(
            f"{name}: a label is neither text nor number nor a tuple of them, so that .npz cannot hold it"
        ) from None


def _read_labels(file: ModelFile, arrays: Arrays, key: str) -> list[Hashable]:
    if key not in arrays:
        return []
    try:
        labels = parse_labels(json.loads(str(arrays[key].item())))
    except (ValueError, TypeError, RecursionError):
        raise ModelError(f"{file.name}: array {key!r} is not a JSON list of texts, numbers or lists of them") from None
    return labels


def _read_state_names(file: ModelFile, arrays: Arrays) -> StateNames:
    pairs = _read_labels(file, arrays, "state_names")
    if not all(isinstance(pair, tuple) and len(pair) == 2 and isinstance(pair[1], tuple) for pair in pairs):
        raise ModelError(f"{file.name}: array 'state_names' is not a JSON list of labels, each with a list of names")
    return dict(pairs)  # type: ignore[arg-type]


def parse_labels(values: object) -> list[Hashable]:
    """JSON's lists as tuples, so that they can be labels.

    Raises:
        TypeError: not a list of texts, numbers and lists of them.
    """

    def to_hashable(value: object) -> Hashable:
        if isinstance(value, list):
            return tuple(map(to_hashable, value))
        if isinstance(value, str | int | float):
            return value
        raise TypeError

    if not isinstance(values, list):
        raise TypeError
    return [to_hashable(value) for value in values]


def _flatten_lists(lists: Iterable[Sequence[int]]) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    flat = [member for part in lists for member in part]
    return np.array(flat, dtype=np.int64), np.array([len(part) for part in lists], dtype=np.int64)
