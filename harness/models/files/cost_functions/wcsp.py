"""toulbar2's weighted constraints (`.wcsp`): a name, numbers, and tuples with costs."""

from __future__ import annotations

import math
import re

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.cost_functions.tables import CostTable, build_model, check_states
from spinbench.models.files.format import MAX_ENTRIES, Format, ModelFile
from spinbench.models.files.text import Tokens

FloatArray = npt.NDArray[np.float64]

_HEADER = re.compile(rb"\s*(\S+)[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t]+\d+[ \t\r]*(?:\n|\Z)")
_START = re.compile(rb"\s*\S+(?:\s+\d+){4}(?!\S)")
# A keyword of a cost function that is not given by its tuples, or of arithmetic.
_KEYWORD = re.compile(rb"(?<!\S)(?:[A-Za-z]\w*|[<>=]=?)(?!\S)")
_NUMBERS = frozenset({b"inf", b"nan", b"infinity"})


class WCSP(Format):
    """A cost function a factor; those that are given by a keyword in place of their tuples are refused."""

    suffixes = (".wcsp",)
    summary = "toulbar2's weighted constraints"
    energies = True

    def recognises(self, head: bytes) -> bool:
        """A line of a name, the numbers of variables, states and functions, and the bound; then numbers of states."""
        text = head.removeprefix(b"\xef\xbb\xbf")
        header = _HEADER.match(text)
        if header is None or header[1] in (b"MARKOV", b"BAYES"):
            return False
        count, most = (int(word[:9]) for word in header.group().split()[1:3])
        sizes = text[header.end() :].split()[:count]
        return bool(sizes) and all(size.isdigit() and int(size[:9]) <= most for size in sizes[:100])

    def read(self, file: ModelFile) -> FactorGraph:
        text = file.text()
        if not _START.match(text):
            raise ModelError(
                f"{file.name}: at the beginning a name without blanks is needed, and the numbers of variables, states "
                "and functions, and the bound"
            )
        start = len(text) - len(text.lstrip())
        start += len(text[start:].split(maxsplit=1)[0])
        keyword = next((each for each in _KEYWORD.finditer(text, start) if each.group().lower() not in _NUMBERS), None)
        if keyword is not None:
            line = text.count(b"\n", 0, keyword.start()) + 1
            raise ModelError(
                f"{file.name}, line {line}, token {keyword.group()[:24].decode()!r}: functions that are given by a "
                "keyword are not read; their tuples are needed"
            )
        tokens = Tokens(text, file.name, start=start)
        n = tokens.count(0, "variables", low=1)
        tokens.integer(1, "the largest number of states", 1, 2**31)
        count = tokens.count(2, "cost functions")
        bound = _parse_cost(tokens, 3)
        if tokens.size < 4 + n:
            raise tokens.error(tokens.size, f"the numbers of states of {n} variables are needed")
        reader = _TupleReader(tokens, tokens.integers(4, 4 + n, "a number of states", 1, 2**31).tolist())
        check_states(file, reader.cards)
        functions = [reader.read_function(k) for k in range(count)]
        tokens.check_end(reader.position)
        return build_model(file, reader.cards, functions, bound)


def _parse_cost(tokens: Tokens, index: int) -> float:
    if index >= tokens.size:
        raise tokens.error(tokens.size, "a cost is missing")
    value = float(tokens.values[index])
    if not value >= 0:
        raise tokens.error(index, "a cost must be a number, 0 or more")
    return value


class _TupleReader:
    """Cost functions of a `.wcsp` file, one after another; tables that are shared are counted from 1."""

    def __init__(self, tokens: Tokens, cards: list[int]) -> None:
        self.tokens, self.cards, self.position = tokens, cards, 4 + len(cards)
        self._left, self._shared = MAX_ENTRIES, list[FloatArray]()

    def read_function(self, k: int) -> CostTable:
        tokens, begin = self.tokens, self.position
        order = tokens.integer(begin, f"the number of variables of function {k}", -MAX_ORDER, MAX_ORDER)
        first = begin + 1 + abs(order)
        if first + 2 > tokens.size:
            raise tokens.error(tokens.size, f"function {k} is not complete")
        scope = tokens.integers(begin + 1, first, "a variable", 0, len(self.cards) - 1).tolist()
        if len(set(scope)) != len(scope):
            raise tokens.error(begin + 1, f"function {k} names a variable twice")
        default = _parse_cost(tokens, first)
        num_tuples = tokens.integer(first + 1, f"the number of tuples of function {k}", -len(self._shared), 2**53)
        shape = tuple(self.cards[v] for v in scope)
        self._left -= math.prod(shape)
        if self._left < 0:
            raise tokens.error(begin, f"the tables up to function {k} have more than {MAX_ENTRIES} entries")
        self.position = first + 2
        if num_tuples < 0:
            costs = self._shared[-num_tuples - 1]
            if costs.shape != shape:
                raise tokens.error(first + 1, f"function {k} shares a table of shape {costs.shape}; it needs {shape}")
        else:
            costs = self._read_tuples(k, num_tuples, np.full(shape, default))
        if order < 0:
            self._shared.append(costs)
        return CostTable(scope, costs)

    def _read_tuples(self, k: int, count: int, costs: FloatArray) -> FloatArray:
        """The table, of default costs so far, with those that follow."""
        tokens, begin, width = self.tokens, self.position, costs.ndim + 1
        self.position = begin + count * width
        if self.position > tokens.size:
            raise tokens.error(tokens.size, f"the tuples of function {k} are not complete")
        *columns, last = np.arange(begin, self.position).reshape(count, width).T
        states = [
            tokens.integers_at(column, f"a state of function {k}", 0, size - 1)
            for column, size in zip(columns, costs.shape, strict=True)
        ]
        values = tokens.values[last]
        if not (values >= 0).all():
            raise tokens.error(int(last[np.argmin(values >= 0)]), "a cost must be a number, 0 or more")
        if count > costs.size:
            raise tokens.error(begin - 1, f"function {k} has {costs.size} states, and not so many tuples")
        if states:
            costs[tuple(states)] = values
        elif count:
            costs[()] = values[0]
        return costs
