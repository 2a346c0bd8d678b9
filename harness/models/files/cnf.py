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

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.format import Format, ModelFile
from spinbench.models.files.text import Tokens, log_decimal
from spinbench.models.files.wcnf import COMMENT, ClauseParser

_PROBLEM = re.compile(rb"\s*p\s+cnf\s+(\d{1,18})\s+(\d{1,18})[ \t\r]*(?:\n|\Z)")
_DIRECTIVE = re.compile(rb"(?m)^[ \t]*c[ \t]+(?:p[ \t]+(weight|show)\b|t[ \t]+(p?w?p?mc|amc)\b)([^\n]*)")
_DECIMAL = rb"\d{1,400}(?:\.\d{0,400})?(?:[eE][+-]?\d{1,9})?|\.\d{1,400}(?:[eE][+-]?\d{1,9})?"
_WEIGHT = re.compile(rb"[ \t]*(-?)(\d{1,18})[ \t]+(%s)(?:/(%s))?(?:[ \t]+0)?[ \t\r]*" % (_DECIMAL, _DECIMAL))
# Kinds of problems whose count is this Z.
_KINDS = (b"mc", b"wmc")
# After which files of SATLIB have no more clauses.
_END = re.compile(rb"(?ms)^[ \t]*%.*")


class CNF(Format):
    """A clause a factor, of weight 0 where it is falsified, and a factor for each variable that has weights."""

    suffixes = (".cnf",)
    summary = "clauses of DIMACS, with the weights of the model counting competitions"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        return _PROBLEM.match(COMMENT.sub(b"", head.removeprefix(b"\xef\xbb\xbf"))) is not None

    def read(self, file: ModelFile) -> FactorGraph:
        text = file.text()
        plain = _END.sub(b"", COMMENT.sub(b"", text))
        problem = _PROBLEM.match(plain)
        if problem is None:
            raise ModelError(f"{file.name}: a line 'p cnf VARIABLES CLAUSES' is needed before the clauses")
        variables, count = int(problem.group(1)), int(problem.group(2))
        blank = b"\n" * problem.group().count(b"\n")
        clauses = ClauseParser(Tokens(blank + plain[problem.end() :], file.name), 1.0)
        clauses.read(np.inf, variables, weight=np.inf)
        if clauses.count != count:
            raise ModelError(f"{file.name}: {count} clauses are claimed, but there are {clauses.count}")
        n = clauses.count_variables(variables)
        factors = [Factor((v - 1,), np.array(logs)) for v, logs in _read_weights(text, file.name, n).items()]
        return FactorGraph((2,) * n, (*factors, *clauses.factors), 0.0, name=file.stem, labels=tuple(range(1, n + 1)))


def _read_weights(text: bytes, name: str, num_variables: int) -> dict[int, list[float]]:
    """The log weights of the two states of variables that have them.

    Raises:
        ModelError: with the line; among others where the problem is not that of a partition function.
    """
    given: dict[int, dict[bool, tuple[float, int]]] = {}
    for directive in _DIRECTIVE.finditer(text):
        line, value = text.count(b"\n", 0, directive.start()) + 1, directive.group(3)
        where = f"{name}, line {line}"
        if directive.group(2) not in (None, *_KINDS):
            kind = directive.group(2).decode()
            raise ModelError(f"{where}: the count of a problem of kind {kind} is no partition function; mc and wmc are")
        if directive.group(1) == b"show" and len({*value.split()} - {b"0"}) < num_variables:
            raise ModelError(f"{where}: a projection on some variables (c p show) gives no partition function")
        if directive.group(1) != b"weight":
            continue
        weight = _WEIGHT.fullmatch(value)
        if weight is None or not 1 <= int(weight.group(2)) <= num_variables:
            raise ModelError(
                f"{where}: 'c p weight LITERAL WEIGHT 0' is needed, of a literal up to {num_variables} and a weight "
                "that is a decimal number or a fraction, 0 or more"
            )
        log_weight = _log(weight.group(3)) - (_log(weight.group(4)) if weight.group(4) else 0.0)
        if not log_weight < math.inf:
            raise ModelError(f"{where}: the weight of a literal must be finite")
        states, true = given.setdefault(int(weight.group(2)), {}), not weight.group(1)
        if true in states and states[true][0] != log_weight:
            raise ModelError(f"{where}: the literal has another weight in line {states[true][1]}")
        states[true] = (log_weight, line)
    return {v: _complete(states, name) for v, states in given.items()}


def _complete(states: dict[bool, tuple[float, int]], name: str) -> list[float]:
    """The log weights of both states."""
    if len(states) == 2:
        return [states[False][0], states[True][0]]
    ((true, (log_weight, line)),) = states.items()
    if log_weight > 0:
        raise ModelError(f"{name}, line {line}: a weight above 1 leaves the other literal, which has none, less than 0")
    other = math.log1p(-math.exp(log_weight)) if log_weight < 0 else -math.inf
    return [other, log_weight] if true else [log_weight, other]


def _log(decimal: bytes) -> float:
    """The natural logarithm of a number, whatever its exponent; -inf of 0."""
    digits = re.split(rb"[eE]", decimal)[0]
    return log_decimal(decimal.decode()) if digits.strip(b"0.") else -math.inf
