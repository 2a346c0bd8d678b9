"""What a run of `gibbs` says of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Estimate, FactorGraph, PairwiseModel, Trace, conditional_range, marginal_claims
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import FEWEST_SAMPLES, log_z_parts
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.mathematics.graphs.table_layouts import FloatArray
from spinbench.methods.gibbs import log_z
from spinbench.methods.gibbs.graph_plan import GraphTables
from spinbench.methods.gibbs.sweeps import Tables


class RowMap(NamedTuple):
    """What is reported of a model's rows.

    Attributes:
        low, high: (R,) the range of p.
        base: log Z at inverse temperature 0, the model's constant included.
        num_updated: variables of two states or more.
        by_variable: of (R,) values, those of the variables, in the layout of `Estimate`; with what a variable of one
            state has, and whether state 0 of a binary one has one minus the value of state 1, not the same.
    """

    low: FloatArray
    high: FloatArray
    base: float
    num_updated: int
    by_variable: Callable[[FloatArray, float, bool], FloatArray | list[FloatArray]]


def _build_row_map(model: FactorGraph | PairwiseModel, tables: Any) -> RowMap:
    if isinstance(model, PairwiseModel):
        low, high = (bound[tables.order] for bound in conditional_range(model))
        # Of uniform, independent variables: log Z at inverse temperature 0.
        base = float(model.log_constant + model.num_variables * np.log(2))
        return RowMap(low, high, base, model.num_variables, lambda rows, *_: by_variable(tables.order, rows))
    num_updated = len(np.unique(tables.variables))
    return RowMap(tables.low, tables.high, float(tables.base), num_updated, partial(split_by_variable, model, tables))


def gibbs_estimate(
    model: FactorGraph | PairwiseModel,
    tables: Tables | GraphTables,
    trace: Trace,
    estimator: str,
    *,
    single_updates: bool,
) -> Estimate:
    """As `Gibbs.estimate`.

    Args:
        model: the model.
        tables: of the method.
        trace: of the run.
        estimator: the setting `log_z`.
        single_updates: whether a sample is one update.
    """
    rows = _build_row_map(model, tables)
    if "p" in trace.reductions:
        name, low, high = "p", rows.low, rows.high
    else:
        name, low, high = "s", np.zeros_like(rows.low), np.ones_like(rows.high)
    series = trace.means(name)
    # An engine may report groups of chains in place of very many.
    group_size = max(trace.chains / series.chains, 1.0)
    means, draws = series.mean(), round(trace.samples * series.chains * group_size)
    errors = marginal_claims(series, trace.samples, low, high, every=series.every, group_size=group_size)
    reported_name, estimates, diagnostics = log_z.log_z_estimates(
        estimator, rows.base, float(tables.mode_log_weight), trace, mixed=errors.doubt != "not mixed"
    )
    claim = estimates.get(reported_name)
    # Variables that were not updated are still in their initial states.
    too_short = single_updates and trace.samples < FEWEST_SAMPLES * rows.num_updated
    ess = statistics.effective_sample_size(means, errors.mcse, draws)
    return Estimate(
        marginals=rows.by_variable(means, 1.0, True),
        marginals_se=rows.by_variable(errors.se, 0.0, False),
        marginals_error_bound=rows.by_variable(errors.error_bounds, 0.0, False),
        **log_z_parts(claim, estimates),
        ess=rows.by_variable(ess, float(draws), False),
        r_hat=rows.by_variable(errors.r_hat, 1.0, False),
        diagnostics=diagnostics,
        doubts=log_z.collect_doubts("too short" if too_short else errors.doubt, estimator, claim),
    )


def split_by_variable(
    model: FactorGraph, tables: GraphTables, rows: FloatArray, single_state_value: float, complement: bool
) -> FloatArray | list[FloatArray]:
    """Values of what is reported as those of variables, in the layout of `Estimate`.

    Args:
        model: the model.
        tables: which say what the rows are.
        rows: (R,).
        single_state_value: of a variable of one state.
        complement: whether state 0 of a binary variable has one minus the value of state 1, not the same.
    """
    if all(k == 2 for k in model.cardinalities):
        return rows
    bounds = np.searchsorted(tables.variables, np.arange(model.num_variables + 1))
    per_variable = []
    for v, k in enumerate(model.cardinalities):
        state_values = rows[bounds[v] : bounds[v + 1]].copy()
        if k == 1:
            state_values = np.array([single_state_value])
        elif k == 2:
            state_values = np.append(1 - state_values if complement else state_values, state_values)
        per_variable.append(state_values)
    return per_variable
