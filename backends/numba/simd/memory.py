"""Pointers into arrays: loads and stores of elements and vectors, gathers, look-ups; arrays that begin on cache lines.

Numba counts references to arrays (an atomic operation each time one is passed on or taken out of a tuple) and guards
every index against being negative. A pointer is not counted, and no bounds are checked. What that asks of the caller is
on the package's page.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NewType, TypeVar

import numpy as np
import numpy.typing as npt
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from spinbench.backends.numba.machine_code import CHECKED
from spinbench.backends.numba.simd import checks
from spinbench.backends.numba.simd.vectors import Emitter, Typed, Vector, intrinsic_of, spread_over, wide

if TYPE_CHECKING:
    from numba.core.typing.templates import Signature

Array = np.ndarray
# Address of an element, a type of compiled code that no Python function computes with.
Address = NewType("Address", int)
Number = TypeVar("Number", bound=np.generic)
Real = np.dtype[np.floating]
"""The kernel's precision."""
# Bytes of a cache line; a vector that crosses into the next costs two accesses.
LINE = 64


def zeros_aligned(shape: tuple[int, ...], real: np.dtype[Number], margin: int = 0) -> npt.NDArray[Number]:
    """Zeros that begin on a cache line, or with a margin `margin` rows behind the begin of one.

    Addresses may reach the margins: as many rows of zeros before and behind the array.
    """
    block = empty_aligned((shape[0] + 2 * margin, *shape[1:]), real)
    # Zeros written here get large pages where the system has them; np.zeros gets small pages at first access.
    block.fill(0)
    if margin and CHECKED:
        checks.register_block(block)
    return block[margin : margin + shape[0]]


def empty_aligned(shape: tuple[int, ...], real: np.dtype[Number]) -> npt.NDArray[Number]:
    """An array to write to that begins on a cache line."""
    size = math.prod(shape)
    whole = np.empty(size + LINE // real.itemsize, dtype=real)
    first = -whole.ctypes.data % LINE // real.itemsize
    return whole[first : first + size].reshape(shape)


def pointer_into(array: types.Array) -> types.Type:
    """The type of a pointer into an array; checked ones know which."""
    if array.layout not in ("C", "F"):
        raise TypingError(f"contiguity: no address is taken of {array}, whose elements need not follow each other")
    return checks.Pointer(array.dtype) if CHECKED else types.CPointer(array.dtype)


def start_of(emitter: Emitter, array: Typed) -> ir.Value:
    """The pointer to the first element of an array."""
    data = make_array(array[0])(*emitter[:2], array[1]).data
    return checks.build_pointer(emitter.context, emitter.builder, array, data) if CHECKED else data


@intrinsic_of(lambda array, offset: pointer_into(array))
def address(emitter, array, offset):
    """Pointer to element `offset` of a contiguous array, counted in elements from its begin."""
    start = emitter.kind, start_of(emitter, emitter.typed[0])
    return element_pointer(emitter, start, emitter.typed[1])


def _pointers_into(tables: Any) -> Any:
    kinds = [pointer_into(kind) if isinstance(kind, types.Array) else kind for kind in tables.types]
    return types.BaseTuple.from_types(kinds, tables.instance_class)


@intrinsic_of(_pointers_into)
def pointers(emitter, tables):
    """A named tuple with pointers to the first elements in place of its contiguous arrays."""
    parts = zip(emitter.typed[0][0].types, cgutils.unpack_tuple(emitter.builder, tables), strict=True)
    members = [start_of(emitter, part) if isinstance(part[0], types.Array) else part[1] for part in parts]
    return emitter.context.make_tuple(emitter.builder, emitter.kind, members)


@intrinsic
def keep(typing_context, *arrays):
    """Does nothing with local arrays, but at the end of a function: Numba frees arrays after their last use, and does
    not count that of their pointers."""

    def generate(context, builder, signature, arguments):
        return context.get_dummy_value()

    return types.none(types.StarArgTuple.from_types(arrays)), generate


@intrinsic_of(lambda pointer, offset: pointer)
def offset_pointer(emitter, pointer, offset):
    """A pointer to element `offset` from another one on."""
    return element_pointer(emitter, *emitter.typed)


@intrinsic_of(lambda pointer, index: pointer.dtype)
def load(emitter, pointer, index):
    """The element at an index."""
    return read(emitter, *emitter.typed, emitter.target)


@intrinsic_of(lambda pointer, index: wide(pointer.dtype))
def load_vector(emitter, pointer, index):
    """512 bits from element `index` on."""
    return read(emitter, *emitter.typed, emitter.target)


@intrinsic_of(lambda pointer, index, lanes: Vector(pointer.dtype, len(lanes)))
def load_lanes(emitter, pointer, index, lanes):
    """As many elements as the tuple `lanes` has, from element `index` on."""
    return read(emitter, *emitter.typed[:2], emitter.target)


def _store_signature(pointer: Any, index: types.Type, value: types.Type) -> Signature:
    if isinstance(value, Vector):
        require(pointer, value.element)
    return types.void(pointer, index, value if isinstance(value, Vector) else pointer.dtype)


@intrinsic_of(_store_signature)
def store(emitter, pointer, index, value):
    """Store a number, which is converted, or a vector of the pointer's own type from element `index` on."""
    write(emitter, *emitter.typed[:2], value)


@intrinsic_of(lambda pointer, index: types.void)
def prefetch(emitter, pointer, index):
    """Ask for the cache line of an element that is to be read soon; an address outside of the array does no harm."""
    builder, int_type = emitter.builder, ir.IntType(32)
    whence = builder.bitcast(element_place(emitter, *emitter.typed), ir.IntType(8).as_pointer())
    kind = ir.FunctionType(ir.VoidType(), [whence.type, int_type, int_type, int_type])
    function = builder.module.declare_intrinsic("llvm.prefetch.p0", fnty=kind)
    # Arguments: read (0), second-level cache (2), data (1); the first level is full of the working set.
    builder.call(function, [whence, int_type(0), int_type(2), int_type(1)])


def _gather(emitter: Emitter, source: Typed, where: ir.Value) -> ir.Value:
    """Elements of an array at the numbers `where`, a vector of 32-bit integers."""
    builder, target, pointer = emitter.builder, emitter.target, data_of(emitter, source)
    element, lanes = source[0].dtype, where.type.count
    if CHECKED:
        numbers = [builder.extract_element(where, ir.IntType(32)(lane)) for lane in range(lanes)]
        places = [element_place(emitter, source, (types.int32, number)) for number in numbers]
        checks.check(emitter.context, builder, source, places, 1)
    # llvmlite takes a vector of indices where the base is a vector, too, and its element type is said.
    bases = spread_over(builder, pointer, ir.VectorType(pointer.type, lanes))
    addresses = builder.gep(bases, [where], source_etype=pointer.type.pointee)
    every = ir.VectorType(ir.IntType(1), lanes)
    number = f"{'f' if isinstance(element, types.Float) else 'i'}{element.bitwidth}"
    function = builder.module.declare_intrinsic(
        f"llvm.masked.gather.v{lanes}{number}.v{lanes}p0",
        fnty=ir.FunctionType(target, [addresses.type, ir.IntType(32), every, target]),
    )
    align = ir.IntType(32)(element.bitwidth // 8)
    mask = ir.Constant(every, [ir.IntType(1)(1)] * lanes)
    return builder.call(function, [addresses, align, mask, ir.Constant(target, ir.Undefined)])


def _gather_type(pointer: types.CPointer, places: types.CPointer, index: types.Type) -> Vector:
    require(places, types.uint32)
    return wide(pointer.dtype)


@intrinsic_of(_gather_type)
def gather_indexed(emitter, pointer, places, index):
    """512 bits of elements: those that numbers index, index + 1, … of `places` (uint32) name.

    They must be below 2^31.
    """
    states, table, first = emitter.typed
    where = read(emitter, table, first, ir.VectorType(ir.IntType(32), emitter.target.count))
    return _gather(emitter, states, where)


@intrinsic_of(lambda pointer, places: Vector(pointer.dtype, places.lanes))
def gather(emitter, pointer, places):
    """The elements of a table at `places`, a vector of uint32 below 2^31, as many as it has lanes."""
    return _gather(emitter, emitter.typed[0], places)


def _entries_type(pointer: types.CPointer, first: types.Type, places: types.Type) -> Vector | None:
    require(pointer, types.uint16)
    return places if places == wide(types.uint16) else None


@intrinsic_of(_entries_type)
def look_up(emitter, pointer, first, places):
    """Elements first + place of a table of uint16, places below 32 in a vector of 32; 32 elements are read.

    That is one instruction where there is AVX-512 with words.
    """
    builder, target, int_type, table = emitter.builder, emitter.target, ir.IntType(32), emitter.typed[:2]
    # Processors without AVX-512BW load entry by entry.
    if "+avx512bw" in emitter.context.codegen().magic_tuple()[2]:
        entries = read(emitter, *table, target)
        function = builder.module.declare_intrinsic(
            "llvm.x86.avx512.permvar.hi.512", fnty=ir.FunctionType(target, [target, target])
        )
        return builder.call(function, [entries, places])
    result, begin = ir.Constant(target, ir.Undefined), (emitter.typed[0][0], element_pointer(emitter, *table))
    for lane in range(target.count):
        index = types.uint32, builder.zext(builder.extract_element(places, int_type(lane)), int_type)
        result = builder.insert_element(result, read(emitter, begin, index, target.element), int_type(lane))
    return result


# Code generation: every memory access goes through these functions


def data_of(emitter: Emitter, pointer: Typed) -> ir.Value:
    """The bare address."""
    return checks.data_of(emitter.context, emitter.builder, pointer) if CHECKED else pointer[1]


def element_place(emitter: Emitter, pointer: Typed, index: Typed) -> ir.Value:
    """The bare address of an element, counted from a pointer on."""
    return emitter.builder.gep(data_of(emitter, pointer), [_widen(emitter.builder, index)])


def element_pointer(emitter: Emitter, pointer: Typed, index: Typed) -> ir.Value:
    """The pointer to an element, counted from another one on."""
    place = element_place(emitter, pointer, index)
    return checks.replace_address(emitter.context, emitter.builder, pointer, place) if CHECKED else place


def _vector_place(emitter: Emitter, pointer: Typed, index: Typed, kind: ir.Type) -> ir.Value:
    """The bare address of an element or a vector of LLVM's type `kind`, checked in the debug mode."""
    place, is_vector = element_place(emitter, pointer, index), isinstance(kind, ir.VectorType)
    if CHECKED:
        checks.check(emitter.context, emitter.builder, pointer, [place], kind.count if is_vector else 1)
    return emitter.builder.bitcast(place, kind.as_pointer()) if is_vector else place


def read(emitter: Emitter, source: Typed, index: Typed, kind: ir.Type) -> ir.Value:
    """An element or a vector of them, of LLVM's type `kind`, from element `index` on."""
    return emitter.builder.load(_vector_place(emitter, source, index, kind), align=source[0].dtype.bitwidth // 8)


def write(emitter: Emitter, target: Typed, index: Typed, value: ir.Value) -> None:
    """Store an element or a vector of them from element `index` on."""
    place = _vector_place(emitter, target, index, value.type)
    emitter.builder.store(value, place, align=target[0].dtype.bitwidth // 8)


def require(pointer: Any, element: types.Type) -> None:
    """Refuse to compile an access to elements of another type than the array's."""
    if pointer.dtype != element:
        raise TypingError(f"type: an access to {element} through an address of {pointer.dtype}")


def _widen(builder: ir.IRBuilder, index: Typed) -> ir.Value:
    kind, number = index
    if kind.bitwidth == 64:
        return number
    return (builder.sext if kind.signed else builder.zext)(number, ir.IntType(64))
