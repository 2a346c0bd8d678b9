"""What all gauged methods share: settings, labels, contraction and the estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from spinbench.api import Estimate, Method, Model, Reduction, Trace
from spinbench.errors import SpinbenchError
from spinbench.foundation import deadline
from spinbench.foundation.parameters import check_choice
from spinbench.mathematics.forney import contract
from spinbench.mathematics.rounding import work_of
from spinbench.methods.gauge.ascent.newton import CONVERGED, ENDS
from spinbench.methods.gauge.ascent.objectives import Formulas
from spinbench.methods.gauge.kernel import REDUCTIONS, GaugePlan
from spinbench.methods.gauge.prepare import Labels, check_merge, prepare, seconds_of
from spinbench.methods.gauge.progress import Report, first_report
from spinbench.methods.gauge.search import Headline, search_point_mass, search_sequential
from spinbench.models.forney.model import state_marginals

# Weights δ of the barrier. The optimum lies at the boundary, where entries are 0, so that δ decreases; factors of ten
# keep each maximum close to the previous one.
DELTAS = (1.0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-5)


@dataclass(frozen=True)
class Gauged(Method[GaugePlan]):
    """Common settings of the gauged methods.

    Attributes:
        labels: which states of the edges are called 0. "mode": those of a state of high probability, found by
            annealing; "zero": the model's own; "best": both, one after the other; "greedy": "best", and then edge by
            edge where it raises the bound. Each choice confines the ascent to gauges that it can reach.
        merge: nodes are contracted, exactly, while no table has more than so many edges; nodes of one or two edges
            always are, unless it is 0. It never lowers the optimum, and costs time: 2^merge entries a table.
        deltas: decreasing weights of the barrier, one maximisation each.
        seed: of annealing, restarts and orders; runs with the same settings are alike.
    """

    labels: Labels = "mode"
    merge: int = 2
    deltas: Sequence[float] = DELTAS
    seed: int = 0

    model_form = "any"
    kind = "iteration"
    names: ClassVar[tuple[str, ...]]
    """Bounds that a run reports, by name."""

    def __post_init__(self) -> None:
        check_choice(self, "labels", Labels)
        check_merge(self.name, self.merge)
        deltas = tuple(float(delta) for delta in self.deltas)
        if not deltas or not all(a > b > 0 for a, b in zip(deltas, (*deltas[1:], deltas[-1] / 2), strict=True)):
            raise SpinbenchError(
                f"{self.name}: deltas={list(deltas)} was given; decreasing positive numbers are needed"
            )
        object.__setattr__(self, "deltas", deltas)

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """See `spinbench.methods.gauge.kernel.REDUCTIONS`; the order of `bounds` is `names`."""
        return REDUCTIONS

    def plan(self, model: Model) -> GaugePlan:
        """The contracted Forney model in each of the labellings.

        Raises:
            UnsupportedError: a node's degree is too large for a table, or a variable has more than two states.
            ModelError: Z = 0.
        """
        deadline.require(seconds_of(model))
        return GaugePlan(prepare(model, self.labels, self.merge, self.seed), work_of(model).allowance())

    def report(self, plan: GaugePlan) -> Report:
        """Before the first step."""
        return first_report(plan.models, self.names)

    def search(self, plan: GaugePlan, report: Report, formulas: Formulas) -> Iterator[None]:
        """One Newton step at a time; the report is kept up to date."""
        raise NotImplementedError

    def finished(self, trace: Trace) -> bool:
        """Whether all labels and restarts are done."""
        return bool(trace.total("finished")[0])

    def estimate(self, model: Model, tables: GaugePlan, trace: Trace) -> Estimate:
        """The best verified bound so far, less its rounding; not converged while the search goes on.

        The diagnostics stalled and out_of_steps are 1 where that is how the maximisation ended that gave it.
        """
        end = ENDS[int(trace.total("end")[0])]
        bounds_by_name = dict(zip(self.names, trace.total("bounds")[:, 0].tolist(), strict=True))
        marginals = None
        if self.gives_marginals:
            marginals = state_marginals(trace.total("marginals")[:, 0], model.cardinalities)
        return Estimate(
            marginals=marginals,
            log_z=float(trace.total("bound")[0]) - tables.rounding,
            log_z_kind="lower",
            diagnostics={
                **{f"bound_{name}": value - tables.rounding for name, value in bounds_by_name.items()},
                "residual": float(trace.total("residual")[0]),
                "unverified": float(trace.total("unverified")[0]),
                "stalled": float(end == "stalled"),
                "out_of_steps": float(end == "limit"),
            },
            doubts=() if trace.total("finished")[0] and end in CONVERGED else ("not converged",),
        )

    @property
    def gives_marginals(self) -> bool:
        """Whether derivatives of the bound stand for marginals."""
        return True


@dataclass(frozen=True)
class PointMass(Gauged):
    """G-BP and its corrections; they differ in the bound that is the answer."""

    names: ClassVar[tuple[str, ...]] = ("g_bp", "single", "multiple")
    headline: ClassVar[Headline] = "g_bp"

    def search(self, plan: GaugePlan, report: Report, formulas: Formulas) -> Iterator[None]:
        best = yield from search_point_mass(
            plan.models,
            report,
            self.headline,
            self.deltas,
            greedy=self.labels == "greedy",
            seed=self.seed,
            formulas=formulas,
        )
        if self.headline == "sequential" and best is not None:
            yield from search_sequential(
                best, report, self.deltas, partial(contract, degree_limit=max(self.merge, 2), seed=self.seed)
            )

    @property
    def gives_marginals(self) -> bool:
        return self.headline == "g_bp"
