"""toulbar2: log Z by elimination in an order of min-fill, or by search alone where that would not be exact.

Without elimination (-O, -p) a search for log Z of more than some dozens of variables does not end. With it, log Z was
off by up to 1e-3 where all tables together span few nats. Models with zeros are refused: log Z was off by up to 0.1,
either way. Its tree decompositions (-B) do not go together with log Z. What it
does best, the heaviest state, spinbench finds whatever the backend.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np

from spinbench.api import Backend, Model, to_factor_graph
from spinbench.backends.peers import library, program
from spinbench.errors import InvalidResultError

# Decimals of the log weights that toulbar2's integer costs keep.
DECIMALS = 10
# Smallest range in nats of all tables together for which variables are eliminated: e^-50 is below the resolution of
# doubles.
LEAST_NATS = 50.0
SEARCH = ("toulbar2", "{model}", "-logz", f"-precision={DECIMALS}")
ELIMINATION = (*SEARCH, "-O=-3", "-p=60")  # eliminates variables of any degree, within `max_gib`
_BOUNDS = re.compile(r"(-?[\d.]+|-?inf) <= Log\(Z\) <= (-?[\d.]+|-?inf)")


class Toulbar2Backend(library.LibraryBackend):
    """The program, in a version that writes as many decimals as it is asked for."""

    name = "toulbar2"
    programs: ClassVar[tuple[str, ...]] = ("toulbar2",)
    install = "build https://github.com/toulbar2/toulbar2 with cmake and Boost, and put it on the PATH"


class Toulbar2Exact(program.ProgramAnswer):
    """log Z."""

    notes = (
        library.NO_MARGINALS,
        f"the program counts in integers: logarithms of weights are rounded to {DECIMALS} decimals",
    )
    command: tuple[str, ...] = ELIMINATION

    @classmethod
    def takes(cls, backend: Backend, model: Model) -> str:
        if to_factor_graph(model).has_zeros:
            return (
                f"toulbar2 takes models without zeros, with which its log Z was off by up to 0.1; {model.name} has some"
            )
        return super().takes(backend, model)

    def build(self, model: Model) -> tuple[TemporaryDirectory[str], Sequence[int]]:
        built = super().build(model)
        spans = [float(np.ptp(factor.log_table)) for factor in to_factor_graph(model).factors]
        if sum(spans) < LEAST_NATS:
            self.command = SEARCH
        return built

    def read(self, home: Path, output: str, cardinalities: Sequence[int]) -> library.Answer:
        """The middle of the bounds that it prints, which are as far apart as their last decimals."""
        if (match := _BOUNDS.search(output)) is None:
            raise InvalidResultError("toulbar2 wrote no readable bounds of log Z")
        lower, upper = map(float, match.groups())
        if not np.isfinite(lower + upper):
            raise InvalidResultError(f"toulbar2 found log Z between {lower} and {upper}")
        if len(match.group(1).partition(".")[2]) < DECIMALS:
            raise InvalidResultError(
                f"toulbar2 wrote {match.group(1)} for log Z; a later version tells {DECIMALS} decimals"
            )
        return library.Answer([], (lower + upper) / 2)
