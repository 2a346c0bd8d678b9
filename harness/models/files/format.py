"""What a file format is: how its files are recognised, read and written. Registered in `spinbench.formats`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import PurePath
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.packed import PACKERS
from spinbench.models.files.text import MAX_TEXT_BYTES, check_text
from spinbench.models.pairwise import PairwiseModel

FloatArray = npt.NDArray[np.float64]
# Largest number of entries of all tables together: 512 MiB.
MAX_ENTRIES = 2**26
# Largest number of states of variables that a file only declares.
MAX_UNMENTIONED_STATES = 2**20
# Largest deviation from 1 of a row's sum: files with few digits round.
TOLERANCE = 1e-2
Model = PairwiseModel | FactorGraph


def first_unnormalised_row(table: FloatArray) -> int | None:
    """The first row of a (…, K) table that is no distribution of its last variable, in C order; None where all are."""
    rows = table.reshape(-1, table.shape[-1])
    wrong = ~((rows >= 0).all(axis=1) & (abs(rows.sum(axis=1) - 1) <= TOLERANCE))
    return next(iter(np.flatnonzero(wrong).tolist()), None)


def find_cycle(parents: Sequence[Sequence[int]]) -> list[int]:
    """Variables each of which is a parent of the next, the first again at the end; empty where there is no cycle."""
    try:
        TopologicalSorter(dict(enumerate(parents))).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def as_read_only(table: FloatArray) -> FloatArray:
    """The same numbers in C order, into which nobody writes."""
    table = np.ascontiguousarray(table)
    table.setflags(write=False)
    return table


@dataclass(frozen=True)
class ModelFile:
    """A file in memory.

    Attributes:
        name: without folder, for messages.
        data: what it holds, unpacked, not empty and no longer than `Format.limit`.
        beta: inverse temperature, of formats of energies.
    """

    name: str
    data: bytes
    beta: float = 1.0

    @property
    def stem(self) -> str:
        """The name without `.gz` or the like and the suffix before it, which becomes the model's."""
        return PurePath(strip_packed_suffix(self.name)).stem

    def text(self) -> bytes:
        """The data, found to be UTF-8 text, without a byte order mark.

        Raises:
            ModelError: binary, not UTF-8, or nothing but white space.
        """
        return check_text(self.data, self.name)


def strip_packed_suffix(name: str) -> str:
    """The name that a file has unpacked."""
    return str(PurePath(name).with_suffix("")) if PurePath(name).suffix.lower() in PACKERS else name


class Format(ABC):
    """A file format. Files are untrusted: they are parsed, never executed or unpickled.

    A reader takes memory and time in proportion to the file, whatever counts and sizes the file claims, and says what
    is wrong in a `ModelError` of one sentence with the file's name, line and token. Packed files are unpacked before.
    """

    suffixes: ClassVar[tuple[str, ...]]
    """Ends of names, in lower case, with their dots: (".uai",)."""
    summary: ClassVar[str] = ""
    """A few words that say what it is."""
    limit: ClassVar[int] = MAX_TEXT_BYTES
    """Bytes of the longest file that is read, unpacked."""
    by_name: ClassVar[bool] = False
    """Whether a file's name alone tells it from one of another format, so that content is never enough."""
    energies: ClassVar[bool] = False
    """Whether its numbers are energies E, so that the model is exp(-beta E)."""

    @abstractmethod
    def recognises(self, head: bytes) -> bool:
        """Whether a file that begins with these bytes, 64 KiB or all of it, is of this format beyond doubt."""

    @abstractmethod
    def read(self, file: ModelFile) -> Model:
        """The model that a file holds.

        Raises:
            ModelError: it holds none.
        """

    def write(self, model: Model) -> bytes:
        """A file's content from which `read` makes the model again. Formats that are only read leave it out.

        Raises:
            ModelError: a model that the format cannot hold.
        """
        raise NotImplementedError(f"{type(self).__name__} is only read")

    @property
    def writes(self) -> bool:
        """Whether models can be written."""
        return type(self).write is not Format.write
