"""CNF (`.cnf`) of DIMACS, with the weights of literals of the model counting competitions (2021 to 2024).

Z is the weighted count: p(x) ∝ Π_i w(x_i) on the states that satisfy all clauses, and 0 elsewhere; without weights it
is the number of such states. Variable i of the file has the label i; it is true in state 1.

    c t wmc
    p cnf 3 2
    c p weight 1 0.3 0
    c p weight -1 7/10 0
    1 2 0
    -2 3 0

A literal without a weight has 1 less the weight of its negation where that is given, and 1 otherwise, as in Ganak.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.clauses import ClauseParser
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.text import Tokens, log_decimal
from spinbench.models.files.wcnf import COMMENT

_PROBLEM = re.compile(rb"\s*p\s+cnf\s+(\d{1,18})\s+(\d{1,18})[ \t\r]*(?:\n|\Z)")
# "ind" is the "p show" of older tools; "weights" is miniC2D's list of weights.
_DIRECTIVE = re.compile(
    rb"(?m)^[ \t]*c[ \t]+(?:p[ \t]+(show\b|weight\S*)|(ind|weights)\b|t[ \t]+(p?w?p?mc|amc)\b)([^\n]*)"
)
_DECIMAL = rb"(?:\d{1,400}(?:\.\d{0,400})?|\.\d{1,400})(?:[eE][+-]?\d{1,9})?"
_WEIGHT = re.compile(rb"[ \t]*(-?)(\d{1,18})[ \t]+\+?(%s)(?:/(%s))?(?:[ \t]+0)?[ \t\r]*" % (_DECIMAL, _DECIMAL))
# Problem types whose count is Z.
_KINDS = (b"mc", b"wmc")
# End mark of SATLIB's files.
_END = re.compile(rb"(?ms)^[ \t]*%.*")
# Largest exponent: a larger one makes a number of up to 400 digits on either side of its point vanish or exceed 1 by
# far.
_MAX_EXPONENT = 1000


class CNF(Format):
    """A clause a factor, of weight 0 where it is falsified, and a factor for each variable that has weights."""

    suffixes = (".cnf",)
    summary = "clauses of DIMACS, with the weights of the model counting competitions"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        return _PROBLEM.match(COMMENT.sub(b"", head.removeprefix(b"\xef\xbb\xbf"))) is not None

    def read(self, file: ModelFile) -> FactorGraph:
        text = _END.sub(b"", file.text())
        plain = COMMENT.sub(b"", text)
        problem = _PROBLEM.match(plain)
        if problem is None:
            raise ModelError(f"{file.name}: a line 'p cnf VARIABLES CLAUSES' is needed before the clauses")
        variables, count = int(problem.group(1)), int(problem.group(2))
        blank = b"\n" * problem.group().count(b"\n")
        clauses = ClauseParser(Tokens(blank + plain[problem.end() :], file.name), 1.0)
        clauses.read(np.inf, variables, weight=np.inf)
        clauses.check_count(count, plain.count(b"\n", 0, problem.start(1)) + 1)
        n = clauses.count_variables(variables)
        weights = _read_weights(text, file.name, n)
        return clauses.build_model(n, file.stem, tuple(Factor((v - 1,), np.array(logs)) for v, logs in weights.items()))


class _Weight(NamedTuple):
    """Of a literal.

    Attributes:
        exact: None of a number with an exponent beyond `_MAX_EXPONENT`.
        logarithm: -inf of 0.
        line: of the file.
    """

    exact: Fraction | None
    logarithm: float
    line: int

    @property
    def number(self) -> Fraction | float:
        """What tells weights from others, however they are spelled."""
        return self.logarithm if self.exact is None else self.exact


def _read_weights(text: bytes, name: str, num_variables: int) -> dict[int, list[float]]:
    """The log weights of the two states of variables that have them.

    Raises:
        ModelError: with the line; among others where the problem is not that of a partition function.
    """
    given: dict[int, dict[bool, _Weight]] = {}
    shown: set[bytes] | None = None
    line, counted = 1, 0
    for directive in _DIRECTIVE.finditer(text):
        line, counted = line + text.count(b"\n", counted, directive.start()), directive.start()
        where, word, value = f"{name}, line {line}", directive.group(1) or directive.group(2), directive.group(4)
        if word == b"weight":
            variable, true, weight = _parse_weight(value, where, line, num_variables)
            states = given.setdefault(variable, {})
            if true in states and states[true].number != weight.number:
                raise ModelError(f"{where}: the literal has another weight in line {states[true].line}")
            states[true] = weight
        elif word in (b"show", b"ind"):
            shown = (shown or set()) | {number.lstrip(b"0") for number in value.split()}
        elif word is not None:
            raise ModelError(f"{where}: weights are read from lines 'c p weight LITERAL WEIGHT 0', and not from others")
        elif directive.group(3) not in _KINDS:
            kind = directive.group(3).decode()
            raise ModelError(f"{where}: the count of a problem of kind {kind} is no partition function; mc and wmc are")
    if shown is not None and not shown.issuperset(str(v).encode() for v in range(1, num_variables + 1)):
        raise ModelError(f"{name}: a projection on some of the variables (c p show, c ind) gives no partition function")
    return {v: _complete(states, name) for v, states in given.items()}


def _parse_weight(value: bytes, where: str, line: int, num_variables: int) -> tuple[int, bool, _Weight]:
    """The variable, whether its literal is the positive one, and the literal's weight."""
    parts = _WEIGHT.fullmatch(value)
    if parts is None or not 1 <= int(parts.group(2)) <= num_variables:
        raise ModelError(
            f"{where}: 'c p weight LITERAL WEIGHT 0' is needed, of a literal up to {num_variables} and a weight that "
            "is a decimal number or a fraction, 0 or more, of at most 400 digits before and behind the point"
        )
    numbers = [number for number in parts.groups()[2:] if number]
    logarithm = _log(numbers[0]) - sum(map(_log, numbers[1:]))
    if not logarithm < math.inf:
        raise ModelError(f"{where}: the weight of a literal must be finite")
    exact = None
    if all(abs(int(number.lower().partition(b"e")[2] or 0)) <= _MAX_EXPONENT for number in numbers):
        exact = Fraction(numbers[0].decode()) / math.prod(Fraction(number.decode()) for number in numbers[1:])
    elif len(numbers) > 1:
        raise ModelError(f"{where}: the numbers of a fraction have exponents up to {_MAX_EXPONENT}")
    return int(parts.group(2)), not parts.group(1), _Weight(exact, logarithm, line)


def _complete(states: Mapping[bool, _Weight], name: str) -> list[float]:
    """The log weights of both states."""
    if len(states) == 2:
        return [states[False].logarithm, states[True].logarithm]
    # Only one of the two literals has a weight.
    ((true, (exact, logarithm, line)),) = states.items()
    if exact is None:
        # Far below or above 1: no exact fraction is needed.
        exact = Fraction(0) if logarithm < 0 else Fraction(2)
    if exact > 1:
        raise ModelError(f"{name}, line {line}: a weight above 1 leaves the other literal, which has none, less than 0")
    # An exact difference: 1 minus a rounded weight near 1 would lose its digits.
    rest = 1 - exact
    other = -math.inf
    if rest:
        other = math.log(rest.numerator) - math.log(rest.denominator)
    return [other, logarithm] if true else [logarithm, other]


def _log(decimal: bytes) -> float:
    """The natural logarithm of a number, whatever its exponent; -inf of 0."""
    digits = re.split(rb"[eE]", decimal)[0]
    return log_decimal(decimal.decode()) if digits.strip(b"0.") else -math.inf
