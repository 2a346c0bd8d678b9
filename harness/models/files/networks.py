"""Bayesian networks from tables whose variables and states have names, whatever file they are read from."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from spinbench.errors import ModelError
from spinbench.models.checks import MAX_ORDER
from spinbench.models.factor_graph import Factor, FactorGraph
from spinbench.models.files.format import ModelFile, as_read_only, find_cycle, first_unnormalised_row
from spinbench.models.files.text import Tokens, parse_log_weights
from spinbench.models.names import check_state_names

# Largest number of characters of a name in a message.
_MAX_SHOWN = 40


class NamedTable(NamedTuple):
    """Of a variable given its parents: probabilities as text, the first parent slowest, the variable fastest."""

    variable: str
    parents: Sequence[str]
    numbers: str


def build_network(file: ModelFile, states: Mapping[str, tuple[str, ...]], tables: Iterable[NamedTable]) -> FactorGraph:
    """The product of one table for each variable.

    Raises:
        ModelError: names that are lacking or stand twice, a table of another size, a row that is no distribution, or
            variables in a cycle.
    """
    index = {name: v for v, name in enumerate(states)}
    parents: dict[int, list[int]] = {}
    factors = []
    for table in tables:
        where, names = f"{file.name}, table of {_shorten(table.variable)}", (*table.parents, table.variable)
        if unknown := [name for name in names if name not in index]:
            raise ModelError(f"{where}: no variable is named {_shorten(unknown[0])}")
        scope = tuple(index[name] for name in names)
        if len(set(scope)) < len(scope) or len(scope) > MAX_ORDER or scope[-1] in parents:
            raise ModelError(f"{where}: a variable stands there twice, has two tables or more than 39 parents")
        tokens = Tokens(table.numbers.encode(), where)
        shape = tuple(len(states[name]) for name in names)
        if tokens.size != math.prod(shape):
            raise ModelError(
                f"{where}: there are {tokens.size} numbers, and not one for each state of {len(scope)} variables"
            )
        logs = parse_log_weights(tokens, slice(0, tokens.size), ()).reshape(shape)
        if first_unnormalised_row(np.exp(logs)) is not None:
            raise ModelError(f"{where}: the probabilities of a row do not add up to 1")
        parents[scope[-1]] = list(scope[:-1])
        factors.append(Factor(scope, as_read_only(logs)))
    if not states:
        raise ModelError(f"{file.name}: there are no variables")
    if lacking := [name for name, v in index.items() if v not in parents]:
        raise ModelError(f"{file.name}: variable {_shorten(lacking[0])} has no table")
    if loop := find_cycle([parents[v] for v in range(len(index))]):
        circle = [_shorten(list(index)[v]) for v in loop[:-1]]
        raise ModelError(f"{file.name}: the variables {', '.join(circle[:4])} are in a cycle of {len(circle)}")
    cards = tuple(map(len, states.values()))
    names_by_label: dict[Hashable, tuple[str, ...]] = dict(states.items())
    state_names = check_state_names(file.name, names_by_label, tuple(states), cards)
    return FactorGraph(cards, tuple(factors), name=file.stem, labels=tuple(states), state_names=state_names)


def add_variable(file: ModelFile, states: dict[str, tuple[str, ...]], name: str, names: Iterable[str]) -> None:
    """Enter a variable and the names of its states.

    Raises:
        ModelError: it has no name, or one that stands there, or no states.
    """
    names = tuple(names)
    if not name or name in states or not names:
        raise ModelError(f"{file.name}: variable {_shorten(name)} stands there twice, or has no name or no states")
    states[name] = names


def _shorten(name: str) -> str:
    return repr(name[:_MAX_SHOWN])
