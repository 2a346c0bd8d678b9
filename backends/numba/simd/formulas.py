"""Functions of numbers or vectors that are written out where they are called, without Numba's passes.

A formula is a straight line of operations. As a function that Numba compiles it cost some hundredths of a second for
each type of its arguments, and once more in all that call it; here its Python body runs while the caller's code is
generated, on values whose operators make the instructions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from llvmlite import ir
from numba import types

from spinbench.backends.numba.simd.vectors import (
    Emitter,
    Operation,
    Vector,
    constant_of,
    element,
    intrinsic_of,
    spread_over,
)

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.typing.templates import Signature

Values = tuple["Value", ...]
Body = Callable[..., "Value | Values"]
"""A formula in Python: of the arguments' values, one result or several."""
# Fast-math flags of every operation of a formula, whatever the caller's flags.
FLAGS = ("contract",)
_FLAGGED = ("fadd", "fsub", "fmul", "fdiv", "fcmp")


def _operator(real: str, whole: str) -> Callable[[Value, Value | float], Value]:
    """By LLVM's instruction for reals or for integers."""
    return lambda left, right: left._with(right, real, whole)


class Value:
    """A number or a vector of a type, of which code is being generated; numbers beside it are of its type."""

    def __init__(self, place: tuple[BaseContext, ir.IRBuilder], kind: types.Type, value: ir.Value) -> None:
        self._place, self.kind, self.value = place, kind, value

    def _with(self, other: Value | float, real: str, whole: str) -> Value:
        name = real if isinstance(element(self.kind), types.Float) else whole
        kind = self.kind if isinstance(self.kind, Vector) or not isinstance(other, Value) else other.kind
        combined = getattr(self._place[1], name)(self._broadcast_to(kind), self._own(other)._broadcast_to(kind))
        return Value(self._place, kind, combined)

    def _own(self, other: Value | float) -> Value:
        """A value, or a plain number as one of this type."""
        if isinstance(other, Value):
            return other
        return Value(self._place, self.kind, constant_of(self.value.type, _plain(other)))

    def _broadcast_to(self, kind: types.Type) -> ir.Value:
        """A number in all lanes where a vector is asked for."""
        if self.kind == kind or not isinstance(kind, Vector):
            return self.value
        return spread_over(self._place[1], self.value, self._place[0].get_value_type(kind))

    __add__, __sub__ = _operator("fadd", "add"), _operator("fsub", "sub")
    __mul__, __truediv__ = _operator("fmul", "mul"), _operator("fdiv", "")
    __xor__, __rshift__ = _operator("", "xor"), _operator("", "lshr")

    def __neg__(self) -> Value:
        return Value(self._place, self.kind, self._place[1].fneg(self.value))

    def put(self, define: Callable[..., tuple[Signature, Callable[..., ir.Value]]], values: Values) -> Value:
        """What an intrinsic of this definition makes of values of the same place."""
        context, builder = self._place
        signature, generate = define(context.typing_context, *(value.kind for value in values))
        result = generate(context, builder, signature, [value.value for value in values])
        return Value(self._place, signature.return_type, result)


def _plain(number: Any) -> float:
    return number.item() if hasattr(number, "item") else number  # type: ignore[no-any-return]


class Formula(Operation):
    """An intrinsic with a Python function of values."""

    def __call__(self, *values: Value) -> Value | Values:
        results: Value | Values = self._defn.__wrapped__(*values)
        return results


def formula(body: Body, results: int = 1, of: types.Type | None = None) -> Operation:
    """Of numbers and vectors of one type, which a result is of, too, unless its elements' type is given."""

    def find_result(*kinds: types.Type) -> types.Type | None:
        if any(element(kind) != element(kinds[0]) for kind in kinds):
            return None
        result = next((kind for kind in kinds if isinstance(kind, Vector)), kinds[0])
        if of is not None:
            result = Vector(of, result.lanes) if isinstance(result, Vector) else of
        return result if results == 1 else types.UniTuple(result, results)

    def emit(emitter: Emitter, *arguments: ir.Value) -> ir.Value:
        before = len(emitter.builder.block.instructions)
        outcome = body(*(Value(emitter[:2], kind, value) for kind, value in emitter.typed))
        for instruction in emitter.builder.block.instructions[before:]:
            # Only instructions without flags: those of an inner function keep their own.
            if instruction.opname in _FLAGGED and not instruction.flags:
                instruction.flags.extend(FLAGS)
        if not isinstance(outcome, tuple):
            return outcome.value
        return emitter.context.make_tuple(emitter.builder, emitter.kind, [value.value for value in outcome])

    return intrinsic_of(find_result, Formula, body)(emit)


# A formula with two results.
formula_pair = functools.partial(formula, results=2)
