"""A check: a named test of one backend, or of one method on one backend; and how functions are made checks."""

from __future__ import annotations

import math
import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NoReturn, TypeVar
from unittest import SkipTest

import numpy as np

from spinbench.errors import ModelError, UnsupportedError

Body = TypeVar("Body", bound=Callable[..., None])
# Exceptions with which a plugin may refuse instead of giving a wrong answer.
REFUSALS = (UnsupportedError, ModelError)
# CPU seconds after which a check that was interrupted and continues is interrupted again.
REPEAT_SECONDS = 0.01
Value = TypeVar("Value")


class CheckError(AssertionError):
    """A plugin fails a check; the message says why in one sentence."""


@dataclass(frozen=True)
class Check:
    """A named test of a plugin; call it to run it.

    The call returns nothing, raises `unittest.SkipTest` with the reason if the check does not apply, and raises
    anything else if the plugin is at fault (`CheckError` if the suite itself finds the fault).

    Attributes:
        subject: "BACKEND" or "METHOD.BACKEND".
        name: what is checked.
        body: the check itself.
    """

    subject: str
    name: str
    body: Callable[[], None]

    def __call__(self) -> None:
        with process_state_kept():
            self.body()

    def __str__(self) -> str:
        return f"{self.subject}: {self.name}"


@dataclass(frozen=True)
class RegisteredCheck:
    """A function that checks a subject, and when it does so.

    Attributes:
        name: of the check; {0}, {1} … stand for the arguments.
        body: takes the subject and the arguments.
        needs: attributes of the subject, and of these with a dot, that must all be true.
        over: the arguments of each check, a tuple or a single one; or what gives them for a subject.
    """

    name: str
    body: Callable[..., None]
    needs: tuple[str, ...]
    over: Iterable[object] | Callable[[Any], Iterable[object]]


class CheckRegistry(list[RegisteredCheck]):
    """Functions that check subjects of one kind, in the order in which their modules are imported."""

    def add(
        self, name: str, *needs: str, over: Iterable[object] | Callable[[Any], Iterable[object]] = ((),)
    ) -> Callable[[Body], Body]:
        """A decorator that makes a function a check, as `RegisteredCheck` says."""

        def register(body: Body) -> Body:
            self.append(RegisteredCheck(name, body, needs, over))
            return body

        return register

    def checks_for(self, subject: object) -> Iterator[tuple[str, Callable[..., None], tuple[Any, ...]]]:
        """(name, body, arguments beside the subject) of each check of this subject."""
        for registered in self:
            if all(attrgetter(need)(subject) for need in registered.needs):
                choices = registered.over(subject) if callable(registered.over) else registered.over
                for argument in choices:
                    arguments = argument if isinstance(argument, tuple) else (argument,)
                    yield registered.name.format(*arguments), registered.body, arguments


# Checks of a backend that offers arrays, in each of its precisions.
BACKEND_CHECKS = CheckRegistry()
# Checks of a method on a backend, an instance of `spinbench.testing.pair.Pair`.
PAIR_CHECKS = CheckRegistry()


@contextmanager
def process_state_kept() -> Iterator[None]:
    """A context that checks state of the process: working folder, NumPy's handling of errors, signals, warnings and
    numbers of threads. It restores the first two.

    Raises:
        CheckError: it was changed inside.
    """
    folder, before = os.getcwd(), _process_state()
    try:
        yield
        after = _process_state()
    finally:
        os.chdir(folder)
        np.seterr(**before["NumPy's handling of errors"])
    for quantity, earlier in before.items():
        require(after[quantity] == earlier, f"{quantity} is not what it was before: a run changes its own state alone")


def _process_state() -> dict[str, Any]:
    """Only what no framework changes when it is first imported, as some draw from NumPy's global generator."""
    # Action, message, category, module: what ignores warnings of all kinds.
    ignores_all = ("ignore", None, Warning, None)
    return {
        "the working directory": os.getcwd(),
        "NumPy's handling of errors": np.geterr(),
        "what happens on Ctrl-C": signal.getsignal(signal.SIGINT),
        "whether warnings are shown": ignores_all in [each[:4] for each in warnings.filters],
        "the number of threads in the environment": {
            name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")
        },
    }


def require(condition: object, message: str) -> None:
    """Raise CheckError with `message` unless `condition` holds."""
    if not condition:
        raise CheckError(message)


def require_refusal(call: Callable[[], object], request: str) -> str:
    """The message with which `call` refuses; `request` says what was asked for.

    Raises:
        CheckError: it did not refuse with an UnsupportedError (or ModelError) of one sentence.
    """
    try:
        call()
    except REFUSALS as error:
        text = str(error)
        require(text.strip() and "\n" not in text, f"{request} is refused with {text!r}; one sentence is needed")
        return text
    except Exception as error:
        raise CheckError(f"{request} raises {type(error).__name__}: {error}; an UnsupportedError is needed") from error
    raise CheckError(f"{request} is accepted; an UnsupportedError is needed")


def skip(reason: str) -> NoReturn:
    """Raise SkipTest: the check does not apply."""
    raise SkipTest(reason)


# End of the work of `run_with_deadline`, in CPU seconds of this process.
_END: ContextVar[float] = ContextVar("end", default=math.inf)


class DeadlineExceeded(SkipTest):
    """The time limit of `run_with_deadline` is over, so that the check is skipped."""


def require_time(seconds: float) -> None:
    """Raise DeadlineExceeded before work of so many CPU seconds that `run_with_deadline` would interrupt."""
    if seconds > seconds_left():
        raise DeadlineExceeded(f"its steps take about {seconds:.2g} CPU s, and {seconds_left():.2g} are left")


def seconds_left() -> float:
    """CPU seconds until `run_with_deadline` interrupts the work; infinite where it does not."""
    return max(_END.get() - time.process_time(), 0.0)


def run_with_deadline(seconds: float, task: str, work: Callable[[], Value]) -> Value:
    """Run `work` with a limit in CPU seconds, if the system has such timers and Python runs between native calls.

    Python drops what is raised while it destroys an object, and anybody may: it is raised again until it gets through.

    Raises:
        Over: it was ended.
    """
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        return work()
    done, previous_hook = False, sys.unraisablehook
    end = _END.set(time.process_time() + seconds)

    def raise_deadline(*_: object) -> None:
        if not done:
            raise DeadlineExceeded(f"{task} takes more than {seconds:.3g} CPU s")

    def ignore_deadline(unraisable: sys.UnraisableHookArgs) -> None:
        if not isinstance(unraisable.exc_value, DeadlineExceeded):
            previous_hook(unraisable)

    before = signal.signal(signal.SIGVTALRM, raise_deadline)
    sys.unraisablehook = ignore_deadline
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds, REPEAT_SECONDS)
    try:
        return work()
    finally:
        done = True
        _END.reset(end)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        sys.unraisablehook = previous_hook
