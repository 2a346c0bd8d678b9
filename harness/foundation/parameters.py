"""Parameters against the type hints of what takes them, and settings of methods against their ranges.

What is wrong, or too large for any machine, is refused in one sentence before anything is planned.
"""

from __future__ import annotations

import ast
import inspect
import numbers
from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from spinbench.errors import ModelError, SpinbenchError

if TYPE_CHECKING:
    from spinbench.api.method import Method

P = ParamSpec("P")
R = TypeVar("R")

IN_WORDS = {int: "an integer", float: "a number", bool: "true or false", str: "a text", NoneType: "none"}
# Largest value of a setting that is a count: more is a typing error.
LARGEST = 2**20


def convert(value: object, hint: object) -> Any:
    """`value` as a parameter of this type: an integer is a number, and a whole number an integer.

    Which of its texts a `Literal` is, its taker checks; other types than numbers, texts and sequences of them pass.

    Raises:
        TypeError: "3.5 was given; an integer is needed".
    """
    options = _options(hint)
    for option in options:
        if (converted := _convert_to(value, option)) is not NotImplemented:
            return converted
    needed = " or ".join(dict.fromkeys(map(_in_words, options)))
    raise TypeError(f"{value!r} was given; {needed} is needed")


def assignments(texts: Sequence[str], option: str) -> dict[str, Any]:
    """Of "NAME=VALUE": VALUE as Python writes it, else the text itself.

    Args:
        texts: such texts.
        option: of the command line, that they followed.

    Raises:
        SpinbenchError: a text without "=", or two of one name.
    """
    values: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals:
            raise SpinbenchError(f"{option} {text} was given; NAME=VALUE is needed")
        if name in values:
            raise SpinbenchError(f"{option} {text} was given, and {name} before; once is needed")
        try:
            values[name] = ast.literal_eval(value)
        except (ValueError, SyntaxError):
            values[name] = value
    return values


@cache
def hints_of(taker: Callable[..., object]) -> Mapping[str, object]:
    """Type hints by parameter; none at all where some of them cannot be looked up."""
    try:
        return get_type_hints(taker)
    except NameError:
        return {}


def family(function: Callable[P, R]) -> Callable[P, R]:
    """A model family whose arguments are converted to the types of its signature.

    Raises:
        ModelError: an argument does not fit.
    """

    @wraps(function)
    def build(*args: P.args, **kwargs: P.kwargs) -> R:
        bound = inspect.signature(function).bind(*args, **kwargs)
        for key, value in bound.arguments.items():
            try:
                bound.arguments[key] = convert(value, hints_of(function)[key])
            except TypeError as error:
                raise ModelError(f"model {function.__name__!r}: {key} = {error}") from error
        return function(*bound.args, **bound.kwargs)

    return build


def _options(hint: object) -> tuple[object, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _convert_to(value: Any, hint: object) -> object:
    """As this type; NotImplemented where it does not fit."""
    number = isinstance(value, numbers.Real) and not isinstance(value, bool | np.bool_)
    if hint is float and number:
        return float(value)
    if hint is int and number and (isinstance(value, numbers.Integral) or float(value).is_integer()):
        return int(value)
    if hint in (float, int) or (get_origin(hint) is Sequence and not _is_sequence_of(value, *get_args(hint))):
        return NotImplemented
    kind = str if get_origin(hint) is Literal else hint
    if kind not in IN_WORDS or isinstance(value, kind):
        return value
    return NotImplemented


def _is_sequence_of(value: object, item: object) -> bool:
    if isinstance(value, np.ndarray):
        return True
    return (
        isinstance(value, Sequence)
        and not isinstance(value, str)
        and all(_convert_to(v, item) is not NotImplemented for v in value)
    )


def _in_words(hint: Any) -> str:
    if get_origin(hint) is Sequence:
        return f"a list (each item {_in_words(*get_args(hint))})"
    if get_origin(hint) is Literal:
        return " or ".join(map(str, get_args(hint)))
    return IN_WORDS.get(hint, "another value")


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
        instead = getattr(method, "removed", {}).get(f"{setting}={value}", f"{', '.join(allowed)} are allowed")
        raise SpinbenchError(f"{method.name}: {setting}={value!r} was given; {instead}")
