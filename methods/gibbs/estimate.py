"""What a run of `gibbs` says of a model."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import FEWEST_SAMPLES, log_z_parts, marginal_claims
from spinbench.mathematics.graphs.sweep_layouts import by_variable
from spinbench.mathematics.graphs.table_layouts import FloatArray
from spinbench.mathematics.ranges import conditional_range
from spinbench.methods.gibbs import log_z
from spinbench.methods.gibbs.graph_plan import GraphTables
from spinbench.methods.gibbs.sweeps import Tables
from spinbench.models import FactorGraph, PairwiseModel


class Reported(NamedTuple):
    """What is reported of a model's rows.

    Attributes:
        low, high: (R,) the range of p.
        base: log Z at inverse temperature 0, the model's constant included.
        updated: variables of two states or more.
        by_variable: of (R,) values, those of the variables, in the layout of `Estimate`; with what a variable of one
            state has, and whether state 0 of a binary one has one minus the value of state 1, not the same.
    """

    low: FloatArray
    high: FloatArray
    base: float
    updated: int
    by_variable: Callable[[FloatArray, float, bool], FloatArray | list[FloatArray]]


def _map_to_variables(model: FactorGraph | PairwiseModel, tables: Any) -> Reported:
    if isinstance(model, PairwiseModel):
        low, high = (bound[tables.order] for bound in conditional_range(model))
        base, updated = log_z.log_z_without_couplings(model), model.num_variables
        return Reported(low, high, base, updated, lambda rows, *_: by_variable(tables.order, rows))
    updated = len(np.unique(tables.variables))
    return Reported(tables.low, tables.high, float(tables.base), updated, partial(per_variable, model, tables))


def gibbs_estimate(
    model: FactorGraph | PairwiseModel, tables: Tables | GraphTables, trace: Trace, asked: str, *, single: bool
) -> Estimate:
    """As `Gibbs.estimate`.

    Args:
        model: the model.
        tables: of the method.
        trace: of the run.
        asked: the setting `log_z`.
        single: whether a sample is one update.
    """
    name, rows = "p" if "p" in trace.reductions else "s", _map_to_variables(model, tables)
    series = trace.means(name)
    means, draws = series.mean(), trace.samples * series.chains
    low, high = (rows.low, rows.high) if name == "p" else (np.zeros(len(means)), np.ones(len(means)))
    found = marginal_claims(series, trace.samples, low, high, every=series.every)
    reported, estimates, diagnostics = log_z.estimates(asked, rows.base, float(tables.mode_log_weight), trace)
    claim = estimates.get(reported)
    # of what was not updated, chains know their starts alone
    short = single and trace.samples < FEWEST_SAMPLES * rows.updated
    ess = statistics.effective_sample_size(means, found.mcse, draws)
    return Estimate(
        marginals=rows.by_variable(means, 1.0, True),
        marginals_se=rows.by_variable(found.se, 0.0, False),
        marginals_error_bound=rows.by_variable(found.error_bounds, 0.0, False),
        **log_z_parts(claim, estimates),
        ess=rows.by_variable(ess, float(draws), False),
        r_hat=rows.by_variable(found.r_hat, 1.0, False),
        diagnostics=diagnostics,
        doubts=log_z.doubts("too short" if short else found.doubt, asked, claim),
    )


def per_variable(
    model: FactorGraph, tables: GraphTables, rows: FloatArray, alone: float, complement: bool
) -> FloatArray | list[FloatArray]:
    """Values of what is reported as those of variables, in the layout of `Estimate`.

    Args:
        model: the model.
        tables: which say what the rows are.
        rows: (R,).
        alone: of a variable of one state.
        complement: whether state 0 of a binary variable has one minus the value of state 1, not the same.
    """
    if all(k == 2 for k in model.cardinalities):
        return rows
    bounds = np.searchsorted(tables.variables, np.arange(model.num_variables + 1))
    found = []
    for v, k in enumerate(model.cardinalities):
        own = rows[bounds[v] : bounds[v + 1]]
        if k == 2:
            own = np.append(1 - own if complement else own, own)
        found.append(own.copy() if k > 1 else np.array([alone]))
    return found
