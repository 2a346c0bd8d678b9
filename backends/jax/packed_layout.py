"""Chains packed 32 to a word, and the tables of a model by the states of few neighbours, on the host."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.api import PairwiseModel
from spinbench.errors import UnsupportedError
from spinbench.mathematics.graphs.rows import compressed_rows, pad_rows
from spinbench.mathematics.graphs.sweep_layouts import Sweep
from spinbench.methods.gibbs.sweeps import SweptPairs

FloatArray = npt.NDArray[np.float64]
WordArray = npt.NDArray[np.uint32]

WORD_BITS = 32
# Largest number of levels of all colours, for which code is unrolled and of which all are compared: those of two
# colours of six neighbours each, whatever their couplings.
MAX_LEVELS = 128
# Largest number of neighbours of a variable: with 32 a count has six digits, and XLA compiles for minutes, on a CPU.
MAX_NEIGHBOURS = 31
# Largest number of sums of single chains; beyond it chains are summed in groups, which take less to copy to the host.
MAX_CHAIN_SUMS = 2**18
# Smallest number of groups of chains: as many as R-hat needs (`mathematics.chains.FEWEST_CHAINS`).
MIN_GROUPS = 8


class Packing(NamedTuple):
    """How C chains lie in words: chain c is bit c // W of word c % W, so that all words are about equally full.

    Attributes:
        chains: C.
        width: W, words of a row.
        masks: (G, W) uint32, the chains of each word that are summed together: G sums a word, V = G W in all.
        sizes: (U,) int64, chains of each group; sum v of the V is part of group v % U.
    """

    chains: int
    width: int
    masks: WordArray
    sizes: npt.NDArray[np.int64]

    @property
    def bits(self) -> int:
        """Chains of the fullest word."""
        return -(-self.chains // self.width)

    def pack(self, states: npt.NDArray[np.signedinteger]) -> WordArray:
        """(N, W) from states 0 and 1 (N, C)."""
        packed = np.zeros((len(states), self.width), dtype=np.uint32)
        for bit in range(self.bits):
            part = states[:, bit * self.width : (bit + 1) * self.width]
            packed[:, : part.shape[1]] |= part.astype(np.uint32) << np.uint32(bit)
        return packed

    def unpack(self, packed: WordArray) -> npt.NDArray[np.int8]:
        """(N, C) from (N, W)."""
        states = np.empty((len(packed), self.chains), dtype=np.int8)
        for bit in range(self.bits):
            part = states[:, bit * self.width : (bit + 1) * self.width]
            part[:] = (packed[:, : part.shape[1]] >> np.uint32(bit)) & 1
        return states


def choose_packing(variables: int, chains: int) -> Packing:
    """Of so many chains: each is a group of its own, unless these were more sums than `MAX_CHAIN_SUMS`."""
    width = -(-chains // WORD_BITS)
    bits = -(-chains // width)
    groups = bits if variables * chains <= MAX_CHAIN_SUMS else min(bits, -(-MIN_GROUPS // width))
    masks = np.zeros((groups, width), dtype=np.uint32)
    for bit in range(bits):
        exists = bit * width + np.arange(width) < chains
        masks[bit % groups] |= exists.astype(np.uint32) << np.uint32(bit)
    units = min(masks.size, max(MIN_GROUPS, MAX_CHAIN_SUMS // variables))
    sizes = np.bincount(np.arange(chains) % masks.size % units, minlength=units)
    return Packing(chains, width, masks, sizes[sizes > 0])


class Colour(NamedTuple):
    """Rows that are updated together. Levels are what their neighbours' states lead to, L of each row.

    Attributes:
        neighbours: (D, n) int32, their rows; N, a row of zeros, where there are fewer.
        flips: (D, n, 1) uint32. A level is how many neighbours differ from these, where the couplings of a row are of
            one size, a flip being all ones where it is negative. None: a level is the pattern of the neighbours'
            states, neighbour k in bit k.
        fields: (n, L).
    """

    neighbours: npt.NDArray[np.int32]
    flips: WordArray | None
    fields: FloatArray


def packing_refusal(model: PairwiseModel) -> str:
    """Why chains of a model are not packed, before it is planned; empty: they may be."""
    if (degree := int(model.degrees.max(initial=0))) > MAX_NEIGHBOURS:
        return f"packed chains take {MAX_NEIGHBOURS} neighbours of a variable; {model.name} has one with {degree}"
    return ""


def build_colours(model: PairwiseModel, tables: SweptPairs) -> tuple[Colour, ...]:
    """In row order.

    Raises:
        UnsupportedError: there are too many colours or levels for unrolled code.
    """
    if not isinstance(tables.sweep, Sweep):
        raise UnsupportedError(f"packed chains take few colours, and {model.name} has many")
    blocks = tables.sweep.first + tables.sweep.middle + tables.sweep.last
    spans = list(pairwise(np.cumsum([0, *(block.biases.size for block in blocks)]).tolist()))
    rows, biases = compressed_rows(model, tables.order), model.biases[tables.order]
    padded = [pad_rows(rows, low, high) for low, high in spans]
    levels = sum(len(weights) + 1 if _is_one_size(weights) else 2 ** len(weights) for _, weights in padded)
    if levels > MAX_LEVELS:
        raise UnsupportedError(
            f"packed chains take {MAX_LEVELS} levels of p in all colours; {model.name} has {levels:.3g}"
        )
    return tuple(
        _build_colour(
            np.where(weights == 0, model.num_variables, neighbours).astype(np.int32), weights, biases[low:high]
        )
        for (neighbours, weights), (low, high) in zip(padded, spans, strict=True)
    )


def _is_one_size(weights: FloatArray) -> bool:
    """Whether couplings (D, n) of a row, but for zeros, differ in sign alone; of one neighbour that is no gain."""
    sizes = np.abs(weights)
    return len(weights) > 1 and bool(((sizes == sizes.max(axis=0)) | (sizes == 0)).all())


def _build_colour(neighbours: npt.NDArray[np.int32], weights: FloatArray, biases: FloatArray) -> Colour:
    """Of neighbours and couplings (D, n), and biases (n,)."""
    width = len(weights)
    if _is_one_size(weights):
        negative = weights < 0
        flips = np.where(negative, np.uint32(2**32 - 1), np.uint32(0))[:, :, None]
        lowest = biases + np.where(negative, weights, 0.0).sum(axis=0)
        size = np.abs(weights).max(axis=0)
        return Colour(neighbours, flips, lowest[:, None] + size[:, None] * np.arange(width + 1))
    patterns = (np.arange(2**width) >> np.arange(width)[:, None]) & 1
    return Colour(neighbours, None, biases[:, None] + weights.T @ patterns)
