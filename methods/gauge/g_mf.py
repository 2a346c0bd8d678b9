"""Gauged mean field (G-MF), a lower bound on log Z."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from spinbench.api.bounds import MethodBounds
from spinbench.errors import SpinbenchError
from spinbench.methods.gauge.ascent.objectives import Formulas
from spinbench.methods.gauge.kernel import GaugePlan
from spinbench.methods.gauge.method import Gauged
from spinbench.methods.gauge.progress import Report
from spinbench.methods.gauge.search import search_mean_field


@dataclass(frozen=True)
class GaugedMeanField(Gauged):
    """G-MF: the best mean field bound over all gauges with non-negative tables, equation (6).

    Found by Newton's method in angles and logits together. Never below mean field on the same Forney model nor below
    G-BP, both of which it contains; naive mean field on a model's variables is another family.

    The marginals are derivatives of the bound in the logarithms of the model's weights, exact where the bound is. The
    product q itself is over the gauged variables and says nothing about the model's own.

    Attributes:
        restarts: starts from perturbed mean field; None: one, none above 200 edges. The first start is always the gauge
            of an early stage of G-BP.
        field_starts: random starts of mean field.
    """

    restarts: int | None = None
    field_starts: int = 8

    name: ClassVar[str] = "g_mf"
    summary: ClassVar[str] = "gauged mean field; a lower bound on log Z"
    names: ClassVar[tuple[str, ...]] = ("mf", "g_bp", "g_mf")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.labels == "greedy":
            raise SpinbenchError("g_mf: labels='greedy' was given; mode, zero and best are allowed")
        if (self.restarts is not None and self.restarts < 0) or self.field_starts < 1:
            raise SpinbenchError(
                f"g_mf: restarts={self.restarts} and field_starts={self.field_starts} were given; restarts >= 0 and "
                "field_starts >= 1 are needed"
            )

    def search(self, plan: GaugePlan, report: Report, formulas: Formulas) -> Iterator[None]:
        return search_mean_field(
            plan.models,
            report,
            self.deltas,
            restarts=self.restarts_for(plan.models[0].num_edges),
            field_starts=self.field_starts,
            seed=self.seed,
            formulas=formulas,
        )

    def restarts_for(self, edges: int) -> int:
        """`restarts`, or the default for so many edges."""
        # A restart is a joint ascent in 3E numbers, too slow for large models.
        return min(1, 200 // edges) if self.restarts is None else self.restarts


class GaugedFieldBounds(MethodBounds):
    """A lower bound."""

    name = GaugedMeanField.name
    share, order = 0.04, 60
