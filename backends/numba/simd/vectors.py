"""Explicit vectors for kernels whose inner loops LLVM does not vectorise well, or not dependably.

A vector is a value like a number: operators, comparisons (which give masks), `choose`, and the functions of
`functions` that say so take vectors; numbers beside them are spread over the lanes. Vectors live in compiled code only.
LLVM splits those that are wider than the machine's registers, so that the same code runs everywhere. 512 bits hold 16
lanes of 32 bits or 8 of 64.

Their loads and stores are in `memory`.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import intrinsic, lower_builtin, models, register_model, type_callable

BITS = 512


class Vector(types.Type):
    """`lanes` numbers of type `element`, or a mask of booleans."""

    def __init__(self, element: types.Type, lanes: int) -> None:
        self.element = element
        self.lanes = lanes
        super().__init__(name=f"Vector({element}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Vector) -> None:
        lane = ir.IntType(1) if kind.element == types.boolean else manager.lookup(kind.element).get_value_type()
        super().__init__(manager, kind, ir.VectorType(lane, kind.lanes))


def wide(element: Any) -> Vector:
    """The vector type of `BITS` bits."""
    return Vector(element, BITS // element.bitwidth)


def element(kind: types.Type) -> types.Type:
    """The type of a vector's lanes, or of a number itself."""
    return kind.element if isinstance(kind, Vector) else kind


def constant_of(kind: ir.Type, value: float) -> ir.Constant:
    """`value` as a number or in every lane."""
    if isinstance(kind, ir.VectorType):
        return ir.Constant(kind, [ir.Constant(kind.element, value)] * kind.count)
    return ir.Constant(kind, value)


def spread_over(builder: ir.IRBuilder, number: ir.Value, kind: ir.VectorType) -> ir.Value:
    """All lanes equal to a number."""
    one = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None)
    return builder.shuffle_vector(one, ir.Constant(kind, ir.Undefined), lanes)


# Operators

_ARITHMETIC = {
    operator.add: ("fadd", "add"),
    operator.sub: ("fsub", "sub"),
    operator.mul: ("fmul", "mul"),
    operator.truediv: ("fdiv", ""),
    operator.and_: ("", "and_"),
    operator.or_: ("", "or_"),
    operator.xor: ("", "xor"),
    operator.lshift: ("", "shl"),
    operator.rshift: ("", "lshr"),
}
_ORDER = {operator.lt: "<", operator.le: "<=", operator.gt: ">", operator.ge: ">=", operator.eq: "=="}


def _signature(operands: tuple[Any, Any], *, mask: bool) -> Any:
    """Of an operator, where a vector is one of the operands; None elsewhere."""
    kind = next((operand for operand in operands if isinstance(operand, Vector)), None)
    if kind is None or any(operand != kind and not isinstance(operand, types.Number) for operand in operands):
        return None
    result = Vector(types.boolean, kind.lanes) if mask else kind
    return result(*(operand if isinstance(operand, Vector) else kind.element for operand in operands))


def _register(function: Any, *, mask: bool) -> None:
    @type_callable(function)
    def typer(context: Any) -> Any:
        return lambda left, right: _signature((left, right), mask=mask)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        kind = next(other for other in sig.args if isinstance(other, Vector))
        target = context.get_value_type(kind)
        left, right = (
            value if isinstance(own, Vector) else spread_over(builder, value, target)
            for value, own in zip(args, sig.args, strict=True)
        )
        real = isinstance(kind.element, types.Float)
        if mask:
            compare = builder.fcmp_ordered if real else builder.icmp_unsigned
            return compare(_ORDER[function], left, right)
        return getattr(builder, _ARITHMETIC[function][0 if real else 1])(left, right)

    for pair in ((Vector, Vector), (Vector, types.Number), (types.Number, Vector)):
        lower_builtin(function, *pair)(generate)


for _function in _ARITHMETIC:
    _register(_function, mask=False)
for _function in _ORDER:
    _register(_function, mask=True)


def _register_unary(function: Any, generate: Callable[[ir.IRBuilder, ir.Value, bool], ir.Value]) -> None:
    """`generate` takes whether the lanes are reals."""

    @type_callable(function)
    def typer(context: Any) -> Any:
        return lambda operand: operand if isinstance(operand, Vector) else None

    @lower_builtin(function, Vector)
    def lower(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return generate(builder, args[0], isinstance(sig.args[0].element, types.Float))


_register_unary(operator.neg, lambda builder, value, real: builder.fneg(value) if real else builder.neg(value))
_register_unary(operator.invert, lambda builder, value, real: builder.not_(value))


# Making, choosing, summing


@intrinsic
def spread(typing_context, number):
    """A vector of 512 bits with all lanes equal to `number`."""
    kind = wide(number)

    def generate(context, builder, signature, arguments):
        return spread_over(builder, arguments[0], context.get_value_type(kind))

    return kind(number), generate


@intrinsic
def count_up(typing_context, like):
    """0, 1, 2, … in a vector of the type of `like`, or of 512 bits for a number."""
    kind = like if isinstance(like, Vector) else wide(like)

    def generate(context, builder, signature, arguments):
        target = context.get_value_type(kind)
        return ir.Constant(target, [ir.Constant(target.element, k) for k in range(kind.lanes)])

    return kind(like), generate


@intrinsic
def choose(typing_context, mask, yes, no):
    """`yes` in the lanes of the mask, `no` elsewhere."""

    def generate(context, builder, signature, arguments):
        return builder.select(*arguments)

    return yes(mask, yes, no), generate


@intrinsic
def total(typing_context, vector):
    """The sum of the lanes of reals, in any order."""

    def generate(context, builder, signature, arguments):
        return sum_of_lanes(builder, arguments[0])

    return vector.element(vector), generate


def sum_of_lanes(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """The sum of the lanes of reals, in any order."""
    kind = vector.type
    name = f"llvm.vector.reduce.fadd.v{kind.count}{'f64' if kind.element == ir.DoubleType() else 'f32'}"
    function = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(kind.element, [kind.element, kind]))
    return builder.call(function, [ir.Constant(kind.element, 0.0), vector], fastmath=("reassoc",))


@intrinsic
def any_lane(typing_context, mask):
    """Whether any lane of a mask is true."""

    def generate(context, builder, signature, arguments):
        whole = ir.IntType(mask.lanes)
        return builder.icmp_unsigned("!=", builder.bitcast(arguments[0], whole), whole(0))

    return types.boolean(mask), generate


# Conversions


def _parts(part: types.Integer) -> Any:
    """An intrinsic that cuts 64-bit words into parts of type `part`, the lowest first."""

    @intrinsic
    def cut(typing_context, words):
        kind = Vector(part, words.lanes * 64 // part.bitwidth)

        def generate(context, builder, signature, arguments):
            return builder.bitcast(arguments[0], context.get_value_type(kind))

        return kind(words), generate

    return cut


halves, quarters = _parts(types.uint32), _parts(types.uint16)


@intrinsic
def every_second(typing_context, left, right, first):
    """Lanes first, first + 2, … of `left`, then of `right`; `first` is a literal 0 or 1."""
    if not isinstance(first, types.IntegerLiteral):
        return None
    kind = left

    def generate(context, builder, signature, arguments):
        lanes = [ir.IntType(32)(k) for k in range(first.literal_value, 2 * kind.lanes, 2)]
        return builder.shuffle_vector(
            arguments[0], arguments[1], ir.Constant(ir.VectorType(ir.IntType(32), kind.lanes), lanes)
        )

    return kind(left, right, first), generate


def _reals(real: types.Float) -> Any:
    """An intrinsic that converts signed integers of as many bits."""

    @intrinsic
    def convert(typing_context, words):
        kind = Vector(real, words.lanes)

        def generate(context, builder, signature, arguments):
            return builder.sitofp(arguments[0], context.get_value_type(kind))

        return kind(words), generate

    return convert


as_float32, as_float64 = _reals(types.float32), _reals(types.float64)
