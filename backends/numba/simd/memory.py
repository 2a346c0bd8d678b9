"""Pointers into arrays, and loads and stores of single elements; those of vectors are in `vector_memory`.

Numba counts references to arrays (an atomic operation each time one is passed on or taken out of a tuple), guards
every index against being negative, and tells LLVM nothing about which arrays are apart, so that a loop which gathers
from one and stores into another stays scalar. A pointer is not counted, and the accesses made here say to which of a
few kinds of arrays they belong. What that asks of the caller is on the package's page.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.core.errors import TypingError
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from spinbench.backends.numba import debug_mode
from spinbench.backends.numba.simd import checks
from spinbench.backends.numba.simd.checks import Typed

KINDS = ("table", "state", "field", "uniform", "sum")
"""Within a function, as it is written, arrays of different kinds are never the same memory."""


def pointer_to(dtype: Any) -> types.Type:
    """The type of a pointer to elements of this type; checked ones know their array."""
    return checks.Pointer(dtype) if debug_mode.ON else types.CPointer(dtype)


def pointer_into(array: Any) -> types.Type:
    """The type of a pointer into an array."""
    if array.layout not in ("C", "F"):
        raise TypingError(f"contiguity: no address is taken of {array}, whose elements need not follow each other")
    return pointer_to(array.dtype)


def made_pointer(context: Any, builder: ir.IRBuilder, array: Typed, data: ir.Value) -> ir.Value:
    """The pointer to `data` of an array."""
    return checks.made_pointer(context, builder, array, data) if debug_mode.ON else data


@intrinsic
def address(typing_context, array, offset):
    """Pointer to element `offset` of a contiguous array, counted in elements from its begin."""

    def generate(context, builder, signature, arguments):
        data = make_array(array)(context, builder, arguments[0]).data
        place = builder.gep(data, [_widened(builder, (signature.args[1], arguments[1]))])
        return made_pointer(context, builder, (array, arguments[0]), place)

    return pointer_into(array)(array, offset), generate


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
        source, index = zip(signature.args, arguments, strict=True)
        return displaced(context, builder, source, index)

    return pointer(pointer, offset), generate


def accessors(kind: str) -> tuple[Any, Any]:
    """(load(pointer, i), store(pointer, i, value)) for arrays of a kind."""

    @intrinsic
    def load(typing_context, pointer, index):
        def generate(context, builder, signature, arguments):
            source, index = zip(signature.args, arguments, strict=True)
            return read(context, builder, kind, source, index, context.get_value_type(pointer.dtype))

        return pointer.dtype(pointer, index), generate

    @intrinsic
    def store(typing_context, pointer, index, value):
        def generate(context, builder, signature, arguments):
            target, index, _ = zip(signature.args, arguments, strict=True)
            write(context, builder, kind, target, index, arguments[2])
            return context.get_dummy_value()

        return types.void(pointer, index, pointer.dtype), generate

    return load, store


# What generates code: all accesses go through these


def data_of(context: Any, builder: ir.IRBuilder, pointer: Typed) -> ir.Value:
    """The bare address."""
    return checks.data_of(context, builder, pointer) if debug_mode.ON else pointer[1]


def element_place(context: Any, builder: ir.IRBuilder, pointer: Typed, index: Typed) -> ir.Value:
    """The bare address of an element, counted from a pointer on."""
    return builder.gep(data_of(context, builder, pointer), [_widened(builder, index)])


def displaced(context: Any, builder: ir.IRBuilder, pointer: Typed, index: Typed) -> ir.Value:
    """The pointer to an element, counted from another one on."""
    place = element_place(context, builder, pointer, index)
    return checks.replaced(context, builder, pointer, place) if debug_mode.ON else place


def read(context: Any, builder: ir.IRBuilder, kind: str, source: Typed, index: Typed, what: ir.Type) -> ir.Value:
    """`what`, an element or a vector of them, from element `index` of an array of a kind on."""
    place = element_place(context, builder, source, index)
    if debug_mode.ON:
        checks.check(context, builder, (kind, False), source, [place], lanes_of(what))
    if isinstance(what, ir.VectorType):
        place = builder.bitcast(place, what.as_pointer())
    value = builder.load(place, align=source[0].dtype.bitwidth // 8)
    mark(builder, value, kind)
    return value


def write(context: Any, builder: ir.IRBuilder, kind: str, target: Typed, index: Typed, value: ir.Value) -> None:
    """Store an element or a vector of them from element `index` of an array of a kind on."""
    place = element_place(context, builder, target, index)
    if debug_mode.ON:
        checks.check(context, builder, (kind, True), target, [place], lanes_of(value.type))
    if isinstance(value.type, ir.VectorType):
        place = builder.bitcast(place, value.type.as_pointer())
    mark(builder, builder.store(value, place, align=target[0].dtype.bitwidth // 8), kind)


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


class _Scope(ir.values.MDValue):  # type: ignore[misc]
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
        for scope in function.spinbench_scopes.values():
            _begin(builder, scope)
    return dict(function.spinbench_scopes)


def _begin(builder: ir.IRBuilder, scope: _Scope) -> None:
    """Say that the scope begins with the function: in a loop into which LLVM inlines it, anew in each iteration."""
    kind = ir.FunctionType(ir.VoidType(), [ir.MetaDataType()])
    begin = builder.module.declare_intrinsic("llvm.experimental.noalias.scope.decl", fnty=kind)
    with builder.goto_entry_block():
        builder.call(begin, [builder.module.add_metadata([scope])])


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
