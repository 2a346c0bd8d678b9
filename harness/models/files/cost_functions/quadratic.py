"""What dimod's `to_file` writes, of binary and of discrete quadratic models, and the latter as objects.

dimod is not needed, and would not do: its readers take a file's indices for granted.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_number, to_float_array
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files import bqm, npz
from spinbench.models.files.format import MAX_ENTRIES, Format, ModelFile
from spinbench.models.pairwise import PairwiseModel

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_TYPES = {"float32": "<f4", "float64": "<f8", "int32": "<i4", "int64": "<i8", "uint32": "<u4", "uint64": "<u8"}
_DAMAGED = (struct.error, KeyError, TypeError, ValueError, RecursionError, OverflowError)


class _Reader:
    """The parts of a file, one after another."""

    def __init__(self, file: ModelFile, magic: bytes, newest: int) -> None:
        self._file, self._place = file, len(magic)
        if not file.data.startswith(magic):
            raise self.error(f"it does not begin with {magic.decode()}")
        self.version = self.take(2)[0]
        if not 1 <= self.version <= newest:
            raise self.error(f"version {self.version} is none of 1 to {newest}")
        self.header = self.json(self.take(*struct.unpack("<I", self.take(4))))
        if not isinstance(self.header, dict):
            raise self.error("its header is no object of JSON")

    def error(self, why: str) -> ModelError:
        return ModelError(f"{self._file.name}: this is not as dimod's to_file() writes it: {why}")

    def take(self, count: int) -> bytes:
        """So many bytes."""
        data = self._file.data[self._place : self._place + count]
        self._place += count
        if not 0 <= count == len(data):
            raise self.error("it ends too early")
        return data

    def json(self, data: bytes) -> Any:
        try:
            return json.loads(data)
        except (ValueError, RecursionError):
            raise self.error("a part is no JSON") from None

    def section(self, name: bytes) -> bytes:
        """A part that begins with its name and its length."""
        if self.take(4) != name:
            raise self.error(f"there is no part {name.decode()}")
        return self.take(*struct.unpack("<I", self.take(4)))

    def labels(self) -> list[Hashable]:
        """Of the variables; none where they are numbered."""
        names = self.header.get("variables")
        if names is True:
            names = self.json(self.section(b"VARS"))
        try:
            return npz.parse_labels(names or [])
        except TypeError:
            raise self.error("its variables are no list of texts and numbers") from None


class BinaryFile(Format):
    """`from_bqm` of a file of `BinaryQuadraticModel.to_file`."""

    suffixes = (".bqm",)
    summary = "dimod's files of BinaryQuadraticModels (`bqm.to_file()`)"
    energies = True

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"DIMODBQM")

    def read(self, file: ModelFile) -> PairwiseModel:
        reader = _Reader(file, b"DIMODBQM", 2)
        try:
            number, index, start = (np.dtype(_TYPES[reader.header[key]]) for key in ("dtype", "itype", "ntype"))
            n, count = map(int, reader.header["shape"])
            offset = np.frombuffer(reader.take(number.itemsize), number)[0]
            linear_type, quadratic_type = (
                np.dtype([("k", start), ("x", number)]),
                np.dtype([("v", index), ("x", number)]),
            )
            linear = np.frombuffer(reader.take(n * linear_type.itemsize), linear_type)
            quadratic = np.frombuffer(reader.take(2 * count * quadratic_type.itemsize), quadratic_type)
            # Each pair stands there twice, in the order of the first of its variables.
            degrees = np.diff(np.append(linear["k"].astype(np.int64), 2 * count))
            pairs = np.stack([np.repeat(np.arange(n), degrees), quadratic["v"].astype(np.int64)], axis=1)
        except ModelError:
            raise
        except _DAMAGED as error:
            raise reader.error(f"{error!s:.80}") from None
        once = pairs[:, 0] > pairs[:, 1]
        rows, mirrored = np.lexsort(pairs.T), np.lexsort(pairs.T[::-1])
        same = (pairs[rows] == pairs[mirrored, ::-1]).all() and (quadratic["x"][rows] == quadratic["x"][mirrored]).all()
        if 2 * once.sum() != len(pairs) or not same:
            raise reader.error("its pairs are not the same both ways")
        return bqm.model_from_energy(
            reader.header.get("vartype"),
            linear["x"].astype(np.float64),
            pairs[once],
            quadratic["x"][once].astype(np.float64),
            float(offset),
            reader.labels(),
            file.beta,
            file.stem,
        )


class DiscreteFile(Format):
    """`from_dqm` of a file of `DiscreteQuadraticModel.to_file`."""

    suffixes = (".dqm",)
    summary = "dimod's files of DiscreteQuadraticModels (`dqm.to_file()`)"
    energies = True

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"DIMODDQM")

    def read(self, file: ModelFile) -> FactorGraph:
        reader = _Reader(file, b"DIMODDQM", 1)
        arrays = npz.read_arrays(ModelFile(file.name, reader.section(b"BIAS")))
        ends = [f"quadratic_{axis}_indices" for axis in ("row", "col")]
        needed = ("case_starts", "linear_biases", *ends, "quadratic_biases")
        if missing := [name for name in needed if name not in arrays]:
            raise reader.error(f"there is no array {missing[0]}")
        starts, rows, columns = (arrays[name] for name in ("case_starts", *ends))
        offset = arrays.get("offset", np.zeros(()))
        return _model_from_vectors(
            starts,
            arrays["linear_biases"],
            (rows, columns, arrays["quadratic_biases"]),
            float(offset.reshape(-1)[0]) if offset.size == 1 else np.nan,
            reader.labels(),
            file.beta,
            file.stem,
        )


def from_dqm(dqm: Any, *, beta: float = 1.0, name: str = "dqm") -> FactorGraph:
    """exp(-beta E) of a `dimod.DiscreteQuadraticModel`'s energy E, offset included; its variables become labels.

    Raises:
        ModelError: no variables, or numbers that are not finite.
    """
    vectors = dqm.to_numpy_vectors(return_offset=True)
    return _model_from_vectors(
        vectors.case_starts, vectors.linear_biases, vectors.quadratic, float(vectors.offset), vectors.labels, beta, name
    )


def _model_from_vectors(
    starts: npt.ArrayLike,
    linear: npt.ArrayLike,
    quadratic: tuple[npt.ArrayLike, npt.ArrayLike, npt.ArrayLike],
    offset: float,
    labels: Sequence[Hashable],
    beta: float,
    name: str,
) -> FactorGraph:
    """Of cases one after another: where each variable's begin, their energies, and those of pairs of cases."""
    scale = -check_number(name, "beta", beta)
    biases = scale * to_float_array(name, "linear biases", linear).ravel()
    weights = scale * to_float_array(name, "quadratic biases", quadratic[2]).ravel()
    first, *ends = (np.asarray(values).ravel() for values in (starts, *quadratic[:2]))
    cards = np.diff(np.append(first, len(biases)))
    cases = np.stack(ends) if ends[0].shape == ends[1].shape == weights.shape else np.full((2, 1), -1)
    if any(values.size and values.dtype.kind not in "iu" for values in (first, *ends)) or not (
        first.size and first[0] == 0 and (cards > 0).all() and (cases >= 0).all() and (cases < len(biases)).all()
    ):
        raise ModelError(f"{name}: its cases are not numbered as those of a DiscreteQuadraticModel")
    variables = np.searchsorted(first, cases, side="right") - 1
    order = np.argsort(variables, axis=0)
    variables, cases = (np.take_along_axis(values, order, axis=0) for values in (variables, cases))
    if (variables[0] == variables[1]).any():
        raise ModelError(f"{name}: two cases of one variable have an energy together")
    pairs, which = np.unique(variables, axis=1, return_inverse=True)
    sizes = cards[pairs].astype(np.int64)
    if sizes.prod(axis=0).sum() > MAX_ENTRIES:
        raise ModelError(f"{name}: the tables of its pairs have more than {MAX_ENTRIES} entries")
    begins = np.cumsum([0, *sizes.prod(axis=0)])
    states = cases - first[variables]
    flat = np.zeros(int(begins[-1]))
    np.add.at(flat, begins[which.ravel()] + states[0] * sizes[1, which.ravel()] + states[1], weights)
    factors: list[tuple[list[int], FloatArray]] = [
        ([v], values) for v, values in enumerate(np.split(biases, first[1:].tolist()))
    ]
    factors += [
        (pair, values) for pair, values in zip(pairs.T.tolist(), np.split(flat, begins[1:-1].tolist()), strict=False)
    ]
    constant = scale * check_number(name, "the offset", offset)
    return FactorGraph.from_log_tables(cards.tolist(), factors, log_constant=constant, name=name, labels=list(labels))
