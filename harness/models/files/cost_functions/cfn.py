"""toulbar2's cost function networks with names (`.cfn`), JSON or what looks like it."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.cost_functions.tables import CostTable, build_model, check_states
from spinbench.models.files.format import MAX_ENTRIES, Format, ModelFile

FloatArray = npt.NDArray[np.float64]
# A word or a list of words and lists.
Item = Any

_COMMENT = re.compile(rb"(?m)^#[^\n]*")
_PROBLEM = re.compile(rb"\s*[{\[]\s*\"?problem\"?[\s:]*[{\[]")
# Text in quotes, a bracket, a word, or a quote that nothing ends; and whether a colon follows.
_ITEM = re.compile(r'(?:"([^"\n]*)"|([\[\]{}])|([^\s\[\]{}:,"]+)|("))\s*(:)?')
_NUMBER = re.compile(r"[+-]?[\d.]\S*")
_COST = re.compile(r"[+-]?(?:\d+\.?\d*(?:e[+-]?\d{1,4})?|\.\d+(?:e[+-]?\d{1,4})?)|\+?inf", re.IGNORECASE)
_MUST_BE = re.compile(r"([<>])([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,4})?)?", re.IGNORECASE)
# Brackets within brackets.
MAX_DEPTH = 16


class Name(str):
    """A word that a colon follows: a name, even of digits."""

    __slots__ = ()


class CFN(Format):
    """Variables are labelled by their names, where they have some, and states have theirs.

    Quotes, commas and colons may be left out, and a line that begins with # is a comment."""

    suffixes = (".cfn",)
    summary = "toulbar2's cost function networks"
    energies = True

    def recognises(self, head: bytes) -> bool:
        return _PROBLEM.match(_COMMENT.sub(b"", head.removeprefix(b"\xef\xbb\xbf"))) is not None

    def read(self, file: ModelFile) -> FactorGraph:
        parts = [part for part in _parse_lists(file) if isinstance(part, list)]
        if len(parts) != 3:
            raise ModelError(f"{file.name}: problem, variables and functions are needed, in this order")
        problem, variables, functions = parts
        matches = (_MUST_BE.fullmatch(item) for item in problem if isinstance(item, str))
        if (match := next(filter(None, matches), None)) is None:
            raise ModelError(f"{file.name}: a problem must be '<' or '>' and a number, such as \"mustbe\": \"<10.0\"")
        domains = _Domains(file, variables)
        sign = {"<": 1.0, ">": -1.0}[match[1]]
        bound = float(match[2] or sign * math.inf)
        tables = _read_functions(file, functions, domains)
        costs = [CostTable(scope, np.where(np.isinf(table), table, sign * table)) for scope, table in tables]
        return build_model(file, domains.cards, costs, sign * bound, tuple(domains.index), domains.state_names)


def _parse_lists(file: ModelFile) -> list[Item]:
    """What stands within the outermost brackets: all kinds of brackets mean a list."""
    text = _COMMENT.sub(b"", file.text()).decode()
    stack: list[list[Item]] = [[]]
    for match in _ITEM.finditer(text):
        quoted, bracket, item, wrong, colon = match.groups()
        if wrong or (bracket and bracket in "]}" and len(stack) == 1) or len(stack) > MAX_DEPTH:
            line = text.count("\n", 0, match.start()) + 1
            raise ModelError(f"{file.name}, line {line}, token {match.group()[:24]!r}: nothing opens or ends this")
        if bracket and bracket in "[{":
            stack.append([])
            stack[-2].append(stack[-1])
        elif bracket:
            stack.pop()
        else:
            text_of_item = quoted if item is None else item
            stack[-1].append(Name(text_of_item) if colon else text_of_item)
    # Files of toulbar2's tutorial leave the last bracket out.
    if len(stack) > 2 or len(stack[0]) != 1 or not isinstance(stack[0][0], list):
        raise ModelError(f"{file.name}: one pair of brackets around all is needed, and each that opens must be closed")
    return stack[0][0]


class _Domains:
    """Variables and their states.

    Attributes:
        cards: of each variable.
        index: number of a variable by its name; by the number itself where it has none.
        state_names: of variables with names.
    """

    def __init__(self, file: ModelFile, items: list[Item]) -> None:
        self._file = file
        self.cards: list[int] = []
        self.index: dict[Hashable, int] = {}
        self.state_names: dict[Hashable, tuple[str, ...]] = {}
        self._states: list[dict[str, int]] = []
        name: str | int | None = None
        for item in items:
            if name is None and isinstance(item, str) and (isinstance(item, Name) or not _NUMBER.fullmatch(item)):
                name = item
                continue
            self._add_variable(len(self.cards) if name is None else name, item)
            name = None
        if name is not None:
            raise ModelError(f"{file.name}: variable {str(name)[:24]!r} has no states")
        if not self.cards:
            raise ModelError(f"{file.name}: there are no variables")
        check_states(file, self.cards)

    def _add_variable(self, name: str | int, domain: Item) -> None:
        where = f"{self._file.name}: variable {str(name)[:24]!r}"
        if name in self.index:
            raise ModelError(f"{where} stands there twice")
        self.index[name] = len(self.cards)
        if isinstance(domain, list):
            names = [item for item in domain if isinstance(item, str) and not isinstance(item, Name)]
            if not names or len(names) < len(domain) or len(set(names)) < len(names):
                raise ModelError(f"{where} needs states, with a name each that no other has")
            if isinstance(name, str):
                self.state_names[name] = tuple(names)
        else:
            if not domain.isdecimal() or not 0 < int(domain[:12]) < 2**31:
                raise ModelError(f"{where} has {domain[:24]} states; a number from 1 or a list of names is needed")
            names = []
        self.cards.append(len(names) or int(domain))
        self._states.append({state: k for k, state in enumerate(names)})

    def variable(self, item: Item, where: str) -> int:
        """By name, else by number."""
        v = self.index.get(item) if isinstance(item, str) else None
        if v is None:
            v = _index(item, len(self.cards))
        if v is None:
            raise ModelError(f"{where} names a variable {str(item)[:24]!r} that there is not")
        return v

    def state(self, v: int, item: Item, where: str) -> int:
        """Of a variable, by name, else by number."""
        k = self._states[v].get(item) if isinstance(item, str) else None
        if k is None:
            k = _index(item, self.cards[v])
        if k is None:
            raise ModelError(f"{where} names a state {str(item)[:24]!r} that its variable does not have")
        return k


def _index(item: Item, count: int) -> int | None:
    """A number below `count`; None where it is none."""
    if isinstance(item, str) and item.isdecimal() and len(item) <= 12 and int(item) < count:
        return int(item)
    return None


def _read_functions(file: ModelFile, items: list[Item], domains: _Domains) -> list[CostTable]:
    """The tables; one that is named in place of costs is that of the function of this name."""
    named: dict[str, FloatArray] = {}
    tables: list[tuple[str, list[int], FloatArray | str]] = []
    left, name = MAX_ENTRIES, ""
    for item in items:
        where = f"{file.name}: function {name[:24] or len(tables)}"
        if isinstance(item, str) and not name:
            name = item
            continue
        if isinstance(item, str):
            raise ModelError(f"{where} has {item[:24]!r} in place of scope and costs")
        fields = dict(zip(item[::2], item[1::2], strict=False)) if all(isinstance(w, str) for w in item[::2]) else {}
        if "type" in fields:
            raise ModelError(f"{where} is given by the keyword {str(fields['type'])[:24]!r}; its costs are needed")
        if not isinstance(fields.get("scope"), list) or "costs" not in fields:
            raise ModelError(f"{where} has no scope or no costs")
        scope = [domains.variable(each, where) for each in fields["scope"]]
        if len(set(scope)) != len(scope) or len(scope) > MAX_ORDER:
            raise ModelError(f"{where} names a variable twice, or more than {MAX_ORDER} of them")
        left -= math.prod(domains.cards[v] for v in scope)
        if left < 0:
            raise ModelError(f"{where}: the tables up to this one have more than {MAX_ENTRIES} entries")
        costs = fields["costs"]
        if isinstance(costs, list):
            costs = _read_costs(where, scope, fields, domains)
            named[name] = costs
        tables.append((where, scope, costs))
        name = ""
    if name:
        raise ModelError(f"{file.name}: function {name[:24]} has no scope or no costs")
    functions = []
    for where, scope, costs in tables:
        shape = tuple(domains.cards[v] for v in scope)
        table = named.get(costs) if isinstance(costs, str) else costs
        if table is None or table.shape != shape:
            raise ModelError(f"{where} shares the costs of {str(costs)[:24]!r}, which has none, or others in number")
        functions.append(CostTable(scope, table))
    return functions


def _read_costs(where: str, scope: list[int], fields: dict[str, Item], domains: _Domains) -> FloatArray:
    """All costs of a function, or those that differ from the default one, behind their states."""
    shape, items = tuple(domains.cards[v] for v in scope), fields["costs"]
    if "defaultcost" not in fields:
        costs = _parse_costs(where, items)
        if costs.size != math.prod(shape):
            raise ModelError(f"{where} has {costs.size} costs; its variables have {math.prod(shape)} states")
        return costs.reshape(shape)
    width = len(scope) + 1
    if len(items) % width:
        raise ModelError(f"{where} has a tuple of states and a cost that is not whole")
    table = np.full(shape, _parse_costs(where, [fields["defaultcost"]])[0])
    values = _parse_costs(where, items[len(scope) :: width])
    for k, value in enumerate(values):
        states = items[k * width : (k + 1) * width - 1]
        table[tuple(domains.state(v, item, where) for v, item in zip(scope, states, strict=True))] = value
    return table


def _parse_costs(where: str, items: list[Item]) -> FloatArray:
    """Numbers, or inf for what is forbidden."""
    if wrong := [item for item in items if not isinstance(item, str) or not _COST.fullmatch(item)]:
        raise ModelError(f"{where} has the cost {str(wrong[0])[:24]!r}; a number or inf is needed")
    costs = np.array(items, dtype=np.str_).astype(np.float64)
    if np.isneginf(costs).any():
        raise ModelError(f"{where} has a cost beyond the range of float64")
    return costs
