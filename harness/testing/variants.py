"""Checks of a method with other settings than those that it is checked with: values that types name, small numbers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields, replace
from functools import partial
from itertools import combinations, product
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin
from unittest import SkipTest

import numpy as np

from spinbench.api import Method
from spinbench.errors import SpinbenchError, UnsupportedError
from spinbench.foundation.parameters import hints_of
from spinbench.testing import agreement, answers, burn_in, conduct, diagnostics, hidden, kept, shapes, streams
from spinbench.testing.check import OF_PAIRS, CheckError, skip
from spinbench.testing.pair import Pair
from spinbench.testing.trial import SEED, settings_read

CHAINS = 512
SMALL: dict[type, tuple[int | float, ...]] = {int: (0, 1, 2), float: (0.0, 1.0)}
"""Numbers at which loops are empty or have one turn, tables one row and shares are all or nothing."""
HALF: dict[type, tuple[float, ...]] = {float: (0.5,)}
CUT, LARGE = 17, "101 variables"
"""Chains and a model that fill no vectors."""
TOLD, STEPS = 3, 4
"""Chains and steps that tell whether a number counts."""
STATES = ("marginals", "empirical")
"""The setting, and its value, with which built-in samplers report states, and so show their law, as they are."""


def of(method: Method) -> Iterator[tuple[str, Any]]:
    """(setting, value) of all that the types of a method's settings name beside the values it has: those of
    `Literal`, true and false, and None."""
    hints = hints_of(type(method))
    for field in fields(method):  # type: ignore[arg-type]
        own = getattr(method, field.name)
        parts = _parts(hints.get(field.name))
        values = [value for part in parts if get_origin(part) is Literal for value in get_args(part)]
        values += [True, False] * (bool in parts) + [None] * (NoneType in parts)
        yield from ((field.name, value) for value in values if value != own)


def in_pairs(method: Method) -> Iterator[dict[str, Any]]:
    """Few choices of settings, in which each value of `of` stands once at least beside each of every other setting."""
    values: dict[str, list[Any]] = {}
    for name, value in of(method):
        values.setdefault(name, []).append(value)
    left = [{a: x, b: y} for a, b in combinations(values, 2) for x, y in product(values[a], values[b])]
    while left:
        chosen = dict(left[0])
        for name in (name for name in values if name not in chosen):
            new = [sum(pair.items() <= (chosen | {name: v}).items() for pair in left) for v in values[name]]
            chosen[name] = values[name][int(np.argmax(new))]
        left = [pair for pair in left if not pair.items() <= chosen.items()]
        yield chosen


def _parts(hint: Any) -> tuple[Any, ...]:
    """X and Y of `X | Y`; any other hint alone."""
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def numbers(method: Method) -> Iterator[tuple[str, int | float]]:
    """(setting, value) of a sampler's small numbers that it does not refuse; what an iteration ends with, a tolerance
    or a start, may change its answer."""
    hints = hints_of(type(method))
    for field in fields(method) if method.stochastic else ():  # type: ignore[arg-type]
        for value in (value for part in _parts(hints.get(field.name)) for value in SMALL.get(part, ())):
            with suppress(SpinbenchError):
                replace(method, **{field.name: value})  # type: ignore[type-var]
                if value != getattr(method, field.name):
                    yield field.name, value


@OF_PAIRS.add("{}={}", "compiles_once", over=lambda pair: numbers(pair.method))
def number(pair: Pair, name: str, value: float) -> None:
    """The law that chains keep with a number changed, which they may take long to reach; and the answer, if believed,
    where states have no weight. A number that changes nothing is changed beside each setting with which it does."""
    refusal = _numbered(pair, {name: value})
    if not _counts(pair, {}, {name: value}):
        for other, chosen in of(pair.method):
            if _counts(pair, {other: chosen}, {name: value}):
                try:
                    _numbered(pair, {other: chosen, name: value})
                except CheckError as error:
                    raise CheckError(f"with {other}={chosen}: {error}") from None
    if refusal:
        skip(refusal)


def _numbered(pair: Pair, changed: dict[str, Any]) -> str:
    """Why it is refused."""
    named, shown = STATES
    seen = {named: shown} if STATES in of(pair.method) else {}
    try:
        other = _other(pair, seen | changed, pair.chains)
        if other.sampler and other.method.started:
            answers.stationarity(other, "dense")
            shapes.whole(other)
        else:
            answers.accuracy(other, "dense", other.precision)
        answers.graph(_other(pair, changed), "zeros", believed=True)
    except (UnsupportedError, SkipTest) as refusal:
        return str(refusal)
    return ""


@OF_PAIRS.add("settings that count", "compiles_once")
def heeded(pair: Pair) -> None:
    """A kernel heeds each setting that the method's program heeds, and something reads each; what changes nothing by
    itself is named: speed, limits, tolerances, and what counts beside others, are read where they do not count."""
    where = agreement.other(pair) if pair.native else None
    program = Pair(pair.method, where[0], pair.precision, pair.chains, where[1]) if where else None
    idle: dict[str, str] = {}
    for name, values in _many(pair.method).items():
        taken = [{name: value} for value in values if _takes(pair, {name: value})]
        if not taken or any(_counts(pair, {}, changed) for changed in taken):
            continue
        shown = " and ".join(str(changed[name]) for changed in taken)
        idle[name] = f"{name}={getattr(pair.method, name)}, {shown} give the same to the last bit"
        if where and program and any(_counts(program, {}, changed) for changed in taken):
            raise CheckError(f"{idle[name]}; the program on {where[0]} heeds it")
    if unread := set(idle) - _read(pair, set(idle)):
        raise CheckError("; ".join(f"{idle[name]}: nothing reads {name}" for name in sorted(unread)))
    if idle:
        skip(f"by itself none of {', '.join(idle)} changes what {STEPS} steps report: some others, or longer runs, may")


def _read(pair: Pair, names: set[str]) -> set[str]:
    """Those of these settings that something reads once the method is made, in whole runs, with each other setting."""
    seen: set[str] = set()
    for changed in ({}, *({name: value} for name, value in of(pair.method))):
        if names <= seen:
            break
        with suppress(SpinbenchError):
            other = _changed(pair, changed, TOLD)
            with settings_read(other.method, seen):
                _tried(other)
    return names & seen


def _tried(pair: Pair) -> None:
    """Whole runs on a model of two states and on one of several, and what is asked of some runs alone."""
    for name in ("dense", "three states"):
        with suppress(SkipTest, SpinbenchError):
            at = pair.trial(name)
            found = at.whole(TOLD, SEED)
            if callable(found.pairs):
                found.pairs()
            state = at.begin(TOLD, SEED, steps=1)
            at.engine.states(state)
            at.engine.slopes(state)
            at.engine.climb(state, np.array([0.5]), 1)


def _many(method: Method) -> dict[str, list[Any]]:
    """Other values of each setting, by its name: those that its type names, small numbers and numbers about its own."""
    hints = hints_of(type(method))
    found: dict[str, list[Any]] = {}
    for name, value in of(method):
        found.setdefault(name, []).append(value)
    for field in fields(method):  # type: ignore[arg-type]
        own = getattr(method, field.name)
        about = [own + 1, 2 * own] if type(own) in SMALL else []
        small = [
            value for part in _parts(hints.get(field.name)) for value in (*SMALL.get(part, ()), *HALF.get(part, ()))
        ]
        found.setdefault(field.name, []).extend(value for value in (*about, *small) if value != own)
    return {name: list(dict.fromkeys(values)) for name, values in found.items()}


def _takes(pair: Pair, changed: dict[str, Any]) -> bool:
    try:
        _other(pair, changed)
    except SkipTest:
        return False
    return True


def _counts(pair: Pair, others: dict[str, Any], changed: dict[str, Any]) -> bool:
    """Whether a few steps and a look tell a change, beside other settings."""
    try:
        one, two = (_seen(_other(pair, settings)) for settings in (others, others | changed))
    except SkipTest:
        return False
    return one != two


def _seen(pair: Pair) -> list[tuple[str, bytes]]:
    """What a few chains report."""
    bound = pair.trial("dense")
    state = bound.engine.init(SEED, bound.law.bits(TOLD, SEED))
    if pair.method.anytime:
        state = bound.engine.adapt(bound.engine.warm(state, STEPS), True)
    state, seen = bound.engine.advance(state, STEPS if pair.method.anytime else 1)
    return [(name, np.asarray(array).tobytes()) for name, array in (*seen.items(), *bound.engine.look(state).items())]


def _other(pair: Pair, changed: dict[str, Any], chains: int = CHAINS) -> Pair:
    """With other settings, and so many chains at most.

    Raises:
        SkipTest: they are refused.
    """
    try:
        other = _changed(pair, changed, chains)
        other.trial("dense")
    except SpinbenchError as refusal:
        skip(f"refused: {refusal}")
    return other


def _changed(pair: Pair, changed: dict[str, Any], chains: int) -> Pair:
    method = replace(pair.method, **changed)  # type: ignore[type-var]
    return Pair(method, pair.backend, pair.precision, min(pair.chains, chains), pair.wish, pair.device)


@OF_PAIRS.add("{}={}", over=lambda pair: of(pair.method))
def setting(pair: Pair, name: str, value: Any) -> None:
    """The answers with one setting changed: marginals, log Z and the law that chains keep."""
    other = _other(pair, {name: value})
    if other.sampler:
        with suppress(SkipTest):
            streams.keys(other)
    try:  # what runs on one backend alone may be known only as late as here
        answers.accuracy(other, "dense", other.precision)
        if _whole(pair):
            answers.graph(other, "three states")
    except UnsupportedError as refusal:
        skip(f"refused: {refusal}")
    if other.native and not other.sampler and other.method.anytime and (where := agreement.other(other)):
        with suppress(SkipTest):
            agreement.alike(other, *where, ended=agreement.CLOSE)
    if other.sampler:
        answers.stationarity(other, "dense")
        if _whole(pair):
            with suppress(SkipTest):
                diagnostics.calibration(other, "dense", believed=True)
        with suppress(SkipTest):
            kept.two(other)
        if other.native:
            _large(other)


@OF_PAIRS.add(
    "settings in pairs", "sampler", "compiles_once", over=lambda pair: [()] if any(in_pairs(pair.method)) else []
)
def together(pair: Pair) -> None:
    """The answer, and the law that chains keep, with settings changed together: each pair of values, once at least."""
    refusals, count = [], 0
    for changed in in_pairs(pair.method):
        try:
            other = _other(pair, changed)
            answers.accuracy(other, "dense", other.precision)
            answers.stationarity(other, "dense")
        except (UnsupportedError, SkipTest) as refusal:
            refusals.append(str(refusal))
        except CheckError as error:
            raise CheckError(f"with {', '.join(f'{k}={v}' for k, v in changed.items())}: {error}") from None
        count += 1
    if len(refusals) == count:
        skip(refusals[-1])


def _whole(pair: Pair) -> bool:
    """Whether more is tried with each setting: backends that compile programs anew for it say no more than NumPy."""
    return pair.backend == "numpy" or pair.native


def _large(pair: Pair) -> None:
    """More chains and variables than vectors hold, and state between calls: kernels have forms by settings."""
    for body in (
        partial(shapes.lanes, pair, CUT),
        partial(shapes.size, pair, LARGE, believed=True),
        partial(hidden.state, pair),
        partial(conduct.batching, pair),
        partial(burn_in.moves, pair),
    ):
        with suppress(SkipTest):
            body()
