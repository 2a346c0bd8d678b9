"""What Gibbs sampling of a factor graph is planned with: its tables, a state of high probability, ranges."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from spinbench.api import Array, FactorGraph
from spinbench.mathematics.graphs.factor_tables import FactorTables, factor_tables
from spinbench.mathematics.graphs.table_layouts import FloatArray, TableSweep, marginal_rows, table_sweep
from spinbench.methods.gibbs.modes import find_graph_mode


class GraphTables(NamedTuple):
    """What `Gibbs.plan` prepares for a factor graph.

    Attributes:
        sweep: the sweep; also the kernel T of Chib's estimator.
        variables, states: (R,) int32, what is reported, see `marginal_rows`.
        blank: (R + 1,) zeros.
        mode: (N,) int32, s*.
        mode_log_weight: () log p*(s*), the model's constant included.
        base: () log Z at inverse temperature 0, the model's constant included.
        zeros: () 1 where a table has a hard zero, else 0.
        low, high: (R,) the range of p(x_v = k | rest) of what is reported.
    """

    sweep: TableSweep
    variables: Array
    states: Array
    blank: Array
    mode: Array
    mode_log_weight: Array
    base: Array
    zeros: Array
    low: Array
    high: Array


def plan_graph(model: FactorGraph, *, raster: bool, single_updates: bool, needs_mode: bool) -> GraphTables:
    """Colours or levels, places of entries, and s* where it is looked for."""
    tables = factor_tables(model)
    sweep = table_sweep(tables, "raster" if raster else "chromatic", single_updates)
    variables, states = marginal_rows(tables.cardinalities)
    low, high = conditional_ranges(tables)
    mode, mode_log_weight = np.zeros(model.num_variables, dtype=np.int32), 0.0
    if needs_mode:
        mode = find_graph_mode(model, sweep)
        mode_log_weight = float(model.log_weight(mode))
    return GraphTables(
        sweep=sweep,
        variables=variables.astype(np.int32),
        states=states.astype(np.int32),
        blank=np.zeros(len(variables) + 1),
        mode=mode,
        mode_log_weight=np.array(mode_log_weight),
        base=np.array(tables.log_constant + float(np.log(tables.cardinalities).sum())),
        zeros=np.array(float(np.isneginf(tables.values).any())),
        low=low,
        high=high,
    )


def conditional_ranges(tables: FactorTables) -> tuple[FloatArray, FloatArray]:
    """(R,) the least and the largest p(x_v = k | rest) of what is reported that any state of the others leaves.

    From ranges of log t(j, rest) - log t(k, rest) of each factor by itself, so that no state leaves more than these.
    """
    variables, states = marginal_rows(tables.cardinalities)
    low, high = np.zeros(len(variables)), np.ones(len(variables))
    rows = np.searchsorted(variables, np.arange(len(tables.cardinalities) + 1))
    for v in np.unique(variables):
        least, greatest = _log_odds_bounds(tables, int(v))
        span = slice(rows[v], rows[v + 1])
        with np.errstate(over="ignore", divide="ignore"):
            high[span] = (1 / np.exp(least).sum(axis=0))[states[span]]
            low[span] = (1 / np.exp(greatest).sum(axis=0))[states[span]]
    return low, high


def _log_odds_bounds(tables: FactorTables, v: int) -> tuple[FloatArray, FloatArray]:
    """(K, K) bounds of the log odds of state j against state k, from below and above."""
    size = int(tables.cardinalities[v])
    least, greatest = np.zeros((2, size, size))
    for e in range(tables.starts[v], tables.starts[v + 1]):
        f, stride = tables.factors[e], int(tables.strides[e])
        table = tables.values[tables.offsets[f] : tables.offsets[f + 1]].reshape(-1, size, stride)
        t = np.moveaxis(table, 1, 0).reshape(size, -1)
        with np.errstate(invalid="ignore"):
            log_ratios = t[:, None] - t[None]
        if np.isfinite(t).all():
            least, greatest = least + log_ratios.min(axis=2), greatest + log_ratios.max(axis=2)
            continue
        impossible = np.isneginf(t).all(axis=0)
        log_ratios[:, :, impossible] = np.nan
        # Where the entries of two states are both 0 and a third is not, all weight is on the third, and the ratio of
        # the two is arbitrary.
        log_ratios[np.isnan(log_ratios) & ~impossible] = 0.0
        with np.errstate(invalid="ignore"):
            least += np.nanmin(log_ratios, axis=2)
            greatest += np.nanmax(log_ratios, axis=2)
    least, greatest = np.where(np.isnan(least), -np.inf, least), np.where(np.isnan(greatest), np.inf, greatest)
    np.fill_diagonal(least, 0.0)
    np.fill_diagonal(greatest, 0.0)
    return least, greatest
