"""Arrays that a kernel makes or copies, written out where that is done.

Numba compiles `np.empty` and `np.zeros` as functions of their own, anew for each type of an element: a quarter of what
a small kernel costs to compile. For `a[:] = b` of two arrays it compiles the joining of strings, for a message: three
seconds.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

from spinbench.backends.numba.simd.checks import Typed


def _maker(clear: bool) -> Any:
    """An intrinsic (shape, dtype) -> a new array in C order, of zeros or of what memory holds."""

    @intrinsic
    def made(typing_context, shape, dtype):
        array: Any = types.Array(dtype.dtype, shape.count if isinstance(shape, types.BaseTuple) else 1, "C")

        def generate(context, builder, signature, arguments):
            sizes = _sizes(context, builder, (signature.args[0], arguments[0]))
            return _allocated(context, builder, array, sizes, clear)

        return array(shape, dtype), generate

    return made


empty_array, zero_array = _maker(clear=False), _maker(clear=True)
"""As NumPy's, of shapes that fit the memory: a number of elements or a tuple of them, and a dtype."""


@intrinsic
def copy_into(typing_context, target, source):
    """`target[...] = source` of two contiguous arrays of one type and one size.

    Raises:
        ValueError: the sizes differ.
    """
    if target.dtype != source.dtype or target.ndim != source.ndim or target.layout != "C" or source.layout != "C":
        return None

    def generate(context, builder, signature, arguments):
        to, given = (
            make_array(kind)(context, builder, array) for kind, array in zip(signature.args, arguments, strict=True)
        )
        with builder.if_then(builder.icmp_unsigned("!=", to.nitems, given.nitems), likely=False):
            context.call_conv.return_user_exc(builder, ValueError, ("arrays of different sizes are not copied",))
        cgutils.raw_memmove(builder, to.data, given.data, given.nitems, given.itemsize)
        return context.get_dummy_value()

    return types.void(target, source), generate


@intrinsic
def as_words(typing_context, array):
    """The same memory of a contiguous array of float64 as int64."""
    if array.dtype != types.float64 or array.layout != "C":
        return None
    kind = array.copy(dtype=types.int64)

    def generate(context, builder, signature, arguments):
        old, new = make_array(array)(context, builder, arguments[0]), make_array(kind)(context, builder)
        word = context.get_data_type(kind.dtype).as_pointer()
        parts = {"shape": old.shape, "strides": old.strides, "itemsize": old.itemsize, "meminfo": old.meminfo}
        populate_array(new, data=builder.bitcast(old.data, word), **parts)
        return impl_ret_borrowed(context, builder, kind, new._getvalue())

    return kind(array), generate


def _sizes(context: Any, builder: ir.IRBuilder, shape: Typed) -> list[ir.Value]:
    kind, value = shape
    many = isinstance(kind, types.BaseTuple)
    own = list(zip(kind, cgutils.unpack_tuple(builder, value), strict=True)) if many else [shape]
    return [context.cast(builder, size, other, types.intp) for other, size in own]


def _allocated(context: Any, builder: ir.IRBuilder, kind: Any, sizes: list[ir.Value], clear: bool) -> ir.Value:
    item = context.get_abi_sizeof(context.get_data_type(kind.dtype))
    step: ir.Value = context.get_constant(types.intp, item)
    strides: list[ir.Value] = []
    for size in reversed(sizes):
        strides.insert(0, step)
        step = builder.mul(step, size)
    memory = context.nrt.meminfo_alloc_aligned(builder, step, context.get_preferred_array_alignment(kind.dtype))
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
