"""Tables of costs as factors.

A state's energy is the sum of its costs, so that p(x) ∝ exp(-beta E(x)). An entry is forbidden, of weight 0, where no
total with it can be below the problem's bound, as far as the signs of the other tables tell, which is how toulbar2
takes it; totals that several entries make are not cut.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from spinbench.errors import ModelError
from spinbench.models.checks import check_number
from spinbench.models.factor_graph import FactorGraph
from spinbench.models.files.format import MAX_UNMENTIONED_STATES, ModelFile
from spinbench.models.names import StateNames

FloatArray = npt.NDArray[np.float64]


class CostTable(NamedTuple):
    """Costs of the states of a scope."""

    scope: list[int]
    costs: FloatArray


def check_states(file: ModelFile, cards: Sequence[int]) -> None:
    """Refuses more states than a file of this length tells of."""
    most = max(MAX_UNMENTIONED_STATES, len(file.data))
    if sum(cards) > most:
        raise ModelError(
            f"{file.name}: the variables have {sum(cards)} states together; this file tells of {most} at most"
        )


def build_model(
    file: ModelFile,
    cards: Sequence[int],
    functions: Sequence[CostTable],
    bound: float,
    labels: Sequence[Hashable] = (),
    state_names: StateNames = MappingProxyType({}),
) -> FactorGraph:
    """exp(-beta E) of costs below a bound."""
    beta = check_number(file.name, "beta", file.beta)
    # Where costs may be negative, an entry above the bound may be part of a total below it.
    least = [min(0.0, float(costs.min())) for _, costs in functions]
    # The sum of others' least costs.
    total = math.fsum(least)
    factors = []
    for k, ((scope, costs), lowest) in enumerate(zip(functions, least, strict=True)):
        forbidden = (costs - lowest >= bound - total) | (costs == np.inf)
        if forbidden.all():
            raise ModelError(f"{file.name}: all costs of function {k} reach the bound of {bound:g}, so Z = 0")
        factors.append((scope, np.where(forbidden, -np.inf, -beta * np.where(forbidden, 0.0, costs))))
    return FactorGraph.from_log_tables(cards, factors, name=file.stem, labels=labels, state_names=state_names)
