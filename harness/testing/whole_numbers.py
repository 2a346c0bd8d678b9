"""Checks of whole numbers among a method's settings far from its own: those that wrap around, or stop to count."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import fields
from itertools import pairwise
from typing import Any
from unittest import SkipTest

from spinbench.api import Method
from spinbench.errors import SpinbenchError
from spinbench.foundation.parameters import hints_of
from spinbench.testing import agreement
from spinbench.testing.check import PAIR_CHECKS, require, skip
from spinbench.testing.pair import Pair
from spinbench.testing.variants import alternative_values, output_bytes, pair_with_settings, union_members

# 256 more than a small number is the same modulo 256 and all that divides it.
SMALL, PERIOD = (3, 5), 256
# Neighbours. A number that counts as long as there are variables or states to count has stopped at the first ones; one
# that counts there and not at the last ones is cut off by something else.
NEAR, FAR = (40, 41), (300, 301)
VALUES = sorted({2, *SMALL, *(value + PERIOD for value in SMALL), *NEAR, *FAR})
# CPU seconds of a few steps after which no larger number is tried: the next may take eight times as long.
MAX_SECONDS = 0.5


def whole_numbers(method: Method) -> Iterator[str]:
    """Settings that are whole numbers."""
    hints = hints_of(type(method))
    return (field.name for field in fields(method) if int in union_members(hints.get(field.name)))  # type: ignore[arg-type]


@PAIR_CHECKS.add("{} up to 301", "compiles_once", over=lambda pair: whole_numbers(pair.method))
def check_whole_number(pair: Pair, name: str) -> None:
    """A whole number is neither taken modulo another one nor cut off, and a kernel heeds all that its program does."""
    program = agreement.find_other_implementation(pair) if pair.native else None
    reference = Pair(pair.method, program[0], pair.precision, pair.chains, program[1]) if program else pair
    for others in ({}, *({other: value} for other, value in alternative_values(pair.method) if other != name)):
        expected = _outputs(reference, others, name)
        if len({*expected.values()}) > 1:
            break
    else:
        skip(f"{name} changes nothing in a few steps, is refused, or takes more than {MAX_SECONDS:g} s")
    outputs = _outputs(pair, others, name) if program else expected
    large = [value + PERIOD for value in SMALL]
    if outputs.keys() >= {*SMALL, *large} and outputs[SMALL[0]] != outputs[SMALL[1]]:
        require(
            any(outputs[low] != outputs[high] for low, high in zip(SMALL, large, strict=True)),
            f"{name}={large[0]} gives what {name}={SMALL[0]} does: it is taken modulo {PERIOD} or a divisor",
        )
    # Draws go on to change; other numbers of iterations may have converged between.
    draws = pair.method.kind in ("sampler", "draws")
    if draws and outputs.keys() >= {*NEAR, *FAR} and outputs[NEAR[0]] != outputs[NEAR[1]]:
        require(
            outputs[FAR[0]] != outputs[FAR[1]],
            f"{name} counts at {NEAR[0]} and no more at {FAR[0]}: it is cut off, and not refused",
        )
    for low, high in pairwise(VALUES):
        if {low, high} <= outputs.keys() & expected.keys() and expected[low] != expected[high]:
            require(
                outputs[low] != outputs[high],
                f"{name}={low} and {name}={high} are the same to the kernel, and not to the program",
            )


def _outputs(pair: Pair, others: dict[str, Any], name: str) -> dict[int, tuple[tuple[str, bytes], ...]]:
    """What a few steps of a few chains report, by the number; without those that are refused, or take long."""
    outputs = {}
    for value in VALUES:
        since = time.process_time()
        try:
            outputs[value] = tuple(output_bytes(pair_with_settings(pair, others | {name: value})))
        except (SkipTest, SpinbenchError):
            continue
        if time.process_time() - since > MAX_SECONDS:
            break
    return outputs
