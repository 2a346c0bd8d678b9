"""Sums of products in registers: tuples of vectors that a loop adds to, and conversions between precisions.

LLVM keeps each vector of a tuple in a register of its own. Eight of them hide the latency of a fused multiplication and
addition (four cycles, two each cycle).
"""

from __future__ import annotations

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from spinbench.backends.numba.simd.memory import read, require, write
from spinbench.backends.numba.simd.vectors import Vector, element, spread_over, wide


@intrinsic
def converted(typing_context, vector, like):
    """The vector's numbers in the precision of `like`, a real number or a vector of them."""
    kind = Vector(element(like), vector.lanes)

    def generate(context, builder, signature, arguments):
        if kind == vector:
            return arguments[0]
        convert = builder.fpext if kind.element == types.float64 else builder.fptrunc
        return convert(arguments[0], context.get_value_type(kind))

    return kind(vector, like), generate


@intrinsic
def in_lanes(typing_context, number, lanes):
    """A vector of as many lanes as the tuple `lanes` has, all equal to `number`."""
    kind = Vector(number, len(lanes))

    def generate(context, builder, signature, arguments):
        return spread_over(builder, arguments[0], context.get_value_type(kind))

    return kind(number, lanes), generate


@intrinsic
def counted(typing_context, like, lanes):
    """0, 1, 2, … as numbers of the type of `like`, in as many lanes as the tuple `lanes` has."""
    kind = Vector(like, len(lanes))

    def generate(context, builder, signature, arguments):
        target = context.get_value_type(kind)
        return ir.Constant(target, [ir.Constant(target.element, k) for k in range(kind.lanes)])

    return kind(like, lanes), generate


@intrinsic
def zero_sums(typing_context, like, sums):
    """As many vectors of zeros, of 512 bits and of the type of the number `like`, as the tuple `sums` has entries."""
    kind = types.UniTuple(wide(like), len(sums))

    def generate(context, builder, signature, arguments):
        return ir.Constant(context.get_value_type(kind), None)

    return kind(like, sums), generate


def _add_product(builder: ir.IRBuilder, total: ir.Value, x: ir.Value, y: ir.Value) -> ir.Value:
    return builder.fadd(total, builder.fmul(x, y, flags=("contract",)), flags=("contract",))


@intrinsic
def add_rows(typing_context, sums, x, table, first, stride):
    """sums_k + x table[first + k stride], for a vector x."""
    require(table, x.element)

    def generate(context, builder, signature, arguments):
        totals, vector, pointer, index, step = arguments
        real = vector.type.element
        result = []
        for total in cgutils.unpack_tuple(builder, totals, sums.count):
            number = read(context, builder, (table, pointer), (types.intp, index), real)
            result.append(_add_product(builder, total, vector, spread_over(builder, number, vector.type)))
            index = builder.add(index, step)
        return context.make_tuple(builder, sums, result)

    return sums(sums, x, table, types.intp, types.intp), generate


@intrinsic
def add_panel(typing_context, sums, across, table, first, width, x, column):
    """Of a matrix stored by columns, a panel of rows times some columns: K vectors of rows and J columns.

    sums_(kJ + j) + (rows first + 16 k … of column `column` + j) x_(column + j), 8 k in float64.

    Args:
        sums: K J vectors.
        across: a tuple of K entries.
        table: pointer to the columns, each of `width` entries.
        first: the panel's first row.
        x: pointer to the vector.
    """
    vectors, lanes = len(across), sums.dtype.lanes
    columns = sums.count // vectors
    require(table, sums.dtype.element)
    require(x, sums.dtype.element)

    def generate(context, builder, signature, arguments):
        totals, _, pointer, row, length, factors, begin = arguments
        word, target = ir.IntType(64), context.get_value_type(sums.dtype)
        result = list(cgutils.unpack_tuple(builder, totals, sums.count))
        for j in range(columns):
            index = builder.add(begin, word(j))
            number = read(context, builder, (x, factors), (types.intp, index), target.element)
            factor = spread_over(builder, number, target)
            start = builder.add(builder.mul(index, length), row)
            for k in range(vectors):
                place = types.intp, builder.add(start, word(k * lanes))
                values = read(context, builder, (table, pointer), place, target)
                at = k * columns + j
                result[at] = _add_product(builder, result[at], factor, values)
        return context.make_tuple(builder, sums, result)

    return sums(sums, across, table, types.intp, types.intp, x, types.intp), generate


@intrinsic
def store_sums(typing_context, pointer, first, stride, sums, across):
    """Stores K vectors, `stride` elements apart, each the sum of J of `sums` in sequence; `across` has K entries."""
    vectors = len(across)
    group = sums.count // vectors
    require(pointer, sums.dtype.element)

    def generate(context, builder, signature, arguments):
        to, index, step, totals, _ = arguments
        values = cgutils.unpack_tuple(builder, totals, sums.count)
        for k in range(vectors):
            parts = list(values[k * group : (k + 1) * group])
            while len(parts) > 1:
                parts = [builder.fadd(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
            write(context, builder, (pointer, to), (types.intp, index), parts[0])
            index = builder.add(index, step)
        return context.get_dummy_value()

    return types.void(pointer, types.intp, types.intp, sums, across), generate
