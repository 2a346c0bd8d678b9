"""Arrays that a kernel makes or copies, written out where that is done, and rows of arrays in vectors.

Numba compiles `np.empty` and `np.zeros` as functions of their own, anew for each type of an element: a quarter of what
a small kernel costs to compile. For `a[:] = b` of two arrays it compiles the joining of strings, for a message: three
seconds. What is made here begins on a cache line, where vectors are read and written fastest.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.np.arrayobj import make_array, populate_array

from spinbench.backends.numba.simd.memory import LINE, pointer_into, read, start_of, write
from spinbench.backends.numba.simd.vectors import BITS, Emitter, Operation, Typed, intrinsic_of, wide


def _maker(clear: bool) -> Operation:
    """An intrinsic (shape, dtype) -> a new array in C order, of zeros or of what memory holds."""

    @intrinsic_of(lambda shape, dtype: types.Array(dtype.dtype, getattr(shape, "count", 1), "C"))
    def new_array(emitter, shape, dtype):
        return _allocate(emitter, _sizes(emitter), clear)

    return new_array


# As NumPy's `empty` and `zeros` without checks that the shape fits memory: shape (int or tuple) and dtype.
empty_array, zero_array = _maker(clear=False), _maker(clear=True)


def _copy_type(target: types.Array, source: types.Array) -> types.Type | None:
    alike = target.dtype == source.dtype and target.ndim == source.ndim
    return types.void if alike and target.layout == source.layout == "C" else None


@intrinsic_of(_copy_type)
def copy_into(emitter, target, source):
    """`target[...] = source` of two contiguous arrays of one type and one size.

    Raises:
        ValueError: the sizes differ.
    """
    context, builder = emitter[:2]
    to, origin = (make_array(kind)(context, builder, array) for kind, array in emitter.typed)
    # Array sizes are not part of a type, so that only a run-time check can compare them.
    with builder.if_then(builder.icmp_unsigned("!=", to.nitems, origin.nitems), likely=False):
        context.call_conv.return_user_exc(builder, ValueError, ("arrays of different sizes are not copied",))
    cgutils.raw_memmove(builder, to.data, origin.data, origin.nitems, origin.itemsize)


def _sizes(emitter: Emitter) -> list[ir.Value]:
    context, builder, _, (shape, _) = emitter
    kind, value = shape
    many = isinstance(kind, types.BaseTuple)
    dims = list(zip(kind, cgutils.unpack_tuple(builder, value), strict=True)) if many else [shape]
    return [context.cast(builder, size, other, types.intp) for other, size in dims]


def _allocate(emitter: Emitter, sizes: list[ir.Value], clear: bool) -> ir.Value:
    context, builder, kind, _ = emitter
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    step: ir.Value = context.get_constant(types.intp, item)
    strides: list[ir.Value] = []
    for size in reversed(sizes):
        strides.insert(0, step)
        step = builder.mul(step, size)
    memory = context.nrt.meminfo_alloc_aligned(builder, step, LINE)
    start = context.nrt.meminfo_data(builder, memory)
    if clear:
        cgutils.memset(builder, start, step, 0)
    array = make_array(kind)(context, builder)
    populate_array(
        array,
        data=builder.bitcast(start, context.get_data_type(kind.dtype).as_pointer()),
        shape=cgutils.pack_array(builder, sizes, ty=context.get_value_type(types.intp)),
        strides=cgutils.pack_array(builder, strides, ty=context.get_value_type(types.intp)),
        itemsize=context.get_constant(types.intp, item),
        meminfo=memory,
    )
    return array._getvalue()


def elements_of_row(array: Any) -> int:
    """Those from one row that `load_row` reads to the next."""
    return 1 if array.ndim == 1 else int(BITS // array.dtype.bitwidth)


def _place(emitter: Emitter, array: Typed, i: ir.Value) -> tuple[Typed, Typed]:
    """A pointer to an array, and the element at which its row i begins."""
    kind = pointer_into(array[0]), start_of(emitter, array)
    # "nsw", no overflow, as Numba marks products of indices: without it loops over rows take up to an eighth longer.
    return kind, (types.intp, emitter.builder.mul(i, i.type(elements_of_row(array[0])), flags=("nsw",)))


@intrinsic_of(lambda array, i: wide(array.dtype)(array, types.intp))
def load_row(emitter, array, i):
    """The vector that is row i of an array of as many columns as it has lanes; of one axis, from element i on."""
    return read(emitter, *_place(emitter, emitter.typed[0], i), emitter.target)


@intrinsic_of(lambda array, i, vector: types.void(array, types.intp, wide(array.dtype)))
def store_row(emitter, array, i, vector):
    """Store the vector that `load_row` reads."""
    write(emitter, *_place(emitter, emitter.typed[0], i), vector)
