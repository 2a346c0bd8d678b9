"""A plugin on sweeps that are at hand: Gibbs sampling whose sweeps go forth and back in turn."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from spinbench.api import Estimate, Method, PairwiseModel, Program, marginal_claims, sweeps


class Tables(NamedTuple):
    order: np.ndarray
    sweep: sweeps.Sweep | sweeps.Scan


@dataclass(frozen=True)
class Turns(Method):
    blocks: bool = True

    name = "turns"
    summary = "Gibbs sweeps forth and back"
    reductions = {"s": "sum"}  # noqa: RUF012

    def plan(self, model: PairwiseModel) -> Tables:
        plan = sweeps.layout(model, "chromatic")
        rows = sweeps.compressed_rows(model, plan.order)
        if self.blocks:
            return Tables(plan.order, sweeps.sweep_tables(model, plan, rows))
        return Tables(plan.order, sweeps.scan_tables(model, plan, rows))

    def program(self, backend):
        bath = sweeps.HeatBath(backend)

        def init(key, tables, start):
            return backend.xp.take(start, tables.order, axis=0)

        def step(key, tables, s):
            s = bath.sweep(backend.fold_in(key, 0), tables.sweep, s)
            return bath.sweep(backend.fold_in(key, 1), tables.sweep, s, backward=True)

        return Program(init, step, lambda tables, s: {"s": s})

    def estimate(self, model, tables, trace):
        ends = np.zeros(model.num_variables), np.ones(model.num_variables)
        found = marginal_claims(trace.series("s"), trace.samples, *ends)
        back = np.argsort(tables.order)
        return Estimate(
            marginals=trace.mean("s").mean(axis=-1)[back],
            marginals_se=found.se[back],
            marginals_error_bound=found.error_bounds[back],
        )
