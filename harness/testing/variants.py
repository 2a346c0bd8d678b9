"""Checks of a method with other settings than those that it is checked with: each value that a type names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any, Literal, get_args, get_origin

from spinbench.api import Method
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation.parameters import hints_of
from spinbench.inference import registry
from spinbench.testing import answers
from spinbench.testing.cases import potts
from spinbench.testing.check import skip
from spinbench.testing.pair import Pair

CHAINS = 512


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


def setting(pair: Pair, name: str, value: Any) -> None:
    """The answers with one setting changed: marginals, log Z and the law that chains keep."""
    try:
        method = replace(pair.method, **{name: value})  # type: ignore[type-var]
        other = Pair(method, pair.backend, pair.precision, min(pair.chains, CHAINS), pair.wish)
        other.bound("dense")
    except SpinbenchError as refusal:
        skip(f"refused: {refusal}")
    try:  # what runs on one backend alone may be known only as late as here
        answers.accuracy(other, "dense", other.precision)
        if pair.backend == "numpy" or registry.support(method.name, pair.backend, pair.wish).tier == "native":
            answers.graph(other, potts)  # of the same program, backends that compile each model say no more
    except UnsupportedError as refusal:
        skip(f"refused: {refusal}")
    if other.sampler:
        answers.stationarity(other, "dense")
