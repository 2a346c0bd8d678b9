"""The type of a vector, and its constants. Imported where code is generated; kernels need `vectors` alone."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba import types
from numba.extending import models, register_model

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
