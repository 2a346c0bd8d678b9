"""Weighted mini-buckets: an upper bound on log Z, and independent draws whose weights it bounds, of any factor graph.

Liu and Ihler, "Bounding the partition function using Hölder's inequality", ICML 2011 (the bound, its shifts of weight
and exponents; `passes`, `tighten`); Liu, Fisher and Ihler, "Probabilistic variational bounds for graphical models",
NIPS 2015 (the draws; `draws`). Since the weights are independent and bounded, log Z has bounds on both sides that hold
with a probability that is known, whatever the model (`betting`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol, cast

import numpy as np

from spinbench.api import Engine, Estimate, Method, MethodProfile, Model, Reduction, State, Trace
from spinbench.foundation.parameters import check_setting, check_whole
from spinbench.methods.buckets.layout import Array, problem_of
from spinbench.methods.buckets.weighing import estimate

# Passes take this many times the default burn-in, which is a tenth of the time: 40 % of a budget tighten the bound.
SHARE = 4
# Largest share of a budget in seconds that passes may take by the clock, a little above the 40 % of `SHARE`.
MOST = 0.45


class Tightened(Protocol):
    """What runs mini-buckets, beside what every engine does."""

    def within(self, state: State, seconds: float) -> State:
        """However long burn-in's draws would take, its passes end after so many seconds from now."""
        ...


class Tables(NamedTuple):
    """(n,) numbers of states of the variables that are left."""

    cards: Array


@dataclass(frozen=True)
class MiniBuckets(Method[Tables]):
    """Common settings of both bounds.

    Attributes:
        ibound: log2 of the entries that a mini-bucket may have; a single factor may have more. 0: the method chooses.
        max_gib: memory of all tables, in GiB.
    """

    ibound: int = 0
    max_gib: float = 1.0

    kernels_alone: ClassVar[str] = "mini-buckets are all of different shapes, each of which would be compiled"
    model_form = "any"

    def __post_init__(self) -> None:
        check_whole(self, "ibound", 0, 30)
        check_setting(self, "max_gib", self.max_gib > 0, "a positive number")


@dataclass(frozen=True)
class WeightedMiniBuckets(MiniBuckets):
    """Weighted mini-buckets: an upper bound on log Z, and independent draws whose weights it bounds.

    Burn-in tightens the bound; what follows are draws. Where nothing has to be split, the elimination is exact; with
    `ibound` 0 it is also tried over what hard zeros leave possible, which may be a small part of whole tables.

    Attributes:
        ibound: log2 of the entries that a mini-bucket may have; a single factor may have more. 0: as many as burn-in
            and memory leave room for.
        max_gib: memory of all tables, in GiB.
        delta: probability with which the probable bracket may miss log Z, half of it on each side.
        draws: whether to hand out the last draw of each chain and batch, with its weight.
    """

    delta: float = 1e-3
    draws: bool = False

    name: ClassVar[str] = "wmb"
    summary: ClassVar[str] = "weighted mini-buckets: an upper bound on log Z, and independent draws of bounded weight"
    # of about half a second of passes on each backend, where its draws are others' starts
    profile = MethodProfile(
        family="weighted draws", starts={"numba": 50_000, "numpy": 1_000}, start_settings={"draws": True}
    )
    kind = "draws"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_setting(self, "delta", 0 < self.delta < 1, "a number between 0 and 1")

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """Weights relative to the bound: log_weight, log_square (C,) and rows (R, C), log Σ w, log Σ w² and log Σ w of
        draws with x_v = 1, 2, …; counts, sums (J, C) of bins; bound (5, C): its value, what rounding may take from it,
        ibound, passes, and whether it is split; beliefs (R, C); states (n, C) and drawn (C,), the last draws and their
        log weights, `DEAD` of those that have none."""
        logs: dict[str, Reduction] = dict.fromkeys(("log_weight", "log_square", "rows"), "logsumexp")
        return {
            **logs,
            "counts": "sum",
            "sums": "sum",
            **dict.fromkeys(("bound", "beliefs", "states", "drawn"), "last"),
        }

    def plan(self, model: Model) -> Tables:
        """What hard zeros leave; orders of elimination are searched for where it runs.

        Raises:
            ModelError: the hard zeros leave a variable no state.
        """
        return Tables(np.array(problem_of(model).cardinalities, dtype=np.int64))

    def warm_up(self, tables: Tables, engine: Engine, state: State, steps: int, trace: Trace) -> tuple[State, int]:
        """Passes take more than burn-ins of chains do; of a budget in seconds no more than their share."""
        state = engine.warm(state, SHARE * steps)
        if trace.seconds is not None:
            state = cast("Tightened", engine).within(state, MOST * trace.seconds)
        return state, SHARE * steps

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        """Of the weights, or exact."""
        return estimate(model, tables.cards, trace, self.delta, draws=self.draws)
