"""Sums of products in registers: tuples of vectors that a loop adds to, and conversions between precisions.

LLVM keeps each vector of a tuple in a register of its own. Eight of them hide the latency of a fused multiplication and
addition (four cycles, two each cycle).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

from spinbench.backends.numba.simd.memory import read, require, write
from spinbench.backends.numba.simd.vectors import Operation, Vector, element, intrinsic_of, spread_over, wide

if TYPE_CHECKING:
    from numba.core.typing.templates import Signature


@intrinsic_of(lambda vector, like: Vector(element(like), vector.lanes))
def convert(emitter, vector, like):
    """The vector's numbers in the precision of `like`, a real number or a vector of them."""
    if emitter.target == vector.type:
        return vector
    double = emitter.target.element == ir.DoubleType()
    return (emitter.builder.fpext if double else emitter.builder.fptrunc)(vector, emitter.target)


@intrinsic_of(lambda number, lanes: Vector(number, len(lanes)))
def in_lanes(emitter, number, lanes):
    """A vector of as many lanes as the tuple `lanes` has, all equal to `number`."""
    return spread_over(emitter.builder, number, emitter.target)


@intrinsic_of(lambda like, sums: types.UniTuple(wide(like), len(sums)))
def zero_sums(emitter, like, sums):
    """As many vectors of zeros, of 512 bits and of the type of the number `like`, as the tuple `sums` has entries."""
    return ir.Constant(emitter.target, None)


def _add_product(builder: ir.IRBuilder, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.fadd(total, builder.fmul(x, y, flags=("contract",)), flags=("contract",))


def _rows_signature(
    sums: types.UniTuple, x: Vector, table: types.CPointer, first: types.Type, stride: types.Type
) -> Signature:
    require(table, x.element)
    return sums(sums, x, table, types.intp, types.intp)


@intrinsic_of(_rows_signature)
def add_rows(emitter, sums, x, table, first, stride):
    """sums_k + x table[first + k stride], for a vector x."""
    builder, kind, result = emitter.builder, emitter.typed[0][0], []
    for total in cgutils.unpack_tuple(builder, sums, kind.count):
        number = read(emitter, emitter.typed[2], (types.intp, first), x.type.element)
        result.append(_add_product(builder, total, x, spread_over(builder, number, x.type)))
        first = builder.add(first, stride)
    return emitter.context.make_tuple(builder, kind, result)


def _panel_signature(
    sums: types.UniTuple,
    across: types.BaseTuple,
    table: types.CPointer,
    first: types.Type,
    width: types.Type,
    x: types.CPointer,
    column: types.Type,
) -> Signature:
    require(table, sums.dtype.element)
    require(x, sums.dtype.element)
    return sums(sums, across, table, types.intp, types.intp, x, types.intp)


@intrinsic_of(_panel_signature)
def add_panel(emitter, sums, across, table, first, width, x, column):
    """Of a matrix stored by columns, a panel of rows times some columns: K vectors of rows and J columns.

    sums_(kJ + j) + (rows first + 16 k … of column `column` + j) x_(column + j), 8 k in float64.

    Args:
        sums: K J vectors.
        across: a tuple of K entries.
        table: pointer to the columns, each of `width` entries.
        first: the panel's first row.
        x: pointer to the vector.
    """
    builder, int64, kind, vectors = emitter.builder, ir.IntType(64), emitter.typed[0][0], len(emitter.typed[1][0])
    columns, target = kind.count // vectors, emitter.context.get_value_type(kind.dtype)
    result = list(cgutils.unpack_tuple(builder, sums, kind.count))
    for j in range(columns):
        index = builder.add(column, int64(j))
        number = read(emitter, emitter.typed[5], (types.intp, index), target.element)
        factor = spread_over(builder, number, target)
        start = builder.add(builder.mul(index, width), first)
        for k in range(vectors):
            place = types.intp, builder.add(start, int64(k * target.count))
            values = read(emitter, emitter.typed[2], place, target)
            at = k * columns + j
            result[at] = _add_product(builder, result[at], factor, values)
    return emitter.context.make_tuple(builder, kind, result)


def _store_signature(
    pointer: types.CPointer, first: types.Type, stride: types.Type, sums: types.UniTuple, across: types.BaseTuple
) -> Signature:
    require(pointer, sums.dtype.element)
    return types.void(pointer, types.intp, types.intp, sums, across)


@intrinsic_of(_store_signature)
def store_sums(emitter, pointer, first, stride, sums, across):
    """Stores K vectors, `stride` elements apart, each the sum of J of `sums` in sequence; `across` has K entries."""
    builder, kind, vectors = emitter.builder, emitter.typed[3][0], len(emitter.typed[4][0])
    values, group = cgutils.unpack_tuple(builder, sums, kind.count), kind.count // vectors
    for k in range(vectors):
        parts = list(values[k * group : (k + 1) * group])
        # Pairwise: half the latency of a sequential sum, and the same result on every machine.
        while len(parts) > 1:
            parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
        write(emitter, emitter.typed[0], (types.intp, first), parts[0])
        first = builder.add(first, stride)


def _parts(part: Any) -> Operation:
    """An intrinsic that cuts 64-bit words into parts of type `part`, the lowest first."""

    @intrinsic_of(lambda integers: Vector(part, integers.lanes * 64 // part.bitwidth))
    def cut(emitter, integers):
        return emitter.builder.bitcast(integers, emitter.target)

    return cut


halves, quarters = _parts(types.uint32), _parts(types.uint16)


@intrinsic_of(lambda left, right, first: left if isinstance(first, types.IntegerLiteral) else None)
def every_second(emitter, left, right, first):
    """Lanes first, first + 2, … of `left`, then of `right`; `first` is a literal 0 or 1."""
    lanes = ir.VectorType(ir.IntType(32), left.type.count)
    places = range(emitter.typed[2][0].literal_value, 2 * lanes.count, 2)
    chosen = ir.Constant(lanes, [lanes.element(k) for k in places])
    return emitter.builder.shuffle_vector(left, right, chosen)
