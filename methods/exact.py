"""Exact log Z and marginals as a method like any other, so that sweeps show what exactness costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from spinbench.api import Estimate, Method, Reduction, Tables
from spinbench.api.trace import Trace
from spinbench.errors import SpinbenchError
from spinbench.models import Model


@dataclass(frozen=True)
class Exact(Method):
    """Enumeration, bucket tree, frontier elimination or a closed form.

    Attributes:
        solver: one of `spinbench.reference.METHODS`; "auto" takes the cheapest that fits.
        max_gib: memory that it may take, in GiB.
    """

    name = "exact"
    summary = "exact log Z and marginals by elimination or a closed form"
    needs: ClassVar[frozenset[str]] = frozenset()
    takes: ClassVar[Literal["pairwise", "any"]] = "any"
    anytime: ClassVar[bool] = False

    solver: str = "auto"
    max_gib: float = 1.0

    def __post_init__(self) -> None:
        if not self.max_gib > 0:
            raise SpinbenchError(f"method exact: max_gib={self.max_gib} was given; a positive number is needed")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """ "marginals": those of all variables, one after another, with a chain axis of one."""
        return {"log_z": "last", "marginals": "last"}

    def plan(self, model: Model) -> Tables:
        """Nothing: the solver's own planning is part of what is timed."""
        return ()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        flat = trace.total("marginals")[:, 0]
        cards = model.cardinalities
        return Estimate(
            marginals=flat[1::2] if cards.count(2) == len(cards) else np.split(flat, np.cumsum(cards)[:-1]),
            log_z=float(trace.total("log_z")[0]),
            log_z_kind="exact",
        )
