"""Explicit vectors for kernels whose inner loops LLVM does not vectorise well, or not dependably.

A vector is a value like a number: operators, comparisons (which give masks), `choose`, and the functions of
`functions` that say so take vectors; numbers beside them are spread over the lanes. Vectors live in compiled code only.
LLVM splits those that are wider than the machine's registers, so that the same code runs everywhere. 512 bits hold 16
lanes of 32 bits or 8 of 64.

Their loads and stores are in `memory`.
"""

from __future__ import annotations

import functools
import inspect
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from llvmlite import ir
from numba import types
from numba.core.extending import _Intrinsic
from numba.extending import lower_builtin, models, overload, register_model, type_callable

if TYPE_CHECKING:
    from numba.core.base import BaseContext
    from numba.core.datamodel.manager import DataModelManager
    from numba.core.typing.context import BaseContext as TypingContext
    from numba.core.typing.templates import Signature

    from spinbench.backends.numba.simd.formulas import Value

    Generate = Callable[..., ir.Value]

BITS = 512
# An argument of an intrinsic: its Numba type and its LLVM value.
Typed = tuple[Any, ir.Value]


class Vector(types.Type):
    """`lanes` numbers of type `element`, or a mask of booleans."""

    def __init__(self, element: types.Type, lanes: int) -> None:
        self.element = element
        self.lanes = lanes
        super().__init__(name=f"Vector({element}, {lanes})")


@register_model(Vector)
class _VectorModel(models.PrimitiveModel):
    def __init__(self, manager: DataModelManager, kind: Vector) -> None:
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
    head = builder.insert_element(ir.Constant(kind, ir.Undefined), number, ir.IntType(32)(0))
    lanes = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), None)
    return builder.shuffle_vector(head, ir.Constant(kind, ir.Undefined), lanes)


_INTRINSIC: Any = _Intrinsic


class Operation(_INTRINSIC):  # type: ignore[misc]  # Numba has no types
    """An intrinsic that `formulas` call, too, with values of which code is being generated."""

    def __call__(self, *values: Value) -> Value | tuple[Value, ...]:
        return values[0].put(self._defn, values)


class Emitter(NamedTuple):
    """What makes an intrinsic's instructions.

    Attributes:
        context, builder: Numba's and LLVM's.
        kind: the type of what is returned.
        typed: the arguments, each with its type.
    """

    context: BaseContext
    builder: ir.IRBuilder
    kind: Any
    typed: tuple[Typed, ...]

    @property
    def target(self) -> ir.Type:
        """LLVM's type of what is returned."""
        return self.context.get_value_type(self.kind)


def intrinsic_of(
    result: Callable[..., types.Type | Signature | None] | None,
    operation_class: type[Operation] = Operation,
    body: Callable[..., object] | None = None,
) -> Callable[[Callable[..., ir.Value | None]], Operation]:
    """An intrinsic from a function of an `Emitter` and LLVM's values that returns one, or None for nothing.

    Args:
        result: of the arguments' types: the type that is returned, a signature where arguments are converted, or None
            where the intrinsic does not take them. None: all are converted to one type, which is returned.
        operation_class: of the intrinsic.
        body: has the intrinsic's name and parameters; None: the function itself, after its `Emitter`.
    """

    def decorate(emit: Callable[..., ir.Value | None]) -> Operation:
        def define(typing_context: TypingContext, *kinds: types.Type) -> tuple[Signature, Generate] | None:
            if result is None:
                kinds = (typing_context.unify_types(*kinds),) * len(kinds)
            kind = kinds[0] if result is None else result(*kinds)
            if kind is None:
                return None
            signature = kind(*kinds) if isinstance(kind, types.Type) else kind

            def generate(
                context: BaseContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
            ) -> ir.Value:
                typed = tuple(zip(signature.args, arguments, strict=True))
                value = emit(Emitter(context, builder, signature.return_type, typed), *arguments)
                return context.get_dummy_value() if value is None else value

            return signature, generate

        named = body or emit
        functools.update_wrapper(define, named)
        # Numba asks the definition for the names of the intrinsic's parameters.
        names = ["typing_context", *list(inspect.signature(named).parameters)[body is None :]]
        parameters = [inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in names]
        define.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        operation = operation_class(named.__name__, define)
        operation._register()
        return operation

    return decorate


def by_types(**options: object) -> Callable[[Callable[..., object]], Callable[..., NoReturn]]:
    """A function of compiled code: what is decorated takes the types of its arguments and returns the Python function
    that is compiled for them, with these options of `njit`."""
    # Accepts every option of `njit`.
    settings: Any = options

    def decorate(choose: Callable[..., object]) -> Callable[..., NoReturn]:
        @functools.wraps(choose)
        def call(*arguments: object) -> NoReturn:
            raise NotImplementedError("compiled code only")

        overload(call, jit_options=settings)(choose)
        return call

    return decorate


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


def _signature(operands: tuple[types.Type, types.Type], *, mask: bool) -> Signature | None:
    """Of an operator, where a vector is one of the operands; None elsewhere."""
    kind = next((operand for operand in operands if isinstance(operand, Vector)), None)
    if kind is None or any(operand != kind and not isinstance(operand, types.Number) for operand in operands):
        return None
    result = Vector(types.boolean, kind.lanes) if mask else kind
    return result(*(operand if isinstance(operand, Vector) else kind.element for operand in operands))


def _register(function: Callable[..., object], *, mask: bool) -> None:
    @type_callable(function)
    def typer(context: TypingContext) -> Callable[..., Signature | types.Type | None]:
        return lambda left, right: _signature((left, right), mask=mask)

    def generate(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
        kind = next(other for other in sig.args if isinstance(other, Vector))
        target = context.get_value_type(kind)
        left, right = (
            value if isinstance(arg_kind, Vector) else spread_over(builder, value, target)
            for value, arg_kind in zip(args, sig.args, strict=True)
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


def _register_unary(function: Callable[..., object], generate: Callable[..., ir.Value]) -> None:
    """`generate` takes whether the lanes are reals."""

    @type_callable(function)
    def typer(context: TypingContext) -> Callable[..., Signature | types.Type | None]:
        return lambda operand: operand if isinstance(operand, Vector) else None

    @lower_builtin(function, Vector)
    def lower(context: BaseContext, builder: ir.IRBuilder, sig: Signature, args: Sequence[ir.Value]) -> ir.Value:
        return generate(builder, args[0], isinstance(sig.args[0].element, types.Float))


_register_unary(operator.neg, lambda builder, value, real: builder.fneg(value) if real else builder.neg(value))
_register_unary(operator.invert, lambda builder, value, real: builder.not_(value))


# Making, choosing, summing


@intrinsic_of(wide)
def spread(emitter, number):
    """A vector of 512 bits with all lanes equal to `number`."""
    return spread_over(emitter.builder, number, emitter.target)


@intrinsic_of(lambda like: like if isinstance(like, Vector) else wide(like))
def count_up(emitter, like):
    """0, 1, 2, … in a vector of the type of `like`, or of 512 bits for a number."""
    kind = emitter.target
    return ir.Constant(kind, [ir.Constant(kind.element, k) for k in range(kind.count)])


@intrinsic_of(lambda mask, yes, no: yes)
def choose(emitter, mask, yes, no):
    """`yes` in the lanes of the mask, `no` elsewhere."""
    return emitter.builder.select(mask, yes, no)


@intrinsic_of(lambda vector: vector.element)
def total(emitter, vector):
    """The sum of the lanes of reals, in any order."""
    return sum_of_lanes(emitter.builder, vector)


def sum_of_lanes(builder: ir.IRBuilder, vector: ir.Value) -> ir.Value:
    """The sum of the lanes of reals, in any order."""
    kind = vector.type
    name = f"llvm.vector.reduce.fadd.v{kind.count}{'f64' if kind.element == ir.DoubleType() else 'f32'}"
    function = builder.module.declare_intrinsic(name, fnty=ir.FunctionType(kind.element, [kind.element, kind]))
    # Without "reassoc" LLVM would add the lanes one after another.
    return builder.call(function, [ir.Constant(kind.element, 0.0), vector], fastmath=("reassoc",))


@intrinsic_of(lambda mask: types.boolean)
def any_lane(emitter, mask):
    """Whether any lane of a mask is true."""
    whole = ir.IntType(mask.type.count)
    return emitter.builder.icmp_unsigned("!=", emitter.builder.bitcast(mask, whole), whole(0))
