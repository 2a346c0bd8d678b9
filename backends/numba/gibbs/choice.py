"""Which form runs: by the settings, the model and the number of chains."""

from __future__ import annotations

import numpy as np

from spinbench.backends.numba.gibbs import patterns
from spinbench.backends.numba.gibbs.form import Name
from spinbench.backends.numba.gibbs.tables import Source

MANY_CHAINS = 16
"""From so many chains on vectors run over chains: a float32 vector of AVX-512 holds 16."""
MANY_PATTERN_CHAINS = 8
"""The same with tables, where a vector holds 32 and one chain is as fast as a quarter of it."""
MANY_GATHERING_CHAINS = 4
"""The same where rows have so many neighbours that they have no tables, and vectors over rows gather them."""
ENTRIES_A_CHAIN = 2**15
"""Tables of more entries for each chain take longer to read than fields to sum: 200 x 200 with 16 chains."""
WIDE_BLOCK = 16
"""Mean number of rows of a block from which vectors over rows are faster than tables row by row: of float32, and of
float64 where neighbours lie in windows."""
LONG_ROWS = 128
"""Rows of a dense model of this length are cheaper to add on a flip than to multiply for every update."""
LONG_ROWS_OF_FEW = 24
"""The same where chains are too few for vectors."""


def choose(source: Source, chains: int) -> Name:
    """The form for so many chains of a model."""
    method, n = source.method, source.model.num_variables
    if method.precision_bits:
        return "pattern_lanes"
    if method.sample != "sweep" or method.scan == "random":
        return "single_updates"
    if source.dense_row >= (LONG_ROWS if chains >= MANY_CHAINS else LONG_ROWS_OF_FEW):
        return "dense"
    tabled = not method.weighs_steps  # tables have no part of log T
    entries = min(patterns.MOST_ENTRIES, ENTRIES_A_CHAIN * chains)
    if tabled and chains >= MANY_PATTERN_CHAINS and patterns.fit(n, source.widest, entries):
        return "pattern_lanes"
    if chains >= (MANY_CHAINS if source.widest <= patterns.MAX_NEIGHBOURS else MANY_GATHERING_CHAINS):
        return "lanes"
    wide = n >= WIDE_BLOCK * (len(source.bounds) - 1)
    small = tabled and patterns.fit(n, source.widest, patterns.MOST_ROW_ENTRIES)
    return "sites" if not small or (wide and (source.real == np.float32 or source.windowed)) else "pattern_rows"
