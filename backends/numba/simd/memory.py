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
"""Within a function, as it is written, arrays of different kinds are never the same memory."""


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


class _Scope(ir.values.MDValue):  # type: ignore[misc]  # llvmlite has no types
    """Metadata that names itself, of which LLVM makes another one wherever it inlines the function."""

    def __init__(self, module: ir.Module, domain: ir.values.MDValue) -> None:
        super().__init__(module, [domain], name=str(len(module.metadata)))
        self.operands = (self, domain)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def _scopes(builder: ir.IRBuilder) -> dict[str, _Scope]:
    """Those of the arrays of each kind in the function that is being made, in one domain."""
    function, module = builder.function, builder.module
    if not hasattr(function, "spinbench_scopes"):
        domain = module.add_metadata([ir.MetaDataString(module, "spinbench arrays")])
        function.spinbench_scopes = {kind: _Scope(module, domain) for kind in KINDS}
    return dict(function.spinbench_scopes)


def mark(builder: ir.IRBuilder, instruction: Any, kind: str) -> None:
    """Tell LLVM that an access is to an array of this kind."""
    scopes, add = _scopes(builder), builder.module.add_metadata
    instruction.set_metadata("alias.scope", add([scopes[kind]]))
    instruction.set_metadata("noalias", add([scopes[other] for other in KINDS if other != kind]))


load_table, _ = accessors("table")
load_state, store_state = accessors("state")
load_field, store_field = accessors("field")
load_uniform, store_uniform = accessors("uniform")
load_sum, store_sum = accessors("sum")
