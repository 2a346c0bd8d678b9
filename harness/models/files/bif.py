"""The interchange format for Bayesian networks (`.bif`), version 0.15: blocks of variables and of probabilities.

Names and states may be quoted. Tables are kept as they are written: rows add up to 1 within rounding, and so does Z.
"""

from __future__ import annotations

import math
import re
from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.bif_lexer import Lexer
from spinbench.models.files.format import (
    MAX_ENTRIES,
    FloatArray,
    Format,
    ModelFile,
    as_read_only,
    find_cycle,
    first_unnormalised_row,
)

_BEGIN = re.compile(rb"(?:\s|//[^\n]*\n|/\*(?:[^*]|\*(?!/))*\*/)*(?:network|variable)[\s\"{]")
_KEYWORDS = ("network", "variable", "probability")


class BIF(Format):
    """Each table a factor over the parents and the variable; variables are labelled by their names."""

    suffixes = (".bif",)
    summary = "Bayesian networks"
    limit = 64 * 2**20

    def recognises(self, head: bytes) -> bool:
        beginning = _BEGIN.match(head.removeprefix(b"\xef\xbb\xbf"))
        return beginning is not None and b"{" in head

    def read(self, file: ModelFile) -> FactorGraph:
        text = file.text().decode()
        network = _NetworkParser(Lexer(text, file.name))
        network.read_variables()
        network.lexer = Lexer(text, file.name)
        network.read_probabilities()
        return network.build_factor_graph(file.stem)


@dataclass
class _ConditionalTable:
    """Of a variable given its parents.

    Attributes:
        position: where its block begins, for messages.
        scope: the parents, then the variable.
        values: logarithms, of shape (K of the scope); NaN where nothing is given yet.
    """

    position: int
    scope: tuple[int, ...]
    values: FloatArray
    default: FloatArray | None = None


@dataclass
class _NetworkParser:
    lexer: Lexer
    names: dict[str, int] = field(default_factory=dict)
    states: list[dict[str, int]] = field(default_factory=list)
    tables: dict[int, _ConditionalTable] = field(default_factory=dict)
    entries_left: int = MAX_ENTRIES

    def read_variables(self) -> None:
        """All blocks of variables, which may stand behind those of probabilities.

        Raises:
            ModelError: with line and word.
        """
        while (token := self.lexer.next_token()) is not None:
            if token == "variable":
                self._read_variable()
            elif token in ("network", "probability"):
                self.lexer.skip_block()
            else:
                raise self.lexer.error(f"one of {', '.join(_KEYWORDS)} is needed")

    def read_probabilities(self) -> None:
        """All blocks of probabilities, once the variables are known.

        Raises:
            ModelError: with line and word.
        """
        while (token := self.lexer.next_token()) is not None:
            if token == "probability":
                self._read_probability()
            else:
                self.lexer.skip_block()

    def _read_variable(self) -> None:
        name = self.lexer.require_token("a variable's name")
        if name in self.names:
            raise self.lexer.error("this variable stands here a second time")
        self.lexer.expect("{")
        states: dict[str, int] = {}
        while (token := self.lexer.require_token("type, property or }")) != "}":
            if token == "property":
                self.lexer.skip_past(";")
            elif token == "type" and not states:
                states = self._read_states()
            else:
                raise self.lexer.error("type, property or } is needed")
        if not states:
            raise self.lexer.error(f"variable {name!r} has no type")
        self.names[name] = len(self.names)
        self.states.append(states)

    def _read_states(self) -> dict[str, int]:
        if self.lexer.require_token("discrete") != "discrete":
            raise self.lexer.error("only discrete variables are read")
        self.lexer.expect("[")
        count = self.lexer.parse_integer("a number of states")
        self.lexer.expect("]")
        self.lexer.expect("{")
        names = self.lexer.read_list("}", count, "a state or }")
        states = {name: k for k, name in enumerate(names)}
        if len(names) != count:
            raise self.lexer.error(f"{count} states are claimed, but there are {len(names)}")
        if len(states) != count:
            raise self.lexer.error(f"state {next(name for name in names if names.count(name) > 1)!r} stands here twice")
        self.lexer.expect(";")
        return states

    def _read_probability(self) -> None:
        position = self.lexer.position
        self.lexer.expect("(")
        scope = []
        while (name := self.lexer.require_token("a variable's name")) != ")":
            if name not in self.names:
                raise self.lexer.error("no variable of this name stands before")
            if self.names[name] in scope:
                raise self.lexer.error("this variable stands here a second time")
            scope.append(self.names[name])
        if not scope or len(scope) > MAX_ORDER:
            raise self.lexer.error(f"1 to {MAX_ORDER} variables are needed, but there are {len(scope)}")
        if scope[0] in self.tables:
            raise self.lexer.error("this variable has probabilities already")
        table = self._allocate_table(position, scope)
        self.lexer.expect("{")
        while (token := self.lexer.require_token("table, default, ( or }")) != "}":
            if token == "property":
                self.lexer.skip_past(";")
            else:
                self._read_entries(token, table)
        self._complete_table(table)
        self.tables[scope[0]] = table

    def _allocate_table(self, position: int, scope: list[int]) -> _ConditionalTable:
        """The variable comes first in the file and last in the table."""
        table_scope = (*scope[1:], scope[0])
        shape = tuple(len(self.states[v]) for v in table_scope)
        if (size := math.prod(shape)) > self.entries_left:
            raise self.lexer.error(
                f"the table has {size} entries, more than the {self.entries_left} left of {MAX_ENTRIES} in all"
            )
        self.entries_left -= size
        return _ConditionalTable(position, table_scope, np.full(shape, np.nan))

    def _read_entries(self, token: str, table: _ConditionalTable) -> None:
        values = table.values
        child = values.shape[-1]
        if token == "table":
            numbers = self.lexer.parse_log_probabilities(values.size).reshape(child, *values.shape[:-1])
            # In the file the last parent varies fastest.
            values[...] = np.moveaxis(numbers, 0, -1)
        elif token == "default":
            table.default = self.lexer.parse_log_probabilities(child)
        elif token == "(":
            parents = table.scope[:-1]
            names = self.lexer.read_list(")", len(parents), "a state or )")
            if len(names) != len(parents):
                raise self.lexer.error(f"{len(parents)} states of parents are needed, but there are {len(names)}")
            for v, name in zip(parents, names, strict=True):
                if name not in self.states[v]:
                    raise self.lexer.error(f"variable {list(self.names)[v]!r} has no state {name!r}")
            row = [self.states[v][name] for v, name in zip(parents, names, strict=True)]
            if not np.isnan(values[tuple(row)]).any():
                raise self.lexer.error("this row stands here a second time")
            values[tuple(row)] = self.lexer.parse_log_probabilities(child)
        else:
            raise self.lexer.error("table, default, property, ( or } is needed")

    def _complete_table(self, table: _ConditionalTable) -> None:
        missing = np.isnan(table.values[..., 0])
        if missing.any():
            row = ", ".join(
                list(self.states[v])[k] for v, k in zip(table.scope, np.argwhere(missing)[0].tolist(), strict=False)
            )
            if table.default is None:
                raise self.lexer.error(f"there is neither a row for ({row}) nor a default")
            table.values[missing] = table.default
        if (wrong := first_unnormalised_row(np.exp(table.values))) is not None:
            if not table.scope[1:]:
                raise self.lexer.error("the probabilities do not add up to 1")
            states = np.unravel_index(wrong, table.values.shape[:-1])
            row = ", ".join(list(self.states[v])[int(k)] for v, k in zip(table.scope, states, strict=False))
            raise self.lexer.error(f"the probabilities given ({row}) do not add up to 1")

    def build_factor_graph(self, name: str) -> FactorGraph:
        """
        Raises:
            ModelError: no variables, one without probabilities, or a cycle.
        """
        labels = list(self.names)
        if not labels:
            raise self.lexer.error("there are no variables")
        if lacking := [label for label, v in self.names.items() if v not in self.tables]:
            raise self.lexer.error(f"variable {lacking[0]!r} has no probabilities")
        tables = [self.tables[v] for v in range(len(labels))]
        if loop := find_cycle([table.scope[:-1] for table in tables]):
            raise self.lexer.error(f"the variables {', '.join(labels[v] for v in loop[:-1])} are in a cycle")
        factors = tuple(Factor(table.scope, as_read_only(table.values)) for table in tables)
        state_names: dict[Hashable, tuple[str, ...]] = dict(zip(labels, map(tuple, self.states), strict=True))
        return FactorGraph(
            tuple(map(len, self.states)), factors, name=name, labels=tuple(labels), state_names=state_names
        )
