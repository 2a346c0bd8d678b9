"""Pointers into arrays, for inner loops.

Numba counts references to arrays (an atomic operation each time one is passed on or taken out of a tuple), guards
every index against being negative, and tells LLVM nothing about which arrays are apart, so that a loop which gathers
from one and stores into another stays scalar. A pointer is not counted, and the accesses made here say to which of a
few arrays they belong. It is the caller's duty that arrays of different kinds do not overlap, that they outlive
their pointers and that indices are in range.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

KINDS = ("table", "state", "field", "uniform", "sum")
"""Arrays of different kinds are never the same memory."""


@intrinsic
def address(typing_context, array, offset):
    """Pointer to element `offset` of a contiguous array, counted in elements from its begin."""

    def generate(context, builder, signature, arguments):
        data = make_array(signature.args[0])(context, builder, arguments[0]).data
        return builder.gep(data, [_widened(builder, signature.args[1], arguments[1])])

    return types.CPointer(array.dtype)(array, offset), generate


@intrinsic
def keep(typing_context, array):
    """Does nothing with a local array, but at the end of a function: Numba frees arrays after their last use, and does
    not count that of their pointers."""

    def generate(context, builder, signature, arguments):
        return context.get_dummy_value()

    return types.none(array), generate


@intrinsic
def moved(typing_context, pointer, offset):
    """A pointer to element `offset` from another one on."""

    def generate(context, builder, signature, arguments):
        return place(builder, arguments, signature.args[1])

    return pointer(pointer, offset), generate


def accessors(kind: str) -> tuple[Any, Any]:
    """(load(pointer, i), store(pointer, i, value)) for arrays of a kind."""

    @intrinsic
    def load(typing_context, pointer, index):
        def generate(context, builder, signature, arguments):
            value = builder.load(place(builder, arguments, signature.args[1]))
            mark(builder, value, kind)
            return value

        return pointer.dtype(pointer, index), generate

    @intrinsic
    def store(typing_context, pointer, index, value):
        def generate(context, builder, signature, arguments):
            mark(builder, builder.store(arguments[2], place(builder, arguments, signature.args[1])), kind)
            return context.get_dummy_value()

        return types.void(pointer, index, pointer.dtype), generate

    return load, store


def place(builder: ir.IRBuilder, arguments: Any, index: Any) -> ir.Value:
    """The address of element arguments[1], of type `index`, from pointer arguments[0] on."""
    return builder.gep(arguments[0], [_widened(builder, index, arguments[1])])


def _widened(builder: ir.IRBuilder, kind: Any, index: ir.Value) -> ir.Value:
    if kind.bitwidth == 64:
        return index
    return (builder.sext if kind.signed else builder.zext)(index, ir.IntType(64))


def _scopes(module: ir.Module, kinds: list[str]) -> Any:
    """The metadata node of a list of alias scopes, one a kind, in one domain."""
    domain = module.add_metadata([ir.MetaDataString(module, "spinbench arrays")])
    return module.add_metadata([module.add_metadata([ir.MetaDataString(module, kind), domain]) for kind in kinds])


def mark(builder: ir.IRBuilder, instruction: Any, kind: str) -> None:
    """Tell LLVM that an access is to an array of this kind."""
    instruction.set_metadata("alias.scope", _scopes(builder.module, [kind]))
    instruction.set_metadata("noalias", _scopes(builder.module, [other for other in KINDS if other != kind]))


load_table, _ = accessors("table")
load_state, store_state = accessors("state")
load_field, store_field = accessors("field")
load_uniform, store_uniform = accessors("uniform")
load_sum, store_sum = accessors("sum")
