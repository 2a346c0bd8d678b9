"""Budgets: how long a method may run, in samples or in seconds, and the error at which it may end earlier."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from spinbench.api import Estimate, Method, Tables
from spinbench.api.estimate import is_doubted, verdict
from spinbench.api.old_members import read_own
from spinbench.errors import BudgetError, SpinbenchError
from spinbench.mathematics import all_states

_UNITS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1e-3),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1.0),
    **dict.fromkeys(("min", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hour", "hours"), 3600.0),
}
_TEXT = re.compile(r"\s*([0-9.eE+-]+)\s*([a-z]*)(\s+cpu)?\s*")
_EXAMPLES = "examples: 10000, '10000 samples', '2 s', '500 ms', '1 min', '2 s cpu'"
ERRORS: dict[str, Literal["marginals", "log Z"]] = {"se": "marginals", "log_z_se": "log Z"}
_TOLERANCE = re.compile(r"\s*(\w+)\s*<\s*([0-9.eE+-]+)\s*")


LONGEST = 1e9
"""Seconds, thirty years."""


@dataclass(frozen=True)
class Tolerance:
    """The error at which a run ends before its budget does.

    Attributes:
        what: "se", the largest standard error of a marginal, or "log_z_se", that of log Z.
        below: what it has to be less than.
    """

    what: str
    below: float

    @classmethod
    def parse(cls, text: object) -> Tolerance:
        """From "se<0.01" or "log_z_se<0.1".

        Raises:
            SpinbenchError: not of this form.
        """
        match = _TOLERANCE.fullmatch(text) if isinstance(text, str) else None
        try:
            below = float(match[2]) if match else math.nan
        except ValueError:
            below = math.nan
        if not match or match[1] not in ERRORS or not 0 < below < math.inf:
            raise SpinbenchError(f"until={text!r} was given; 'se<0.01' or 'log_z_se<0.1', say, is needed")
        return cls(match[1], below)

    def error(self, estimate: Estimate) -> float:
        """The largest; infinite where none is known, or a doubt names the marginals or log Z."""
        errors, largest = estimate.marginals_se, math.inf
        if self.what == "se":
            if errors is not None:
                largest = float(all_states.errors_of_all_states(errors).max(initial=0.0))
        elif estimate.log_z_se is not None:
            largest = estimate.log_z_se
        if math.isnan(largest) or is_doubted(estimate, ERRORS[self.what]):
            return math.inf
        return largest

    def reached(self, estimate: Estimate) -> bool:
        """Whether that is small enough."""
        return self.error(estimate) < self.below

    def sentence(self, estimate: Estimate, doubt: str = "") -> str:
        """The same for people, with why what the error is of is doubtful all the same."""
        error, quantity = self.error(estimate), ERRORS[self.what]
        if self.reached(estimate):
            return f"{self} was reached: {error:.2g}" + (f", but {quantity} doubtful: {doubt}" if doubt else "")
        if math.isfinite(error):
            return f"{self} was not reached: {error:.2g}; a larger budget is needed"
        if is_doubted(estimate, quantity):
            return f"{self} was not reached: {verdict(estimate)}"
        return f"{self} was not reached: no error of {quantity} is known"

    def __str__(self) -> str:
        return f"{self.what}<{self.below:g}"


@dataclass(frozen=True)
class Budget:
    """How long a method may run; exactly one of `samples` and `seconds` is given.

    Attributes:
        samples: kept samples of each chain.
        seconds: wall-clock for burn-in and sampling together. Compilation is not counted, nor is planning, which is
            refused where it is seen to take more than half as long; estimates are, beyond a quarter of them. What would
            take 1.3 times as long is refused, or ends before. What burn-in waits while others have the machine, beyond
            .3 of them, is added to them.
        burn_in: samples dropped at the start; None: a fifth of the kept samples, or a tenth of the seconds.
        until: the error at which the run ends earlier.
        cpu: whether seconds are those of the CPU, of all threads and child processes, in place of wall-clock: how much
            is computed depends less on what else the machine does then. None: they are not.
    """

    samples: int | None = None
    seconds: float | None = None
    burn_in: int | None = None
    until: Tolerance | None = None
    cpu: bool | None = None

    def __post_init__(self) -> None:
        if self.samples is not None and not is_whole(self.samples, 1):
            raise BudgetError(f"a budget of samples={self.samples} was given; a whole number, 1 or more, is needed")
        if self.seconds is not None and not _is_positive(self.seconds):
            raise BudgetError(
                f"a budget of seconds={self.seconds} was given; a positive number is needed, {LONGEST:g} at most"
            )
        if self.burn_in is not None and not is_whole(self.burn_in, 0):
            raise BudgetError(f"burn_in={self.burn_in} was given; a whole number of samples, 0 or more, is needed")
        if self.samples is not None and self.seconds is not None:
            raise BudgetError(
                f"a budget takes either samples or seconds, and samples={self.samples} was given beside "
                f"seconds={self.seconds}; a sweep counts samples with budget=samples budget.samples={self.samples}"
            )
        if self.samples is None and self.seconds is None:
            raise BudgetError("a budget takes either samples or seconds, and neither was given")
        if not isinstance(self.cpu, bool | None):
            raise BudgetError(f"cpu={self.cpu!r} was given in a budget; true or false is needed")
        if self.cpu and self.seconds is None:
            raise BudgetError(f"a budget of samples={self.samples} was given with cpu=true, which is of seconds alone")

    @classmethod
    def parse(cls, budget: Budget | int | str, burn_in: int | None = None) -> Budget:
        """From 10_000 (samples), "10000", "10000 samples", "2 s", "500 ms", "1 min", "1 hour", or "2 s cpu" of the CPU.

        Raises:
            BudgetError: not of this form.
        """
        if isinstance(budget, Budget):
            if burn_in is None:
                return budget
            return replace(budget, burn_in=burn_in)
        text = str(budget)
        match = _TEXT.fullmatch(text.replace("_", ""))
        digits, unit, of_cpu = match.groups() if match else ("", "", None)
        try:
            number = float(digits)
        except ValueError:
            number = math.nan
        if not math.isfinite(number) or (unit not in _UNITS and (of_cpu or unit not in ("", "sample", "samples"))):
            raise BudgetError(f"budget {text!r} is not understood; {_EXAMPLES}")
        if unit in _UNITS:
            return cls(seconds=number * _UNITS[unit], burn_in=burn_in, cpu=bool(of_cpu) or None)
        if not number.is_integer():
            raise BudgetError(f"budget {text!r} is no whole number of samples; seconds are written '{number:g} s'")
        return cls(samples=int(number), burn_in=burn_in)

    def __str__(self) -> str:
        if self.samples is not None:
            return f"{self.samples} samples"
        return f"{self.seconds:g} s cpu" if self.cpu else f"{self.seconds:g} s"


def parse_seconds(budget: Budget | int | str, subject: str, *, cpu: bool = True) -> tuple[float, bool]:
    """Seconds of a budget, and whether they are those of the CPU.

    Args:
        budget: as `Budget.parse` takes it.
        subject: what is to last so long, for the message.
        cpu: whether they may be.

    Raises:
        BudgetError: it is in samples, or of the CPU where it may not be.
    """
    parsed = Budget.parse(budget)
    if parsed.seconds is None or (parsed.cpu and not cpu):
        unit = "seconds" if cpu else "seconds of wall-clock"
        raise BudgetError(f"{subject} takes a budget in {unit}, and {parsed} was given; examples: '10 s', '500 ms'")
    return parsed.seconds, bool(parsed.cpu)


def check_whole(name: str, value: object, least: int) -> None:
    """Raises SpinbenchError unless an argument is a whole number, `least` or more."""
    if not is_whole(value, least):
        raise SpinbenchError(f"{name}={value!r} was given; a whole number, {least} or more, is needed")


def check_probability(name: str, value: object) -> None:
    """Raises SpinbenchError unless an argument lies between 0 and 1."""
    if not (isinstance(value, int | float) and 0 < value < 1):
        raise SpinbenchError(f"{name}={value!r} was given; a number between 0 and 1 is needed")


def is_whole(value: object, least: int) -> bool:
    """Whether a value is an integer, of Python or NumPy, and not too small."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool) and bool(value >= least)


def _is_positive(value: object) -> bool:
    return (
        isinstance(value, int | float | np.integer | np.floating)
        and not isinstance(value, bool)
        and bool(0 < value <= LONGEST)
    )


def step_updates(method: Method, tables: Tables) -> float:
    """Approximate number of variable draws in a step of one chain, of a method that says so since they are many times
    the number of variables: a step that takes longer than a budget in seconds is not begun. Else 0."""
    count: Callable[[Tables], float] = read_own(method, "step_updates", lambda tables: 0.0)
    return count(tables)
