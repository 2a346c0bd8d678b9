"""Pointers into arrays: loads and stores of elements and vectors, gathers, look-ups; arrays that begin on cache lines.

Numba counts references to arrays (an atomic operation each time one is passed on or taken out of a tuple) and guards
every index against being negative. A pointer is not counted, and no bounds are checked. What that asks of the caller is
on the package's page.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from spinbench.backends.numba.machine_code import CHECKED
from spinbench.backends.numba.simd import checks
from spinbench.backends.numba.simd.checks import Typed
from spinbench.backends.numba.simd.vectors import Vector, wide

LINE = 64
"""Bytes of a cache line; a vector that crosses into the next costs two accesses."""


def aligned_zeros(shape: tuple[int, ...], real: np.dtype[Any], margin: int = 0) -> np.ndarray[Any, Any]:
    """Zeros that begin on a cache line, or with a margin `margin` rows behind the begin of one.

    Addresses may reach the margins: as many rows of zeros before and behind the array.
    """
    block = aligned_empty((shape[0] + 2 * margin, *shape[1:]), real)
    block.fill(0)  # in large pages, where there are some; zeros would come in small ones
    if margin and CHECKED:
        checks.register_block(block)
    return block[margin : margin + shape[0]]


def aligned_empty(shape: tuple[int, ...], real: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """An array to write to that begins on a cache line."""
    size = math.prod(shape)
    whole = np.empty(size + LINE // real.itemsize, dtype=real)
    first = -whole.ctypes.data % LINE // real.itemsize
    return whole[first : first + size].reshape(shape)


def pointer_to(dtype: Any) -> types.Type:
    """The type of a pointer to elements of this type; checked ones know their array."""
    return checks.Pointer(dtype) if CHECKED else types.CPointer(dtype)


def pointer_into(array: Any) -> types.Type:
    """The type of a pointer into an array."""
    if array.layout not in ("C", "F"):
        raise TypingError(f"contiguity: no address is taken of {array}, whose elements need not follow each other")
    return pointer_to(array.dtype)


def made_pointer(context: Any, builder: ir.IRBuilder, array: Typed, data: ir.Value) -> ir.Value:
    """The pointer to `data` of an array."""
    return checks.made_pointer(context, builder, array, data) if CHECKED else data


@intrinsic
def address(typing_context, array, offset):
    """Pointer to element `offset` of a contiguous array, counted in elements from its begin."""

    def generate(context, builder, signature, arguments):
        data = make_array(array)(context, builder, arguments[0]).data
        place = builder.gep(data, [_widened(builder, (signature.args[1], arguments[1]))])
        return made_pointer(context, builder, (array, arguments[0]), place)

    return pointer_into(array)(array, offset), generate


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


@intrinsic
def keep(typing_context, *arrays):
    """Does nothing with local arrays, but at the end of a function: Numba frees arrays after their last use, and does
    not count that of their pointers."""

    def generate(context, builder, signature, arguments):
        return context.get_dummy_value()

    return types.none(types.StarArgTuple.from_types(arrays)), generate


@intrinsic
def moved(typing_context, pointer, offset):
    """A pointer to element `offset` from another one on."""

    def generate(context, builder, signature, arguments):
        source, index = zip(signature.args, arguments, strict=True)
        return displaced(context, builder, source, index)

    return pointer(pointer, offset), generate


@intrinsic
def load(typing_context, pointer, index):
    """The element at an index."""
    return pointer.dtype(pointer, index), loader(pointer.dtype)


@intrinsic
def load_vector(typing_context, pointer, index):
    """512 bits from element `index` on."""
    vector = wide(pointer.dtype)
    return vector(pointer, index), loader(vector)


@intrinsic
def load_lanes(typing_context, pointer, index, lanes):
    """As many elements as the tuple `lanes` has, from element `index` on."""
    vector = Vector(pointer.dtype, len(lanes))
    return vector(pointer, index, lanes), loader(vector)


def loader(kind: types.Type) -> Any:
    """What an intrinsic's `generate` does to load a number or a vector from (pointer, index, …)."""

    def generate(context, builder, signature, arguments):
        source, index = list(zip(signature.args, arguments, strict=True))[:2]
        return read(context, builder, source, index, context.get_value_type(kind))

    return generate


@intrinsic
def store(typing_context, pointer, index, value):
    """Store a number, which is converted, or a vector of the pointer's own type from element `index` on."""
    if isinstance(value, Vector):
        require(pointer, value.element)
    kind = value if isinstance(value, Vector) else pointer.dtype

    def generate(context, builder, signature, arguments):
        target, index, _ = zip(signature.args, arguments, strict=True)
        write(context, builder, target, index, arguments[2])
        return context.get_dummy_value()

    return types.void(pointer, index, kind), generate


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


def _gather(context: Any, builder: ir.IRBuilder, source: Typed, where: ir.Value) -> ir.Value:
    """Elements of an array at the numbers `where`, a vector of 32-bit integers."""
    element: Any = source[0].dtype
    lanes = where.type.count
    target, pointer = ir.VectorType(context.get_value_type(element), lanes), data_of(context, builder, source)
    if CHECKED:
        numbers = [builder.extract_element(where, ir.IntType(32)(lane)) for lane in range(lanes)]
        places = [element_place(context, builder, source, (types.int32, number)) for number in numbers]
        checks.check(context, builder, source, places, 1)
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
def gather_indexed(typing_context, pointer, places, index):
    """512 bits of elements: those that numbers index, index + 1, … of `places` (uint32) name.

    They must be below 2^31.
    """
    require(places, types.uint32)
    kind = wide(pointer.dtype)

    def generate(context, builder, signature, arguments):
        states, table, first = zip(signature.args, arguments, strict=True)
        where = read(context, builder, table, first, ir.VectorType(ir.IntType(32), kind.lanes))
        return _gather(context, builder, states, where)

    return kind(pointer, places, index), generate


@intrinsic
def gather(typing_context, pointer, places):
    """The elements of a table at `places`, a vector of uint32 below 2^31, as many as it has lanes."""
    kind = Vector(pointer.dtype, places.lanes)

    def generate(context, builder, signature, arguments):
        return _gather(context, builder, (pointer, arguments[0]), arguments[1])

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
            entries = read(context, builder, table, first, target)
            function = builder.module.declare_intrinsic(
                "llvm.x86.avx512.permvar.hi.512", fnty=ir.FunctionType(target, [target, target])
            )
            return builder.call(function, [entries, places])
        found, begin = ir.Constant(target, ir.Undefined), (pointer, displaced(context, builder, table, first))
        for lane in range(kind.lanes):
            index = types.uint32, builder.zext(builder.extract_element(places, word(lane)), word)
            entry = read(context, builder, begin, index, target.element)
            found = builder.insert_element(found, entry, word(lane))
        return found

    return kind(pointer, first, places), generate


# What generates code: all accesses go through these


def data_of(context: Any, builder: ir.IRBuilder, pointer: Typed) -> ir.Value:
    """The bare address."""
    return checks.data_of(context, builder, pointer) if CHECKED else pointer[1]


def element_place(context: Any, builder: ir.IRBuilder, pointer: Typed, index: Typed) -> ir.Value:
    """The bare address of an element, counted from a pointer on."""
    return builder.gep(data_of(context, builder, pointer), [_widened(builder, index)])


def displaced(context: Any, builder: ir.IRBuilder, pointer: Typed, index: Typed) -> ir.Value:
    """The pointer to an element, counted from another one on."""
    place = element_place(context, builder, pointer, index)
    return checks.replaced(context, builder, pointer, place) if CHECKED else place


def read(context: Any, builder: ir.IRBuilder, source: Typed, index: Typed, what: ir.Type) -> ir.Value:
    """`what`, an element or a vector of them, from element `index` on."""
    place = element_place(context, builder, source, index)
    if CHECKED:
        checks.check(context, builder, source, [place], lanes_of(what))
    if isinstance(what, ir.VectorType):
        place = builder.bitcast(place, what.as_pointer())
    return builder.load(place, align=source[0].dtype.bitwidth // 8)


def write(context: Any, builder: ir.IRBuilder, target: Typed, index: Typed, value: ir.Value) -> None:
    """Store an element or a vector of them from element `index` on."""
    place = element_place(context, builder, target, index)
    if CHECKED:
        checks.check(context, builder, target, [place], lanes_of(value.type))
    if isinstance(value.type, ir.VectorType):
        place = builder.bitcast(place, value.type.as_pointer())
    builder.store(value, place, align=target[0].dtype.bitwidth // 8)


def lanes_of(what: ir.Type) -> int:
    """Of a vector, or 1."""
    return what.count if isinstance(what, ir.VectorType) else 1


def require(pointer: Any, element: types.Type) -> None:
    """Refuse to compile an access to elements of another type than the array's."""
    if pointer.dtype != element:
        raise TypingError(f"type: an access to {element} through an address of {pointer.dtype}")


def _widened(builder: ir.IRBuilder, index: Typed) -> ir.Value:
    kind: Any = index[0]
    if kind.bitwidth == 64:
        return index[1]
    return (builder.sext if kind.signed else builder.zext)(index[1], ir.IntType(64))
