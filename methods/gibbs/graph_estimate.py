"""What a run of `gibbs` says of a factor graph."""

from __future__ import annotations

import numpy as np

from spinbench.api import Estimate
from spinbench.api.trace import Trace
from spinbench.mathematics import statistics
from spinbench.mathematics.claims import FEWEST_SAMPLES, marginal_claims
from spinbench.mathematics.graphs.table_layouts import FloatArray
from spinbench.methods.gibbs import log_z
from spinbench.methods.gibbs.graph_plan import GraphTables
from spinbench.models import FactorGraph


def graph_estimate(model: FactorGraph, tables: GraphTables, trace: Trace, asked: str, *, single: bool) -> Estimate:
    """As `Gibbs.estimate`.

    Args:
        model: the model.
        tables: of the method.
        trace: of the run.
        asked: the setting `log_z`.
        single: whether a sample is one update.
    """
    name = "p" if "p" in trace.reductions else "s"
    series = trace.means(name)
    means, draws = series.mean(), trace.samples * series.chains
    low, high = (tables.low, tables.high) if name == "p" else (np.zeros(len(means)), np.ones(len(means)))
    found = marginal_claims(series, trace.samples, low, high, every=series.every)
    reported, estimates, diagnostics = log_z.estimates(asked, float(tables.base), float(tables.mode_log_weight), trace)
    value, claim = estimates.get(reported, (None, None))
    short = single and trace.samples < FEWEST_SAMPLES * len(np.unique(tables.variables))
    ess = statistics.effective_sample_size(means, found.standard_errors, draws)
    return Estimate(
        marginals=per_variable(model, tables, means, 1.0, complement=True),
        marginals_se=per_variable(model, tables, found.errors, 0.0),
        log_z=value,
        log_z_se=claim,
        ess=per_variable(model, tables, ess, float(draws)),
        r_hat=per_variable(model, tables, found.r_hat, 1.0),
        log_z_estimates=estimates,
        diagnostics=diagnostics,
        doubts=log_z.doubts("too short" if short else found.doubt, asked, claim),
    )


def per_variable(
    model: FactorGraph, tables: GraphTables, rows: FloatArray, alone: float, *, complement: bool = False
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
