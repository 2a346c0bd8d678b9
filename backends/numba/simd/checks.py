"""The debug mode: code that looks at an address before an element or a vector is loaded or stored there.

A pointer then carries the bounds of its array and, for an array that compiled code made, where Numba counts its
references. Such an array is held when an address of it is taken, so that its memory stays and a use after its end is
found; it is never given back. Calls of functions, within which kinds are kept apart, are known by their frames on the
stack. What decides is in `ledger`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import models, register_model
from numba.np.arrayobj import make_array

from spinbench.backends.numba import debug_mode
from spinbench.backends.numba.machine_code import use_cache_of_sources
from spinbench.backends.numba.simd.ledger import KIND_BYTES, RULES, SYMBOL, publish

if debug_mode.ON:  # before any kernel is made: machine code with checks and without must not meet
    use_cache_of_sources()
    publish()

Typed = tuple[Any, ir.Value]
"""What an intrinsic gets as an argument: its type and its value."""


class Pointer(types.Type):
    """An address of an element of type `dtype` that knows its array."""

    def __init__(self, dtype: types.Type) -> None:
        self.dtype = dtype
        super().__init__(name=f"Pointer({dtype})")


@register_model(Pointer)
class _PointerModel(models.StructModel):
    def __init__(self, manager: Any, kind: Pointer) -> None:
        # first, beyond: the array's bounds; owner: where references to it are counted, or 0
        bounds = [(name, types.int64) for name in ("first", "beyond")]
        super().__init__(manager, kind, [("data", types.CPointer(kind.dtype)), *bounds, ("owner", types.voidptr)])


def _call(builder: ir.IRBuilder, name: str, *arguments: Any) -> ir.Value:
    """Call a function of `ledger` with numbers or addresses."""
    word, words = ir.IntType(64), []
    for value in arguments:
        known = value if isinstance(value, ir.Value) else word(value)
        words.append(builder.ptrtoint(known, word) if isinstance(known.type, ir.PointerType) else known)
    kind = ir.FunctionType(word, [word] * len(words))
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, SYMBOL + name), words)


def _frame(builder: ir.IRBuilder) -> ir.Value:
    """That of the function that runs."""
    kind = ir.FunctionType(ir.IntType(8).as_pointer(), [ir.IntType(32)])
    here = builder.module.declare_intrinsic("llvm.frameaddress.p0", fnty=kind)
    return builder.call(here, [ir.IntType(32)(0)])


def _note_entry(builder: ir.IRBuilder) -> None:
    """Have the function that is being made note its calls; it is not inlined, so that it has a frame of its own."""
    function = builder.function
    if "noinline" in function.attributes:
        return
    function.attributes.discard("alwaysinline")
    function.attributes.add("noinline")
    with builder.goto_entry_block():
        _call(builder, "enter", _frame(builder))


def made_pointer(context: Any, builder: ir.IRBuilder, array: Typed, data: ir.Value) -> ir.Value:
    """A checked pointer to `data` in an array."""
    _note_entry(builder)
    own = make_array(array[0])(context, builder, array[1])
    end = builder.gep(own.data, [own.nitems])
    # an array from Python has a parent, and the caller holds it
    local = builder.and_(cgutils.is_not_null(builder, own.meminfo), cgutils.is_null(builder, own.parent))
    with builder.if_then(local):
        _call(builder, "hold", own.meminfo)
    pointer = cgutils.create_struct_proxy(Pointer(array[0].dtype))(context, builder)
    pointer.data, pointer.owner = data, builder.select(local, own.meminfo, own.meminfo.type(None))
    pointer.first, pointer.beyond = (_call(builder, "bound", own.data, end, k) for k in (0, 1))
    return pointer._getvalue()


def data_of(context: Any, builder: ir.IRBuilder, pointer: Typed) -> ir.Value:
    """The address in a pointer."""
    return cgutils.create_struct_proxy(pointer[0])(context, builder, pointer[1]).data


def replaced(context: Any, builder: ir.IRBuilder, pointer: Typed, data: ir.Value) -> ir.Value:
    """A pointer with another address in the same array."""
    moved = cgutils.create_struct_proxy(pointer[0])(context, builder, pointer[1])
    moved.data = data
    return moved._getvalue()


def check(
    context: Any, builder: ir.IRBuilder, use: tuple[str, bool], pointer: Typed, places: Sequence[ir.Value], lanes: int
) -> None:
    """Raise IndexError where an access by way of a pointer breaks a rule.

    Args:
        use: the kind of array, and whether something is stored.
        places: each the address of the first of `lanes` elements.
    """
    _note_entry(builder)
    own = cgutils.create_struct_proxy(pointer[0])(context, builder, pointer[1])
    element, frame = pointer[0].dtype.bitwidth // 8, _frame(builder)
    for place in places:
        about = (frame, place, lanes * element, element, own.first, own.beyond, own.owner)
        broken = _call(builder, "broken_rule", *about, KIND_BYTES[use[0]], int(use[1]))
        _refuse(context, builder, broken, use)


def _refuse(context: Any, builder: ir.IRBuilder, broken: ir.Value, use: tuple[str, bool]) -> None:
    """Raise IndexError that names the broken rule, if there is one."""
    who = f"{'store to' if use[1] else 'load from'} a {use[0]} in {_python_name(builder.function.name)}"
    with cgutils.if_unlikely(builder, builder.icmp_signed("!=", broken, broken.type(0))):
        for number, rule in enumerate(RULES, 1):
            with builder.if_then(builder.icmp_signed("==", broken, broken.type(number))):
                context.call_conv.return_user_exc(builder, IndexError, (f"{rule} ({who})",))


def _python_name(symbol: str) -> str:
    """The dotted name in a symbol that Numba made: _ZN, each part after its length, then B and the version."""
    parts, rest = [], symbol.removeprefix("_ZN")
    while found := re.match(r"\d+", rest):
        begin, end = found.end(), found.end() + int(found[0])
        parts.append(rest[begin:end])
        rest = rest[end:]
    return ".".join(parts)
