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
from spinbench.testing import agreement, answers, behaviour, diagnostics, shapes, state_leaks, stored_states, streams
from spinbench.testing.check import PAIR_CHECKS, CheckError, skip
from spinbench.testing.pair import Pair
from spinbench.testing.stationarity import check_stationarity
from spinbench.testing.trial import SEED, record_settings_read, step_count

CHAINS = 512
# Values at which loops are empty or have one iteration, tables have one row, and shares are 0, a half or 1.
SMALL: dict[type, tuple[int | float, ...]] = {int: (0, 1, 2), float: (0.0, 0.5, 1.0)}
# Chains and a model whose sizes fill no vectors.
ODD_CHAINS, LARGE_MODEL = 17, "101 variables"
# Chains and steps that show whether a number has an effect.
FEW_CHAINS, STEPS = 3, 4
# Setting and value with which built-in samplers report states themselves, and thus their law.
STATES = ("marginals", "empirical")


def alternative_values(method: Method) -> Iterator[tuple[str, object]]:
    """(setting, value) of all that the types of a method's settings name beside the values it has: those of
    `Literal`, true and false, and None."""
    hints = hints_of(type(method))
    for field in fields(method):  # type: ignore[arg-type]
        current = getattr(method, field.name)
        parts = union_members(hints.get(field.name))
        values = [value for part in parts if get_origin(part) is Literal for value in get_args(part)]
        if bool in parts:
            values += [True, False]
        if NoneType in parts:
            values.append(None)
        yield from ((field.name, value) for value in values if value != current)


def pairwise_combinations(method: Method) -> Iterator[dict[str, Any]]:
    """Few choices of settings: each value of `alternative_values` stands at least once beside each of every other
    setting."""
    values: dict[str, list[object]] = {}
    for name, value in alternative_values(method):
        values.setdefault(name, []).append(value)
    left = [{a: x, b: y} for a, b in combinations(values, 2) for x, y in product(values[a], values[b])]
    while left:
        chosen = dict(left[0])
        for name in (name for name in values if name not in chosen):
            new = [sum(pair.items() <= (chosen | {name: v}).items() for pair in left) for v in values[name]]
            chosen[name] = values[name][int(np.argmax(new))]
        left = [pair for pair in left if not pair.items() <= chosen.items()]
        yield chosen


def union_members(hint: object) -> tuple[Any, ...]:
    """X and Y of `X | Y`; any other hint alone."""
    if get_origin(hint) in (Union, UnionType):
        return get_args(hint)
    return (hint,)


def small_numbers(method: Method) -> Iterator[tuple[str, int | float]]:
    """(setting, value) of a sampler's small numbers that it does not refuse; what an iteration ends with, a tolerance
    or a start, may change its answer."""
    hints = hints_of(type(method))
    if method.kind == "iteration":
        return
    for field in fields(method):  # type: ignore[arg-type]
        for value in (value for part in union_members(hints.get(field.name)) for value in SMALL.get(part, ())):
            with suppress(SpinbenchError):
                replace(method, **{field.name: value})  # type: ignore[type-var]
                if value != getattr(method, field.name):
                    yield field.name, value


@PAIR_CHECKS.add("{}={}", "compiles_once", over=lambda pair: small_numbers(pair.method))
def check_small_number(pair: Pair, name: str, value: float) -> None:
    """The law that chains keep with a number changed, which they may take long to reach; and the answer, if believed,
    where states have no weight. A number that changes nothing is changed beside each setting with which it does."""
    refusal = _check_law_with(pair, {name: value})
    if not _changes_output(pair, {}, {name: value}):
        for other, chosen in alternative_values(pair.method):
            if _changes_output(pair, {other: chosen}, {name: value}):
                try:
                    _check_law_with(pair, {other: chosen, name: value})
                except CheckError as error:
                    raise CheckError(f"with {other}={chosen}: {error}") from None
    if refusal:
        skip(refusal)


def _check_law_with(pair: Pair, changed: dict[str, Any]) -> str:
    """Why it is refused."""
    setting_name, setting_value = STATES
    reporting = {}
    if STATES in alternative_values(pair.method):
        reporting[setting_name] = setting_value
    try:
        other = pair_with_settings(pair, reporting | changed, pair.chains)
        if other.sampler and other.method.kind != "draws":
            check_stationarity(other, "dense")
            shapes.check_log_z_of_whole_run(other)
        else:
            answers.check_accuracy(other, "dense", other.precision)
        answers.check_factor_graph(pair_with_settings(pair, changed), "zeros", only_trusted=True)
    except (UnsupportedError, SkipTest) as refusal:
        return str(refusal)
    return ""


@PAIR_CHECKS.add("settings that count", "compiles_once")
def check_settings_matter(pair: Pair) -> None:
    """A kernel heeds each setting that the method's program heeds, and something reads each; what changes nothing by
    itself is named: speed, limits, tolerances, and what counts beside others, are read where they do not count."""
    where = agreement.find_other_implementation(pair) if pair.native else None
    program = None
    if where:
        program = Pair(pair.method, where[0], pair.precision, pair.chains, where[1])
    idle: dict[str, str] = {}
    for name, values in _alternatives_by_setting(pair.method).items():
        accepted_changes = [{name: value} for value in values if _accepts_settings(pair, {name: value})]
        if not accepted_changes or any(_changes_output(pair, {}, changed) for changed in accepted_changes):
            continue
        values_text = " and ".join(str(changed[name]) for changed in accepted_changes)
        idle[name] = f"{name}={getattr(pair.method, name)}, {values_text} give the same to the last bit"
        if where and program and any(_changes_output(program, {}, changed) for changed in accepted_changes):
            raise CheckError(f"{idle[name]}; the program on {where[0]} heeds it")
    if unread := set(idle) - _settings_read_in_runs(pair, set(idle)):
        raise CheckError("; ".join(f"{idle[name]}: nothing reads {name}" for name in sorted(unread)))
    if idle:
        skip(f"by itself none of {', '.join(idle)} changes what {STEPS} steps report: some others, or longer runs, may")


def _settings_read_in_runs(pair: Pair, names: set[str]) -> set[str]:
    """Those of these settings that something reads once the method is made, in whole runs, with each other setting."""
    read_settings: set[str] = set()
    for changed in ({}, *({name: value} for name, value in alternative_values(pair.method))):
        if names <= read_settings:
            break
        with suppress(SpinbenchError):
            other = _replace_settings(pair, changed, FEW_CHAINS)
            with record_settings_read(other.method, read_settings):
                _run_all_parts(other)
    return names & read_settings


def _run_all_parts(pair: Pair) -> None:
    """Whole runs on a model of two states and on one of several, and what is asked of some runs alone."""
    for name in ("dense", "three states"):
        with suppress(SkipTest, SpinbenchError):
            at = pair.trial(name)
            estimate = at.estimate_whole_run(FEW_CHAINS, SEED)
            if callable(estimate.pairs):
                estimate.pairs()
            state = at.start_chains(FEW_CHAINS, SEED, steps=1)
            at.engine.states(state)
            at.engine.slope(state)
            at.engine.temper(state, np.array([0.5]), 1)


def _alternatives_by_setting(method: Method) -> dict[str, list[object]]:
    """Other values of each setting, by its name: those that its type names, small numbers and numbers about its own."""
    hints = hints_of(type(method))
    values_by_setting: dict[str, list[object]] = {}
    for name, value in alternative_values(method):
        values_by_setting.setdefault(name, []).append(value)
    for field in fields(method):  # type: ignore[arg-type]
        current = getattr(method, field.name)
        near_current = []
        if type(current) in SMALL:
            near_current = [current + 1, 2 * current]
        small = [value for part in union_members(hints.get(field.name)) for value in SMALL.get(part, ())]
        values_by_setting.setdefault(field.name, []).extend(
            value for value in (*near_current, *small) if value != current
        )
    return {name: list(dict.fromkeys(values)) for name, values in values_by_setting.items()}


def _accepts_settings(pair: Pair, changed: dict[str, Any]) -> bool:
    try:
        pair_with_settings(pair, changed)
    except SkipTest:
        return False
    return True


def _changes_output(pair: Pair, others: dict[str, Any], changed: dict[str, Any]) -> bool:
    """Whether a few steps and a look tell a change, beside other settings."""
    try:
        before, after = (output_bytes(pair_with_settings(pair, settings)) for settings in (others, others | changed))
    except SkipTest:
        return False
    return before != after


def output_bytes(pair: Pair) -> list[tuple[str, bytes]]:
    """What a few chains report."""
    bound = pair.trial("dense")
    state = bound.engine.init(SEED, bound.law.uniform_states(FEW_CHAINS, SEED))
    if pair.anytime:
        state = bound.engine.adapt(bound.engine.warm(state, STEPS), True)
    state, statistics = bound.engine.advance(state, step_count(pair.method, STEPS))
    return [
        (name, np.asarray(array).tobytes()) for name, array in (*statistics.items(), *bound.engine.look(state).items())
    ]


def pair_with_settings(pair: Pair, changed: dict[str, Any], chains: int = CHAINS) -> Pair:
    """With other settings, and so many chains at most.

    Raises:
        SkipTest: they are refused.
    """
    try:
        other = _replace_settings(pair, changed, chains)
        other.trial("dense")
    except SpinbenchError as refusal:
        skip(f"refused: {refusal}")
    return other


def _replace_settings(pair: Pair, changed: dict[str, Any], chains: int) -> Pair:
    method = replace(pair.method, **changed)  # type: ignore[type-var]
    return Pair(method, pair.backend, pair.precision, min(pair.chains, chains), pair.wish, pair.device)


@PAIR_CHECKS.add("{}={}", over=lambda pair: alternative_values(pair.method))
def check_answers_with_setting(pair: Pair, name: str, value: object) -> None:
    """The answers with one setting changed: marginals, log Z and the law that chains keep."""
    other = pair_with_settings(pair, {name: value})
    if other.sampler:
        with suppress(SkipTest):
            streams.check_keys_used_once(other)
    # A plugin may refuse a value only when it runs on a backend.
    try:
        answers.check_accuracy(other, "dense", other.precision)
        if _checks_each_setting(pair):
            answers.check_factor_graph(other, "three states")
    except UnsupportedError as refusal:
        skip(f"refused: {refusal}")
    if other.native and not other.sampler and other.anytime and (where := agreement.find_other_implementation(other)):
        with suppress(SkipTest):
            agreement.check_same_answers(other, *where, tolerance=agreement.MAX_DIFFERENCE)
    if other.sampler:
        check_stationarity(other, "dense")
        if _checks_each_setting(pair):
            with suppress(SkipTest):
                diagnostics.check_calibration(other, "dense", only_trusted=True)
        with suppress(SkipTest):
            stored_states.check_stored_binary_states(other)
        if other.native:
            _check_large_shapes(other)


@PAIR_CHECKS.add(
    "settings in pairs",
    "sampler",
    "compiles_once",
    over=lambda pair: [()] if any(pairwise_combinations(pair.method)) else [],
)
def check_settings_in_pairs(pair: Pair) -> None:
    """The answer, and the law that chains keep, with settings changed together: each pair of values, once at least."""
    refusals, count = [], 0
    for changed in pairwise_combinations(pair.method):
        try:
            other = pair_with_settings(pair, changed)
            answers.check_accuracy(other, "dense", other.precision)
            check_stationarity(other, "dense")
        except (UnsupportedError, SkipTest) as refusal:
            refusals.append(str(refusal))
        except CheckError as error:
            raise CheckError(f"with {', '.join(f'{k}={v}' for k, v in changed.items())}: {error}") from None
        count += 1
    if len(refusals) == count:
        skip(refusals[-1])


def _checks_each_setting(pair: Pair) -> bool:
    """Whether more is tried with each setting: backends that compile programs anew for it say no more than NumPy."""
    return pair.backend == "numpy" or pair.native


def _check_large_shapes(pair: Pair) -> None:
    """More chains and variables than vectors hold, and state between calls: kernels have forms by settings."""
    for body in (
        partial(shapes.check_chain_count, pair, ODD_CHAINS),
        partial(shapes.check_size, pair, LARGE_MODEL, only_trusted=True),
        partial(state_leaks.check_hidden_state, pair),
        partial(behaviour.check_batching, pair),
        partial(stored_states.check_burn_in_moves_chains, pair),
    ):
        with suppress(SkipTest):
            body()
