"""Vectors in arrays: loads and stores of 512 bits, gathers, look-ups, prefetching; arrays that begin on a cache line.

Pointers and kinds of arrays as in `memory`: no bounds are checked.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from spinbench.backends.numba import debug_mode
from spinbench.backends.numba.simd import checks
from spinbench.backends.numba.simd.checks import Typed
from spinbench.backends.numba.simd.ledger import register_block
from spinbench.backends.numba.simd.memory import (
    data_of,
    displaced,
    element_place,
    made_pointer,
    pointer_into,
    read,
    require,
    write,
)
from spinbench.backends.numba.simd.vector_type import Vector, wide

LINE = 64
"""Bytes of a cache line; a vector that crosses into the next costs two accesses."""


def aligned_zeros(shape: tuple[int, ...], real: np.dtype[Any], margin: int = 0) -> np.ndarray[Any, Any]:
    """Zeros that begin on a cache line, or with a margin `margin` rows behind the begin of one.

    Addresses may reach the margins: as many rows of zeros before and behind the array.
    """
    block = aligned_empty((shape[0] + 2 * margin, *shape[1:]), real)
    block.fill(0)  # in large pages, where there are some; zeros would come in small ones
    if margin and debug_mode.ON:
        register_block(block)
    return block[margin : margin + shape[0]]


def aligned_empty(shape: tuple[int, ...], real: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array to write to that begins on a cache line."""
    size = math.prod(shape)
    whole = np.empty(size + LINE // real.itemsize, dtype=real)
    first = -whole.ctypes.data % LINE // real.itemsize
    return whole[first : first + size].reshape(shape)


@intrinsic
def line_address(typing_context, array):
    """Pointer to the first element of a contiguous array that begins a cache line; it must be a line longer."""

    def generate(context, builder, signature, arguments):
        data = make_array(array)(context, builder, arguments[0]).data
        word = ir.IntType(64)
        up = builder.add(builder.ptrtoint(data, word), word(LINE - 1))
        place = builder.inttoptr(builder.and_(up, word(-LINE)), data.type)
        return made_pointer(context, builder, (array, arguments[0]), place)

    return pointer_into(array)(array), generate


def _loader(kind: str, vector: Vector) -> Any:
    """What an intrinsic's `generate` does to load a vector from (pointer, index, …)."""

    def generate(context, builder, signature, arguments):
        source, index = list(zip(signature.args, arguments, strict=True))[:2]
        return read(context, builder, kind, source, index, context.get_value_type(vector))

    return generate


def wide_accessors(kind: str) -> tuple[Any, Any]:
    """(load(pointer, i), store(pointer, i, vector)) of 512 bits from element i on, for arrays of a kind.

    `store` takes vectors of any length.
    """

    @intrinsic
    def load(typing_context, pointer, index):
        vector = wide(pointer.dtype)
        return vector(pointer, index), _loader(kind, vector)

    @intrinsic
    def store(typing_context, pointer, index, vector):
        require(pointer, vector.element)

        def generate(context, builder, signature, arguments):
            target, index, _ = zip(signature.args, arguments, strict=True)
            write(context, builder, kind, target, index, arguments[2])
            return context.get_dummy_value()

        return types.void(pointer, index, vector), generate

    return load, store


def word_loader(kind: str) -> Any:
    """load(pointer, i, lanes): as many elements as the tuple `lanes` has."""

    @intrinsic
    def load(typing_context, pointer, index, lanes):
        vector = Vector(pointer.dtype, len(lanes))
        return vector(pointer, index, lanes), _loader(kind, vector)

    return load


load_table_vector, _ = wide_accessors("table")
load_state_vector, store_state_vector = wide_accessors("state")
load_field_vector, store_field_vector = wide_accessors("field")
load_uniform_vector, store_uniform_vector = wide_accessors("uniform")
load_sum_vector, store_sum_vector = wide_accessors("sum")
load_table_words, load_state_words, load_sum_words = word_loader("table"), word_loader("state"), word_loader("sum")


@intrinsic
def prefetch(typing_context, pointer, index):
    """Ask for the cache line of an element that is to be read soon; an address outside of the array does no harm."""

    def generate(context, builder, signature, arguments):
        source, index = zip(signature.args, arguments, strict=True)
        whence = builder.bitcast(element_place(context, builder, source, index), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [whence.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=kind)
        builder.call(function, [whence, word(0), word(2), word(1)])  # to read; to the second-level cache; data
        return context.get_dummy_value()

    return types.void(pointer, index), generate


def _gather(context: Any, builder: ir.IRBuilder, kind: str, source: Typed, where: ir.Value) -> ir.Value:
    """Elements of an array of a kind at the numbers `where`, a vector of 32-bit integers."""
    element: Any = source[0].dtype
    lanes = where.type.count
    target, pointer = ir.VectorType(context.get_value_type(element), lanes), data_of(context, builder, source)
    if debug_mode.ON:
        numbers = [builder.extract_element(where, ir.IntType(32)(lane)) for lane in range(lanes)]
        places = [element_place(context, builder, source, (types.int32, number)) for number in numbers]
        checks.check(context, builder, (kind, False), source, places, 1)
    addresses = builder.gep(pointer, [ir.IntType(32)(0)])  # llvmlite makes none with a vector of indices
    addresses.indices, addresses.operands = [where], [pointer, where]
    addresses.type = ir.VectorType(pointer.type, lanes)
    every = ir.VectorType(ir.IntType(1), lanes)
    number = f"{'f' if isinstance(element, types.Float) else 'i'}{element.bitwidth}"
    function = builder.module.declare_intrinsic(
        f"llvm.masked.gather.v{lanes}{number}.v{lanes}p0",
        fnty=ir.FunctionType(target, [addresses.type, ir.IntType(32), every, target]),
    )
    align = ir.IntType(32)(element.bitwidth // 8)
    there = ir.Constant(every, [ir.IntType(1)(1)] * lanes)
    return builder.call(function, [addresses, align, there, ir.Constant(target, ir.Undefined)])


@intrinsic
def gather_states(typing_context, pointer, places, index):
    """512 bits of elements of an array of states: those that numbers index, index + 1, … of `places` (uint32) name.

    They must be below 2^31.
    """
    require(places, types.uint32)
    kind = wide(pointer.dtype)

    def generate(context, builder, signature, arguments):
        states, table, first = zip(signature.args, arguments, strict=True)
        where = read(context, builder, "table", table, first, ir.VectorType(ir.IntType(32), kind.lanes))
        return _gather(context, builder, "state", states, where)

    return kind(pointer, places, index), generate


@intrinsic
def gather_table(typing_context, pointer, places):
    """The elements of a table at `places`, a vector of uint32 below 2^31, as many as it has lanes."""
    kind = Vector(pointer.dtype, places.lanes)

    def generate(context, builder, signature, arguments):
        return _gather(context, builder, "table", (pointer, arguments[0]), arguments[1])

    return kind(pointer, places), generate


@intrinsic
def look_up(typing_context, pointer, first, places):
    """Elements first + place of a table of uint16, places below 32 in a vector of 32; 32 elements are read.

    That is one instruction where there is AVX-512 with words.
    """
    kind = wide(types.uint16)
    require(pointer, types.uint16)
    if places != kind:
        return None

    def generate(context, builder, signature, arguments):
        table, first, (_, places) = zip(signature.args, arguments, strict=True)
        target, word = context.get_value_type(kind), ir.IntType(32)
        if "+avx512bw" in context.codegen().magic_tuple()[2]:
            entries = read(context, builder, "table", table, first, target)
            function = builder.module.declare_intrinsic(
                "llvm.x86.avx512.permvar.hi.512", fnty=ir.FunctionType(target, [target, target])
            )
            return builder.call(function, [entries, places])
        found, begin = ir.Constant(target, ir.Undefined), (pointer, displaced(context, builder, table, first))
        for lane in range(kind.lanes):
            index = types.uint32, builder.zext(builder.extract_element(places, word(lane)), word)
            entry = read(context, builder, "table", begin, index, target.element)
            found = builder.insert_element(found, entry, word(lane))
        return found

    return kind(pointer, first, places), generate
