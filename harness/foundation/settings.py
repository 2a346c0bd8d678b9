"""Checks of a method's settings, for its `__post_init__`.

What is out of range, or too large for any machine, is refused in one sentence before anything is planned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from spinbench.errors import SpinbenchError

if TYPE_CHECKING:
    from spinbench.api.method import Method

# Largest value of a setting that is a count: more is a typing error.
LARGEST = 2**20


def check_whole(method: Method, setting: str, least: int, largest: int = LARGEST, *, zero: bool = False) -> None:
    """Raises SpinbenchError unless the setting is an integer from `least` to `largest`, or 0 where `zero` allows it."""
    value = getattr(method, setting)
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not (least <= value <= largest or (zero and value == 0)):
        needed = f"an integer from {least} to {largest}"
        if zero:
            needed = f"0, or an integer from {least} to {largest},"
        raise SpinbenchError(f"{method.name}: {setting}={value!r} was given; {needed} is needed")


def check_setting(method: Method, setting: str, allowed: bool, needed: str) -> None:
    """Raises SpinbenchError, which says what is needed, unless the setting is allowed."""
    if not allowed:
        raise SpinbenchError(f"{method.name}: {setting}={getattr(method, setting)!r} was given; {needed} is needed")


def is_int_at_least(number: object, least: int) -> bool:
    """Whether it is an integer from `least` on."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= least


def check_choice(method: Method, setting: str, choices: object) -> None:
    """Raises SpinbenchError unless the setting is one of a Literal's texts."""
    value, allowed = getattr(method, setting), get_args(choices)
    if value not in allowed:
        raise SpinbenchError(f"{method.name}: {setting}={value!r} was given; {', '.join(allowed)} are allowed")
