"""Mean field on the Forney form of a model: the baseline of gauged mean field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from spinbench.api import Array, Backend, Estimate, ForneyModel, MethodProfile, Model, Program, Reduction, Trace
from spinbench.errors import SpinbenchError
from spinbench.foundation import deadline
from spinbench.foundation.trees import OnHost
from spinbench.mathematics.rounding import work_of
from spinbench.methods.gauge.ascent import mean_field
from spinbench.methods.gauge.ascent.derivatives import slot_products
from spinbench.methods.gauge.prepare import check_merge, forney_form, seconds_of
from spinbench.methods.messages.fixed_points import FixedPointMethod, State, fixed_point_program, statistics
from spinbench.models.forney.model import state_marginals


class FieldPlan(NamedTuple):
    """What `ForneyMeanField.plan` prepares.

    Attributes:
        field: of the iteration.
        starts: (E, restarts) first values of q.
        rounding: () nats by which rounding may put the bound off.
        form: the contracted Forney model.
    """

    field: mean_field.FieldTables
    starts: Array
    rounding: Array
    form: OnHost[ForneyModel]


@dataclass(frozen=True, kw_only=True)
class ForneyMeanField(FixedPointMethod[FieldPlan]):
    """Mean field with one factor an edge of the Forney model, by coordinate ascent; a sample is one sweep.

    It differs from mean field on a model's own variables (`mf`): neither is always the better bound.

    Attributes:
        merge: as for g_mf: 2 absorbs nodes of degree 1 and 2, exactly; 0 leaves all as they are.
        restarts: random starts side by side; the best is reported.
        tolerance: a run ends when a sweep changes no q by more.
        seed: of the starts.
    """

    merge: int = 2
    restarts: int = 8
    seed: int = 0

    name: ClassVar[str] = "forney_mf"
    summary: ClassVar[str] = "mean field on the edges of the Forney model; a lower bound on log Z"
    profile = MethodProfile(family="messages")

    def __post_init__(self) -> None:
        check_merge(self.name, self.merge)
        if self.restarts < 1 or not self.tolerance > 0:
            raise SpinbenchError(
                f"forney_mf: restarts={self.restarts} and tolerance={self.tolerance} were given; at least 1 and a "
                "positive number are needed"
            )

    @property
    def reductions(self) -> Mapping[str, Reduction]:
        """Of the best restart: q (E, 1), value (1,), residual (1,); converged (1,): 1 where all restarts have;
        iterations (1,), of all of them."""
        return dict.fromkeys(("q", "value", "residual", "iterations", "converged"), "last")

    def plan(self, model: Model) -> FieldPlan:
        """The contracted Forney model's tables.

        Raises:
            UnsupportedError: a node's degree is too large, or a variable is not binary.
            ModelError: Z = 0.
        """
        deadline.require(seconds_of(model) * 2 / 3)
        small = forney_form(model, self.merge, self.seed)
        starts = np.random.default_rng(self.seed).uniform(0.1, 0.9, (small.num_edges, self.restarts))
        return FieldPlan(mean_field.field_tables(small), starts, np.array(work_of(model).allowance()), OnHost(small))

    def program(self, backend: Backend) -> Program:
        """Sweeps of all restarts side by side."""
        xp = backend.xp

        def update(tables: FieldPlan, q: Array) -> tuple[Array, Array]:
            fresh = mean_field.sweep(tables.field, q, xp, backend.update)
            return fresh, xp.abs(fresh - q)

        def observe(tables: FieldPlan, state: State) -> dict[str, Array]:
            value = mean_field.value(tables.field, state.values, xp, backend.precision)
            best = xp.reshape(xp.argmax(value), (1,))
            every = {**statistics("q", state.values, state), "value": value}
            chosen = {name: xp.take(part, best, axis=-1) for name, part in every.items()}
            converged = xp.min(state.converged, keepdims=True)
            return {**chosen, "converged": converged, "iterations": xp.max(state.iterations, keepdims=True)}

        return fixed_point_program(self, backend, lambda tables, start: tables.starts, update, observe)

    def estimate(self, model: Model, tables: FieldPlan, trace: Trace) -> Estimate:
        """The best restart, its bound evaluated in float64, less its rounding; marginals from the product q, which is
        over the edges of the model at hand.

        -inf and not converged where q has weight on a hard zero.
        """
        small = tables.form.value
        q = mean_field.round_near_certain(small, trace.total("q")[:, 0])
        beliefs = [slot_products(q[group.edges].T).T for group in small.groups]
        value = mean_field.bound(small, q)
        return Estimate(
            marginals=state_marginals(np.clip(small.variable_marginals(beliefs), 0.0, 1.0), model.cardinalities),
            log_z=value - float(tables.rounding),
            log_z_kind="lower",
            diagnostics={"residual": float(trace.total("residual")[0])},
            doubts=() if self.finished(trace) and value > -np.inf else ("not converged",),
        )
