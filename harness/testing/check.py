"""A check: a named test of one backend, or of one method on one backend."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn
from unittest import SkipTest

from spinbench.errors import ModelError, UnsupportedError

REFUSALS = (UnsupportedError, ModelError)
"""What a plugin raises instead of giving a wrong answer."""


class CheckError(AssertionError):
    """What a check found wrong, in one sentence."""


@dataclass(frozen=True)
class Check:
    """Call it to run it. It returns nothing, raises `unittest.SkipTest` with the reason where it does not apply, and
    raises anything else where the plugin is at fault (`CheckError` where the suite itself found it).

    Attributes:
        subject: "BACKEND" or "METHOD.BACKEND".
        name: what is checked.
        body: the check itself.
    """

    subject: str
    name: str
    body: Callable[[], None]

    def __call__(self) -> None:
        self.body()

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"


def require(condition: object, message: str) -> None:
    """Raises CheckError with `message` unless `condition` holds."""
    if not condition:
        raise CheckError(message)


def refuses(call: Callable[[], object], what: str) -> str:
    """The message with which `call` refuses; `what` says what was asked for.

    Raises:
        CheckError: it did not refuse with an UnsupportedError (or ModelError) of one sentence.
    """
    try:
        call()
    except REFUSALS as error:
        text = str(error)
        require(text.strip() and "\n" not in text, f"{what} is refused with {text!r}; one sentence is needed")
        return text
    except Exception as error:
        raise CheckError(f"{what} raises {type(error).__name__}: {error}; an UnsupportedError is needed") from error
    raise CheckError(f"{what} is accepted; an UnsupportedError is needed")


def skip(reason: str) -> NoReturn:
    """The check does not apply."""
    raise SkipTest(reason)
