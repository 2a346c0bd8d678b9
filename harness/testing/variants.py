"""Checks of a method with other settings than those that it is checked with: values that types name, small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin

from spinbench.api import Method
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation.parameters import hints_of
from spinbench.inference import registry
from spinbench.models import FactorGraph
from spinbench.testing import answers
from spinbench.testing.cases import potts
from spinbench.testing.check import skip
from spinbench.testing.known import known
from spinbench.testing.pair import Pair

CHAINS = 512
SMALL: dict[type, tuple[int | float, ...]] = {int: (0, 1, 2), float: (0.0, 1.0)}
"""Numbers at which loops are empty or have one turn, tables one row and shares are all or nothing."""
STATES = ("marginals", "empirical")
"""The setting, and its value, with which built-in samplers report states, and so show their law, as they are."""
ZEROS = "zeros"


def of(method: Method) -> Iterator[tuple[str, Any]]:
    """(setting, value) of all that the types of a method's settings name beside the values it has: those of
    `Literal`, true and false."""
    hints = hints_of(type(method))
    for field in fields(method):  # type: ignore[arg-type]
        hint, own = hints.get(field.name), getattr(method, field.name)
        if hint is bool:
            yield field.name, not own
        elif get_origin(hint) is Literal:
            yield from ((field.name, value) for value in get_args(hint) if value != own)


def numbers(method: Method) -> Iterator[tuple[str, int | float]]:
    """(setting, value) of a sampler's small numbers that it does not refuse; what an iteration ends with, a tolerance
    or a start, may change its answer."""
    hints = hints_of(type(method))
    for field in fields(method) if method.stochastic else ():  # type: ignore[arg-type]
        for value in SMALL.get(hints.get(field.name, object), ()):
            with suppress(SpinbenchError):
                replace(method, **{field.name: value})  # type: ignore[type-var]
                if value != getattr(method, field.name):
                    yield field.name, value


def number(pair: Pair, name: str, value: float) -> None:
    """The law that chains keep with a number changed, which they may take long to reach; and the answer, if believed,
    where states have no weight."""
    named, shown = STATES
    seen = {named: shown} if STATES in of(pair.method) else {}
    other = _other(pair, {name: value, **seen}, pair.chains)
    try:
        if other.sampler and other.method.started:
            answers.stationarity(other, "dense")
        else:
            answers.accuracy(other, "dense", other.precision)
        model = known(ZEROS).model
        assert isinstance(model, FactorGraph)
        answers.graph(_other(pair, {name: value}), lambda: model, believed=True)
    except UnsupportedError as refusal:
        skip(f"refused: {refusal}")


def _other(pair: Pair, changed: dict[str, Any], chains: int = CHAINS) -> Pair:
    """With other settings, and so many chains at most.

    Raises:
        SkipTest: they are refused.
    """
    try:
        method = replace(pair.method, **changed)  # type: ignore[type-var]
        other = Pair(method, pair.backend, pair.precision, min(pair.chains, chains), pair.wish)
        other.bound("dense")
    except SpinbenchError as refusal:
        skip(f"refused: {refusal}")
    return other


def setting(pair: Pair, name: str, value: Any) -> None:
    """The answers with one setting changed: marginals, log Z and the law that chains keep."""
    other = _other(pair, {name: value})
    try:  # what runs on one backend alone may be known only as late as here
        answers.accuracy(other, "dense", other.precision)
        if pair.backend == "numpy" or registry.support(pair.method.name, pair.backend, pair.wish).tier == "native":
            answers.graph(other, potts)  # of the same program, backends that compile each model say no more
    except UnsupportedError as refusal:
        skip(f"refused: {refusal}")
    if other.sampler:
        answers.stationarity(other, "dense")
