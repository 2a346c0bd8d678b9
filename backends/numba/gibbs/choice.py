"""Which form runs: by the settings, the model and the number of chains."""

from __future__ import annotations

from spinbench.backends.numba.gibbs import patterns
from spinbench.backends.numba.gibbs.fixed import fixed_tables
from spinbench.backends.numba.gibbs.form import Name
from spinbench.backends.numba.gibbs.pattern_sites import site_tables
from spinbench.backends.numba.gibbs.tables import Source
from spinbench.mathematics.graphs.rows import is_dense

MANY_CHAINS = 16
"""From so many chains on vectors run over chains: a float32 vector of AVX-512 holds 16."""
MANY_PATTERN_CHAINS = 8
"""The same with tables, where a vector holds 32 and one chain is as fast as a quarter of it."""
WIDE_BLOCK = 16
"""Mean number of rows of a block from which vectors run over rows."""
LONG_ROWS = 128
"""Rows of a dense model of this length are cheaper to add on a flip than to multiply for every update."""


def choose(source: Source, chains: int) -> Name:
    """The form for so many chains of a model."""
    method, n = source.method, source.model.num_variables
    if method.precision_bits:
        return "pattern_lanes"
    if source.model.groups or method.sample != "sweep" or method.scan == "random":
        return "units"
    if source.once(_has_long_rows):
        return "dense" if source.once(fixed_tables) is None else "fixed"
    if chains >= MANY_PATTERN_CHAINS and patterns.fit_lanes(n, source.widest):
        return "pattern_lanes"
    if chains >= MANY_CHAINS:
        return "lanes"
    if n >= WIDE_BLOCK * (len(source.bounds) - 1):
        return "sites" if source.once(site_tables) is None else "pattern_sites"
    return "pattern_rows" if patterns.fit_rows(n, source.widest) else "raster"


def _has_long_rows(source: Source) -> bool:
    return is_dense(source.rows) and int(source.rows.start[-1]) >= LONG_ROWS * source.model.num_variables
