"""The debug mode: code that looks at an address before an element or a vector is loaded or stored there.

A pointer then carries the bounds of its array and, for an array that compiled code made, where Numba counts its
references. Such an array is held when an address of it is taken, so that its memory stays and a use after its end is
found; it is never given back.
"""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from llvmlite import binding, ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model
from numba.np.arrayobj import make_array

from spinbench.backends.numba.machine_code import CHECKED, use_cache_of_sources
from spinbench.backends.numba.simd.vectors import Typed

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.datamodel.manager import DataModelManager

LIFETIME = "lifetime: the array of this address is gone; keep(array) at the end of the function holds it"
BOUNDS = "bounds: this is outside of the array that the address is of"
ALIGNMENT = "alignment: this address is no multiple of the element's size"

_BOUND = "spinbench_simd_bound"
# {begin: end} addresses of memory blocks whose arrays have margins.
_blocks: dict[int, int] = {}


class Pointer(types.Type):
    """An address of an element of type `dtype` that knows its array."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Pointer({dtype})")


@register_model(Pointer)
class _PointerModel(models.StructModel):
    def __init__(self, manager: DataModelManager, kind: Pointer) -> None:
        # first, beyond: bounds of the array; owner: address of its reference count, or 0
        bounds = [(name, types.int64) for name in ("first", "beyond")]
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), *bounds, ("owner", types.voidptr)])


def register_block(block: np.ndarray) -> None:
    """Addresses of views of this array may reach all of it; forgotten when its memory is given back."""
    begin = block.ctypes.data
    _blocks[begin] = begin + block.nbytes
    weakref.finalize(block if block.base is None else block.base, _blocks.pop, begin, None)


@ctypes.CFUNCTYPE(ctypes.c_int64, *(ctypes.c_int64,) * 3)
def _bound_of_enclosing_block(first: int, beyond: int, end: int) -> int:
    """The first (`end` 0) or last bound of an array, or of the block that it is a view of."""
    # An array with a margin is a view of a larger block, and addresses may reach its margins.
    around = [block for block in list(_blocks.items()) if block[0] <= first and beyond <= block[1]]
    return (around or [(first, beyond)])[0][end]


def build_pointer(context: BaseContext, builder: ir.IRBuilder, array: Typed, data: ir.Value) -> ir.Value:
    """A checked pointer to `data` in an array."""
    view = make_array(array[0])(context, builder, array[1])
    end = builder.gep(view.data, [view.nitems])
    # an array from Python has a parent object, which the caller keeps alive
    local = builder.and_(cgutils.is_not_null(builder, view.meminfo), cgutils.is_null(builder, view.parent))
    half = ir.IntType(32)
    # Numba frees an array when its reference count is 0: setting the high half keeps the memory for good, so that a
    # later look at the low half still reads valid memory.
    with builder.if_then(local):
        builder.store(half(1), builder.gep(builder.bitcast(view.meminfo, half.as_pointer()), [half(1)]))
    pointer = cgutils.create_struct_proxy(Pointer(array[0].dtype))(context, builder)
    pointer.data, pointer.owner = data, builder.select(local, view.meminfo, view.meminfo.type(None))
    int64 = ir.IntType(64)
    find = cgutils.get_or_insert_function(builder.module, ir.FunctionType(int64, [int64] * 3), _BOUND)
    bounds = [builder.ptrtoint(place, int64) for place in (view.data, end)]
    pointer.first, pointer.beyond = (builder.call(find, [*bounds, int64(k)]) for k in (0, 1))
    return pointer._getvalue()


def data_of(context: BaseContext, builder: ir.IRBuilder, pointer: Typed) -> ir.Value:
    """The address in a pointer."""
    return cgutils.create_struct_proxy(pointer[0])(context, builder, pointer[1]).data


def replace_address(context: BaseContext, builder: ir.IRBuilder, pointer: Typed, data: ir.Value) -> ir.Value:
    """A pointer with another address in the same array."""
    moved = cgutils.create_struct_proxy(pointer[0])(context, builder, pointer[1])
    moved.data = data
    return moved._getvalue()


def check(context: BaseContext, builder: ir.IRBuilder, pointer: Typed, places: Sequence[ir.Value], lanes: int) -> None:
    """Raise IndexError where an access by way of a pointer breaks a rule.

    Args:
        places: each the address of the first of `lanes` elements.
    """
    view = cgutils.create_struct_proxy(pointer[0])(context, builder, pointer[1])
    element, int64, half = pointer[0].dtype.bitwidth // 8, ir.IntType(64), ir.IntType(32)
    with builder.if_then(cgutils.is_not_null(builder, view.owner)):
        count = builder.load(builder.bitcast(view.owner, half.as_pointer()))
        _refuse(context, builder, builder.icmp_signed("==", count, half(0)), LIFETIME)
    for place in places:
        begin = builder.ptrtoint(place, int64)
        end = builder.add(begin, int64(lanes * element))
        outside = [builder.icmp_signed("<", begin, view.first), builder.icmp_signed(">", end, view.beyond)]
        _refuse(context, builder, builder.or_(*outside), BOUNDS)
        rest = builder.and_(begin, int64(element - 1))
        _refuse(context, builder, builder.icmp_signed("!=", rest, int64(0)), ALIGNMENT)


def _refuse(context: Any, builder: ir.IRBuilder, broken: ir.Value, rule: str) -> None:
    with cgutils.if_unlikely(builder, broken):
        context.call_conv.return_user_exc(builder, IndexError, (f"{rule} (in {builder.function.name})",))


# Before any kernel is compiled: machine code with checks and without must not share a cache.
if CHECKED:
    use_cache_of_sources()
    binding.add_symbol(_BOUND, ctypes.cast(_bound_of_enclosing_block, ctypes.c_void_p).value)
