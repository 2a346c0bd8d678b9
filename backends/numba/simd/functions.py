"""exp, log, log1p, sigmoid, softplus and sine of a turn that LLVM vectorises, for float32 and float64.

Arguments are numbers or vectors of them (`vectors`).

llvmlite from PyPI carries no vector mathematics library, so a call of `math.exp` in a loop keeps the loop scalar.
The functions here have no branches and no calls: polynomials in the reduced argument (minimax, found with Remez'
algorithm on the interval that is left), powers of two and exponents through the bits of IEEE 754 numbers. The
argument's type selects the precision.

Maximum relative error: 4e-16 for float64 and 2.5e-7 for float32 (tested). NaN gives NaN (not for `log`).

Of the fast-math flags "contract" alone is set: fused multiply-adds are welcome, but reassociation would undo the
two-part reduction of `exp`. Flags stay with the operations of these functions when LLVM inlines them, so that
callers are free to reassociate sums of their own.
"""

from __future__ import annotations

from llvmlite import ir
from numba import types

from spinbench.backends.numba.kernel_cache import CALLEE, Options
from spinbench.backends.numba.simd.formulas import formula, formula_pair
from spinbench.backends.numba.simd.vectors import Emitter, Operation, Vector, constant_of, element, intrinsic_of

# Options of small functions that must be inlined into vector loops.
OPTIONS: Options = {"error_model": "numpy", "fastmath": {"contract"}, "forceinline": True, **CALLEE}


def polynomial(float32: tuple[float, ...], float64: tuple[float, ...]) -> Operation:
    """An intrinsic x -> c0 + c1 x + … with the coefficients for x's type; a single one makes a typed constant."""

    @intrinsic_of(lambda x: x)
    def evaluate(emitter, x):
        coefficients = float32 if element(emitter.typed[0][0]) == types.float32 else float64
        value = constant_of(x.type, coefficients[-1])
        for c in reversed(coefficients[:-1]):
            product = emitter.builder.fmul(value, x, flags=("contract",))
            value = emitter.builder.fadd(product, constant_of(x.type, c), flags=("contract",))
        return value

    return evaluate


def constant(float32: float, float64: float | None = None) -> Operation:
    """An intrinsic x -> the constant in x's type. (Numba would widen float32 against a literal.)"""
    return polynomial((float32,), (float32 if float64 is None else float64,))


ZERO, QUARTER, HALF, ONE, TWO, FOUR = (constant(x) for x in (0.0, 0.25, 0.5, 1.0, 2.0, 4.0))
LOG2E = constant(1.4426950408889634)
# log 2 in two parts (Cody and Waite): the high one has few bits, so that its product with an exponent is exact.
LN2_HIGH = constant(0.693359375, 6.93147180369123816490e-01)
LN2_LOW = constant(-2.12194440e-4, 1.90821492927058770002e-10)
# Adding ROUND puts x, rounded to an integer, into the last bits: no conversion and no call to round.
ROUND = constant(1.5 * 2.0**23, 1.5 * 2.0**52)
# Largest |x| of exp for which 2^k is a normal number in either precision.
EXP_LIMIT = constant(87.0, 708.0)

# fmt: off
# (exp r - 1 - r) / r² as a polynomial in r on |r| <= log(2) / 2
_EXP = polynomial(
    (0.49999993449024774, 0.16666520631349152, 0.041668387714342862, 0.0083687169620252572, 0.0013814618188825638),
    (0.50000000000000106, 0.16666666666666413, 0.041666666666530164, 0.0083333333334942738, 0.0013888888943628207,
     0.00019841269506998566, 2.4801493101249040e-5, 2.7557585990625258e-6, 2.7630247468735823e-7,
     2.5000184729747123e-8),
)
# (2 artanh √z / √z - 2) / z on 0 <= z <= ((√2 - 1) / (√2 + 1))²
_LOG = polynomial(
    (0.66666776075290023, 0.39977570138255732, 0.29871109525801887),
    (0.66666666666667332, 0.39999999999420968, 0.28571428741213926, 0.22222198678108528, 0.18183559461762727,
     0.15314163378680559, 0.14794914285690030),
)
# the same on 0 <= z <= 1/9
_LOG1P = polynomial(
    (0.66666414545830176, 0.40021633732159027, 0.28000055319814496, 0.28020470485107991),
    (0.66666666666666317, 0.40000000000153459, 0.28571428548248815, 0.22222223948577626, 0.18181744584680486,
     0.15386547248058205, 0.13301125731413987, 0.12104974223631510, 0.083446289349916751, 0.17010702411577313),
)
# sin(2πr) / r and cos 2πr in r², |r| <= 1/8
_SINE = polynomial(
    (6.2831852868263367, -41.341661444039786, 81.592351209621038, -75.393441371274704),
    (6.2831853071795865, -41.341702240399631, 81.605249275944460, -76.705859703299416, 42.058684899864605,
     -15.093797366421351, 3.7807229049750459),
)
_COSINE = polynomial(
    (1.0, -19.739208632978824, 64.939310722855372, -85.442295428852986, 59.202704248123110),
    (1.0, -19.739208802178717, 64.939394022667923, -85.456817206509479, 60.244641326462677,
     -26.426250684057637, 7.9030812787297269, -1.6966597872828476),
)
# fmt: on


def _layout(number: types.Type) -> tuple[ir.Type, ir.Type, int, int]:
    """LLVM's float and integer type, the fraction's bits and the exponent's bias."""
    if element(number) == types.float32:
        real, integer, fraction, bias = ir.FloatType(), ir.IntType(32), 23, 127
    else:
        real, integer, fraction, bias = ir.DoubleType(), ir.IntType(64), 52, 1023
    if isinstance(number, Vector):
        return ir.VectorType(real, number.lanes), ir.VectorType(integer, number.lanes), fraction, bias
    return real, integer, fraction, bias


@intrinsic_of(lambda shifted: shifted)
def _power_of_two(emitter, shifted):
    """2^k from the float k + ROUND."""
    builder, (real, integer, fraction, bias) = emitter.builder, _layout(emitter.typed[0][0])
    biased = builder.add(builder.bitcast(shifted, integer), constant_of(integer, bias))
    return builder.bitcast(builder.shl(biased, constant_of(integer, fraction)), real)


@intrinsic_of(lambda x: x)
def _exponent(emitter, x):
    """k of x = 2^k m, √½ <= m < √2, as a float."""
    return emitter.builder.sitofp(_split(emitter, x)[1], emitter.target)


@intrinsic_of(lambda x: x)
def _mantissa(emitter, x):
    """m of x = 2^k m, √½ <= m < √2."""
    (bits, k), builder, fraction = _split(emitter, x), emitter.builder, _layout(emitter.typed[0][0])[2]
    return builder.bitcast(builder.sub(bits, builder.shl(k, constant_of(k.type, fraction))), emitter.target)


def _split(emitter: Emitter, x: ir.Value) -> tuple[ir.Value, ir.Value]:
    """The bits of x, and k of x = 2^k m, √½ <= m < √2."""
    kind, builder = emitter.typed[0][0], emitter.builder
    _, integer, fraction, _ = _layout(kind)
    # Subtracting `halfway`, the bits of √½, gives √½ <= m < √2, where the series of the logarithm converges fastest.
    bits, halfway = builder.bitcast(x, integer), 0x3F3504F3 if fraction == 23 else 0x3FE6A09E667F3BCD
    return bits, builder.ashr(builder.sub(bits, constant_of(integer, halfway)), constant_of(integer, fraction))


def _extreme(comparison: str) -> Operation:
    """An intrinsic (a, b) -> b where `b comparison a`, else a, for numbers or vectors of one type.

    So a stays where b is NaN, and NaN stays where it is a.
    """

    @intrinsic_of(None)
    def extreme(emitter, a, b):
        builder, number = emitter.builder, element(emitter.typed[0][0])
        real = isinstance(number, types.Float)
        compare = builder.fcmp_ordered if real else builder.icmp_signed if number.signed else builder.icmp_unsigned
        return builder.select(compare(comparison, b, a), b, a)

    return extreme


# larger(x, limit) and smaller(x, limit): the limit where x is beyond it, else x; NaN stays NaN.
larger, smaller = _extreme(">"), _extreme("<")


def _instruction(name: str) -> Operation:
    """An intrinsic x -> what LLVM's intrinsic of this name makes of it."""

    @intrinsic_of(lambda x: x)
    def call(emitter, x):
        kind, builder = emitter.typed[0][0], emitter.builder
        lanes = f"v{kind.lanes}" if isinstance(kind, Vector) else ""
        whole = f"llvm.{name}.{lanes}f{element(kind).bitwidth}"
        return builder.call(builder.module.declare_intrinsic(whole, fnty=ir.FunctionType(x.type, [x.type])), [x])

    return call


square_root, magnitude = _instruction("sqrt"), _instruction("fabs")


@intrinsic_of(lambda shifted, even, odd: shifted(shifted, shifted, shifted))
def _by_quadrant(emitter, shifted, even, odd):
    """For q quarter turns, given as the float q + ROUND: `even` or `odd` as q is, negated where q mod 4 > 1."""
    builder, (real, integer, fraction, _) = emitter.builder, _layout(emitter.typed[0][0])
    q, top = builder.bitcast(shifted, integer), 31 if fraction == 23 else 63
    is_odd = builder.icmp_unsigned("!=", builder.and_(q, constant_of(integer, 1)), constant_of(integer, 0))
    chosen = builder.select(is_odd, odd, even)
    sign = builder.shl(builder.lshr(q, constant_of(integer, 1)), constant_of(integer, top))
    return builder.bitcast(builder.xor(builder.bitcast(chosen, integer), sign), real)


@formula
def exp(x):
    """e^x; saturates at |x| = 87 (float32) or 708 (float64), where the result is still a normal number."""
    # NaN passes both, since each returns its first argument if the comparison is false.
    x = larger(smaller(x, EXP_LIMIT(x)), -EXP_LIMIT(x))
    shifted = x * LOG2E(x) + ROUND(x)
    k = shifted - ROUND(x)
    # The first product is exact. Reassociation would lose the digits that the low part carries.
    r = (x - k * LN2_HIGH(x)) - k * LN2_LOW(x)
    return (ONE(x) + (r + r * r * _EXP(r))) * _power_of_two(shifted)


@formula
def log(x):
    """Natural logarithm of a positive normal number; anything else gives a meaningless finite number."""
    k = _exponent(x)
    f = _mantissa(x) - ONE(x)
    s = f / (TWO(x) + f)
    z = s * s
    return k * LN2_HIGH(x) + (k * LN2_LOW(x) + (TWO(x) * s + s * z * _LOG(z)))


@formula
def log1p(x):
    """log(1 + x) for 0 <= x <= 1."""
    s = x / (TWO(x) + x)
    z = s * s
    return TWO(x) * s + s * z * _LOG1P(z)


@formula
def sigmoid(x):
    """1 / (1 + e^-x), relatively accurate on both sides; saturates as `exp` does."""
    return ONE(x) / (ONE(x) + exp(-x))


@formula
def softplus(x):
    """log(1 + e^x), relatively accurate on both sides; saturates as `exp` does."""
    # softplus(x) = max(x, 0) + log(1 + e^-|x|): the exponential cannot overflow, and log1p keeps small values.
    return larger(x, ZERO(x)) + log1p(exp(-magnitude(x)))


@formula_pair
def sincos_turns(x):
    """(sin 2πx, cos 2πx) to an absolute error of 2 units in the last place of 1, |x| < 2^20."""
    shifted = x * FOUR(x) + ROUND(x)
    r = x - (shifted - ROUND(x)) * QUARTER(x)
    z = r * r
    s, c = r * _SINE(z), _COSINE(z)
    return _by_quadrant(shifted, s, c), _by_quadrant(shifted + ONE(x), s, c)
