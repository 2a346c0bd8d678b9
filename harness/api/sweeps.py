"""Sweeps: host tables for programs that update one binary variable at a time, and these updates.

`layout` says which variables are updated together and in which order, `compressed_rows` who is next to whom in that
order; of these `sweep_tables` makes a `Sweep` (few blocks, each a table of its own), or `scan_tables` a `Scan` (many
blocks, as chunks of one size). In a generic program, `HeatBath(backend).sweep(key, tables, s)` draws each variable
given the rest, by sparse couplings where they are few: these are the sweeps of `gibbs`, at its speed.
"""

from __future__ import annotations

from spinbench.mathematics.graphs.colouring import colouring, raster_levels
from spinbench.mathematics.graphs.rows import AnyRows, Rows, Windows, compressed_rows
from spinbench.mathematics.graphs.sweep_layouts import (
    Block,
    Layout,
    Scan,
    Sweep,
    layout,
    scan_tables,
    sweep_tables,
)
from spinbench.mathematics.heat_bath.updates import HeatBath

__all__ = [
    "AnyRows",
    "Block",
    "HeatBath",
    "Layout",
    "Rows",
    "Scan",
    "Sweep",
    "Windows",
    "colouring",
    "compressed_rows",
    "layout",
    "raster_levels",
    "scan_tables",
    "sweep_tables",
]
