"""Exact log Z and marginals as a method like any other, so that sweeps show what exactness costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from spinbench.api import Estimate, Method, Model, PairwiseModel, Reduction, Tables, Trace
from spinbench.errors import SpinbenchError
from spinbench.foundation.parameters import check_whole
from spinbench.mathematics.graphs.message_layouts import FloatArray
from spinbench.reference.answer import left_open
from spinbench.reference.memory import MAX_GIB, default_max_bytes

# Rows of the reduction "cost" of `Exact`, also reported as diagnostics; -1 stands for unknown. The digest is the
# integer hash of the elimination order that `spinbench.exact` shows in its settings.
COST_NAMES = ("width", "log2_entries", "memory_gib", "predicted_seconds", "slices", "order_digest")


@dataclass(frozen=True)
class Exact(Method[Tables]):
    """Exact log Z and marginals: elimination, sums over counts, model counting, enumeration or a closed form.

    Attributes:
        solver: one of `spinbench.reference.METHODS`; "auto" takes the cheapest that fits.
        max_gib: memory that it may take, in GiB; None: half of what is free, or as a sweep has divided it.
        pairs: whether to find the joint probabilities of edges or factors, too, by elimination in NumPy.
        draws: number of independent draws, beside.
    """

    name = "exact"
    summary = "exact log Z and marginals by elimination or a closed form"
    model_form = "any"
    kind = "direct"
    heaviest = "exact"

    solver: str = "auto"
    max_gib: float | None = None
    pairs: bool = False
    draws: int = 0

    def __post_init__(self) -> None:
        if self.max_gib is not None and not 0 < self.max_gib <= MAX_GIB:
            raise SpinbenchError(
                f"method exact: max_gib={self.max_gib} was given; a positive number is needed, 2^33 at most"
            )
        check_whole(self, "draws", 0, 2**30)

    @property
    def max_bytes(self) -> int:
        """That it may take."""
        if self.max_gib is None:
            return default_max_bytes()
        return int(self.max_gib * 2**30)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """ "marginals" and "pairs": those of all variables and of all edges or factors, one after another, with a chain
        axis of one, "marginals" empty where a library gives none; "cost": numbers by the names of
        `COST_NAMES`; "states": a chain a draw."""
        names = ["log_z", "marginals", "cost"]
        if self.pairs:
            names.append("pairs")
        if self.draws:
            names.append("states")
        return dict.fromkeys(names, "last")

    def plan(self, model: Model) -> Tables:
        """Nothing: the solver's own planning is part of what is timed."""
        return ()

    def estimate(self, model: Model, tables: Tables, trace: Trace) -> Estimate:
        flat, log_z = trace.total("marginals")[:, 0], float(trace.total("log_z")[0])
        cards = model.cardinalities
        cost = {name: float(x) for name, x in zip(COST_NAMES, trace.total("cost")[:, 0], strict=True) if x >= 0}
        marginals, pairs, draws = None, None, None
        # A solver without marginals leaves the array empty.
        if len(flat) == sum(cards):
            marginals = split_marginals(flat, cards)
            cost |= left_open(flat, cards)
        if self.pairs:
            pairs = _split_pair_tables(model, trace.total("pairs")[:, 0])
        if self.draws:
            draws = (trace.total("states").astype(np.int64), None)
        return Estimate(
            marginals=marginals,
            # NaN stands for an answer that the solver does not give: a trace only holds numeric arrays.
            log_z=None if np.isnan(log_z) else log_z,
            diagnostics=cost,
            log_z_kind="exact",
            pairs=pairs,
            draws=draws,
        )


def split_marginals(flat: npt.NDArray[np.float64], cards: Sequence[int]) -> FloatArray | list[FloatArray]:
    """As `Estimate.marginals`, from one after another."""
    if cards.count(2) == len(cards):
        return flat[1::2]
    return np.split(flat, np.cumsum(cards)[:-1])


def _split_pair_tables(model: Model, pairs: np.ndarray) -> FloatArray | list[FloatArray]:
    """As `Estimate.pairs`, from one after another."""
    if isinstance(model, PairwiseModel):
        return pairs
    sizes = [factor.log_table.size for factor in model.factors]
    return np.split(pairs, np.cumsum(sizes)[:-1]) if sizes else []
