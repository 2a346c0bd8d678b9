"""Budgets: how long a method may run, in samples or in seconds."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from spinbench.errors import BudgetError

_UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0}
_TEXT = re.compile(r"\s*([0-9.eE+-]+)\s*([a-z]*)\s*")


@dataclass(frozen=True)
class Budget:
    """How long a method may run; exactly one of `samples` and `seconds` is given.

    Attributes:
        samples: kept samples of each chain.
        seconds: wall-clock for burn-in and sampling together; planning and compilation are not counted.
        burn_in: samples dropped at the start; None: a fifth of the kept samples, or a tenth of the seconds.
    """

    samples: int | None = None
    seconds: float | None = None
    burn_in: int | None = None

    def __post_init__(self) -> None:
        if (self.samples is None) == (self.seconds is None):
            raise BudgetError(
                f"a budget takes either samples or seconds, not samples={self.samples} and seconds={self.seconds}"
            )
        if self.samples is not None and self.samples < 1:
            raise BudgetError(f"a budget of {self.samples} samples is too small; at least 1 is needed")
        if self.seconds is not None and not (0 < self.seconds < math.inf):
            raise BudgetError(f"a budget of {self.seconds} seconds makes no sense; a positive number is needed")
        if self.burn_in is not None and self.burn_in < 0:
            raise BudgetError(f"burn_in={self.burn_in} is negative; 0 or more samples are needed")

    @classmethod
    def parse(cls, budget: Budget | int | str, burn_in: int | None = None) -> Budget:
        """From 10_000 (samples), "10000", "10000 samples", "2 s", "500 ms" or "1 min".

        Raises:
            BudgetError: not of this form.
        """
        if isinstance(budget, Budget):
            return budget
        text = str(budget)
        match = _TEXT.fullmatch(text.replace("_", ""))
        unit = match[2] if match else ""
        try:
            number = float(match[1]) if match else math.nan
        except ValueError:
            number = math.nan
        if unit in ("", "sample", "samples") and number == math.floor(number if number == number else 0.5):
            return cls(samples=int(number), burn_in=burn_in)
        if unit in _UNITS and number == number:
            return cls(seconds=number * _UNITS[unit], burn_in=burn_in)
        raise BudgetError(f"budget {text!r} is not understood; examples: 10000, '10000 samples', '2 s', '500 ms'")

    def __str__(self) -> str:
        return f"{self.samples} samples" if self.samples is not None else f"{self.seconds:g} s"
