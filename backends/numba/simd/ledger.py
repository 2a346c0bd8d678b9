"""What the debug mode knows: blocks with margins, the functions that run, what memory is used as; and its verdict.

The tables are ordinary arrays and the functions on them ordinary compiled ones. Generated code knows both by name, so
that it can be kept from one process to the next. Kernels do not give up Python's lock in this mode
(`gibbs.shared.JIT`), so that one thread at a time is here.
"""

from __future__ import annotations

import weakref
from typing import Any

import numba as nb
import numpy as np
import numpy.typing as npt
from llvmlite import binding, ir
from numba import types
from numba.extending import intrinsic

RULES = (
    "lifetime: the array of this address is gone; keep(array) at the end of the function holds it",
    "bounds: this is outside of the array that the address is of",
    "alignment: this address is no multiple of the element's size",
    "kinds: the function that is running uses this memory as an array of another kind, too",
)
LIFETIME, BOUNDS, ALIGNMENT, KINDS = range(1, len(RULES) + 1)
KIND_BYTES = {"table": 0, "state": 1, "field": 2, "uniform": 3, "sum": 4}
"""Which byte of a note's masks is a kind's."""

SYMBOL = "spinbench_simd_"
"""What names begin with that generated code knows."""

_EVERY_KIND = sum(1 << 8 * byte for byte in KIND_BYTES.values())
_NOTES, _PLACES, _APART = 1 << 19, 4, 324_517
"""Rows of notes; in how many rows a note may stand, and how far from each other they are."""

_blocks = np.zeros((4096, 2), dtype=np.int64)
"""Row 0: the last row in use. Others: begin and end of a block of memory, zeros where there is none."""
_calls = np.zeros((1024, 2), dtype=np.int64)
"""Row 0: how many functions are running, how many calls there were. Others: frame and number of a call, the outermost
first."""
_uses = np.zeros((_NOTES, 4), dtype=np.int64)
"""What a call uses 8 bytes as: the address over 8 (0: no note yet), the call's number, what is stored, what is loaded.
The last two have a byte for each kind, and in it a bit for each of the 8 bytes."""


def register_block(block: npt.NDArray[Any]) -> None:
    """Addresses of views of this array may reach all of it; forgotten when its memory is given back."""
    row = 1 + int(np.flatnonzero(_blocks[1:, 1] == 0)[0])
    _blocks[row] = block.ctypes.data, block.ctypes.data + block.nbytes
    _blocks[0, 0] = max(row, _blocks[0, 0])
    weakref.finalize(block if block.base is None else block.base, _blocks[row].fill, 0)


def counted_calls() -> int:
    """How many calls of functions that use addresses there were."""
    return int(_calls[0, 1])


def _pointer_to(name: str, table: npt.NDArray[np.int64]) -> Any:
    """An intrinsic () -> pointer to a table's numbers, by name."""
    symbol = SYMBOL + name
    binding.add_symbol(symbol, table.ctypes.data)

    @intrinsic
    def find(typing_context):
        def generate(context, builder, signature, arguments):
            known = builder.module.globals
            return known[symbol] if symbol in known else ir.GlobalVariable(builder.module, ir.IntType(64), symbol)

        return types.CPointer(types.int64)(), generate

    return find


_blocks_of, _calls_of, _uses_of = (
    _pointer_to(name, table) for name, table in (("blocks", _blocks), ("calls", _calls), ("uses", _uses))
)


@intrinsic
def _halves_at(typing_context, place):
    """The 32-bit halves of the word at an address, the low one first."""
    kind = types.CPointer(types.int32)

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(kind))

    return kind(place), generate


def _hold(owner):
    """Keep an array's memory: Numba frees it when the count of references, of which this sets the high half, is 0."""
    _halves_at(owner)[1] = 1
    return 0


def _bound(first, beyond, end):
    """The first (`end` 0) or last bound of an array, or of the block that it is a view of."""
    table = _blocks_of()
    for row in range(1, table[0] + 1):
        if table[2 * row] <= first and beyond <= table[2 * row + 1]:
            return table[2 * row + end]
    return beyond if end else first


def _enter(frame):
    """A function begins; those with frames here or further down the stack have returned."""
    table = _calls_of()
    depth = table[0]
    while depth > 0 and table[2 * depth] <= frame:
        depth -= 1
    table[0], table[1] = depth + 1, table[1] + 1
    table[2 * depth + 2], table[2 * depth + 3] = frame, table[1]
    return 0


@nb.njit
def _running_call(frame):
    """The number of the call whose frame this is, or else its caller's."""
    table = _calls_of()
    depth = table[0]
    while depth > 0 and table[2 * depth] < frame:
        depth -= 1
    table[0] = depth
    return table[2 * depth + 1]


@nb.njit
def _runs(call):
    """Whether this call has not returned, as far as is known."""
    table = _calls_of()
    depth = table[0]
    while depth > 0 and table[2 * depth + 1] != call:
        depth -= 1
    return depth > 0


@nb.njit
def _note(call, word):
    """Where the note of a call and 8 bytes begins: what is known, or a new one in place of one of a call that is over.

    Where all places are taken by calls that run, one of them is forgotten.
    """
    table, free = _uses_of(), -1
    for place in range(_PLACES):
        at = 4 * ((word + (call + place) * _APART) & _NOTES - 1)
        if table[at] == word and table[at + 1] == call:
            return at
        if free < 0 and (table[at] == 0 or not _runs(table[at + 1])):
            free = at
        if table[at] == 0:
            break
    free = at if free < 0 else free
    table[free], table[free + 1], table[free + 2], table[free + 3] = word, call, 0, 0
    return free


@nb.njit
def _fits(call, place, size, kind, stores):
    """Note what memory is used as. False if the same call uses it as another kind, and one of them stores."""
    table = _uses_of()
    for word in range(place >> 3, ((place + size - 1) >> 3) + 1):
        first, beyond = max(place - 8 * word, 0), min(place + size - 8 * word, 8)
        used = (1 << beyond) - (1 << first)
        own, at = used << 8 * kind, _note(call, word)
        seen = table[at + 2] | table[at + 3] if stores else table[at + 2]
        if seen & used * _EVERY_KIND & ~own != 0:
            return False
        table[at + 2 if stores else at + 3] |= own
    return True


def _broken_rule(frame, place, size, element, first, beyond, owner, kind, stores):
    """The number of the rule that an access of `size` bytes breaks, or 0."""
    if owner != 0 and _halves_at(owner)[0] == 0:
        return LIFETIME
    if place < first or place + size > beyond:
        return BOUNDS
    if place % element != 0:
        return ALIGNMENT
    return 0 if _fits(_running_call(frame), place, size, kind, stores != 0) else KINDS


def publish() -> None:
    """Compile the functions that generated code calls, of int64 and with an int64 as result."""
    for function in (_hold, _bound, _enter, _broken_rule):
        signature = types.int64(*(types.int64,) * function.__code__.co_argcount)
        compiled = nb.cfunc(signature, cache=True)(function)
        _published.append(compiled)
        binding.add_symbol(SYMBOL + function.__name__.strip("_"), compiled.address)


_published: list[Any] = []
"""Machine code lives as long as these."""
