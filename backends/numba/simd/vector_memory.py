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

from spinbench.backends.numba.simd.memory import mark, place
from spinbench.backends.numba.simd.vector_type import Vector, wide

LINE = 64
"""Bytes of a cache line; a vector that crosses into the next costs two accesses."""


def aligned_zeros(shape: tuple[int, ...], real: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Zeros that begin on a cache line."""
    size = math.prod(shape)
    spare = LINE // real.itemsize
    whole = np.zeros(size + spare, dtype=real)
    first = -whole.ctypes.data % LINE // real.itemsize
    return whole[first : first + size].reshape(shape)


@intrinsic
def line_address(typing_context, array):
    """Pointer to the first element of a contiguous array that begins a cache line; it must be a line longer."""
    pointer = types.CPointer(array.dtype)

    def generate(context, builder, signature, arguments):
        data = make_array(array)(context, builder, arguments[0]).data
        word = ir.IntType(64)
        up = builder.add(builder.ptrtoint(data, word), word(LINE - 1))
        return builder.inttoptr(builder.and_(up, word(-LINE)), context.get_value_type(pointer))

    return pointer(array), generate


def _vector_pointer(builder: ir.IRBuilder, arguments: Any, index: Any, vector: ir.Type) -> ir.Value:
    return builder.bitcast(place(builder, arguments, index), vector.as_pointer())


def _loader(kind: str, vector: Vector) -> Any:
    """What an intrinsic's `generate` does to load a vector from (pointer, index, …)."""

    def generate(context, builder, signature, arguments):
        target = context.get_value_type(vector)
        whence = _vector_pointer(builder, arguments, signature.args[1], target)
        value = builder.load(whence, align=vector.element.bitwidth // 8)
        mark(builder, value, kind)
        return value

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
        def generate(context, builder, signature, arguments):
            where = _vector_pointer(builder, arguments, signature.args[1], arguments[2].type)
            mark(builder, builder.store(arguments[2], where, align=vector.element.bitwidth // 8), kind)
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
load_table_words, load_sum_words = word_loader("table"), word_loader("sum")


@intrinsic
def load_widened(typing_context, pointer, index):
    """16 elements of a table of int16 as int32."""
    kind = Vector(types.int32, 16)

    def generate(context, builder, signature, arguments):
        narrow = ir.VectorType(ir.IntType(16), kind.lanes)
        value = builder.load(_vector_pointer(builder, arguments, signature.args[1], narrow), align=2)
        mark(builder, value, "table")
        return builder.sext(value, context.get_value_type(kind))

    return kind(pointer, index), generate


@intrinsic
def prefetch(typing_context, pointer, index):
    """Ask for the cache line of an element that is to be read soon."""

    def generate(context, builder, signature, arguments):
        whence = builder.bitcast(place(builder, arguments, signature.args[1]), ir.IntType(8).as_pointer())
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [whence.type, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=kind)
        builder.call(function, [whence, word(0), word(2), word(1)])  # to read; to the second-level cache; data
        return context.get_dummy_value()

    return types.void(pointer, index), generate


def _gather(context: Any, builder: ir.IRBuilder, kind: Vector, pointer: ir.Value, where: ir.Value) -> ir.Value:
    """Elements of an array at the numbers `where`, a vector of 32-bit integers."""
    element: Any = kind.element
    target = context.get_value_type(kind)
    addresses = builder.gep(pointer, [ir.IntType(32)(0)])  # llvmlite makes none with a vector of indices
    addresses.indices, addresses.operands = [where], [pointer, where]
    addresses.type = ir.VectorType(pointer.type, kind.lanes)
    every = ir.VectorType(ir.IntType(1), kind.lanes)
    number = f"{'f' if isinstance(element, types.Float) else 'i'}{element.bitwidth}"
    function = builder.module.declare_intrinsic(
        f"llvm.masked.gather.v{kind.lanes}{number}.v{kind.lanes}p0",
        fnty=ir.FunctionType(target, [addresses.type, ir.IntType(32), every, target]),
    )
    align = ir.IntType(32)(element.bitwidth // 8)
    there = ir.Constant(every, [ir.IntType(1)(1)] * kind.lanes)
    return builder.call(function, [addresses, align, there, ir.Constant(target, ir.Undefined)])


@intrinsic
def gather_states(typing_context, pointer, places, index):
    """512 bits of elements of an array of states: those that numbers index, index + 1, … of `places` (uint32) name.

    They must be below 2^31.
    """
    kind = wide(pointer.dtype)

    def generate(context, builder, signature, arguments):
        states, table, first = arguments
        words = ir.VectorType(ir.IntType(32), kind.lanes)
        whence = builder.bitcast(place(builder, [table, first], signature.args[2]), words.as_pointer())
        where = builder.load(whence, align=4)
        mark(builder, where, "table")
        return _gather(context, builder, kind, states, where)

    return kind(pointer, places, index), generate


@intrinsic
def gather_table(typing_context, pointer, places):
    """The elements of a table at `places`, a vector of uint32 below 2^31, as many as it has lanes."""
    kind = Vector(pointer.dtype, places.lanes)

    def generate(context, builder, signature, arguments):
        return _gather(context, builder, kind, *arguments)

    return kind(pointer, places), generate


@intrinsic
def look_up(typing_context, pointer, first, places):
    """Elements first + place of a table of uint16, places below 32 in a vector of 32; 32 elements are read.

    That is one instruction where there is AVX-512 with words.
    """
    kind = wide(types.uint16)
    if places != kind or pointer.dtype != types.uint16:
        return None

    def generate(context, builder, signature, arguments):
        target, word = context.get_value_type(kind), ir.IntType(32)
        table, places = place(builder, arguments, signature.args[1]), arguments[2]
        if "+avx512bw" in context.codegen().magic_tuple()[2]:
            entries = builder.load(builder.bitcast(table, target.as_pointer()), align=2)
            mark(builder, entries, "table")
            function = builder.module.declare_intrinsic(
                "llvm.x86.avx512.permvar.hi.512", fnty=ir.FunctionType(target, [target, target])
            )
            return builder.call(function, [entries, places])
        found = ir.Constant(target, ir.Undefined)
        for lane in range(kind.lanes):
            index = builder.zext(builder.extract_element(places, word(lane)), ir.IntType(64))
            entry = builder.load(builder.gep(table, [index]))
            mark(builder, entry, "table")
            found = builder.insert_element(found, entry, word(lane))
        return found

    return kind(pointer, first, places), generate
