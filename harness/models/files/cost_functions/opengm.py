"""OpenGM's models in HDF5 (`.h5`), as `opengm::hdf5::save` writes them; h5py reads the arrays.

Layout: include/opengm/graphicalmodel/graphicalmodel_hdf5.hxx and the functions' serialisations beside it, in the
repository opengm/opengm. Tables have their first variable fastest.
"""

from __future__ import annotations

import io
import math
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import psutil

from spinbench.errors import ModelError, UnavailableError
from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.cost_functions.tables import CostTable, build_model, check_states
from spinbench.models.files.format import MAX_ENTRIES, Format, ModelFile

FloatArray = npt.NDArray[np.float64]

# Of a file, and of all its arrays together: 2^25 numbers, half of the entries that a model may have.
_MAX_BYTES = 2**28
# Bytes of the arrays for each of the file, which may be compressed; zeros are, a thousandfold.
_MAX_RATIO = 100
_EXPLICIT, _SPARSE, _POTTS_OF_PARTITIONS = 16000, 16001, 16011
_DTYPES = {f"{kind}{size}" for kind in "iuf" for size in (1, 2, 4, 8)}
# Functions of two variables, which have two indices and no order before them: numbers of values, and what they mean.
_PAIRS: dict[int, tuple[int, Callable[..., npt.ArrayLike]]] = {
    16002: (1, lambda gap, weight: abs(gap) * weight),
    16003: (2, lambda gap, limit, weight: np.minimum(abs(gap), limit) * weight),
    16004: (1, lambda gap, weight: gap * gap * weight),
    16005: (2, lambda gap, limit, weight: np.minimum(gap * gap, limit) * weight),
    16006: (2, lambda gap, equal, different: np.where(gap == 0, equal, different)),
}
_POTTS, _CONSTANT = 16007, 16008
_KINDS = {_EXPLICIT, _SPARSE, *_PAIRS, _POTTS, _CONSTANT, _POTTS_OF_PARTITIONS}
# Partitions of four variables; OpenGM numbers those of more in another way.
_MAX_PARTITIONED = 4


class OpenGM(Format):
    """A function's values are energies, as in OpenGM's benchmark; the file does not tell them from weights."""

    suffixes = (".h5", ".hdf5")
    summary = "OpenGM's energies in HDF5 (with h5py)"
    limit = _MAX_BYTES
    energies = True

    def recognises(self, head: bytes) -> bool:
        return head.startswith(b"\x89HDF\r\n\x1a\n")

    def read(self, file: ModelFile) -> FactorGraph:
        if not self.recognises(file.data):
            raise ModelError(f"{file.name}: this is no HDF5")
        if find_spec("h5py") is None:
            raise UnavailableError(f"{file.name}: h5py is needed to read HDF5; pip install 'spinbench[opengm]'")
        try:
            with _limit_memory(_MAX_BYTES * 4):
                arrays = _read_arrays(file)
            return _read_model(file, arrays)
        except ModelError:
            raise
        except (OSError, RuntimeError, KeyError, ValueError, TypeError, IndexError, OverflowError) as error:
            reason = " ".join(str(error).split())
            raise ModelError(f"{file.name}: this HDF5 is damaged or not OpenGM's ({reason:.200})") from None
        except MemoryError:
            raise ModelError(f"{file.name}: this HDF5 is damaged, for it claims more memory than there is") from None


@contextmanager
def _limit_memory(more: int) -> Iterator[None]:
    """Inside, the process gets so many bytes more at most: the HDF5 library takes what a damaged file claims."""
    # Others have no such limit, or do not keep it.
    if sys.platform != "linux":
        yield
        return
    import resource

    limits = resource.getrlimit(resource.RLIMIT_AS)
    limit = psutil.Process().memory_info().vms + more
    lower = limit if limits[0] == resource.RLIM_INFINITY else min(limit, limits[0])
    resource.setrlimit(resource.RLIMIT_AS, (lower, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def _read_arrays(file: ModelFile) -> _Arrays:
    """The arrays of the one model of an archive, those of its groups as GROUP/NAME; links are not followed."""
    h5py = import_module("h5py")
    with h5py.File(io.BytesIO(file.data), "r") as archive:
        groups = {name: group for name, group in _members(archive) if isinstance(group, h5py.Group)}
        names = [name for name, group in groups.items() if "header" in group]
        if len(names) != 1:
            listed = f"models {', '.join(names)[:100]}" if names else "no model"
            raise ModelError(f"{file.name}: {listed} in it; one group with a 'header' is needed")
        arrays = _Arrays(file)
        for name, member in _members(groups[names[0]]):
            arrays.add(name, member)
            for leaf, data in _members(member) if isinstance(member, h5py.Group) else ():
                arrays.add(f"{name}/{leaf}", data)
    return arrays


def _members(group: Any) -> list[tuple[str, Any]]:
    """What lies in a group, not what it links to."""
    hard = import_module("h5py").HardLink
    return [(name, group[name]) for name in group if isinstance(group.get(name, getlink=True), hard)]


class _Arrays:
    """Vectors of numbers by their names."""

    def __init__(self, file: ModelFile) -> None:
        self._file, self._arrays = file, dict[str, npt.NDArray[Any]]()
        self._left = min(_MAX_BYTES, _MAX_RATIO * len(file.data))

    def error(self, why: str) -> ModelError:
        return ModelError(f"{self._file.name}: {why}")

    def add(self, name: str, data: Any) -> None:
        if (
            not isinstance(data, import_module("h5py").Dataset)
            or data.dtype.kind + str(data.dtype.itemsize) not in _DTYPES
        ):
            return
        self._left -= data.nbytes
        if data.is_virtual or data.external or self._left < 0:
            raise self.error(f"its array {name!r} lies in another file, or is too large for a file of this length")
        self._arrays[name] = np.asarray(data[()]).ravel()

    def numbers(self, name: str) -> FloatArray:
        if name not in self._arrays:
            raise self.error(f"there is no array {name!r} of numbers in it")
        return np.asarray(self._arrays[name], dtype=np.float64)

    def integers(self, name: str) -> list[int]:
        """Numbers from 0 on."""
        array = self._arrays.get(name, np.zeros(1))
        if array.dtype.kind not in "iu" or (array < 0).any():
            raise self.error(f"there is no array {name!r} of integers from 0 on in it")
        return list(map(int, array))


def _read_model(file: ModelFile, arrays: _Arrays) -> FactorGraph:
    header = arrays.integers("header")
    if header[:2] != [2, 0] or len(header) < 5 or len(header) not in (5 + 2 * header[4], 6 + 2 * header[4]):
        raise arrays.error(f"its header begins with {header[:5]}; that of version 2.0 is needed")
    cards = arrays.integers("numbers-of-states")
    if len(cards) != header[2]:
        raise arrays.error(f"its header claims {header[2]} variables, and {len(cards)} have numbers of states")
    check_states(file, cards)
    left = MAX_ENTRIES
    tables: list[list[FloatArray]] = []
    for kind, count in zip(header[5 : 5 + 2 * header[4] : 2], header[6 : 6 + 2 * header[4] : 2], strict=True):
        tables.append(_FunctionReader(arrays, kind, frozenset(cards), left).read(count) if count else [])
        left -= sum(table.size for table in tables[-1])
    functions, position, left = [], 0, MAX_ENTRIES
    factors = arrays.integers("factors") if header[3] else []
    for k in range(header[3]):
        index, kind, order = factors[position : position + 3]
        scope = factors[position + 3 : position + 3 + order]
        costs = tables[kind][index]
        if costs.shape != tuple(cards[v] for v in scope):
            raise arrays.error(f"factor {k} of variables {scope[:8]} has a function of shape {costs.shape}")
        if (left := left - costs.size) < 0:
            raise arrays.error(f"the tables up to factor {k} have more than {MAX_ENTRIES} entries")
        functions.append(CostTable(scope, costs))
        position += 3 + order
    if position != len(factors):
        raise arrays.error(f"its factors have {len(factors)} numbers; {header[3]} factors have {position}")
    return build_model(file, cards, functions, np.inf)


class _FunctionReader:
    """The functions of a type, one after another."""

    def __init__(self, arrays: _Arrays, kind: int, cards: frozenset[int], left: int) -> None:
        if kind not in _KINDS:
            raise arrays.error(f"its functions of type {kind} are none of OpenGM's that are read")
        self._kind, self._error, self._cards, self._left = kind, arrays.error, cards, left
        self._indices = arrays.integers(f"function-id-{kind}/indices")
        self._values = arrays.numbers(f"function-id-{kind}/values")
        if not (self._values > -np.inf).all():
            raise self._error(f"a value of the functions of type {kind} is NaN or -inf")
        self._place = self._used = 0

    def read(self, count: int) -> list[FloatArray]:
        if count > len(self._indices):
            raise self._error(f"{count} functions of type {self._kind} are claimed")
        tables = [self._read_function() for _ in range(count)]
        if (self._place, self._used) != (len(self._indices), len(self._values)):
            raise self._error(f"the functions of type {self._kind} have more numbers than {count} need")
        return tables

    def _take_indices(self, count: int) -> list[int]:
        indices = self._indices[self._place : self._place + count]
        self._place += count
        if len(indices) != count:
            raise self._error(f"the functions of type {self._kind} end too early")
        return indices

    def _take_values(self, count: int) -> FloatArray:
        values = self._values[self._used : self._used + count]
        self._used += count
        if len(values) != count:
            raise self._error(f"the functions of type {self._kind} end too early")
        return values

    def _read_function(self) -> FloatArray:
        kind = self._kind
        order = 2 if kind in _PAIRS else self._take_indices(1)[0]
        if order > MAX_ORDER:
            raise self._error(f"a function of type {kind} has {order} variables; {MAX_ORDER} are read")
        shape = tuple(self._take_indices(order))
        size = math.prod(shape)
        self._left -= size
        if not self._cards.issuperset(shape) or self._left < 0:
            raise self._error(
                f"the functions of type {kind} have numbers of states that no variable has, or those up to them more "
                f"than {MAX_ENTRIES} entries"
            )
        if kind == _EXPLICIT:
            return self._take_values(size).reshape(shape, order="F")
        if kind == _SPARSE:
            return self._read_sparse(shape, size)
        if kind == _CONSTANT:
            return np.full(shape, self._take_values(1)[0])
        states = np.indices(shape, sparse=True)
        if kind in _PAIRS:
            count, compute = _PAIRS[kind]
            return np.asarray(compute(states[0] - states[1], *self._take_values(count)), dtype=np.float64)
        if kind == _POTTS:
            equal, different = self._take_values(2)
            table: FloatArray = np.where(sum(column != states[0] for column in states) == 0, equal, different)
            return table
        if order > _MAX_PARTITIONED:
            raise self._error(f"a function of type {kind} has {order} variables; {_MAX_PARTITIONED} are read")
        codes = np.unique(_encode_partitions(np.indices((order,) * order, sparse=True)))
        values: FloatArray = self._take_values(len(codes))[np.searchsorted(codes, _encode_partitions(states))]
        return values

    def _read_sparse(self, shape: tuple[int, ...], size: int) -> FloatArray:
        table = np.full(size, self._take_values(1)[0])
        keys = self._take_indices(*self._take_indices(1))
        table[keys] = self._take_values(len(keys))
        return table.reshape(shape, order="F")


def _encode_partitions(states: tuple[npt.NDArray[Any], ...]) -> npt.NDArray[np.int64]:
    """Which of the variables are equal, a bit a pair, (1, 0) first, then (2, 0), (2, 1), …"""
    pairs = sorted((j, i) for i, j in combinations(range(len(states)), 2))
    return np.asarray(sum((states[j] == states[i]) * 2**bit for bit, (j, i) in enumerate(pairs)))
